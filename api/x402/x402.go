// Package x402 implements the x402 payment protocol, version 2, scheme "exact" on EVM chains: the
// wire format, the verification of payments, and two ways to settle them. It stores nothing.
//
// # On the wire
//
// A priced call without payment is answered 402. The header PAYMENT-REQUIRED is
// the standard base64, with padding, of this object. The body is the same JSON, with
// the extensions that do not fit into the header:
//
//	{"x402Version":2,"error":"Payment required",
//	 "resource":{"url":"https://HOST/api/…","description":"…","mimeType":"application/json"},
//	 "accepts":[{"scheme":"exact","network":"eip155:84532","amount":"10000",
//	   "asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","payTo":"0x329EdA9C18561571bA257177847A993E354e81b7",
//	   "maxTimeoutSeconds":300,"extra":{"name":"USDC","version":"2"}}],
//	 "extensions":{"payment-identifier":{…},"bazaar":{…}}}
//
// The call is repeated with PAYMENT-SIGNATURE, base64 of:
//
//	{"x402Version":2,"accepted":{one of accepts},"resource":{"url":"…"},"extensions":{…},
//	 "payload":{"signature":"0x…","authorization":{"from":"0x…","to":"0x…","value":"10000",
//	   "validAfter":"0","validBefore":"1800000300","nonce":"0x<64 hex>"}}}
//
// The answer has the header PAYMENT-RESPONSE, base64 of:
//
//	{"success":true,"payer":"0x…","transaction":"0x…","network":"eip155:84532","amount":"10000"}
//
// All numbers of a payment are decimal strings without sign or leading zero. Over MCP the same
// objects are sent as JSON, not as base64.
//
// # What is signed
//
// The signature is EIP-712 over an EIP-3009 authorization:
//
//	domain    keccak256(typeHash ‖ keccak256(name) ‖ keccak256(version) ‖ chainId ‖ asset)
//	struct    keccak256(typeHash ‖ from ‖ to ‖ value ‖ validAfter ‖ validBefore ‖ nonce)
//	digest    keccak256(0x1901 ‖ domain ‖ struct)
//	paymentId "pay_" + 32 hex of keccak256(lower("network|asset|from|nonce"))
//
// The resource is not signed: a payment fits every call of its price until it is claimed for one.
// An example to check by hand, with the payer's key keccak256("countersign:test:payer"):
//
//	from      0x2595b01b6f646B1d5A5939fE555f7e6AC6D0bfE4, to and asset as above
//	value     10000, validAfter 0, validBefore 1800000300
//	nonce     keccak256("countersign:test:nonce")
//	digest    0x5bccd9addac18a63994c85ae4317df42b1ceeba3e98dc6d428bb6406bec9145b
//	signature 0xd4b3c51e08c92bd43cd863fdc0f1071d4063dcd51193f44959a129b2cc8a1ec7380e2603611ce3f2301366421b7c97fce80a93f822d5f18a50daf1c2987497531b
//	id        pay_a4f8178d6d66aa8fb4c02fc8478cda78
package x402

import (
	"encoding/base64"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Version is the supported version of the protocol.
const Version = 2

// Scheme is the supported scheme of payment.
const Scheme = "exact"

// Names of the headers, as Go spells them.
const (
	HeaderRequired  = "Payment-Required"
	HeaderSignature = "Payment-Signature"
	HeaderResponse  = "Payment-Response"
	HeaderV1        = "X-Payment" // header of version 1; it does not count as a payment

	// HeaderExtensions is the header in which a facilitator reports on the extensions of a payment.
	HeaderExtensions = "Extension-Responses"
)

// Values of the member error of a challenge. If a payment was refused, the member contains the
// reason instead.
const (
	PaymentIsRequired = "Payment required"
	VersionIsRequired = "x402 version 2 required" // answer to the header HeaderV1
	ProofIsRequired   = "the payer's proof is required"
)

// Requirements is one way to pay: one that we offer, or the one that a buyer accepted.
type Requirements struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	Amount            string `json:"amount"`
	Asset             string `json:"asset"`
	PayTo             string `json:"payTo"`
	MaxTimeoutSeconds int    `json:"maxTimeoutSeconds"`
	Extra             Extra  `json:"extra"`
}

// Extra contains the EIP-712 domain of the asset, which a wallet needs to sign.
type Extra struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Resource describes the resource for sale.
type Resource struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
	// Additional texts for an index.
	ServiceName string   `json:"serviceName,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	IconURL     string   `json:"iconUrl,omitempty" jsonschema:"format=uri"`
}

// PaymentRequired is the challenge: the body of the 402 and, encoded, its header.
type PaymentRequired struct {
	X402Version int                       `json:"x402Version"`
	Error       string                    `json:"error"`
	Resource    Resource                  `json:"resource"`
	Accepts     []Requirements            `json:"accepts"`
	Extensions  map[string]jsontext.Value `json:"extensions,omitempty"`
	FreeKey     *FreeKey                  `json:"freeKey,omitempty"`
}

// FreeKey explains how to make the same call without a payment. Clients that pay ignore this
// member.
type FreeKey struct {
	Issue  string `json:"issue" jsonschema:"format=uri" jsonschema_description:"Address for a POST of {\"email\"}. It requires no payment and no account."`
	Header string `json:"header" jsonschema_description:"Header that sends the key."`
	Credit string `json:"credit,omitempty" jsonschema_description:"Who gets free calls in addition."`
}

// WithError returns the challenge with this error.
func (p PaymentRequired) WithError(reason string) PaymentRequired {
	p.Error = reason
	return p
}

// JSON returns the body of the 402, which is also the content over MCP.
func (p PaymentRequired) JSON() jsontext.Value { return encode(p) }

// Header returns the value of PAYMENT-REQUIRED, with at most MaxChallenge characters.
func (p PaymentRequired) Header() string { return p.HeaderWithin(MaxChallenge) }

// HeaderWithin returns the value of PAYMENT-REQUIRED with at most this number of characters. It
// contains the same object as the body, without the extensions that do not fit.
func (p PaymentRequired) HeaderWithin(characters int) string {
	p.Extensions = maps.Clone(p.Extensions)
	for _, name := range []string{ExtensionBazaar, ExtensionIdentifier} {
		if base64.StdEncoding.EncodedLen(len(p.JSON())) <= characters {
			break
		}
		delete(p.Extensions, name)
	}
	return base64.StdEncoding.EncodeToString(p.JSON())
}

// SettleResponse reports the outcome of a payment.
type SettleResponse struct {
	Success     bool   `json:"success"`
	ErrorReason string `json:"errorReason,omitempty"`
	Payer       string `json:"payer,omitempty"`
	Transaction string `json:"transaction"`
	Network     string `json:"network"`
	Amount      string `json:"amount,omitempty"`
}

// JSON returns the response as sent over MCP.
func (r SettleResponse) JSON() jsontext.Value { return encode(r) }

// Header returns the value of PAYMENT-RESPONSE.
func (r SettleResponse) Header() string { return base64.StdEncoding.EncodeToString(r.JSON()) }

// encode returns the JSON of one of our own objects. It cannot fail, because they contain valid
// text and JSON that was encoded before.
func encode(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("x402: " + err.Error())
	}
	return text
}
