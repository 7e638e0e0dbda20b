package op

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/countersign/countersign/policy/canon"
)

// Document is a text that changes rarely, with a strong entity tag. It is compressed for callers
// that accept it.
type Document struct {
	Body   []byte
	etag   string
	media  string
	packed *packed
}

// NewDocument returns a document with this text and media type.
func NewDocument(body []byte, media string) Document {
	sum := sha256.Sum256(body)
	return Document{body, `"` + hex.EncodeToString(sum[:8]) + `"`, media, &packed{}}
}

// Answer replies with the document, or with 304 if the caller has it already.
func (d Document) Answer(c *Call) Reply {
	r := Reply{Body: d.Body, Media: d.media, Header: Public()}
	r.Header.Set("Access-Control-Expose-Headers", ExposedHeaders)
	if d.media == CatalogMedia {
		r.Header.Set("Link", "<"+CatalogPath+`>; rel="api-catalog"`)
	}
	r.Header.Set("ETag", d.etag)
	for tag := range strings.SplitSeq(c.Request.Header.Get("If-None-Match"), ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); d.isTag(tag) {
			r.Status, r.Body = http.StatusNotModified, []byte{}
		}
	}
	return d.encoded(r, strings.Join(c.Request.Header.Values("Accept-Encoding"), ","))
}

// DocumentOf replies with a value as a JSON document. Use it for values that depend only on the
// configuration.
func DocumentOf(c *Call, value any) (Reply, error) {
	body, err := canon.Marshal(value)
	if err != nil {
		return Reply{}, err
	}
	return NewDocument(body, c.Op.Media).Answer(c), nil
}

// Public returns the headers of a document that caches may store for five minutes, and that pages
// of every origin may read.
func Public() http.Header {
	return http.Header{"Cache-Control": {"public, max-age=300"}, "Access-Control-Allow-Origin": {"*"}}
}

// Private returns the headers of an answer that no cache may store.
func Private() http.Header { return http.Header{"Cache-Control": {"private, no-store"}} }

// Headers that a page of another origin may read (ExposedHeaders) and send (AllowedHeaders).
const (
	ExposedHeaders = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, EXTENSION-RESPONSES, Link, Retry-After, RateLimit, Idempotent-Replayed, ETag, X-Request-Id"
	AllowedHeaders = "PAYMENT-SIGNATURE, X-PAYMENT, X-API-Key, Authorization, Content-Type, Idempotency-Key, If-None-Match, MCP-Protocol-Version, Access-Control-Expose-Headers"
)

// Expose allows pages of every origin to read an answer and its headers.
func Expose(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", ExposedHeaders)
}

// Path and media type of the API catalogue (RFC 9727). The catalogue links to itself.
const (
	CatalogPath  = "/.well-known/api-catalog"
	CatalogMedia = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`
)
