package x402

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy/canon"
)

// The extension sign-in-with-x lets callers prove that they control an address. They sign a
// message (EIP-4361) with the values of a challenge, and send it as base64 JSON in the header
// SIGN-IN-WITH-X.
const (
	ExtensionSignIn = "sign-in-with-x"
	HeaderSignIn    = "Sign-In-With-X"
)

// SignIn contains the values that a caller must sign.
type SignIn struct {
	Domain         string `json:"domain"`
	URI            string `json:"uri"`
	Version        string `json:"version"`
	Nonce          string `json:"nonce"`
	IssuedAt       string `json:"issuedAt"`
	ExpirationTime string `json:"expirationTime"`
	Statement      string `json:"statement"`
}

// SignInProof contains the values and their signature.
type SignInProof struct {
	SignIn
	Address   string `json:"address"`
	ChainID   string `json:"chainId"`
	Type      string `json:"type"`
	Signature string `json:"signature"`
}

const signInLives = 5 * time.Minute // as the extension's specification says

// NewSignIn returns the values for a resource. The nonce must depend on a secret of the service.
func NewSignIn(uri, domain, statement, nonce string, issuedAt time.Time) SignIn {
	return SignIn{Domain: domain, URI: uri, Version: "1", Nonce: nonce, IssuedAt: ground.Stamp(issuedAt),
		ExpirationTime: ground.Stamp(issuedAt.Add(signInLives)), Statement: statement}
}

// signInSchema is the JSON Schema of a proof.
var signInSchema = jsontext.Value(`{"$schema":"` + schema2020 + `","type":"object","properties":{"domain":{"type":"string"},"address":{"type":"string"},` +
	`"statement":{"type":"string"},"uri":{"type":"string","format":"uri"},"version":{"type":"string"},"chainId":{"type":"string"},"type":{"type":"string"},` +
	`"nonce":{"type":"string"},"issuedAt":{"type":"string","format":"date-time"},"expirationTime":{"type":"string","format":"date-time"},` +
	`"signature":{"type":"string"}},"required":["domain","address","uri","version","chainId","type","nonce","issuedAt","signature"]}`)

// Challenge returns a 402 that demands the proof instead of money: accepts is empty.
func (s SignIn) Challenge(network, description string) PaymentRequired {
	extension := encode(map[string]any{"info": s, "schema": signInSchema,
		"supportedChains": []map[string]string{{"chainId": network, "type": "eip191"}}})
	return PaymentRequired{X402Version: Version, Error: ProofIsRequired, Accepts: []Requirements{},
		Resource: Resource{URL: s.URI, Description: description}, Extensions: map[string]jsontext.Value{ExtensionSignIn: extension}}
}

// ReadSignIn parses the header SIGN-IN-WITH-X. ok reports whether it is well-formed.
func ReadSignIn(header string) (p SignInProof, ok bool) {
	if len(header) > MaxHeader {
		return p, false
	}
	text, err := base64.StdEncoding.DecodeString(header)
	return p, err == nil && canon.Check(text) == nil && json.Unmarshal(text, &p) == nil
}

// Fresh reports whether the proof has exactly the values of the expected sign-in, `asked`, and has
// not expired. The caller must make `asked` for the time at which the proof was issued (IssuedAt).
func (p SignInProof) Fresh(asked SignIn, network string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, p.IssuedAt)
	return err == nil && p.SignIn == asked && p.ChainID == network && p.Type == "eip191" &&
		!at.After(now) && now.Before(at.Add(signInLives))
}

// message returns the text to sign (EIP-4361).
func (p SignInProof) message() string {
	chain := strings.TrimPrefix(p.ChainID, "eip155:")
	return fmt.Sprintf("%s wants you to sign in with your Ethereum account:\n%s\n\n%s\n\nURI: %s\nVersion: %s\nChain ID: %s\nNonce: %s\nIssued At: %s\nExpiration Time: %s",
		p.Domain, p.Address, p.Statement, p.URI, p.Version, chain, p.Nonce, p.IssuedAt, p.ExpirationTime)
}

// digest returns the hash of the message to sign (EIP-191).
func (p SignInProof) digest() Hash {
	text := p.message()
	return Keccak([]byte("\x19Ethereum Signed Message:\n" + strconv.Itoa(len(text)) + text))
}

// contractSigner is a settler that can ask a contract whether it has signed.
type contractSigner interface {
	ContractSigned(ctx context.Context, address string, digest Hash, signature []byte) bool
}

// By reports whether an address has signed: by its own key or, if the settler asks a chain, by the
// contract at the address (ERC-1271).
func (p SignInProof) By(ctx context.Context, address string, settler payments.Settler) bool {
	signature, err := hex.DecodeString(strings.TrimPrefix(p.Signature, "0x"))
	claimed, ok := parseAddress(p.Address)
	if err != nil || !ok || !strings.EqualFold(claimed.String(), address) {
		return false
	}
	if signer, ok := signerOf(p.digest(), signature); ok && signer == claimed {
		return true
	}
	chain, asks := settler.(contractSigner)
	return asks && chain.ContractSigned(ctx, claimed.String(), p.digest(), signature)
}
