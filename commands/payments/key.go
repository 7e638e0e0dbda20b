package payments

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// An Idempotency-Key of a paid request belongs to its payer and operation. The first payment that
// is claimed with the key pays for the request, even if the payer sends it again with a newly
// signed payment. So a buyer who has lost the answer pays only once.

// paymentKey is the state of a payer's Idempotency-Key in the ledger.
type paymentKey struct {
	tenant, stream string         // both empty if the request has no key
	history        ledger.History // events of the key's stream
	content        string         // hash of the request for which the key was taken
	takenAt        time.Time
	holder         Progress // state of the payment that has the key; State is empty if it was not claimed
	holderID       string
	ours           bool // an earlier try with this payment has taken the key for the same request
}

// held reports whether another payment has the key and was claimed, or may still be claimed. A
// refused payment has moved no money, so it does not hold the key any more.
func (k paymentKey) held() bool { return k.holderID != "" && k.holder.State != PaymentIsRefused }

// readKey reads which payment has the Idempotency-Key of a request. The stream's name is a keyed
// hash, because the key is combined with the payer's address, which is personal data.
func (a *Payments) readKey(ctx context.Context, p Payment, paid Paid) (k paymentKey, err error) {
	if paid.IdempotencyKey == "" {
		return k, nil
	}
	if a.Vault == nil {
		return k, a.NoVault()
	}
	name := a.Vault.Reference(ledger.ServiceTenant,
		"x402_key:"+paid.Operation+":"+payerSubject(p.Network, p.Payer)+":"+paid.IdempotencyKey).String()[:32]
	k.tenant, k.stream = a.ServiceOf(name), "payment_key/"+name
	if k.history, err = a.Ledger.Read(ctx, k.tenant, k.stream); err != nil || len(k.history.Events) == 0 {
		return k, err
	}
	last := k.history.Events[len(k.history.Events)-1]
	reserved, err := events.As[events.IdentifierReserved](last)
	if err != nil {
		return k, err
	}
	k.content, k.takenAt = reserved.ContentHash, last.Occurred()
	if reserved.PaymentID == p.ID {
		k.ours = k.content == paid.Content.String()
		return k, nil
	}
	k.holderID = reserved.PaymentID
	k.holder, err = a.ReadPayment(ctx, k.holderID)
	if err == nil && k.holder.State == "" && a.Clock().Sub(k.takenAt) >= keyIsTaken {
		k.holderID = "" // after this time the request of that payment has ended without a claim
	}
	return k, err
}

// HasKey reports whether a repeated payment has the Idempotency-Key with which it was first made.
// The key is not on the blockchain, so it proves who the buyer is, if it cannot be guessed.
// Therefore a key shorter than minSecretKey proves nothing.
func (a *Payments) HasKey(ctx context.Context, p Payment, paid Paid) (bool, error) {
	if len(paid.IdempotencyKey) < minSecretKey {
		return false, nil
	}
	k, err := a.readKey(ctx, p, paid)
	return k.ours, ground.Refusal(err)
}

// heldByKey returns the payment that has the key, if it pays for the same request, and after the
// payer of the new payment is verified.
func (a *Payments) heldByKey(ctx context.Context, p Payment, paid Paid, k paymentKey, verify func(context.Context) error) (claimed, error) {
	if !p.Signed { // if the signature was checked, the payer is known, and it does not matter whether this payment would settle
		if err := verify(ctx); err != nil {
			return claimed{}, err
		}
	}
	switch {
	case k.content != paid.Content.String():
		return claimed{}, ledger.ErrKeyReused
	case k.holder.State == "":
		return claimed{}, a.awaitClaim(ctx, k.holderID)
	}
	return claimed{Progress: k.holder, byKey: true}, nil
}

// awaitClaim waits until a payment that took its key in another partition is claimed. It then
// returns ErrMoved, so that the key is read again. If the claim does not come in time, because the
// request of that payment has ended, it returns *SettlementPending. A repeated request can take
// the key after keyIsTaken.
func (a *Payments) awaitClaim(ctx context.Context, paymentID string) error {
	over := time.NewTimer(a.waitsFor())
	defer over.Stop()
	poll := time.NewTicker(pollClaim)
	defer poll.Stop()
	for {
		switch s, err := a.ReadPayment(ctx, paymentID); {
		case err != nil:
			return err
		case s.State != "":
			return ledger.ErrMoved
		}
		select {
		case <-poll.C:
			continue
		case <-over.C:
		case <-ctx.Done():
		}
		return &SettlementPending{PaymentID: paymentID, Cause: errors.New("a payment with the same Idempotency-Key is about to be claimed")}
	}
}

// takeKey gives the Idempotency-Key to a payment that is about to be claimed. If both are in the
// same partition, it adds the event to the append of the claim, so that only one of two payments
// can be claimed. Otherwise it appends the event first, and another payment with this key waits
// for the claim (awaitClaim).
func (a *Payments) takeKey(ctx context.Context, k paymentKey, p Payment, paid Paid, claim *ledger.Append) error {
	if k.stream == "" || k.ours {
		return nil
	}
	payload, err := canon.Marshal(events.IdentifierReserved{PaymentID: p.ID, ContentHash: paid.Content.String()})
	if err != nil {
		return err
	}
	pending := ledger.Pending{Stream: k.stream, Expect: k.history.At(), ID: a.NewID("evt_"), Type: events.TypeIdentifierReserved,
		SchemaVersion: 1, Actor: "system", Payload: payload}
	if k.tenant == claim.Tenant {
		claim.Events = append(claim.Events, pending)
		return nil
	}
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: k.tenant, Events: []ledger.Pending{pending}})
	return err
}
