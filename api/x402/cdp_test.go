package x402_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/countersign/countersign/api/x402"
)

// TestARequestHasATokenOfItsOwn checks that each request has its own token, which is signed with
// the platform's key and valid for this method and address.
func TestARequestHasATokenOfItsOwn(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	oneLine := strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})), "\n", `\n`)
	for name, c := range map[string]struct {
		secret string
		key    crypto.PublicKey
		alg    string
	}{
		"Ed25519":        {base64.StdEncoding.EncodeToString(private), public, "EdDSA"},
		"EC":             {string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})), &curve.PublicKey, "ES256"},
		"EC in one line": {oneLine, &curve.PublicKey, "ES256"},
		"EC as PKCS #8":  {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), &curve.PublicKey, "ES256"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			m := answering(t, func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				_, _ = io.WriteString(w, `{"isValid":true,"success":true,"transaction":"0xabc","kinds":[]}`)
			})
			f, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: m.facilitator.Address(), Network: x402.DevNetwork, Log: slog.New(slog.DiscardHandler), KeyID: "key-1", Secret: c.secret})
			if err != nil {
				t.Fatal(err)
			}
			p, _ := m.payment("one")
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = f.Verify(t.Context(), p)
			f.Settle(t.Context(), p, 1)
			nonces := map[any]bool{}
			for i, want := range []string{"GET /supported", "POST /verify", "POST /settle"} {
				verb, path, _ := strings.Cut(want, " ")
				token, err := jwt.Parse(seen[i], func(*jwt.Token) (any, error) { return c.key, nil }, jwt.WithIssuer("cdp"), jwt.WithSubject("key-1"),
					jwt.WithValidMethods([]string{c.alg}), jwt.WithExpirationRequired())
				if err != nil {
					t.Fatalf("%s: %v", want, err)
				}
				uris, _ := token.Claims.(jwt.MapClaims)["uris"].([]any)
				host := strings.TrimPrefix(m.facilitator.Address(), "http://")
				if len(uris) != 1 || uris[0] != verb+" "+host+path || token.Header["kid"] != "key-1" {
					t.Errorf("%s: %v %v", want, token.Header, token.Claims)
				}
				nonces[token.Header["nonce"]] = true
			}
			if len(nonces) != 3 || nonces[nil] {
				t.Errorf("nonces %v", nonces)
			}
		})
	}
	for _, c := range [][3]string{{"key-1", "", ""}, {"", "x", ""}, {"key-1", "AAAA", ""}, {"key-1", "no key", ""}, {"key-1", base64.StdEncoding.EncodeToString(private), "a bearer"},
		{"key-1", base64.StdEncoding.EncodeToString(append(private[:32:32], make([]byte, 32)...)), ""}} {
		_, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: "https://facilitator.example", Network: x402.DevNetwork, KeyID: c[0], Secret: c[1], Bearer: c[2]})
		if err == nil || !strings.HasPrefix(err.Error(), "X402_FACILITATOR_") || c[1] != "" && strings.Contains(err.Error(), c[1]) && c[1] != "x" {
			t.Errorf("%q: %v", c, err)
		}
	}
}
