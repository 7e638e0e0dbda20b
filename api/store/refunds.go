package store

import (
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// refundRequest is the body of a request for a refund. The service computes the paid answer again,
// and requests the refund if the answer differs.
type refundRequest struct {
	PaymentID string         `json:"paymentId" jsonschema:"pattern=^pay_[0-9a-f]{32}$" jsonschema_description:"pay_ and the first 32 hex digits of keccak256 over network|asset|payer|nonce of the payment, in lower case. Signed receipts name it."`
	Operation string         `json:"operation" jsonschema:"minLength=1,maxLength=100" jsonschema_description:"The operationId of the call that was paid for."`
	Request   jsontext.Value `json:"request" jsonschema_description:"The body of that call."`
}

// reproduction is the result of computing the answer again.
type reproduction struct {
	PaymentID            string  `json:"paymentId"`
	Reproduced           bool    `json:"reproduced"`
	RecordedOutputHash   string  `json:"recordedOutputHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	RecomputedOutputHash *string `json:"recomputedOutputHash" jsonschema:"nullable" jsonschema_description:"null if this service no longer has the engine version of the record."`
	EngineVersion        string  `json:"engineVersion"`
	Refund               *refund `json:"refund" jsonschema:"nullable"`
}

// refund is an amount to be paid back, and the state of the repayment.
type refund struct {
	State       string `json:"state" jsonschema:"enum=requested,enum=approved,enum=sent"`
	Amount      string `json:"amount"`
	Asset       string `json:"asset"`
	Network     string `json:"network"`
	To          string `json:"to"`
	Transaction string `json:"transaction,omitempty"`
}

var requestRefund = &op.Operation{
	ID: "request_refund", Method: http.MethodPost, Path: "/api/refunds",
	Summary: "Recompute a paid answer from its request, and refund the payment if the result differs. Purchases are refunded by the operator.",
	Input:   reflect.TypeFor[refundRequest](), Output: reflect.TypeFor[reproduction](),
	Example: `{"paymentId":"pay_0123456789abcdef0123456789abcdef","operation":"action_safety_quick_gate","request":{"command":"git push --force origin main"}}`,
	Limit:   op.LimitRefund, Errors: []int{400, 404, 409, 413, 429, 503},
	Refuses: []string{"unknown_operation"},
}

// Refunds computes paid answers again, and requests a refund if they differ.
type Refunds struct {
	Store   *store.Store
	Callers *request.Callers
	Table   *op.Table
}

// Operations lists the operation that requests a refund.
func (s *Refunds) Operations() []*op.Operation {
	return []*op.Operation{requestRefund.Does(s.requestRefund)}
}

func (s *Refunds) requestRefund(c *op.Call) (op.Reply, error) {
	if err := s.Callers.MayAsk(op.ToAskForRefund, c); err != nil {
		return op.Reply{}, err
	}
	var in refundRequest
	if err := canon.DecodeChecked(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	o := s.Table.Find(in.Operation)
	switch {
	case o != nil && o.Sells != nil: // the call bought a file, which cannot be computed again
		return op.Reply{}, policy.Refuse("unknown_operation", "/operation", "operation is a purchase, which the operator refunds: "+s.Store.BaseURL+"/refunds has the contact")
	case o == nil || o.Service == nil:
		return op.Reply{}, policy.Refuse("unknown_operation", "/operation", "operation is not the id of a service: send the operationId of the call that was paid for")
	}
	shown, err := s.Store.RequestRefund(c.Request.Context(), store.RefundOrder{PaymentID: in.PaymentID, Service: *o.Service, Request: in.Request})
	if err != nil {
		return op.Reply{}, err
	}
	r := reproduction{PaymentID: shown.PaymentID, Reproduced: shown.Reproduced, RecordedOutputHash: shown.RecordedOutputHash, EngineVersion: shown.EngineVersion}
	if shown.RecomputedOutputHash != "" {
		r.RecomputedOutputHash = &shown.RecomputedOutputHash
	}
	if shown.Refund != nil {
		back := refund(*shown.Refund)
		r.Refund = &back
	}
	return op.Reply{Value: r}, nil
}
