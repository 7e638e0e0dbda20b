package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/canon"
)

// document is a text that changes rarely, with its strong entity tag.
type document struct {
	body  []byte
	etag  string
	media string
}

func newDocument(body []byte, media string) document {
	sum := sha256.Sum256(body)
	return document{body, `"` + hex.EncodeToString(sum[:8]) + `"`, media}
}

// answer sends the document, or 304 to who has it already.
func (d document) answer(c *call) reply {
	r := reply{body: d.body, media: d.media, header: public()}
	r.header.Set("ETag", d.etag)
	for tag := range strings.SplitSeq(c.request.Header.Get("If-None-Match"), ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == d.etag || tag == "*" {
			r.status, r.body = http.StatusNotModified, []byte{}
		}
	}
	return r
}

// jwk is one public key (RFC 7517, RFC 8037) with the positions between which
// events may carry its signatures.
type jwk struct {
	KTY  string `json:"kty"`
	CRV  string `json:"crv"`
	X    string `json:"x"`
	Use  string `json:"use"`
	Alg  string `json:"alg"`
	KID  string `json:"kid"`
	For  string `json:"svc_purpose"`
	From int64  `json:"svc_from_position"`
	To   *int64 `json:"svc_to_position" jsonschema:"nullable"`
}

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

var jwks = &operation{
	id: "get_jwks", method: http.MethodGet, path: "/.well-known/jwks.json",
	summary: "The public keys of signed records, with the ledger positions between which each is valid.",
	output:  reflect.TypeFor[jwkSet](), media: "application/jwk-set+json", errors: []int{503},
	run: func(s *Server, c *call) (reply, error) {
		ring, _, err := s.app.Ledger.Keyring(c.request.Context())
		if err != nil {
			return reply{}, unavailable(err)
		}
		set := jwkSet{Keys: []jwk{}}
		for _, key := range ring {
			k := jwk{KTY: "OKP", CRV: "Ed25519", X: base64.RawURLEncoding.EncodeToString(key.Public),
				Use: "sig", Alg: "EdDSA", KID: key.ID, For: key.Purpose, From: key.From}
			if key.To > 0 {
				k.To = &key.To
			}
			set.Keys = append(set.Keys, k)
		}
		slices.SortFunc(set.Keys, func(a, b jwk) int { return int(a.From - b.From) })
		body, err := canon.Marshal(set)
		if err != nil {
			return reply{}, err
		}
		return newDocument(body, c.op.media).answer(c), nil
	},
}
