package ledgertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Bucket starts an S3-compatible object store that accepts the access key "AK", and returns its
// address. It runs until the test ends.
func Bucket(t testing.TB) (endpoint string) {
	var mu sync.Mutex
	objects := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AK/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPut {
			objects[r.URL.Path], _ = io.ReadAll(r.Body)
			return
		}
		if objects[r.URL.Path] == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(objects[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return server.URL
}
