package webhook_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/countersign/countersign/api/webhook"
	"github.com/countersign/countersign/ledger/seal"
)

// A receiver checks the signature of a message (RFC 9421) with the published keys. It has no secret.
func Example_receiver() {
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	published := map[string]ed25519.PublicKey{signer.KeyID(): signer.Public()} // from /.well-known/jwks.json

	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parameters := strings.TrimPrefix(r.Header.Get("Signature-Input"), "countersign=")
		covered, _, _ := strings.Cut(strings.TrimPrefix(parameters, "("), ")")
		_, keyID, _ := strings.Cut(parameters, `;keyid="`)
		keyID, _, _ = strings.Cut(keyID, `"`)

		// The signature base has a line for each part that is covered.
		base := ""
		for _, part := range strings.Fields(covered) {
			name := strings.Trim(part, `"`)
			value := r.Header.Get(name)
			switch name {
			case "@method":
				value = r.Method
			case "@authority":
				value = strings.ToLower(r.Host)
			case "@path":
				value = r.URL.EscapedPath()
			}
			base += part + ": " + value + "\n"
		}
		base += `"@signature-params": ` + parameters
		signature, _ := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimPrefix(r.Header.Get("Signature"), "countersign="), ":"))

		body, _ := io.ReadAll(r.Body)
		digest := sha256.Sum256(body)
		fmt.Println(covered)
		fmt.Println("body:", r.Header.Get("Content-Digest") == "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":")
		fmt.Println("signature:", ed25519.Verify(published[keyID], []byte(base), signature))
	}))
	defer receiver.Close()

	sender := webhook.NewSender([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, time.Now)
	message := webhook.Message{ID: "0:1:decisions", Media: "application/json", Body: []byte(`{"hello": "world"}`), Signer: signer}
	if _, err := sender.Send(context.Background(), receiver.URL+"/hook", message); err != nil {
		panic(err)
	}
	// Output:
	// "@method" "@authority" "@path" "content-digest" "content-type" "webhook-id"
	// body: true
	// signature: true
}
