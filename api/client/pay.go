package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Signer signs a payment. It receives the seller's requirements (the PaymentRequired object of
// x402 version 2) with exactly one offer in accepts, and returns the payment payload.
type Signer func(ctx context.Context, required jsontext.Value) (payload jsontext.Value, err error)

// Payment describes a request to a seller that requires payment.
type Payment struct {
	Method, URL string
	Header      http.Header
	Body        []byte
	Subject     Subject
	// Approval is the longest wait for a person if the decision requires approval; 0 means not to
	// wait.
	Approval time.Duration
}

// offer contains the members of a seller's offer that the decision covers.
type offer struct {
	Scheme  string `json:"scheme"`
	Network string `json:"network"`
	Amount  string `json:"amount"`
	Asset   string `json:"asset"`
	PayTo   string `json:"payTo"`
}

// Pay sends a request to a seller, and pays by x402 if the organization's policy allows it. It
// checks that the signed offer is the decided one. If the error is ReceiptMissing, Pay returns the
// answer as well. If the payment was sent but no answer confirms that the seller took it, the
// error is PaymentUnconfirmed and the receipt reports a failure. The seller may have taken the
// payment nevertheless.
func (c *Client) Pay(ctx context.Context, p Payment, sign Signer) (*http.Response, error) {
	ask := request{p.Method, p.URL, p.Header, p.Body}
	unpaid, err := c.http.once(ctx, ask)
	if err != nil {
		return nil, err
	}
	if unpaid.status != http.StatusPaymentRequired {
		return unpaid.response(), nil
	}
	required, chosen, raw, resource := choose(unpaid)
	if raw == nil { // check: offer
		return nil, &Error{Code: Refused, Message: "the seller requires a payment, but none of its offers can be checked (scheme exact on an EVM network)", Status: unpaid.status}
	}
	d, err := c.Decide(ctx, Intent{ResourceURL: p.URL, Method: p.Method, Scheme: chosen.Scheme, Network: chosen.Network, Asset: chosen.Asset,
		PayTo: chosen.PayTo, AmountUnits: chosen.Amount, PaymentPayloadResource: resource}, p.Subject)
	if err != nil {
		return nil, err
	}
	if p.Approval > 0 {
		if err := d.Approved(ctx, p.Approval); err != nil {
			return nil, err
		}
	}
	var paid *http.Response
	err = d.Execute(ctx, func(ctx context.Context, _ Intent, e *Evidence) error {
		payload, err := sign(ctx, required)
		if err != nil {
			return err
		}
		if err := checkSigned(payload, raw, chosen); err != nil {
			return err
		}
		ask.header = ask.header.Clone()
		if ask.header == nil {
			ask.header = http.Header{}
		}
		ask.header.Set("PAYMENT-SIGNATURE", base64.StdEncoding.EncodeToString(payload))
		got, err := c.http.patiently(ctx, ask, func(a answered) bool { return a.status >= 500 || a.status == http.StatusTooManyRequests })
		if err != nil {
			said := &Error{} // its status is 0 if there was no answer
			errors.As(err, &said)
			return unconfirmed(err.Error(), said.Status, err)
		}
		if got.status == http.StatusPaymentRequired { // check: second-offer
			return unconfirmed("the seller answered with 402 again, and no second payment was signed", got.status, nil)
		}
		if got.status >= 300 && got.status < 400 { // check: redirect-after-payment
			return unconfirmed("the seller redirected the paid request, and the redirect was not followed", got.status, nil)
		}
		*e = Evidence{Failed: got.status >= 400, ResponseStatus: got.status, ResponseBodyHash: canon.Hash(got.body), SettlementID: transaction(got)}
		paid = got.response()
		return nil
	})
	return paid, err
}

// unconfirmed returns the error of any failure after the payment was sent.
func unconfirmed(why string, status int, cause error) *Error {
	return &Error{Code: PaymentUnconfirmed, Message: "the payment was sent, and the seller may have taken it: " + why + ". Find out whether it was taken before you pay again.", Status: status, Err: cause}
}

var (
	evm    = regexp.MustCompile(`^eip155:[0-9]+$`)
	amount = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// choose selects the first offer of a 402 answer that can be verified after signing: the scheme
// exact on an EVM network. raw is this offer in canonical form, or nil if there is none. required
// is the seller's requirements with only this offer.
func choose(a answered) (required jsontext.Value, chosen offer, raw []byte, resource string) {
	text, err := base64.StdEncoding.DecodeString(a.header.Get("PAYMENT-REQUIRED"))
	if err != nil {
		return nil, offer{}, nil, ""
	}
	var asked struct {
		Accepts  []jsontext.Value `json:"accepts"`
		Resource struct {
			URL string `json:"url"`
		} `json:"resource"`
	}
	whole, err := canon.Canonical(text)
	if err != nil || json.Unmarshal(whole, &asked) != nil {
		return nil, offer{}, nil, ""
	}
	for _, one := range asked.Accepts {
		var o offer
		if json.Unmarshal(one, &o) == nil && o.Scheme == "exact" && evm.MatchString(o.Network) && amount.MatchString(o.Amount) {
			return canon.Put(whole, []byte("["+string(one)+"]"), "accepts"), o, one, asked.Resource.URL
		}
	}
	return nil, offer{}, nil, ""
}

// checkSigned returns an error if the signed offer is not the decided one.
func checkSigned(payload jsontext.Value, raw []byte, o offer) error {
	var p struct {
		Accepted jsontext.Value `json:"accepted"`
		Payload  struct {
			Authorization *struct {
				To    string `json:"to"`
				Value string `json:"value"`
			} `json:"authorization"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(payload, &p); err != nil || p.Payload.Authorization == nil { // check: signed-readable
		return &Error{Code: OfferChanged, Message: "the signed payment cannot be read and was not sent", Err: err}
	}
	if accepted, err := canon.Canonical(p.Accepted); err != nil || !bytes.Equal(accepted, raw) { // check: signed-offer
		return &Error{Code: OfferChanged, Message: "the signed offer differs from the decided offer; the payment was not sent", Err: err}
	}
	if !strings.EqualFold(p.Payload.Authorization.To, o.PayTo) { // check: signed-recipient
		return &Error{Code: OfferChanged, Message: "the signed recipient differs from the decided recipient; the payment was not sent"}
	}
	if p.Payload.Authorization.Value != o.Amount { // check: signed-amount
		return &Error{Code: OfferChanged, Message: "the signed amount differs from the decided amount; the payment was not sent"}
	}
	return nil
}

// transaction returns the settlement that the seller reports, or "" if it reports none.
func transaction(a answered) string {
	var settled struct {
		Transaction string `json:"transaction"`
	}
	text, err := base64.StdEncoding.DecodeString(a.header.Get("PAYMENT-RESPONSE"))
	if err != nil || json.Unmarshal(text, &settled) != nil {
		return ""
	}
	return shown(settled.Transaction)
}

func (a answered) response() *http.Response {
	return &http.Response{Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body))}
}
