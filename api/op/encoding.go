package op

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// worthPacking is the size from which a document is compressed. A smaller document fits into one
// packet anyway.
const worthPacking = 1400 // bytes

// packed caches the compressed forms of a document. Each form is created at the first request for
// it. Only public documents and pages are compressed. A compressed answer that contains both a
// secret and text of the caller would reveal the secret by its length.
type packed struct {
	mu   sync.Mutex
	form map[string][]byte // compressed bytes, by encoding
}

// encodings are the content encodings of documents, best first.
var encodings = []string{"zstd", "gzip"}

// encodingFor returns the best encoding that a request accepts (RFC 9110, section 12.5.3), or ""
// if it accepts none.
func encodingFor(accept string) string {
	best, most := "", 0.0
	for _, name := range encodings {
		if q := Weight(accept, name); q > most {
			best, most = name, q
		}
	}
	return best
}

// in returns the document compressed with an encoding.
func (p *packed) in(name string, body []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made, is := p.form[name]; is {
		return made, nil
	}
	made, err := compress(name, body)
	if err != nil {
		return nil, err
	}
	if p.form == nil {
		p.form = map[string][]byte{}
	}
	p.form[name] = made
	return made, nil
}

// The writers are kept, because a new one allocates about a megabyte.
var (
	zstdWriter  = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) })
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

// compress returns the body in an encoding.
func compress(name string, body []byte) ([]byte, error) {
	if name == "zstd" {
		w, err := zstdWriter()
		if err != nil {
			return nil, err
		}
		return w.EncodeAll(body, nil), nil
	}
	var out bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	_, err := w.Write(body)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// Compress returns a body in the best encoding that the request accepts, and sets the headers of
// the answer for it. The body must be public and the same for every caller, as for documents.
func Compress(h http.Header, accept string, body []byte) []byte {
	if len(body) < worthPacking {
		return body
	}
	h.Add("Vary", "Accept-Encoding")
	name := encodingFor(accept)
	if name == "" {
		return body
	}
	made, err := compress(name, body)
	if err != nil {
		return body // send it uncompressed
	}
	h.Set("Content-Encoding", name)
	return made
}

// encoded returns the answer with its document in the best encoding that the request accepts. The
// compressed form has its own entity tag, because its bytes differ.
func (d Document) encoded(r Reply, accept string) Reply {
	if len(d.Body) < worthPacking {
		return r
	}
	r.Header.Add("Vary", "Accept-Encoding")
	name := encodingFor(accept)
	if name == "" {
		return r
	}
	r.Header.Set("ETag", d.tagIn(name))
	if r.Status != 0 { // a 304 has no body
		return r
	}
	body, err := d.packed.in(name, d.Body)
	if err != nil {
		return r // send the document uncompressed
	}
	r.Body = body
	r.Header.Set("Content-Encoding", name)
	return r
}

// tagIn returns the entity tag of the document in this encoding.
func (d Document) tagIn(name string) string {
	return strings.TrimSuffix(d.etag, `"`) + "-" + name + `"`
}

// isTag reports whether a tag matches the document in any encoding.
func (d Document) isTag(tag string) bool {
	if tag == d.etag || tag == "*" {
		return true
	}
	for _, name := range encodings {
		if tag == d.tagIn(name) {
			return true
		}
	}
	return false
}
