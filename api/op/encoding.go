package op

import (
	"bytes"
	"compress/gzip"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// worthPacking is the size from which a document is sent packed: below it all fits
// one packet anyway.
const worthPacking = 1400 // octets

// packed are the forms of a document for who takes them, each made when somebody
// asks first. They are only of public documents: what is secret and what a caller
// sends never stand in one packed text.
type packed struct {
	mu   sync.Mutex
	form map[string][]byte // by encoding
}

// encodings are what a document can be sent in, the best first.
var encodings = []string{"zstd", "gzip"}

// encodingFor is the encoding that a request takes (RFC 9110, 12.5.3); empty for
// none.
func encodingFor(accept string) string {
	best, most := "", 0.0
	for _, name := range encodings {
		if q := Weight(accept, name); q > most {
			best, most = name, q
		}
	}
	return best
}

// in is the document in an encoding.
func (p *packed) in(name string, body []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made, is := p.form[name]; is {
		return made, nil
	}
	var made []byte
	var err error
	if name == "zstd" {
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err == nil {
			made = w.EncodeAll(body, nil)
			err = w.Close()
		}
	} else {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err = w.Write(body); err == nil {
			err = w.Close()
		}
		made = out.Bytes()
	}
	if err != nil {
		return nil, err
	}
	if p.form == nil {
		p.form = map[string][]byte{}
	}
	p.form[name] = made
	return made, nil
}

// encoded is an answer with a document in the form that the request takes. Its tag
// is another one, since its octets are.
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
	if r.Status != 0 { // 304
		return r
	}
	body, err := d.packed.in(name, d.Body)
	if err != nil {
		return r // as it is, it is right, too
	}
	r.Body = body
	r.Header.Set("Content-Encoding", name)
	return r
}

// tagIn is the entity tag of the document in an encoding.
func (d Document) tagIn(name string) string {
	return strings.TrimSuffix(d.etag, `"`) + "-" + name + `"`
}

// isTag says whether a tag is one of the document's.
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
