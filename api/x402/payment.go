package x402

import (
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Payment is a payment as sent: well-formed, but not verified.
type Payment struct {
	payments.Payment
	accepted      Requirements
	resource      string // empty if none was sent
	authorization Authorization
	signature     []byte
}

// Resource returns the URL that the payment names, or "".
func (p *Payment) Resource() string { return p.resource }

// Authorization returns the signed authorization.
func (p *Payment) Authorization() Authorization { return p.authorization }

// wirePayment is the decoded PAYMENT-SIGNATURE. Its members are parsed separately, in the order of
// the checks, because another version may have another form.
type wirePayment struct {
	Version    jsontext.Value `json:"x402Version"`
	Accepted   jsontext.Value `json:"accepted"`
	Payload    jsontext.Value `json:"payload"`
	Resource   jsontext.Value `json:"resource"`
	Extensions jsontext.Value `json:"extensions"`
}

type wireExact struct {
	Signature     string `json:"signature"`
	Authorization struct {
		From        string `json:"from"`
		To          string `json:"to"`
		Value       string `json:"value"`
		ValidAfter  string `json:"validAfter"`
		ValidBefore string `json:"validBefore"`
		Nonce       string `json:"nonce"`
	} `json:"authorization"`
}

func refuse(reason string) error { return &payments.PaymentRefused{Reason: reason} }

// Decode parses the header PAYMENT-SIGNATURE. The error is a *payments.PaymentRefused, or a
// *policy.Error for a malformed payment identifier.
func Decode(header string) (*Payment, error) {
	if len(header) > MaxHeader || strings.ContainsAny(header, "\r\n") {
		return nil, refuse(ReasonPayload)
	}
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return nil, refuse(ReasonPayload)
	}
	return Read(text)
}

// Read parses a payment in JSON, as an MCP call sends it. The errors are those of Decode.
func Read(text []byte) (*Payment, error) {
	if len(text) > MaxHeader || canon.Check(text) != nil || jsontext.Value(text).Kind() != '{' {
		return nil, refuse(ReasonPayload)
	}
	var wire wirePayment
	if err := json.Unmarshal(text, &wire); err != nil || string(wire.Version) != "2" {
		return nil, refuse(ReasonVersion)
	}
	p := &Payment{}
	p.Payload, p.Accepted = jsontext.Value(text), wire.Accepted
	if err := p.read(wire); err != nil {
		return nil, err
	}
	var err error
	p.Identifier, err = identifier(wire.Extensions)
	return p, err
}

// read parses the members accepted and payload by the form of the scheme.
func (p *Payment) read(wire wirePayment) error {
	var exact wireExact
	if wire.Accepted.Kind() != '{' || json.Unmarshal(wire.Accepted, &p.accepted) != nil ||
		wire.Payload.Kind() != '{' || json.Unmarshal(wire.Payload, &exact) != nil {
		return refuse(ReasonPayload)
	}
	var resource Resource
	if wire.Resource != nil && json.Unmarshal(wire.Resource, &resource) != nil {
		return refuse(ReasonPayload)
	}
	p.resource = resource.URL
	ok := make([]bool, 6)
	from := exact.Authorization
	p.authorization.From, ok[0] = parseAddress(from.From)
	p.authorization.To, ok[1] = parseAddress(from.To)
	p.authorization.Nonce, ok[2] = parseHash(from.Nonce)
	p.authorization.Value, ok[3] = parseUint(from.Value)
	p.authorization.ValidAfter, ok[4] = parseUint(from.ValidAfter)
	p.authorization.ValidBefore, ok[5] = parseUint(from.ValidBefore)
	for _, good := range ok {
		if !good {
			return refuse(ReasonPayload)
		}
	}
	digits, prefixed := strings.CutPrefix(exact.Signature, "0x")
	signature, err := hex.DecodeString(digits)
	if err != nil || !prefixed || len(signature) == 0 {
		return refuse(ReasonPayload)
	}
	p.signature = signature
	p.fill()
	return nil
}

// fill sets the fields that package commands/payments uses. Addresses and numbers are normalized.
func (p *Payment) fill() {
	a := p.authorization
	p.Network, p.Asset = p.accepted.Network, p.accepted.Asset
	if asset, ok := parseAddress(p.Asset); ok {
		p.Asset = asset.String()
	}
	p.Signature = "0x" + hex.EncodeToString(p.signature)
	p.Payer, p.PayTo, p.Nonce = a.From.String(), a.To.String(), a.Nonce.String()
	p.Amount = a.Value.String()
	p.ValidAfter, p.ValidBefore = seconds(a.ValidAfter), seconds(a.ValidBefore)
	p.ID = ID(p.Network, p.Asset, p.Payer, p.Nonce)
}

