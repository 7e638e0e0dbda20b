package payments

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Settle makes one attempt to settle a claimed payment, records the result and returns the state
// afterwards. Attempts are counted from 1, and only the process that claimed the payment makes the
// first. Before a later attempt, Settle records that the result is unknown, because a transaction
// may have been sent. From then on a refusal is final only if the blockchain proves it. Two
// attempts at the same time do no harm: the blockchain accepts the nonce once, and the second
// append is refused.
func (a *Payments) Settle(ctx context.Context, id string, attempt int) (state string, err error) {
	s, err := a.ReadPayment(ctx, id)
	switch {
	case err != nil:
		return "", err
	case s.State == "":
		return "", errNoPayment
	case !s.Open():
		return s.State, nil
	case a.Settler == nil:
		return s.State, errNotConfigured
	case s.Claim.Mode != a.Settler.Mode():
		return s.State, fmt.Errorf("payment %s was claimed in mode %s, so only an operator can resolve it", id, s.Claim.Mode)
	}
	p, err := s.payment()
	if err != nil {
		return s.State, err
	}
	if a.Clock().Sub(s.claimedAt) > firstAttemptWithin {
		attempt = max(attempt, 2) // another node may have attempted it by now
	}
	if attempt > 1 && s.State == PaymentIsClaimed {
		state, err := a.recordEnd(ctx, id, Settlement{State: Unknown, Reason: "settlement_pending"})
		if err != nil || state != PaymentIsUnknown {
			return state, err
		}
	}
	return a.keep(ctx, id, a.Settler.Settle(ctx, p, attempt))
}

// keep records the result of an attempt. It tries again until it succeeds or ctx ends, because
// this process may be the only one that knows that the money has moved, and the database may be
// down. For an unknown result it tries once.
func (a *Payments) keep(ctx context.Context, id string, found Settlement) (string, error) {
	for {
		state, err := a.recordEnd(context.WithoutCancel(ctx), id, found)
		if err == nil || found.State == Unknown {
			return state, err
		}
		again := time.NewTimer(recordAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return state, err
		}
	}
}

// provenUnused has the reasons of refusals that the blockchain proves. They are final, also
// after earlier attempts.
var provenUnused = map[string]bool{"authorization_used_elsewhere": true, "authorization_expired_unused": true}

var errNoPayment = policy.Refuse(ground.CodeNotFound, "", "payment not found")

// recordEnd appends the result of an attempt. If the payment has a final result already, it
// appends nothing.
func (a *Payments) recordEnd(ctx context.Context, id string, found Settlement) (string, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (string, error) {
		s, err := a.ReadPayment(ctx, id)
		if err != nil || !s.Open() {
			return s.State, err
		}
		switch found.State {
		case Settled:
			return a.recordSettled(ctx, s, found)
		case Refused:
			if s.State == PaymentIsUnknown && !provenUnused[found.Reason] && found.Evidence != EvidenceOperator {
				return s.State, nil
			}
			return a.AppendPayment(ctx, s, PaymentIsRefused, "system", events.TypePaymentRefused,
				events.PaymentRefused{PaymentID: id, Reason: found.Reason, Mode: s.Claim.Mode, Evidence: operatorOnly(found.Evidence)})
		}
		// An open payment gets another event only if the transaction differs from the known one.
		if s.State == PaymentIsUnknown && (found.Transaction == "" || found.Transaction == string(s.unknown.Transaction) || s.unknowns >= maxUnknowns) {
			return s.State, nil
		}
		return a.AppendPayment(ctx, s, PaymentIsUnknown, "system", events.TypePaymentUnknown,
			events.PaymentUnknown{PaymentID: id, Reason: found.Reason, Mode: s.Claim.Mode, Transaction: events.Text(found.Transaction)})
	})
}

func operatorOnly(evidence string) string {
	if evidence == EvidenceOperator {
		return evidence
	}
	return ""
}

// EvidenceOperator marks a result that an operator has recorded.
const EvidenceOperator = "operator"

