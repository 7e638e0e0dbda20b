package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Programs that send requests and are no clients of the usual form: load testers,
// request files, gRPC.

// methodOptions are the options by which such programs are told the method.
var methodOptions = map[string]string{"hey": "-m", "oha": "-m", "bombardier": "-m", "autocannon": "-m", "ab": "-m", "lwp-request": "-m", "drill": "-m", "wuzz": "-X"}

// otherRequests judges what such a program sends.
func otherRequests(sh *shell, v *invocation) bool {
	switch v.exe {
	case "hey", "oha", "bombardier", "autocannon", "ab", "lwp-request", "drill", "wuzz":
		if m, ok := v.value(methodOptions[v.exe], "--method"); ok && len(v.operands) > 0 {
			sh.request(strings.ToUpper(m.Text), v.operands[len(v.operands)-1])
		}
	case "restish":
		if len(v.operands) > 1 {
			sh.request(strings.ToUpper(v.operands[0].Text), v.operands[1])
		}
	case "vegeta":
		f := v.stdin
		if w, ok := v.value("-targets", "--targets"); ok {
			f = sh.e.readFile(sh, w)
		}
		sh.requestLines(f)
	case "hurl", "httpyac", "ijhttp":
		for _, w := range v.operands {
			sh.requestLines(sh.e.readFile(sh, w))
		}
		if len(v.operands) == 0 {
			sh.requestLines(v.stdin)
		}
	case "grpcurl", "evans", "grpc_cli":
		sh.remoteCall(v)
	}
	return false
}

// request judges one request as curl's.
func (sh *shell) request(method string, address Word) {
	src := sh.src.inside(address, "request")
	if src.depth <= scan.MaxDepth {
		sh.e.runHTTPLine(&src, []string{method, address.Text})
	}
}

// requestLines judges the requests that a text lists, one on a line.
func (sh *shell) requestLines(f flow) {
	if !f.known {
		return
	}
	for line := range strings.Lines(f.word.Text) {
		if h := httpLine(strings.TrimSpace(line)); h != nil && sh.e.budget.spend(4) {
			w := f.word
			w.Text, w.At = h[1], -1
			sh.request(h[0], w)
		}
	}
}

// remoteCall judges a gRPC method by its name: pkg.Service/DeleteTenant.
func (sh *shell) remoteCall(v *invocation) {
	if len(v.operands) < 2 {
		return
	}
	w := v.operands[len(v.operands)-1]
	name := w.Text[strings.LastIndexAny(w.Text, "/.")+1:]
	if !strings.ContainsAny(w.Text, "/.") || name == "" {
		return
	}
	if class := toolClass(name); class == "destructive" || class == "money" {
		sh.e.match(&item{kind: kindTool, name: class, src: sh.src, from: v.from, to: v.to, target: printable(name), words: v.operands[0].Text})
	}
}
