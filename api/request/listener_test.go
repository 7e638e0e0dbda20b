package request

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/op"
)

// TestErrorsOfTheServerItselfHaveOurForm checks that refusals by net/http look like all other
// errors.
func TestErrorsOfTheServerItselfHaveOurForm(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := HTTP(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { server.Close() })
	go server.Serve(Bounded(listener))
	for name, request := range map[string]string{
		"no HTTP":           "hello\r\n\r\n",
		"two lengths":       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"headers too large": "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 2*op.MaxHeaderBytes) + "\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(conn, request)
		text, _ := io.ReadAll(conn)
		conn.Close()
		for _, part := range []string{"HTTP/1.1 4", "Content-Type: application/json", "X-Content-Type-Options: nosniff", "Cache-Control: no-store", `{"error":"`} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s: no %q in %q", name, part, text)
			}
		}
	}
}