// seconds returns a time of the chain as an int64, or the largest int64 if it does not fit.
func seconds(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return 1<<63 - 1
}

// ID returns the id of a payment. All authorizations of a payer with the same nonce have the same
// id, because only one of them can be spent.
func ID(network, asset, payer, nonce string) string {
	sum := Keccak([]byte(strings.ToLower(network + "|" + asset + "|" + payer + "|" + nonce)))
	return "pay_" + hex.EncodeToString(sum[:16])
}

var identifierForm = normal.Pattern(`^[A-Za-z0-9_-]{16,128}$`)

// identifier returns the buyer's own id of the payment, or "".
func identifier(extensions jsontext.Value) (string, error) {
	var sent struct {
		Identifier struct {
			Info struct {
				ID *string `json:"id"`
			} `json:"info"`
		} `json:"payment-identifier"`
	}
	if len(extensions) == 0 {
		return "", nil
	}
	err := json.Unmarshal(extensions, &sent)
	id := sent.Identifier.Info.ID
	if err == nil && id == nil {
		return "", nil
	}
	if err != nil || !identifierForm(*id) {
		return "", policy.Refuse("invalid_payment_identifier", "", "payment-identifier must have 16 to 128 letters, digits, hyphens and underscores")
	}
	return *id, nil
}

// Verify checks a payment that was not recorded before against our offer for a call, at a time.
// resource is the URL of the challenge. The error is a *payments.PaymentRefused with the reason.
//
// A contract account verifies signatures itself (ERC-1271). Its signatures may also have 65 bytes,
// made by a key with another address, and only the chain can verify them. contracts states whether
// the settler asks the chain. If so, Verify leaves every signature that is not by the payer's own
// key to the settler. Afterwards Signed reports whether the payer's own key has signed.
func (p *Payment) Verify(offer Requirements, resource string, now time.Time, contracts bool) error {
	if !p.accepted.equal(offer) {
		return refuse(ReasonNoMatch)
	}
	if !samePath(p.resource, resource) {
		return refuse(ReasonResource)
	}
	a := p.authorization
	p.Signed = p.signedByPayer()
	switch {
	case a.To.String() != offer.PayTo:
		return refuse(ReasonRecipient)
	case a.Value.String() != offer.Amount:
		return refuse(ReasonValue)
	case p.ValidBefore < unixCeil(now.Add(windowLeft)),
		p.ValidBefore > now.Add(windowLimit).Unix():
		return refuse(ReasonValidBefore)
	case p.ValidAfter > now.Unix():
		return refuse(ReasonValidAfter)
	case !contracts && !p.Signed:
		return refuse(ReasonSignature)
	}
	return nil
}

// unixCeil returns a time in Unix seconds, rounded up.
func unixCeil(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// equal reports whether a buyer accepted our offer. The case of addresses is ignored; everything
// else must be identical.
func (r Requirements) equal(offer Requirements) bool {
	r.Asset, offer.Asset = strings.ToLower(r.Asset), strings.ToLower(offer.Asset)
	r.PayTo, offer.PayTo = strings.ToLower(r.PayTo), strings.ToLower(offer.PayTo)
	return r == offer
}

// samePath reports whether a payment names the path of the call or no resource. Host and query are
// ignored, because proxies change them.
func samePath(sent, ours string) bool {
	if sent == "" {
		return true
	}
	s, err := url.Parse(sent)
	o, err2 := url.Parse(ours)
	return err == nil && err2 == nil && s.Path == o.Path
}

// signedByPayer reports whether the payer's own key has signed the payment.
func (p *Payment) signedByPayer() bool { return p.SignedBy(p.authorization.From) }

// SignedBy reports whether the key of an address has signed the payment, under the domain of the
// accepted asset.
func (p *Payment) SignedBy(address Address) bool {
	chain, known := chainID(p.accepted.Network)
	asset, ok := parseAddress(p.accepted.Asset)
	if !known || !ok {
		return false
	}
	domain := Domain{Name: p.accepted.Extra.Name, Version: p.accepted.Extra.Version, ChainID: chain, Asset: asset}
	signer, ok := signerOf(p.authorization.Digest(domain), p.signature)
	return ok && signer == address
}
