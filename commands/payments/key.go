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

// An Idempotency-Key that comes with a payment belongs to the payer and the operation:
// the first payment that is claimed with it is the one that pays, whatever the payer
// signs afterwards. So a buyer whose answer was lost pays once, even with a new signature.

// paymentKey holds the ledger's data about a payer's Idempotency-Key.
type paymentKey struct {
	tenant, stream string         // empty without a key
	history        ledger.History // of the stream
	content        string         // hash of the request that the holder pays for
	takenAt        time.Time
	holder         Progress // the payment that took the key last; without a claim its state is empty
	holderID       string
	ours           bool // the payment of this request has the key already, by an earlier try
}

// held reports whether a payment that was claimed, or is about to be, has the key. A payment
// that was refused has moved no money, so the key is free for the next one.
func (k paymentKey) held() bool { return k.holderID != "" && k.holder.State != PaymentIsRefused }

// readKey reads which payment has the key of a request. The name of the key in the ledger is a
// keyed hash, because it depends on the payer's address.
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
		k.holderID = "" // its request ended before the claim
	}
	return k, err
}

// HasKey reports whether a payment that is sent again brings the Idempotency-Key with which it
// was made. The key is not on the chain, so it proves who the buyer is, provided that it cannot
// be guessed: it must be as long as a payment identifier.
func (a *Payments) HasKey(ctx context.Context, p Payment, paid Paid) (bool, error) {
	if len(paid.IdempotencyKey) < minSecretKey {
		return false, nil
	}
	k, err := a.readKey(ctx, p, paid)
	return k.ours, ground.Refusal(err)
}

// heldByKey answers with the payment that has the key, if the request is the same and comes
// from the same payer.
func (a *Payments) heldByKey(ctx context.Context, p Payment, paid Paid, k paymentKey, verify func(context.Context) error) (claimed, error) {
	if !p.Signed { // else the payer is known; whether he could pay again does not matter
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

// awaitClaim waits for the claim of a payment that took its key in another partition. Then
// it returns ErrMoved, so that the key is read again: the payment may have been refused. The
// claim comes at once, unless the request of the payment has ended; then the payment is
// pending until the key is free again (keyIsTaken).
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

// takeKey gives the key to a payment that is about to be claimed. If key and payment are in the
// same partition, that is part of the same append, so that of two payments one is claimed.
// Otherwise the key is given first, and a payment that comes in between waits (keyIsTaken).
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
