package actionrisk

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Text that is written to a connection: commands of Redis in its own form or as
// lines, of memcached, and requests of HTTP.

// wireVerbs are first words by which a line to a server is known.
var wireVerbs = scan.SetOf("flushall flushdb flush_all config slaveof replicaof eval evalsha module debug migrate restore script function acl cluster swapdb del unlink shutdown set hset get auth select delete incr ping info keys")

// wireStrong are those that no other text begins with.
var wireStrong = scan.SetOf("flushall flushdb flush_all slaveof replicaof")

// looksWire tells whether a text is one that a server takes as commands.
func looksWire(text string) bool {
	text = strings.TrimLeft(text, " \r\n")
	if isRESP(text) || requestLine(text) != nil {
		return true
	}
	first, rest, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	return wireStrong[first] || first == "config" && strings.HasPrefix(rest, "set ")
}

// isRESP: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".
func isRESP(text string) bool {
	return len(text) > 3 && text[0] == '*' && text[1] >= '1' && text[1] <= '9' && strings.Contains(text[:min(len(text), 12)], "\n$")
}

// requestLine splits the first line of an HTTP request; nil if it is none.
func requestLine(text string) []string {
	f := strings.Fields(scan.FirstLine(text))
	if len(f) == 3 && strings.HasPrefix(f[2], "HTTP/") && f[0] == strings.ToUpper(f[0]) {
		return f
	}
	return nil
}

// respLines writes Redis's own form as lines of words.
func respLines(text string) string {
	var out strings.Builder
	left := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case left == 0 && strings.HasPrefix(line, "*"):
			n, err := strconv.Atoi(line[1:])
			if left = n; err != nil || n < 0 {
				left = 0
			}
		case strings.HasPrefix(line, "$"):
		case left > 0:
			out.WriteString(line)
			if left--; left == 0 {
				out.WriteByte('\n')
			} else {
				out.WriteByte(' ')
			}
		default:
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// runWire judges text that is written to a server at an address.
func runWire(sh *shell, src *source, address string) {
	e := sh.e
	text := strings.TrimLeft(src.text, " \r\n")
	if src.depth > scan.MaxDepth || !e.budget.spend(1+len(text)/16) {
		return
	}
	if f := requestLine(text); f != nil {
		e.wireRequest(sh, src, f, text, address)
		return
	}
	if isRESP(text) {
		text = respLines(text)
	}
	text = strings.ReplaceAll(text, "\r", "")
	first, _, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	port := address[strings.LastIndexByte(address, ':')+1:]
	known := port == "6379" || port == "6380" || port == "6378" || port == "11211" || port == "26379" || port == "7000" || port == "7001"
	switch {
	case known, wireStrong[first], wireVerbs[first] && looksWire(text):
		e.redis(src, text, " "+address)
	case looksSQL(text):
		inner := *src
		inner.text, inner.at = text, -1
		e.read("sql", &inner, nil)
	}
}

// wireRequest judges a request that is written out by hand.
func (e *engine) wireRequest(sh *shell, src *source, f []string, text, address string) {
	host := strings.TrimSuffix(address, ":80")
	head, body, _ := strings.Cut(strings.ReplaceAll(text, "\r", ""), "\n\n")
	for line := range strings.Lines(head) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "host") && host == "" {
			host = strings.TrimSpace(value)
		}
	}
	argv := []string{"curl", "-X", f[0], "http://" + host + f[1]}
	if body != "" {
		argv = append(argv, "-d", body)
	}
	v := &invocation{src: src, to: len(src.text), stdin: flow{known: true}}
	for _, a := range argv {
		v.argv = append(v.argv, Word{Text: a, At: -1, Span: src.span})
	}
	inner := *sh
	inner.src = src
	inner.run(v)
}

// wire judges what a raw client is given on its input, and what an address of curl
// carries in itself.
func wire(sh *shell, v *invocation) bool {
	switch v.exe {
	case "nc", "ncat", "netcat", "socat", "telnet", "openssl", "websocat", "tcpconnect":
		if v.exe == "openssl" && !v.has("s_client") || !v.stdin.known || v.stdin.word.Text == "" {
			return false
		}
		src := sh.src.inside(v.stdin.word, v.exe)
		runWire(sh, &src, rawAddress(v))
	case "curl", "wget":
		if scheme, _, _, _ := urlOf(v.word(len(v.argv) - 1).Text); scheme == "telnet" && v.stdin.known {
			src := sh.src.inside(v.stdin.word, v.exe)
			runWire(sh, &src, v.word(len(v.argv) - 1).Text[len("telnet://"):])
		}
		for i := range v.operands {
			sh.wireURL(v.operands[i])
		}
		if w, ok := v.value("--url"); ok {
			sh.wireURL(w)
		}
	}
	return false
}

// rawAddress is host:port as a raw client is given it.
func rawAddress(v *invocation) string {
	if w, ok := v.value("-connect"); ok {
		return w.Text
	}
	for i, w := range v.operands {
		kind, rest, ok := strings.Cut(w.Text, ":")
		switch {
		case v.exe == "socat" && ok && !strings.Contains(strings.ToLower(kind), "exec"):
			return strings.TrimSuffix(firstOfList(rest), "/")
		case v.exe != "socat" && i+1 < len(v.operands):
			return w.Text + ":" + v.operands[i+1].Text
		}
	}
	return ""
}

func firstOfList(text string) string {
	text, _, _ = strings.Cut(text, ",")
	return text
}

// wireURL judges gopher://host:6379/_FLUSHALL%0d%0a and dict://host:6379/flushall.
func (sh *shell) wireURL(w Word) {
	scheme, _, rest, ok := urlOf(w.Text)
	if !ok || scheme != "gopher" && scheme != "gophers" && scheme != "dict" || len(rest) < 2 {
		return
	}
	address, _, _ := strings.Cut(w.Text[strings.Index(w.Text, "://")+3:], "/")
	text, err := url.PathUnescape(rest[1:])
	if err != nil {
		text = rest[1:]
	}
	if scheme == "dict" {
		text = strings.ReplaceAll(text, ":", " ")
	} else if len(text) > 1 {
		text = text[1:] // the type of the item
	}
	w.Text, w.At = text, -1
	src := sh.src.inside(w, scheme)
	runWire(sh, &src, address)
}

// wireFile judges what is written to /dev/tcp/host/port.
func wireFile(sh *shell, file Word, f flow, _ *invocation) {
	rest, ok := strings.CutPrefix(file.Text, "/dev/tcp/")
	if !ok || !f.known || f.word.Text == "" {
		return
	}
	src := sh.src.inside(f.word, "/dev/tcp")
	runWire(sh, &src, strings.Replace(rest, "/", ":", 1))
}

// readWire judges text that is written to a server nobody named.
func readWire(sh *shell, src *source, _ string, _ *invocation) flow {
	runWire(sh, src, "")
	return flow{}
}
