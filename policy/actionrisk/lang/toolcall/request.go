package toolcall

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file judges programs that send requests but are not usual HTTP clients: load testers,
// request files, gRPC clients.

// methodOptions maps a program that sends requests to the option that sets the HTTP method.
var methodOptions = map[string]string{"hey": "-m", "oha": "-m", "bombardier": "-m", "autocannon": "-m", "ab": "-m", "lwp-request": "-m", "drill": "-m", "wuzz": "-X"}

// OtherRequests judges the requests of load testers, gRPC clients and programs that read request
// files. It always returns false, because it matches no rule for the call itself.
func OtherRequests(sh *interp.Process, v *act.Invocation) bool {
	switch v.Exe {
	case "hey", "oha", "bombardier", "autocannon", "ab", "lwp-request", "drill", "wuzz":
		if m, ok := v.Value(methodOptions[v.Exe], "--method"); ok && len(v.Operands) > 0 {
			request(sh, strings.ToUpper(m.Text), v.Operands[len(v.Operands)-1])
		}
	case "restish":
		if len(v.Operands) > 1 {
			request(sh, strings.ToUpper(v.Operands[0].Text), v.Operands[1])
		}
	case "vegeta":
		f := v.Stdin
		if w, ok := v.Value("-targets", "--targets"); ok {
			f = sh.Env.ReadFile(sh, w)
		}
		requestLines(sh, f)
	case "hurl", "httpyac", "ijhttp":
		for _, w := range v.Operands {
			requestLines(sh, sh.Env.ReadFile(sh, w))
		}
		if len(v.Operands) == 0 {
			requestLines(sh, v.Stdin)
		}
	case "grpcurl", "evans", "grpc_cli":
		remoteCall(sh, v)
	}
	return false
}

// request judges one request as a call of curl.
func request(sh *interp.Process, method string, address act.Word) {
	src := sh.Src.Inside(address, "request")
	if src.Depth <= scan.MaxDepth {
		sh.Env.RunRequest(&src, interp.Request{Method: method, Address: address.Text})
	}
}

// requestLines judges the requests in a text with one request per line.
func requestLines(sh *interp.Process, f act.Flow) {
	if !f.Known {
		return
	}
	for line := range strings.Lines(f.Word.Text) {
		if r, ok := interp.RequestLine(strings.TrimSpace(line)); ok && sh.Env.Budget.Spend(4) {
			w := f.Word
			w.Text, w.At = r.Address, -1
			request(sh, r.Method, w)
		}
	}
}

// remoteCall judges a call of a gRPC method by its name: pkg.Service/DeleteTenant.
func remoteCall(sh *interp.Process, v *act.Invocation) {
	if len(v.Operands) < 2 {
		return
	}
	w := v.Operands[len(v.Operands)-1]
	name := w.Text[strings.LastIndexAny(w.Text, "/.")+1:]
	if !strings.ContainsAny(w.Text, "/.") || name == "" {
		return
	}
	if class := facts.ToolClass(name); class == "destructive" || class == "money" {
		sh.Env.Match(&act.Item{Kind: act.KindTool, Name: class, Src: sh.Src, From: v.From, To: v.To, Target: act.Printable(name), Words: v.Operands[0].Text})
	}
}
