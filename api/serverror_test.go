package api

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
)

// What net/http refuses before any handler is an error like every other.
func TestErrorsOfTheServerItselfHaveOurForm(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := request.HTTP(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { server.Close() })
	go server.Serve(request.Bounded(listener))
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

func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for _, c := range []struct {
		peer, host, header string
		want               int
	}{
		{"192.0.2.1:80", "127.0.0.1:9464", "", 404}, {"[2001:db8::1]:80", "localhost", "", 404}, {"127.0.0.1:80", "127.0.0.1:9464", "", 200}, {"[::1]:80", "[::1]:9464", "", 200},
		{"127.0.0.1:80", "localhost:9464", "", 200}, {"127.0.0.1:80", "metrics.example", "", 404}, {"127.0.0.1:80", "localhost", "X-Forwarded-For", 404},
		{"127.0.0.1:80", "localhost", "Forwarded", 404}, {"127.0.0.1:80", "localhost", "Via", 404},
	} {
		for path, public := range map[string]bool{"/debug/pprof/cmdline": false, "/metrics": true} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr, r.Host = c.peer, c.host
			if c.header != "" {
				r.Header.Set(c.header, "192.0.2.1")
			}
			w := httptest.NewRecorder()
			n.server.Internal().ServeHTTP(w, r)
			if w.Code != c.want && !(public && w.Code == 200) {
				t.Errorf("%s from %s for %s, %s: %d, want %d", path, c.peer, c.host, c.header, w.Code, c.want)
			}
		}
	}
}
