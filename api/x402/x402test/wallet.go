// Package x402test contains the other parties of x402 for tests: wallets that sign, and a
// facilitator and a chain that work like real ones and can be made to fail. It moves no money and
// uses no network outside of the machine.
//
//	wallet := x402test.NewWallet("payer")
//	chain := x402test.NewChain(t, clock)
//	facilitator := x402test.NewFacilitator(t, chain, clock)
//	header := wallet.Pay(t, response.Header.Get("Payment-Required"), "a nonce", clock())
//	facilitator.Next("settle", x402test.Fault{Kind: x402test.SettleThenDrop})
//	… chain.Transfers() is 1
package x402test

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/x402"
)

// Wallet is a buyer. Its key is public: it is derived from the label.
type Wallet struct {
	key     *secp256k1.PrivateKey
	Address x402.Address
}

// NewWallet returns the wallet whose key is keccak256("countersign:test:" + label).
func NewWallet(label string) *Wallet {
	seed := Word(label)
	key := secp256k1.PrivKeyFromBytes(seed[:])
	return &Wallet{key, x402.AddressOf(key.PubKey())}
}

// Word returns keccak256("countersign:test:" + label): a key or a nonce.
func Word(label string) x402.Hash { return x402.Keccak([]byte("countersign:test:" + label)) }

// Order is a payment that is not signed yet. A test may change each member.
type Order struct {
	Wallet        *Wallet // wallet that signs
	Version       int
	Accepted      x402.Requirements
	Resource      string // empty if none is sent
	Extensions    map[string]jsontext.Value
	Domain        x402.Domain
	Authorization x402.Authorization
	Signature     []byte // nil means that Sign computes it
}

// Order accepts the first offer of a challenge, with the nonce Word(nonce). Like the reference
// client's payment, it is valid from ten minutes ago until the offer's time-out.
func (w *Wallet) Order(challenge x402.PaymentRequired, nonce string, now time.Time) Order {
	offer := challenge.Accepts[0]
	var chain big.Int
	chain.SetString(offer.Network[len("eip155:"):], 10)
	value, _ := new(big.Int).SetString(offer.Amount, 10)
	return Order{
		Wallet: w, Version: x402.Version, Accepted: offer, Resource: challenge.Resource.URL, Extensions: challenge.Extensions,
		Domain: x402.Domain{Name: offer.Extra.Name, Version: offer.Extra.Version, ChainID: chain.Int64(), Asset: address(offer.Asset)},
		Authorization: x402.Authorization{
			From: w.Address, To: address(offer.PayTo), Value: value,
			ValidAfter: big.NewInt(now.Unix() - 600), ValidBefore: big.NewInt(now.Unix() + int64(offer.MaxTimeoutSeconds)),
			Nonce: Word(nonce),
		},
	}
}

func address(text string) x402.Address {
	a, err := x402.ParseAddress(text)
	if err != nil {
		panic("x402test: " + text + ": " + err.Error())
	}
	return a
}

// Named returns the order with this payment identifier.
func (o Order) Named(id string) Order {
	extensions := map[string]jsontext.Value{}
	for name, value := range o.Extensions {
		extensions[name] = value
	}
	extensions[x402.ExtensionIdentifier] = must(json.Marshal(map[string]any{"info": map[string]any{"required": false, "id": id}}))
	o.Extensions = extensions
	return o
}

// Sign returns the signature r ‖ s ‖ v of the order, where v is 27 or 28.
func (o Order) Sign() []byte {
	if o.Signature != nil {
		return o.Signature
	}
	digest := o.Authorization.Digest(o.Domain)
	compact := ecdsa.SignCompact(o.Wallet.key, digest[:], false)
	return append(compact[1:], compact[0])
}

// JSON returns the payment as sent over MCP.
func (o Order) JSON() jsontext.Value {
	a := o.Authorization
	object := map[string]any{
		"x402Version": o.Version, "accepted": o.Accepted,
		"payload": map[string]any{
			"signature": hexadecimal(o.Sign()),
			"authorization": map[string]any{
				"from": a.From.String(), "to": a.To.String(), "value": a.Value.String(),
				"validAfter": a.ValidAfter.String(), "validBefore": a.ValidBefore.String(), "nonce": a.Nonce.String(),
			},
		},
	}
	if o.Resource != "" {
		object["resource"] = x402.Resource{URL: o.Resource}
	}
	if o.Extensions != nil {
		object["extensions"] = o.Extensions
	}
	return must(json.Marshal(object, json.Deterministic(true)))
}

// Header returns the payment as the value of PAYMENT-SIGNATURE.
func (o Order) Header() string { return base64.StdEncoding.EncodeToString(o.JSON()) }

// Pay returns the value of PAYMENT-SIGNATURE that pays a value of PAYMENT-REQUIRED.
func (w *Wallet) Pay(t testing.TB, required, nonce string, now time.Time) string {
	t.Helper()
	challenge, err := x402.ReadRequired(required)
	if err != nil || len(challenge.Accepts) == 0 {
		t.Fatalf("x402test: PAYMENT-REQUIRED cannot be paid: %v", err)
	}
	return w.Order(challenge, nonce, now).Header()
}

func must(text []byte, err error) jsontext.Value {
	if err != nil {
		panic("x402test: " + err.Error())
	}
	return text
}

// SignText returns the wallet's signature of a text (EIP-191), as 0x and hex.
func (w *Wallet) SignText(text string) string {
	digest := x402.Keccak([]byte(fmt.Sprintf("\x19Ethereum Signed Message:\n%d%s", len(text), text)))
	compact := ecdsa.SignCompact(w.key, digest[:], false)
	return hexadecimal(append(compact[1:], compact[0]))
}
