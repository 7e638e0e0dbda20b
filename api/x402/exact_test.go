package x402_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy"
)

// now is five minutes before the payment of the specification expires.
var now = time.Unix(1_800_000_000, 0)

const quickURL = "https://countersign.example/api/agent-services/action-safety/quick"

func terms(t testing.TB, s x402.Settings) x402.Terms {
	t.Helper()
	terms, err := x402.NewTerms(s)
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

func devTerms(t testing.TB) x402.Terms { return terms(t, x402.Settings{Dev: true}) }

func challenge(t testing.TB, s x402.Settings, cents int) x402.PaymentRequired {
	return terms(t, s).Challenge(x402.Resource{URL: quickURL, Description: "Classify one action before it runs", MimeType: "application/json"}, cents, nil)
}

// specified returns the payment of the package comment.
func specified(t testing.TB) x402test.Order {
	order := x402test.NewWallet("payer").Order(challenge(t, x402.Settings{Dev: true}, 1), "nonce", now)
	order.Authorization.ValidAfter = new(big.Int)
	return order
}

func TestThePaymentOfThePackageComment(t *testing.T) {
	order := specified(t)
	payment, err := x402.Decode(order.Header())
	if err != nil {
		t.Fatal(err)
	}
	digest := order.Authorization.Digest(order.Domain)
	want := map[string]string{
		"from":      "0x2595b01b6f646B1d5A5939fE555f7e6AC6D0bfE4",
		"digest":    "0x5bccd9addac18a63994c85ae4317df42b1ceeba3e98dc6d428bb6406bec9145b",
		"signature": "0xd4b3c51e08c92bd43cd863fdc0f1071d4063dcd51193f44959a129b2cc8a1ec7380e2603611ce3f2301366421b7c97fce80a93f822d5f18a50daf1c2987497531b",
		"id":        "pay_a4f8178d6d66aa8fb4c02fc8478cda78",
	}
	got := map[string]string{"from": payment.Payer, "digest": digest.String(), "signature": payment.Signature, "id": payment.ID}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := payment.Verify(order.Accepted, quickURL, now, false); err != nil {
		t.Errorf("the payment of the specification is refused: %v", err)
	}
}

// exact is one case of testdata/exact-eip3009.json: a payment that the test signer once made, and
// the expected result.
type exact struct {
	Name    string            `json:"name"`
	Offer   x402.Requirements `json:"offer"`
	Payment string            `json:"payment"`          // value of the header PAYMENT-SIGNATURE
	ID      string            `json:"id,omitempty"`     // payment id; empty if the payment cannot be parsed
	Reason  string            `json:"reason,omitempty"` // reason of refusal; empty if the payment is valid
	// The chain decides whether a contract has signed.
	Contracts bool `json:"contracts,omitzero"`
}

const exactFile = "testdata/exact-eip3009.json"

// exacts generates the cases. The nonce of each case is its name.
func exacts(t testing.TB) []exact {
	var cases []exact
	sepolia, base := x402.Settings{Dev: true}, x402.Settings{Network: "eip155:8453", PayTo: x402.DevPayTo}
	add := func(name string, s x402.Settings, cents int, reason string, falsify func(*x402test.Order)) {
		c := challenge(t, s, cents)
		order := x402test.NewWallet("payer").Order(c, name, now)
		falsify(&order)
		cases = append(cases, exact{Name: name, Offer: c.Accepts[0], Payment: order.Header(), Reason: reason})
	}
	as := func(*x402test.Order) {}
	add("good on Base Sepolia", sepolia, 1, "", as)
	add("good on Base", base, 1, "", as)
	add("good at $0.25", base, 25, "", as)
	add("v as 0 or 1", sepolia, 1, "", func(o *x402test.Order) { o.Signature = o.Sign(); o.Signature[64] -= 27 })
	add("addresses in lower case", sepolia, 1, "", func(o *x402test.Order) {
		o.Accepted.Asset, o.Accepted.PayTo = strings.ToLower(o.Accepted.Asset), strings.ToLower(o.Accepted.PayTo)
	})
	add("no resource", sepolia, 1, "", func(o *x402test.Order) { o.Resource = "" })
	add("another host and a query", sepolia, 1, "", func(o *x402test.Order) {
		o.Resource = strings.Replace(o.Resource, "countersign.example", "proxy.example:8443", 1) + "?a=b"
	})
	add("six seconds left", sepolia, 1, "", func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() + 6) })
	add("an hour, as official clients signed", sepolia, 1, "", func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() + 3600) })
	add("a clock ten minutes fast", sepolia, 1, "", func(o *x402test.Order) {
		o.Authorization.ValidAfter.SetInt64(now.Unix() - 10)
		o.Authorization.ValidBefore.SetInt64(now.Unix() + 890)
	})
	add("a day", sepolia, 1, "", func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() + 86_400) })
	contract := func(name string, falsify func(*x402test.Order)) {
		add(name, sepolia, 1, "", falsify)
		cases[len(cases)-1].Contracts = true
	}
	contract("a contract's signature", func(o *x402test.Order) { o.Signature = make([]byte, 96) })
	contract("a contract's signature of 65 bytes, by its owner's key", func(o *x402test.Order) { o.Wallet = x402test.NewWallet("owner") })

	const signature = x402.ReasonSignature
	add("a contract's signature where no chain is asked", sepolia, 1, signature, func(o *x402test.Order) { o.Signature = make([]byte, 96) })
	add("high s", sepolia, 1, signature, func(o *x402test.Order) { o.Signature = highS(o.Sign()) })
	add("v of 29", sepolia, 1, signature, func(o *x402test.Order) { o.Signature = o.Sign(); o.Signature[64] = 29 })
	add("v of a compressed key", sepolia, 1, signature, func(o *x402test.Order) { o.Signature = o.Sign(); o.Signature[64] -= 27 - 4 })
	add("r of zero", sepolia, 1, signature, func(o *x402test.Order) { o.Signature = o.Sign(); clear(o.Signature[:32]) })
	add("other signer", sepolia, 1, signature, func(o *x402test.Order) { o.Wallet = x402test.NewWallet("thief") })
	add("domain of another name", sepolia, 1, signature, func(o *x402test.Order) { o.Domain.Name = "USD Coin" })
	add("domain of another version", sepolia, 1, signature, func(o *x402test.Order) { o.Domain.Version = "1" })
	add("domain of another chain id", sepolia, 1, signature, func(o *x402test.Order) { o.Domain.ChainID = 8453 })
	add("domain of another token", sepolia, 1, signature, func(o *x402test.Order) { o.Domain.Asset = x402test.NewWallet("token").Address })
	add("value changed after signing", sepolia, 25, signature, func(o *x402test.Order) {
		o.Authorization.Value.SetInt64(10_000)
		o.Signature = o.Sign()
		o.Authorization.Value = big.NewInt(250_000)
	})
	add("too little", sepolia, 25, x402.ReasonValue, func(o *x402test.Order) { o.Authorization.Value.SetInt64(249_999) })
	add("too much", sepolia, 25, x402.ReasonValue, func(o *x402test.Order) { o.Authorization.Value.SetInt64(250_001) })
	add("other recipient", sepolia, 1, x402.ReasonRecipient, func(o *x402test.Order) { o.Authorization.To = x402test.NewWallet("thief").Address })
	add("expired", sepolia, 1, x402.ReasonValidBefore, func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() - 1) })
	add("expires within six seconds", sepolia, 1, x402.ReasonValidBefore, func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() + 5) })
	add("too long-lived", sepolia, 1, x402.ReasonValidBefore, func(o *x402test.Order) { o.Authorization.ValidBefore.SetInt64(now.Unix() + 86_401) })
	add("lives for ever", sepolia, 1, x402.ReasonValidBefore, func(o *x402test.Order) {
		o.Authorization.ValidBefore.Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	})
	add("not yet valid", sepolia, 1, x402.ReasonValidAfter, func(o *x402test.Order) { o.Authorization.ValidAfter.SetInt64(now.Unix() + 1) })

	const noMatch = x402.ReasonNoMatch
	add("accepted: another amount", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.Amount = "1" })
	add("accepted: another network", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.Network = "eip155:8453" })
	add("accepted: another scheme", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.Scheme = "upto" })
	add("accepted: another asset", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.Asset = x402.DevPayTo })
	add("accepted: another payTo", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.PayTo = o.Accepted.Asset })
	add("accepted: another time", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.MaxTimeoutSeconds = 3600 })
	add("accepted: another asset name", sepolia, 1, noMatch, func(o *x402test.Order) { o.Accepted.Extra.Name = "USD Coin" })
	add("made out for another call", sepolia, 1, x402.ReasonResource, func(o *x402test.Order) { o.Resource = "https://countersign.example/api/agent-services/options/price" })

	add("version 1", sepolia, 1, x402.ReasonVersion, func(o *x402test.Order) { o.Version = 1 })
	edit := func(name, reason, old, replacement string) {
		add(name, sepolia, 1, reason, as)
		c := &cases[len(cases)-1]
		text, _ := base64.StdEncoding.DecodeString(c.Payment)
		changed := strings.Replace(string(text), old, replacement, 1)
		if changed == string(text) {
			t.Fatalf("%s: nothing to replace", name)
		}
		c.Payment = base64.StdEncoding.EncodeToString([]byte(changed))
	}
	const payload = x402.ReasonPayload
	short := x402test.Word("short nonce").String()
	edit("short nonce", payload, short, short[:64])
	edit("no payload", payload, `"payload":{`, `"payments":{`)
	edit("no accepted", payload, `"accepted":{`, `"accept":{`)
	edit("leading zero", payload, `"value":"10000"`, `"value":"010000"`)
	edit("a number for a string", payload, `"value":"10000"`, `"value":10000`)
	edit("a sign", payload, `"value":"10000"`, `"value":"+10000"`)
	edit("more than 256 bits", payload, `"value":"10000"`, `"value":"`+new(big.Int).Lsh(big.NewInt(1), 256).String()+`"`)
	edit("the member twice", payload, `"value":"10000"`, `"value":"10000","value":"10000"`)
	edit("the member in capitals", payload, `"value":"10000"`, `"VALUE":"10000"`)
	edit("no hex", payload, `"signature":"0x`, `"signature":"0xzz`)
	edit("no signature", payload, `"signature":"0x`, `"signature":"","was":"0x`)
	edit("a version of text", x402.ReasonVersion, `"x402Version":2`, `"x402Version":"2"`)
	edit("no version", x402.ReasonVersion, `"x402Version":2`, `"version":2`)
	edit("a resource of text", payload, `"resource":{"url":`, `"resource":"x","was":{"url":`)
	edit("no resource but null", "", `"resource":{`, `"resource":null,"was":{`)
	edit("an unknown member", "", `"x402Version":2`, `"x402Version":2,"later":{"a":[1]}`)
	edit("an unknown member of accepted", "", `"scheme":"exact"`, `"scheme":"exact","later":1`)
	edit("20 kB", payload, `"x402Version":2`, `"x402Version":2,"later":"`+strings.Repeat("x", 15_000)+`"`)
	for _, c := range [][2]string{{"empty", ""}, {"no base64", "{}"}, {"no JSON", "aGVsbG8="}, {"a list", "W10="}, {"no padding", "e30"}, {"cut in two lines", "e3\r\n0="}} {
		cases = append(cases, exact{Name: c[0], Offer: cases[0].Offer, Payment: c[1], Reason: payload})
	}
	return cases
}