// AppendPayment appends one event to a payment's stream and returns the payment's new state, which
// is the argument becomes. It returns ErrMoved if the stream has an event that s does not include.
func (a *Payments) AppendPayment(ctx context.Context, s Progress, becomes, actor, eventType string, stored any) (string, error) {
	pending, err := a.PaymentEvent(ctx, s, actor, eventType, stored)
	if err != nil {
		return s.State, err
	}
	if _, err = a.Ledger.Append(ctx, ledger.Append{Tenant: s.History.Tenant, Events: []ledger.Pending{pending}}); err != nil {
		return s.State, err
	}
	return becomes, nil
}

// PaymentEvent returns the next event of a payment's stream, encrypted if its type identifies the
// payer.
func (a *Payments) PaymentEvent(ctx context.Context, s Progress, actor, eventType string, stored any) (ledger.Pending, error) {
	d := ledger.Pending{Stream: s.History.Stream, Expect: s.History.At(), ID: a.NewID("evt_"),
		Type: eventType, SchemaVersion: events.Newest(eventType), Actor: actor}
	var err error
	if events.Sealed(eventType) {
		d.Payload, err = a.SealFor(ctx, s.History.Tenant, d.ID, s.party(), stored)
	} else {
		d.Payload, err = canon.Marshal(stored)
	}
	return d, err
}

// recordSettled appends payment.settled and the events that were promised with the claim. The
// promised records are signed already; the append fails if their key was retired.
func (a *Payments) recordSettled(ctx context.Context, s Progress, found Settlement) (string, error) {
	payer := events.Text(found.Payer)
	if payer == "" {
		payer = s.Claim.Payer
	}
	settled, err := a.PaymentEvent(ctx, s, s.party().Actor, events.TypePaymentSettled, events.PaymentSettled{PaymentID: s.Claim.PaymentID,
		Transaction: events.Text(found.Transaction), Payer: payer, Mode: s.Claim.Mode, Evidence: found.Evidence, Extensions: found.Extensions})
	if err != nil {
		return s.State, err
	}
	hash, err := s.requestHash()
	if err != nil {
		return s.State, err
	}
	order := ledger.Append{Tenant: s.History.Tenant, IdemKey: settlementKey(s.Claim.PaymentID), ContentHash: hash}
	here, elsewhere := a.promised(s)
	order.Events = append([]ledger.Pending{settled}, here...)
	var signedBy []string
	for _, d := range order.Events {
		if d.KeyID != "" {
			signedBy = append(signedBy, d.KeyID)
		}
	}
	// Append the events for a customer in another partition first, with the same idempotency key.
	// If this process then crashes, the next attempt repeats the append without effect.
	if len(elsewhere) > 0 {
		theirs := ledger.Append{Tenant: a.ServiceOf(ground.IDOf(elsewhere[0].Stream)), IdemKey: order.IdemKey, ContentHash: hash, Events: elsewhere}
		if _, err := a.Ledger.Append(ctx, theirs); err != nil {
			return s.State, err
		}
	}
	if order.Preconditions, err = a.stillActive(ctx, order.Tenant, signedBy); err != nil {
		return s.State, err
	}
	if _, err := a.Ledger.Append(ctx, order); err != nil {
		return s.State, err
	}
	return PaymentIsSettled, nil
}

// promised returns the prepared events of a claim, split into those for the payment's partition
// and those for the partition of the customer who gets an entitlement.
func (a *Payments) promised(s Progress) (here, elsewhere []ledger.Pending) {
	for _, e := range s.Claim.Prepared {
		expect := ledger.New()
		if e.Joins {
			expect = organizations.Unlimited
		}
		d := ledger.Pending{Stream: e.Stream, Expect: expect, ID: e.ID, Type: e.Type,
			SchemaVersion: e.SchemaVersion, Actor: e.Actor, KeyID: e.KeyID, Payload: e.Payload}
		if a.ServiceOf(ground.IDOf(e.Stream)) == s.History.Tenant {
			here = append(here, d)
		} else {
			elsewhere = append(elsewhere, d)
		}
	}
	return here, elsewhere
}

