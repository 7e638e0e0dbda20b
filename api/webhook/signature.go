package webhook

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign/countersign/ledger/seal"
)

// signedParts are the parts of the request that the RFC 9421 signature covers. The scheme is not
// covered, because a receiver behind a proxy that terminates TLS does not know it.
var signedParts = []string{"@method", "@authority", "@path", "content-digest", "content-type", "webhook-id"}

// signatureTag distinguishes these signatures from other signatures by the same key.
const signatureTag = "countersign-webhook"

// signRequest signs a request with Ed25519 by RFC 9421. The key id is that of the published key
// set.
func signRequest(r *http.Request, body []byte, at time.Time, signer *seal.Signer) error {
	digest := sha256.Sum256(body)
	r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":")
	var base strings.Builder
	for _, part := range signedParts {
		fmt.Fprintf(&base, "%q: %s\n", part, valueOf(r, part))
	}
	parameters := fmt.Sprintf(`("%s");created=%d;keyid="%s";alg="ed25519";tag="%s"`, strings.Join(signedParts, `" "`), at.Unix(), signer.KeyID(), signatureTag)
	base.WriteString(`"@signature-params": ` + parameters)
	signature, err := signer.Key().Sign(nil, []byte(base.String()), crypto.Hash(0))
	if err != nil {
		return err
	}
	r.Header.Set("Signature-Input", "countersign="+parameters)
	r.Header.Set("Signature", "countersign=:"+base64.StdEncoding.EncodeToString(signature)+":")
	return nil
}

// valueOf returns the value of a part for the signature base.
func valueOf(r *http.Request, part string) string {
	switch part {
	case "@method":
		return r.Method
	case "@authority":
		host := strings.ToLower(r.URL.Host)
		if r.URL.Scheme == "https" {
			return strings.TrimSuffix(host, ":443")
		}
		return strings.TrimSuffix(host, ":80")
	case "@path":
		if path := r.URL.EscapedPath(); path != "" {
			return path
		}
		return "/"
	}
	return r.Header.Get(part)
}