// highS returns the second signature of the same digest, which tokens refuse.
func highS(signature []byte) []byte {
	var s secp256k1.ModNScalar
	s.SetByteSlice(signature[32:64])
	s.Negate()
	high := s.Bytes()
	flipped := append(append([]byte{}, signature[:32]...), high[:]...)
	return append(flipped, 27+28-signature[64])
}

// TestExactEIP3009 checks the stored payments, and that the test signer still generates the same
// ones. To update the file after an intended change, run UPDATE_EXACT=1 go test.
func TestExactEIP3009(t *testing.T) {
	made := exacts(t)
	if os.Getenv("UPDATE_EXACT") != "" {
		for i, c := range made {
			if payment, err := x402.Decode(c.Payment); err == nil {
				made[i].ID = payment.ID
			}
		}
		text, err := json.Marshal(made, jsontext.WithIndent("\t"))
		if err == nil {
			err = os.WriteFile(exactFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(exactFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept []exact
	if err := json.Unmarshal(text, &kept); err != nil || len(kept) != len(made) {
		t.Fatalf("%d cases are kept and %d made: %v", len(kept), len(made), err)
	}
	again := map[string]string{}
	for _, c := range made {
		again[c.Name] = c.Payment
	}
	for _, c := range kept {
		t.Run(c.Name, func(t *testing.T) {
			if again[c.Name] != c.Payment {
				t.Error("the test signer makes another payment now")
			}
			payment, err := x402.Decode(c.Payment)
			if err == nil {
				if payment.ID != c.ID {
					t.Errorf("its id is %s, was %s", payment.ID, c.ID)
				}
				err = payment.Verify(c.Offer, quickURL, now, c.Contracts)
			}
			if got := reason(err); got != c.Reason {
				t.Errorf("said %q (%v), want %q", got, err, c.Reason)
			}
		})
	}
}

func reason(err error) string {
	var refused *payments.PaymentRefused
	if errors.As(err, &refused) {
		return refused.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestWhatCommandsKnowsOfAPayment(t *testing.T) {
	order := specified(t)
	order.Accepted.Asset = strings.ToLower(order.Accepted.Asset)
	order = order.Named("order-2026-11-21_a")
	payment, err := x402.Decode(order.Header())
	if err != nil {
		t.Fatal(err)
	}
	want := payments.Payment{
		ID: "pay_a4f8178d6d66aa8fb4c02fc8478cda78", Signature: "0x" + hex.EncodeToString(order.Sign()),
		Network: "eip155:84532", Asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
		Payer: "0x2595b01b6f646B1d5A5939fE555f7e6AC6D0bfE4", PayTo: x402.DevPayTo, Amount: "10000",
		Nonce: x402test.Word("nonce").String(), ValidBefore: 1_800_000_300,
		Identifier: "order-2026-11-21_a", Payload: order.JSON(),
	}
	got := payment.Payment
	var accepted x402.Requirements
	if err := json.Unmarshal(got.Accepted, &accepted); err != nil || accepted != order.Accepted {
		t.Errorf("accepted is not what was sent: %+v, %v", accepted, err)
	}
	got.Accepted = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again, err := x402.Read(order.JSON()); err != nil || again.ID != payment.ID {
		t.Errorf("over MCP it is another payment: %v", err)
	}
}

func TestPaymentIdentifierMustHaveItsForm(t *testing.T) {
	for id, good := range map[string]bool{
		strings.Repeat("a", 15): false, strings.Repeat("a", 16): true, strings.Repeat("Z9_-", 32): true, strings.Repeat("a", 129): false,
		"abcdefghijklmno p": false, "": false, "abcdefghijklmnop\n": false,
	} {
		payment, err := x402.Decode(specified(t).Named(id).Header())
		if good {
			if err != nil || payment.Identifier != id {
				t.Errorf("%q is refused: %v", id, err)
			}
			continue
		}
		var refused *policy.Error
		if !errors.As(err, &refused) || strings.Contains(refused.Message, "abcdef") {
			t.Errorf("%q gives %v", id, err)
		}
	}
	order := specified(t)
	order.Extensions = map[string]jsontext.Value{x402.ExtensionIdentifier: jsontext.Value(`{"info":{"required":false}}`)}
	if payment, err := x402.Decode(order.Header()); err != nil || payment.Identifier != "" {
		t.Errorf("an offer sent back without an id: %v", err)
	}
}

// TestTheWindowIsJudgedToTheSecond checks that fractions of a second do not affect the result for
// a validity window.
func TestTheWindowIsJudgedToTheSecond(t *testing.T) {
	order := specified(t)
	order.Authorization.ValidBefore.SetInt64(now.Unix() + 6)
	payment, err := x402.Decode(order.Header())
	if err != nil {
		t.Fatal(err)
	}
	if got := reason(payment.Verify(order.Accepted, quickURL, now.Add(time.Millisecond), false)); got != x402.ReasonValidBefore {
		t.Errorf("5.999 s left give %q", got)
	}
}

func FuzzDecodeAndVerify(f *testing.F) {
	for _, c := range exacts(f) {
		if text, err := base64.StdEncoding.DecodeString(c.Payment); err == nil {
			f.Add(text)
		}
	}
	offer := devTerms(f).Offer(1)
	f.Fuzz(func(t *testing.T, text []byte) {
		payment, err := x402.Decode(base64.StdEncoding.EncodeToString(text))
		if err != nil {
			if payment != nil {
				t.Error("refused, and yet a payment")
			}
			return
		}
		if again, err := x402.Read(payment.Payload); err != nil || again.ID != payment.ID {
			t.Errorf("what is kept of it reads otherwise: %v", err)
		}
		if payment.Verify(offer, quickURL, now, false) == nil && (payment.PayTo != offer.PayTo || payment.Amount != offer.Amount) {
			t.Error("a payment of another amount or to somebody else is good")
		}
	})
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add("e30=")
	f.Add("W10")
	f.Fuzz(func(t *testing.T, header string) {
		if _, err := x402.Decode(header); err == nil && len(header) > x402.MaxHeader {
			t.Error("too long, and read")
		}
	})
}
