package stores

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file recognizes texts that are written to a network connection: Redis commands (in its
// protocol or as lines), memcached commands, and HTTP requests.

// WireStrong are first words that only texts for a server have.
var WireStrong = scan.SetOf("flushall flushdb flush_all slaveof replicaof")

// LooksWire reports whether a text is a command for a server.
func LooksWire(text string) bool {
	text = strings.TrimLeft(text, " \r\n")
	if IsRESP(text) || RequestLine(text) != nil {
		return true
	}
	first, rest, _ := strings.Cut(strings.ToLower(scan.FirstLine(text)), " ")
	return WireStrong.Has(first) || first == "config" && strings.HasPrefix(rest, "set ")
}

// IsRESP reports whether a text is in the Redis protocol: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".
func IsRESP(text string) bool {
	return len(text) > 3 && text[0] == '*' && text[1] >= '1' && text[1] <= '9' && strings.Contains(text[:min(len(text), 12)], "\n$")
}

// RequestLine splits the first line of an HTTP request. It returns nil for other texts.
func RequestLine(text string) []string {
	f := strings.Fields(scan.FirstLine(text))
	if len(f) == 3 && strings.HasPrefix(f[2], "HTTP/") && f[0] == strings.ToUpper(f[0]) {
		return f
	}
	return nil
}
