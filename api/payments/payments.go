// Package payments handles x402 for callers. It reads the payment of a call, checks it against the
// price, and writes the 402 that demands a payment and the headers of a paid answer. The wire
// format is in api/x402. Settlement and its records are in commands/payments.
package payments

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Payments reads and demands the payments of calls.
type Payments struct {
	Commands *payments.Payments
	Terms    x402.Terms // conditions on which payments are accepted

	Demands map[string]x402.PaymentRequired // 402 of each service, by operation id
}

// Taken reports whether x402 payments are accepted at the moment.
func Taken(s payments.Settler) bool { return s != nil && s.Configured() }

// Mode returns "off", "dev" or "facilitator".
func Mode(s payments.Settler) string {
	if s == nil {
		return payments.ModeOff
	}
	return s.Mode()
}

var errNotConfigured = policy.Refuse(ground.CodeNotConfigured, "", "x402 not configured")

// Read reads the payment of a call, if there is one, and checks it against the terms of the call.
// A payment that was recorded before was checked then; the settlement compares it with the record.
func (s *Payments) Read(c *op.Call) (present bool, err error) {
	var sent *x402.Payment
	switch values := c.Request.Header[x402.HeaderSignature]; {
	case c.Tool != nil:
		if c.Tool.Payment == nil {
			return false, nil
		}
		sent, err = x402.Read(c.Tool.Payment)
	case len(values) == 0:
		return false, nil
	case len(values) > 1:
		err = &payments.PaymentRefused{Reason: x402.ReasonPayload}
	default:
		sent, err = x402.Decode(values[0])
	}
	if !Taken(s.Commands.Settler) {
		return true, errNotConfigured
	}
	if err != nil {
		return true, err
	}
	known, err := s.Commands.KnownPayment(c.Request.Context(), sent.Payment)
	if err == nil && !known {
		contracts := Mode(s.Commands.Settler) == payments.ModeFacilitator // only a facilitator can verify signatures of contract accounts, because this requires the chain
		err = sent.Verify(s.Terms.Offer(c.Sale.Cents), s.resource(c).URL, s.Commands.Clock(), contracts)
	}
	c.Means, c.Payment = credential.ByPayment, sent.Payment
	return true, err
}

// resource describes what a call buys. Its URL uses our base URL, never the Host header.
func (s *Payments) resource(c *op.Call) x402.Resource {
	r := x402.Resource{URL: s.Commands.BaseURL + c.Request.URL.Path, Description: c.Sale.Description, MimeType: "application/json"}
	if c.Tool != nil {
		r.URL = "mcp://tool/" + c.Op.ID
	}
	return r
}

// Demand is the answer 402. It contains what to pay and, if a payment was claimed and then
// refused, the result of its settlement.
type Demand struct {
	Required x402.PaymentRequired
	Response *x402.SettleResponse // nil if no payment was claimed
}

// Error returns the reason.
func (d *Demand) Error() string { return d.Required.Error }

// Reply returns the 402. The header and the body contain the same object, because many agents read
// the body first. Extensions that do not fit into the header are only in the body.
func (d *Demand) Reply() op.Reply {
	h := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}
	room := x402.MaxChallenge
	if d.Response != nil {
		response := d.Response.Header()
		h.Set(x402.HeaderResponse, response)
		room -= len(x402.HeaderResponse+": \r\n") + len(response)
	}
	h.Set(x402.HeaderRequired, d.Required.HeaderWithin(room))
	return op.Reply{Status: http.StatusPaymentRequired, Header: h, Body: d.Required.JSON()}
}

// Pending is the answer 503 to a payment whose outcome is unknown. A 402 would make the buyer sign
// and pay again.
type Pending struct {
	PaymentID string
	Response  x402.SettleResponse
	Until     time.Time // latest time of settlement; zero if unknown
	Cause     error     // cause, for the log; may be nil
}

// Error returns the reason.
func (p *Pending) Error() string { return x402.ReasonPending }

// Refuse converts an error of the payment commands into the answer to a call. It returns any other
// error unchanged.
func (s *Payments) Refuse(c *op.Call, err error) error {
	var refused *payments.PaymentRefused
	var required *payments.PaymentRequired
	var open *payments.SettlementPending
	failed := x402.SettleResponse{Network: c.Payment.Network, Payer: c.Payment.Payer}
	switch {
	case errors.As(err, &open):
		failed.ErrorReason, failed.Transaction = x402.ReasonPending, open.Transaction
		return &Pending{open.PaymentID, failed, open.Until, open.Cause}
	case errors.As(err, &refused):
		d := &Demand{Required: s.demanded(c).WithError(refused.Reason)}
		if refused.Settled {
			failed.ErrorReason = refused.Reason
			d.Response = &failed
		}
		return d
	case !errors.As(err, &required):
		return err
	case !Taken(s.Commands.Settler):
		return errNotConfigured
	}
	d := &Demand{Required: s.demanded(c)}
	if len(c.Request.Header[x402.HeaderV1]) > 0 && c.Means == credential.Nothing {
		d.Required = d.Required.WithError(x402.VersionIsRequired)
	}
	return d
}

// demanded returns the 402 of a call. The 402 of a service over HTTP was prepared at the start,
// because it includes the service's schema for indexers.
func (s *Payments) demanded(c *op.Call) x402.PaymentRequired {
	if made, ok := s.Demands[c.Op.ID]; ok && c.Tool == nil {
		return made
	}
	return s.Terms.Challenge(s.resource(c), c.Sale.Cents, nil)
}

// Prepare generates the 402 of every service.
func (s *Payments) Prepare(services []*op.Operation) error {
	s.Demands = map[string]x402.PaymentRequired{}
	for _, o := range services {
		answer, err := o.ExampleAnswer()
		if err != nil {
			return err
		}
		output, err := contract.AnswerSchema(o)
		if err != nil {
			return err
		}
		example, err := canon.Canonical([]byte(o.Example))
		if err != nil {
			return err
		}
		resource := s.Sold(o.Path, o.Service.Summary, o.Service.Group)
		s.Demands[o.ID] = s.Terms.Challenge(resource, o.Service.PriceCents, &x402.Discovery{
			Example: jsontext.Value(example), Answer: answer, Input: o.Schema.Document, Output: output})
	}
	return nil
}

// Sold describes a paid address, for indexers.
func (s *Payments) Sold(path, description string, tags ...string) x402.Resource {
	return x402.Resource{URL: s.Commands.BaseURL + path, Description: description, MimeType: "application/json",
		ServiceName: op.Name, Tags: tags, IconURL: s.Commands.BaseURL + op.IconPath}
}

// Paid returns the headers of a paid answer.
func Paid(r payments.Receipt) http.Header {
	response := x402.SettleResponse{Success: true, Payer: r.Payer, Transaction: r.Transaction, Network: r.Network, Amount: r.Amount}
	h := http.Header{"Cache-Control": {"private, no-store"}, x402.HeaderResponse: {response.Header()}}
	if r.Extensions != "" {
		h.Set(x402.HeaderExtensions, r.Extensions)
	}
	return h
}
