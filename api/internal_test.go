package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