// stillActive returns the precondition for an append with records that were signed with these
// keys. It returns an error if one of the keys is retired.
func (a *Payments) stillActive(ctx context.Context, tenant string, keyIDs []string) ([]ledger.Precondition, error) {
	if len(keyIDs) == 0 {
		return nil, nil
	}
	ring, history, err := a.Ledger.Home(tenant).Keyring(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range keyIDs {
		if key, known := ring[id]; !known || key.To != 0 {
			return nil, fmt.Errorf("the key %s that signed the answer was retired before the payment had settled", id)
		}
	}
	return []ledger.Precondition{history.Precondition()}, nil
}

// ResolvePayment records the result that an operator has found for an open payment: the
// transaction that settled it, or no transaction if it will never settle. It returns the refusal
// conflict if the payment has another final result, or if there is no transaction and the payment
// can still settle.
func (a *Payments) ResolvePayment(ctx context.Context, id, transaction string) (PaymentInfo, error) {
	s, err := a.ReadPayment(ctx, id)
	if err != nil {
		return PaymentInfo{}, ground.Refusal(err)
	}
	wanted := Settlement{State: Settled, Transaction: transaction, Evidence: EvidenceOperator}
	if transaction == "" {
		wanted = Settlement{State: Refused, Reason: "authorization_expired_unused", Evidence: EvidenceOperator}
	}
	switch {
	case s.State == "":
		return PaymentInfo{}, errNoPayment
	case transaction == "" && s.Open() && a.Clock().Unix() <= s.validBefore():
		return PaymentInfo{}, policy.Refuse(organizations.CodeConflict, "", "the payment can still settle; wait until its validBefore has passed")
	case s.Open():
		if _, err = a.recordEnd(ctx, id, wanted); err != nil {
			return PaymentInfo{}, ground.Refusal(err)
		}
	}
	if s, err = a.ReadPayment(ctx, id); err != nil {
		return PaymentInfo{}, ground.Refusal(err)
	}
	if s.State != string(wanted.State) || string(s.Settled.Transaction) != transaction {
		return PaymentInfo{}, policy.Refuse(organizations.CodeConflict, "", "the payment has another final result: "+s.State)
	}
	return s.info(), nil
}

func (s Progress) validBefore() int64 {
	at, err := strconv.ParseInt(s.Claim.ValidBefore, 10, 64)
	if err != nil {
		return math.MaxInt64 // not readable, so do not treat it as expired
	}
	return at
}

// PaymentInfo describes a payment, as read from its stream.
type PaymentInfo struct {
	PaymentID   string `json:"paymentId"`
	State       string `json:"state"`
	Operation   string `json:"operation"`
	Mode        string `json:"mode"`
	PriceCents  int    `json:"priceCents"`
	Network     string `json:"network"`
	Asset       string `json:"asset"`
	Amount      string `json:"amount"`
	Payer       string `json:"payer"` // Payer, Nonce and Transaction are empty if Erased
	PayTo       string `json:"payTo"`
	Nonce       string `json:"nonce"`
	Erased      bool   `json:"erased,omitzero"` // the payer was erased on request
	ValidBefore string `json:"validBefore"`
	ClaimedAt   string `json:"claimedAt"`
	Transaction string `json:"transaction,omitempty"` // if the state is unknown: a transaction that may have settled the payment
	Evidence    string `json:"evidence,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Refund      string `json:"refund,omitempty"`
}

func (s Progress) info() PaymentInfo {
	c := s.Claim
	info := PaymentInfo{PaymentID: c.PaymentID, State: s.State, Operation: c.Operation, Mode: c.Mode, PriceCents: c.PriceCents, Network: c.Network,
		Asset: c.Asset, Amount: c.Amount, Payer: string(c.Payer), PayTo: c.PayTo, Nonce: string(c.Nonce), Erased: s.erased, ClaimedAt: canon.Stamp(s.claimedAt),
		Transaction: string(s.Settled.Transaction), Evidence: s.Settled.Evidence, Reason: s.refused.Reason, Refund: s.Refund}
	if s.State == PaymentIsUnknown {
		info.Transaction, info.Reason = string(s.unknown.Transaction), s.unknown.Reason
	}
	if at := s.validBefore(); at != math.MaxInt64 {
		info.ValidBefore = canon.Stamp(time.Unix(at, 0))
	}
	return info
}

// Payment returns the description of a payment.
func (a *Payments) Payment(ctx context.Context, id string) (PaymentInfo, error) {
	s, err := a.ReadPayment(ctx, id)
	switch {
	case err != nil:
		return PaymentInfo{}, ground.Refusal(err)
	case s.State == "":
		return PaymentInfo{}, errNoPayment
	}
	return s.info(), nil
}
