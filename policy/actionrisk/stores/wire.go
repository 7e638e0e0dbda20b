package stores

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Text that is written to a connection: commands of Redis in its own form or as
// lines, of memcached, and requests of HTTP.

// WireVerbs are first words by which a line to a server is known.
var WireVerbs = scan.SetOf("flushall flushdb flush_all config slaveof replicaof eval evalsha module debug migrate restore script function acl cluster swapdb del unlink shutdown set hset get auth select delete incr ping info keys")

// WireStrong are those that no other text begins with.
var WireStrong = scan.SetOf("flushall flushdb flush_all slaveof replicaof")

// LooksWire tells whether a text is one that a server takes as commands.
func LooksWire(text string) bool {
	text = strings.TrimLeft(text, " \r\n")
	if IsRESP(text) || RequestLine(text) != nil {
		return true
	}
	first, rest, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	return WireStrong[first] || first == "config" && strings.HasPrefix(rest, "set ")
}

// IsRESP: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".
func IsRESP(text string) bool {
	return len(text) > 3 && text[0] == '*' && text[1] >= '1' && text[1] <= '9' && strings.Contains(text[:min(len(text), 12)], "\n$")
}

// RequestLine splits the first line of an HTTP request; nil if it is none.
func RequestLine(text string) []string {
	f := strings.Fields(scan.FirstLine(text))
	if len(f) == 3 && strings.HasPrefix(f[2], "HTTP/") && f[0] == strings.ToUpper(f[0]) {
		return f
	}
	return nil
}

// RespLines writes Redis's own form as lines of words.
func RespLines(text string) string {
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

// RawAddress is host:port as a raw client is given it.
func RawAddress(v *act.Invocation) string {
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
