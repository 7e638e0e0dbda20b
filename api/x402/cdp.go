package x402

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The facilitator of the Coinbase Developer Platform requires a separate token for each request: a
// JWT that is signed with its API key and valid for two minutes, for one method and address.
//
// 	header  {"alg":"EdDSA","kid":"<key id>","nonce":"<32 hex>","typ":"JWT"}
// 	claims  {"sub":"<key id>","iss":"cdp","nbf":…,"iat":…,"exp":…,"uris":["POST api.cdp.coinbase.com/platform/v2/x402/verify"]}

const keyTokenLives = 2 * time.Minute

// newKeyTokens returns an authorizer that creates such tokens. The secret has the form in which
// the platform issues it: base64 of an Ed25519 seed and its public key, or an EC key (P-256) in
// PEM.
func newKeyTokens(id, secret, address string, clock func() time.Time) (authorizer, error) {
	if id == "" || secret == "" {
		return nil, errors.New("X402_FACILITATOR_KEY_ID, X402_FACILITATOR_SECRET: set both, or neither")
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("X402_FACILITATOR_URL must be a URL")
	}
	method, key, err := readKeySecret(secret)
	if err != nil {
		return nil, err
	}
	return func(verb, path string) (string, error) {
		now := clock()
		token := jwt.NewWithClaims(method, jwt.MapClaims{"sub": id, "iss": "cdp", "nbf": now.Unix(), "iat": now.Unix(), "exp": now.Add(keyTokenLives).Unix(),
			"uris": []string{verb + " " + u.Host + path}})
		var nonce [16]byte
		rand.Read(nonce[:])
		token.Header["kid"], token.Header["nonce"] = id, hex.EncodeToString(nonce[:])
		return token.SignedString(key)
	}, nil
}

func readKeySecret(secret string) (jwt.SigningMethod, crypto.Signer, error) {
	bad := errors.New("X402_FACILITATOR_SECRET must be an Ed25519 key (64 bytes) in base64, or an EC key (P-256) in PEM")
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret)); err == nil {
		if len(raw) != ed25519.PrivateKeySize {
			return nil, nil, bad
		}
		key := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		if !key.Equal(ed25519.PrivateKey(raw)) {
			return nil, nil, bad
		}
		return jwt.SigningMethodEdDSA, key, nil
	}
	block, _ := pem.Decode([]byte(strings.ReplaceAll(secret, `\n`, "\n"))) // in a settings file the PEM text is one line
	if block == nil {
		return nil, nil, bad
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil && key.Curve == elliptic.P256() {
		return jwt.SigningMethodES256, key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, is := parsed.(*ecdsa.PrivateKey)
	if err != nil || !is || key.Curve != elliptic.P256() {
		return nil, nil, bad
	}
	return jwt.SigningMethodES256, key, nil
}
