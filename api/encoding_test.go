package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestLargeDocumentsArePacked checks that large public documents are compressed for clients that
// accept it, with their own entity tag, and that private answers are never compressed.
func TestLargeDocumentsArePacked(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	plain := n.get("/openapi.json")
	unpack := map[string]func([]byte) ([]byte, error){
		"gzip": func(b []byte) ([]byte, error) {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		},
		"zstd": func(b []byte) ([]byte, error) {
			r, err := zstd.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return io.ReadAll(r)
		},
	}
	for accept, want := range map[string]string{"gzip": "gzip", "gzip, deflate, br, zstd": "zstd", "zstd;q=0.5, gzip": "gzip", "br": "", "gzip;q=0": "", "": ""} {
		a := n.send(http.MethodGet, "/openapi.json", "", "Accept-Encoding", accept)
		if a.status != 200 || a.header.Get("Content-Encoding") != want || a.header.Get("Vary") == "" {
			t.Errorf("%q: %d %v", accept, a.status, a.header)
			continue
		}
		if want == "" {
			continue
		}
		body, err := unpack[want](a.body)
		if err != nil || !bytes.Equal(body, plain.body) || len(a.body)*4 > len(plain.body) || a.header.Get("ETag") == plain.header.Get("ETag") {
			t.Errorf("%q: %v, %d of %d octets, %s", accept, err, len(a.body), len(plain.body), a.header.Get("ETag"))
		}
		if again := n.send(http.MethodGet, "/openapi.json", "", "Accept-Encoding", accept, "If-None-Match", a.header.Get("ETag")); again.status != 304 || len(again.body) != 0 {
			t.Errorf("%q again: %d", accept, again.status)
		}
	}
	key := n.issueKey()
	if a := n.post(quickPath, key, `{"command":"ls"}`, "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "" {
		t.Errorf("a private answer is packed: %v", a.header)
	}
}
