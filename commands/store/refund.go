package store

import (
	"context"
	"errors"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Reproduction is the result of computing a paid answer again.
type Reproduction struct {
	PaymentID            string
	Reproduced           bool
	RecordedOutputHash   string
	RecomputedOutputHash string // empty: this program does not have that engine version
	EngineVersion        string // of the record
	Refund               *payments.Refund
}

// RefundOrder is a request to compute again what was paid for.
type RefundOrder struct {
	PaymentID string
	Service   policy.Service
	Request   []byte // canonical JSON, the same that was paid for
}

// RequestRefund computes a paid answer again with the engine version that gave it. If the
// output differs, or this program does not have that version, a refund is requested, once.
// Refusals: not_found; payment_for_other_request; payment_not_settled, if nothing was charged.
func (a *Store) RequestRefund(ctx context.Context, order RefundOrder) (Reproduction, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (Reproduction, error) {
		s, err := a.ReadPayment(ctx, order.PaymentID)
		switch {
		case err != nil:
			return Reproduction{}, err
		case s.State == "":
			return Reproduction{}, policy.Refuse(ground.CodeNotFound, "", "payment not found: its id follows from network, asset, payer and nonce of what was signed")
		case s.Claim.RequestHash != payments.RequestHash(order.Service.Operation, payments.WithoutKey(order.Request)).String():
			return Reproduction{}, policy.Refuse(ground.CodeOtherRequest, "", "this is not the request that the payment was made for: send operation and body as they were paid for")
		case s.Open():
			return Reproduction{}, policy.Refuse(ground.CodeNotSettled, "", "the payment has not been settled yet: send the call with the same payment again for its answer")
		case s.State != payments.PaymentIsSettled:
			return Reproduction{}, policy.Refuse(ground.CodeNotSettled, "", "the payment was refused, so nothing was charged")
		}
		r := Reproduction{PaymentID: order.PaymentID, RecordedOutputHash: s.Claim.OutputHash, EngineVersion: s.Claim.EngineVersion}
		if s.Claim.EngineVersion == policy.Version {
			answer, err := a.Evaluate(ctx, order.Service, payments.WithoutKey(order.Request))
			if ground.IsBusy(err) {
				return Reproduction{}, err // such an error proves nothing about the answer
			}
			if err == nil {
				r.RecomputedOutputHash = answer.OutputHash
			}
			// If the engine now refuses a request that it answered before, the answer is not
			// reproduced.
			r.Reproduced = err == nil && answer.OutputHash == s.Claim.OutputHash
		}
		if !r.Reproduced && s.Requested == nil {
			requested := refundOf(s, "")
			requested.RecomputedOutputHash = r.RecomputedOutputHash
			if s, err = a.requestRefund(ctx, s, "system", requested); err != nil {
				return Reproduction{}, err
			}
		}
		r.Refund = s.Refunding()
		return r, nil
	})
}

