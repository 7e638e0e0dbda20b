package stores

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Text that is written to a connection: commands of Redis in its own form or as
// lines, of memcached, and requests of HTTP.

// WireStrong are those that no other text begins with.
var WireStrong = scan.SetOf("flushall flushdb flush_all slaveof replicaof")

// LooksWire tells whether a text is one that a server takes as commands.
func LooksWire(text string) bool {
	text = strings.TrimLeft(text, " \r\n")
	if IsRESP(text) || RequestLine(text) != nil {
		return true
	}
	first, rest, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	return WireStrong.Has(first) || first == "config" && strings.HasPrefix(rest, "set ")
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
