package store

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// runWire judges text that is written to the connection of a server: an HTTP request, Redis
// commands or SQL. The address may be empty.
func runWire(sh *interp.Process, src *act.Source, address string) {
	e := sh.Env
	text := strings.TrimLeft(src.Text, " \r\n")
	if src.Depth > scan.MaxDepth || !e.Budget.Spend(1+len(text)/16) {
		return
	}
	if f := stores.RequestLine(text); f != nil {
		wireRequest(sh, src, f, text, address)
		return
	}
	if stores.IsRESP(text) {
		text = respLines(text)
	}
	text = strings.ReplaceAll(text, "\r", "")
	first, _, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	switch {
	case wirePorts.Has(address[strings.LastIndexByte(address, ':')+1:]), stores.WireStrong.Has(first), wireVerbs.Has(first) && stores.LooksWire(text):
		e.Redis(src, text, " "+address)
	case stores.LooksSQL(text):
		inner := *src
		inner.Text, inner.At = text, -1
		e.Read("sql", &inner, nil)
	}
}

// wireRequest judges an HTTP request that is written out as text, as if curl sent it.
func wireRequest(sh *interp.Process, src *act.Source, f []string, text, address string) {
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
	v := &act.Invocation{Src: src, To: len(src.Text), Stdin: act.Flow{Known: true}}
	for _, a := range argv {
		v.Argv = append(v.Argv, act.Word{Text: a, At: -1, Span: src.Span})
	}
	sh.Reading(src).Run(v)
}

// Wire judges the text that a client such as nc or telnet reads and sends to a server, and the
// text inside a gopher or dict URL of curl or wget. It always returns false, because it matches no
// rule for the call itself.
func Wire(sh *interp.Process, v *act.Invocation) bool {
	switch v.Exe {
	case "nc", "ncat", "netcat", "socat", "telnet", "openssl", "websocat", "tcpconnect":
		if v.Exe == "openssl" && !v.Has("s_client") || !v.Stdin.Known || v.Stdin.Word.Text == "" {
			return false
		}
		src := sh.Src.Inside(v.Stdin.Word, v.Exe)
		runWire(sh, &src, rawAddress(v))
	case "curl", "wget":
		if scheme, _, _, _ := hosts.Split(v.Word(len(v.Argv) - 1).Text); scheme == "telnet" && v.Stdin.Known {
			src := sh.Src.Inside(v.Stdin.Word, v.Exe)
			runWire(sh, &src, v.Word(len(v.Argv) - 1).Text[len("telnet://"):])
		}
		for i := range v.Operands {
			wireURL(sh, v.Operands[i])
		}
		if w, ok := v.Value("--url"); ok {
			wireURL(sh, w)
		}
	}
	return false
}

// wireURL judges the text that a gopher or dict URL sends to a server:
// gopher://host:6379/_FLUSHALL%0d%0a, dict://host:6379/flushall.
func wireURL(sh *interp.Process, w act.Word) {
	scheme, _, rest, ok := hosts.Split(w.Text)
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
		text = text[1:] // skip the item type of gopher
	}
	w.Text, w.At = text, -1
	src := sh.Src.Inside(w, scheme)
	runWire(sh, &src, address)
}

// WireFile judges text that is written to /dev/tcp/host/port.
func WireFile(sh *interp.Process, file act.Word, f act.Flow, _ *act.Invocation) {
	rest, ok := strings.CutPrefix(file.Text, "/dev/tcp/")
	if !ok || !f.Known || f.Word.Text == "" {
		return
	}
	src := sh.Src.Inside(f.Word, "/dev/tcp")
	runWire(sh, &src, strings.Replace(rest, "/", ":", 1))
}

// ReadWire judges text that is written to a server whose address is unknown.
func ReadWire(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runWire(sh, src, "")
	return act.Flow{}
}

// respLines converts commands of the Redis protocol (RESP) to one line of words per command.
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

// rawAddress returns the host:port that a client such as nc or socat connects to, or "".
func rawAddress(v *act.Invocation) string {
	if w, ok := v.Value("-connect"); ok {
		return w.Text
	}
	for i, w := range v.Operands {
		kind, rest, ok := strings.Cut(w.Text, ":")
		switch {
		case v.Exe == "socat" && ok && !strings.Contains(strings.ToLower(kind), "exec"):
			return strings.TrimSuffix(firstOfList(rest), "/")
		case v.Exe != "socat" && i+1 < len(v.Operands):
			return w.Text + ":" + v.Operands[i+1].Text
		}
	}
	return ""
}

func firstOfList(text string) string {
	text, _, _ = strings.Cut(text, ",")
	return text
}

// wirePorts lists the default ports of Redis and Memcached.
var wirePorts = scan.SetOf("6378 6379 6380 7000 7001 11211 26379")

// wireVerbs lists first words of a line that identify it as a Redis or Memcached command.
var wireVerbs = scan.SetOf("flushall flushdb flush_all config slaveof replicaof eval evalsha module debug migrate restore script function acl cluster swapdb del unlink shutdown set hset get auth select delete incr ping info keys")
