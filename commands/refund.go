package commands

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Reproduction is what recomputing a paid answer has shown.
type Reproduction struct {
	PaymentID            string
	Reproduced           bool
	RecordedOutputHash   string
	RecomputedOutputHash string // empty: that engine version is not here any more
	EngineVersion        string // of the record
	Refund               *Refund
}

// RefundOrder asks to recompute what a payment has paid for.
type RefundOrder struct {
	PaymentID string
	Service   policy.Service
	Request   []byte // canonical JSON, as it was paid for
}

// RequestRefund recomputes a paid answer with the engine version that gave it. If
// the output is another, or the version is gone, a refund is requested, once.
// Refusals: not_found; payment_for_other_request; payment_not_settled, where nothing
// was charged.
func (a *Store) RequestRefund(ctx context.Context, order RefundOrder) (Reproduction, error) {
	return retry(ctx, a.Ground, nil, func(ctx context.Context) (Reproduction, error) {
		s, err := a.readPayment(ctx, order.PaymentID)
		switch {
		case err != nil:
			return Reproduction{}, err
		case s.state == "":
			return Reproduction{}, policy.Refuse(CodeNotFound, "", "payment not found: its id follows from network, asset, payer and nonce of what was signed")
		case s.claim.RequestHash != RequestHash(order.Service.Operation, withoutKey(order.Request)).String():
			return Reproduction{}, policy.Refuse(CodeOtherRequest, "", "this is not the request that the payment was made for: send operation and body as they were paid for")
		case s.open():
			return Reproduction{}, policy.Refuse(CodeNotSettled, "", "the payment has not been settled yet: send the call with the same payment again for its answer")
		case s.state != PaymentIsSettled:
			return Reproduction{}, policy.Refuse(CodeNotSettled, "", "the payment was refused, so nothing was charged")
		}
		r := Reproduction{PaymentID: order.PaymentID, RecordedOutputHash: s.claim.OutputHash, EngineVersion: s.claim.EngineVersion}
		if s.claim.EngineVersion == policy.Version {
			answer, err := a.evaluate(ctx, order.Service, withoutKey(order.Request))
			if isBusy(err) {
				return Reproduction{}, err // which says nothing about the answer
			}
			if err == nil {
				r.RecomputedOutputHash = answer.OutputHash
			}
			// An engine that refuses now what it answered then does not reproduce it.
			r.Reproduced = err == nil && answer.OutputHash == s.claim.OutputHash
		}
		if !r.Reproduced && s.requested == nil {
			if s, err = a.requestRefund(ctx, s, r); err != nil {
				return Reproduction{}, err
			}
		}
		r.Refund = s.refunding()
		return r, nil
	})
}

// Recheck recomputes a settled call from what the ledger keeps of it, and says
// whether it still gives what was paid for. What cannot be recomputed, because it is
// no call, is erased, or was answered by another engine version or rule
// set, is no fault.
func (a *Store) Recheck(ctx context.Context, paymentID string, services func(operation string) (policy.Service, bool)) (bool, error) {
	s, err := a.readPayment(ctx, paymentID)
	if err != nil {
		return false, refusal(err)
	}
	service, known := services(s.claim.Operation)
	if !known || s.state != PaymentIsSettled || s.claim.EngineVersion != policy.Version || a.Vault == nil {
		return true, nil
	}
	for _, e := range s.history.Events {
		if e.Type != events.TypeCallCompleted {
			continue
		}
		var call events.CallCompleted
		switch err := a.Vault.Open(ctx, e, &call); {
		case errors.Is(err, ledger.ErrErased):
			return true, nil
		case err != nil:
			return false, refusal(err)
		}
		if service.Ruleset != nil {
			if _, hash := service.Ruleset(); hash != call.RulesetHash {
				return true, nil
			}
		}
		request, err := canon.Marshal(call.Request)
		if err != nil {
			return false, err
		}
		answer, err := service.EvaluateCanonical(request)
		return err == nil && answer.OutputHash == call.OutputHash, nil
	}
	return false, ledger.ErrTampered
}

func (a *Store) requestRefund(ctx context.Context, s paymentState, r Reproduction) (paymentState, error) {
	requested := events.RefundRequested{PaymentID: r.PaymentID, RecordedOutputHash: r.RecordedOutputHash, RecomputedOutputHash: r.RecomputedOutputHash,
		EngineVersion: r.EngineVersion, Amount: s.claim.Amount, Asset: s.claim.Asset, Network: s.claim.Network, To: s.settled.Payer}
	if _, err := a.appendPayment(ctx, s, s.state, "system", events.TypeRefundRequested, requested); err != nil {
		return s, err
	}
	s.refund, s.requested = refundRequested, &requested
	return s, nil
}

// ApproveRefund reserves a requested refund's amount. Approving it again changes
// nothing.
func (a *Store) ApproveRefund(ctx context.Context, paymentID, reason string) (Refund, error) {
	if reason != "" {
		if err := checkText("reason", reason, maxReason); err != nil {
			return Refund{}, err
		}
	}
	return a.moveRefund(ctx, paymentID, refundRequested, refundApproved, events.TypeRefundApproved,
		events.RefundApproved{PaymentID: paymentID, Reason: reason}, func(Refund) bool { return true })
}

// SendRefund records the transaction by which an approved refund was paid, outside.
// Recording it again changes nothing; another transaction is a conflict.
func (a *Store) SendRefund(ctx context.Context, paymentID, transaction string) (Refund, error) {
	return a.moveRefund(ctx, paymentID, refundApproved, refundSent, events.TypeRefundSent,
		events.RefundSent{PaymentID: paymentID, Transaction: events.Text(transaction)}, func(r Refund) bool { return r.Transaction == transaction })
}

// moveRefund takes a refund one step further, from the state before it.
func (a *Store) moveRefund(ctx context.Context, paymentID, from, to, eventType string, stored any, same func(Refund) bool) (Refund, error) {
	return retry(ctx, a.Ground, nil, func(ctx context.Context) (Refund, error) {
		s, err := a.readPayment(ctx, paymentID)
		if err != nil {
			return Refund{}, err
		}
		r := s.refunding()
		switch {
		case r == nil:
			return Refund{}, policy.Refuse(CodeNotFound, "", "refund not found")
		case r.State == to && same(*r):
			return *r, nil
		case r.State != from:
			return Refund{}, policy.Refuse(CodeConflict, "", "the refund is "+r.State+", not "+from)
		}
		if _, err = a.appendPayment(ctx, s, s.state, "operator", eventType, stored); err != nil {
			return Refund{}, err
		}
		if s, err = a.readPayment(ctx, paymentID); err != nil {
			return Refund{}, err
		}
		return *s.refunding(), nil
	})
}

// Refund tells the refund of a payment.
func (a *Store) Refund(ctx context.Context, paymentID string) (Refund, error) {
	s, err := a.readPayment(ctx, paymentID)
	if err != nil {
		return Refund{}, refusal(err)
	}
	if r := s.refunding(); r != nil {
		return *r, nil
	}
	return Refund{}, policy.Refuse(CodeNotFound, "", "refund not found")
}
