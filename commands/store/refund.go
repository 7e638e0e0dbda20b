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
	RecomputedOutputHash string // empty if this program does not have the engine version
	EngineVersion        string // engine version that gave the recorded answer
	Refund               *payments.Refund
}

// RefundOrder is a buyer's request to compute a paid answer again.
type RefundOrder struct {
	PaymentID string
	Service   policy.Service
	Request   []byte // canonical JSON of the paid request
}

// RequestRefund computes a paid answer again with the engine version that gave it. If the result
// differs, or this program does not have that version, it requests a refund, once. Refusals:
// not_found, payment_for_other_request, and payment_not_settled if the payment is open or was
// refused.
func (a *Store) RequestRefund(ctx context.Context, order RefundOrder) (Reproduction, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (Reproduction, error) {
		s, err := a.ReadPayment(ctx, order.PaymentID)
		switch {
		case err != nil:
			return Reproduction{}, err
		case s.State == "":
			return Reproduction{}, policy.Refuse(ground.CodeNotFound, "", "payment not found: its id is computed from network, asset, payer and nonce of the signed payment")
		case s.Claim.RequestHash != payments.RequestHash(order.Service.Operation, payments.WithoutKey(order.Request)).String():
			return Reproduction{}, policy.Refuse(ground.CodeOtherRequest, "", "the payment was made for another request: send the operation and body that were paid for")
		case s.Open():
			return Reproduction{}, policy.Refuse(ground.CodeNotSettled, "", "the payment has not settled yet; send the call with the same payment again")
		case s.State != payments.PaymentIsSettled:
			return Reproduction{}, policy.Refuse(ground.CodeNotSettled, "", "the payment was refused, so nothing was charged")
		}
		r := Reproduction{PaymentID: order.PaymentID, RecordedOutputHash: s.Claim.OutputHash, EngineVersion: s.Claim.EngineVersion}
		if s.Claim.EngineVersion == policy.Version {
			answer, err := a.Evaluate(ctx, order.Service, payments.WithoutKey(order.Request))
			if ground.IsBusy(err) {
				return Reproduction{}, err // an error such as a timeout shows nothing about the answer
			}
			if err == nil {
				r.RecomputedOutputHash = answer.OutputHash
			}
			// A request that was answered before and is refused now is not reproduced.
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

// Recheck computes a settled call again from its stored request, and reports whether the result
// equals the stored answer. It also returns true if it cannot compute the answer again: the
// payment is not for a call, the payer was erased, or this program does not have the engine
// version, the rule set or the vault's key.
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

// RequestRefundAsOperator requests the refund of any settled payment, for example of a purchase
// whose file was downloaded. If a refund was requested already, it changes nothing. After the
// request, the file of a purchase is not sent any more.
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

// refundOf returns the event that requests a refund of a settled payment.
func refundOf(s payments.Progress, cause string) events.RefundRequested {
	claim := s.Claim
	return events.RefundRequested{PaymentID: claim.PaymentID, Cause: cause, RecordedOutputHash: claim.OutputHash,
		EngineVersion: claim.EngineVersion, Amount: claim.Amount, Asset: claim.Asset, Network: claim.Network, To: s.Settled.Payer}
}

// requestRefund appends the request of a refund and returns the payment's new state.
func (a *Store) requestRefund(ctx context.Context, s payments.Progress, actor string, requested events.RefundRequested) (payments.Progress, error) {
	if _, err := a.AppendPayment(ctx, s, s.State, actor, events.TypeRefundRequested, requested); err != nil {
		return s, err
	}
	s.Refund, s.Requested = payments.RefundRequested, &requested
	return s, nil
}

// ApproveRefund approves a requested refund. If it is approved already, it changes nothing.
func (a *Store) ApproveRefund(ctx context.Context, paymentID, reason string) (payments.Refund, error) {
	if reason != "" {
		if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
			return payments.Refund{}, err
		}
	}
	return a.moveRefund(ctx, paymentID, payments.RefundRequested, payments.RefundApproved, events.TypeRefundApproved,
		events.RefundApproved{PaymentID: paymentID, Reason: reason}, func(payments.Refund) bool { return true })
}

// SendRefund records the transaction that paid an approved refund. Recording the same transaction
// again changes nothing; another transaction is a conflict.
func (a *Store) SendRefund(ctx context.Context, paymentID, transaction string) (payments.Refund, error) {
	return a.moveRefund(ctx, paymentID, payments.RefundApproved, payments.RefundSent, events.TypeRefundSent,
		events.RefundSent{PaymentID: paymentID, Transaction: events.Text(transaction)}, func(r payments.Refund) bool { return r.Transaction == transaction })
}

// moveRefund appends the event that takes a refund from one state to the next. If the refund is in
// the next state already and same accepts it, it changes nothing.
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

// Refund returns the state of a payment's refund.
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