// Recheck computes a settled call again from what the ledger stores of it, and reports whether
// the result is what was paid for. A payment that cannot be computed again is not reported as a
// difference: one that was not for a call, was erased, or was answered by another engine
// version or rule set.
func (a *Store) Recheck(ctx context.Context, paymentID string, services func(operation string) (policy.Service, bool)) (bool, error) {
	s, err := a.ReadPayment(ctx, paymentID)
	if err != nil {
		return false, ground.Refusal(err)
	}
	service, known := services(s.Claim.Operation)
	if !known || s.State != payments.PaymentIsSettled || s.Claim.EngineVersion != policy.Version || a.Vault == nil {
		return true, nil
	}
	for _, e := range s.History.Events {
		if e.Type != events.TypeCallCompleted {
			continue
		}
		var call events.CallCompleted
		switch err := a.Vault.Open(ctx, e, &call); {
		case errors.Is(err, vault.ErrErased):
			return true, nil
		case err != nil:
			return false, ground.Refusal(err)
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

// RequestRefundAsOperator requests the refund of any settled payment, such as that of a purchase
// whose file was downloaded. If a refund was requested already, nothing changes. After the
// request of a refund the file of a purchase is not sent any more.
func (a *Store) RequestRefundAsOperator(ctx context.Context, paymentID string) (payments.Refund, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (payments.Refund, error) {
		s, err := a.ReadPayment(ctx, paymentID)
		switch {
		case err != nil:
			return payments.Refund{}, err
		case s.State == "":
			return payments.Refund{}, policy.Refuse(ground.CodeNotFound, "", "payment not found")
		case s.State != payments.PaymentIsSettled:
			return payments.Refund{}, policy.Refuse(ground.CodeNotSettled, "", "the payment is "+s.State+", so there is nothing to refund")
		case s.Requested == nil:
			if s, err = a.requestRefund(ctx, s, "operator", refundOf(s, events.CauseOperator)); err != nil {
				return payments.Refund{}, err
			}
		}
		return *s.Refunding(), nil
	})
}

// refundOf returns the request of a refund of a settled payment.
func refundOf(s payments.Progress, cause string) events.RefundRequested {
	claim := s.Claim
	return events.RefundRequested{PaymentID: claim.PaymentID, Cause: cause, RecordedOutputHash: claim.OutputHash,
		EngineVersion: claim.EngineVersion, Amount: claim.Amount, Asset: claim.Asset, Network: claim.Network, To: s.Settled.Payer}
}

// requestRefund appends the request of a refund, and returns the payment with it.
func (a *Store) requestRefund(ctx context.Context, s payments.Progress, actor string, requested events.RefundRequested) (payments.Progress, error) {
	if _, err := a.AppendPayment(ctx, s, s.State, actor, events.TypeRefundRequested, requested); err != nil {
		return s, err
	}
	s.Refund, s.Requested = payments.RefundRequested, &requested
	return s, nil
}

// ApproveRefund reserves a requested refund's amount. If it is approved already, nothing
// changes.
func (a *Store) ApproveRefund(ctx context.Context, paymentID, reason string) (payments.Refund, error) {
	if reason != "" {
		if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
			return payments.Refund{}, err
		}
	}
	return a.moveRefund(ctx, paymentID, payments.RefundRequested, payments.RefundApproved, events.TypeRefundApproved,
		events.RefundApproved{PaymentID: paymentID, Reason: reason}, func(payments.Refund) bool { return true })
}

// SendRefund records the transaction with which an approved refund was paid. Recording the same
// transaction again changes nothing; another one is a conflict.
func (a *Store) SendRefund(ctx context.Context, paymentID, transaction string) (payments.Refund, error) {
	return a.moveRefund(ctx, paymentID, payments.RefundApproved, payments.RefundSent, events.TypeRefundSent,
		events.RefundSent{PaymentID: paymentID, Transaction: events.Text(transaction)}, func(r payments.Refund) bool { return r.Transaction == transaction })
}

// moveRefund moves a refund from one state to the next.
func (a *Store) moveRefund(ctx context.Context, paymentID, from, to, eventType string, stored any, same func(payments.Refund) bool) (payments.Refund, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (payments.Refund, error) {
		s, err := a.ReadPayment(ctx, paymentID)
		if err != nil {
			return payments.Refund{}, err
		}
		r := s.Refunding()
		switch {
		case r == nil:
			return payments.Refund{}, policy.Refuse(ground.CodeNotFound, "", "refund not found")
		case r.State == to && same(*r):
			return *r, nil
		case r.State != from:
			return payments.Refund{}, policy.Refuse(organizations.CodeConflict, "", "the refund is "+r.State+", not "+from)
		}
		if _, err = a.AppendPayment(ctx, s, s.State, "operator", eventType, stored); err != nil {
			return payments.Refund{}, err
		}
		if s, err = a.ReadPayment(ctx, paymentID); err != nil {
			return payments.Refund{}, err
		}
		return *s.Refunding(), nil
	})
}

// Refund returns the refund of a payment.
func (a *Store) Refund(ctx context.Context, paymentID string) (payments.Refund, error) {
	s, err := a.ReadPayment(ctx, paymentID)
	if err != nil {
		return payments.Refund{}, ground.Refusal(err)
	}
	if r := s.Refunding(); r != nil {
		return *r, nil
	}
	return payments.Refund{}, policy.Refuse(ground.CodeNotFound, "", "refund not found")
}
