package ledger

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// SigningKeyStream holds the activations and retirements of signing keys, in the
// tenant ServiceTenant. Every append that carries a signature guards it, so that
// nothing signed by a retired key lands after its retirement.
const SigningKeyStream = "signing_key"

// SigningKey is a key this ledger has activated. It is valid for events between
// From and To by position, never by time.
type SigningKey struct {
	ID      string
	Purpose string // "record"
	Public  ed25519.PublicKey
	From    int64 // position of its activation
	To      int64 // position of its retirement, 0 while active
	Void    int64 // with a compromised key: signatures at and above this position do not count; 0 for none
}

// Keyring is every signing key a ledger ever had, by id.
type Keyring map[string]SigningKey

// Find implements seal.Keys: a key this ledger activated, valid at the position.
func (k Keyring) Find(id string, position int64) (ed25519.PublicKey, string) {
	key, known := k[id]
	switch {
	case !known:
		return nil, "this ledger never activated the key"
	case position > 0 && position < key.From:
		return nil, fmt.Sprintf("the key was activated later, at position %d", key.From)
	case position > 0 && key.To > 0 && position >= key.To:
		return nil, fmt.Sprintf("the key was retired before, at position %d", key.To)
	case key.Void > 0 && (position == 0 || position >= key.Void):
		return nil, "the key is compromised"
	}
	return key.Public, ""
}

// apply folds one event of the stream into the ring. An activation must be
// signed by the key it follows, the first by itself, and confirmed by its own.
func (k Keyring) apply(e Event) error {
	switch e.Type {
	case events.TypeSigningKeyActivated:
		return k.activate(e)
	case events.TypeSigningKeyRetired:
		var retired events.SigningKeyRetired
		if err := canon.Decode(e.Payload, &retired); err != nil {
			return err
		}
		key, known := k[retired.KeyID]
		if !known || key.To != 0 {
			return fmt.Errorf("position %d retires a key that is not active", e.Position)
		}
		key.To = e.Position
		if retired.Reason == "compromised" {
			key.Void = max(retired.CompromisedFrom, 1)
		}
		k[key.ID] = key
		return nil
	}
	return fmt.Errorf("position %d: %s does not belong to %s", e.Position, e.Type, SigningKeyStream)
}

func (k Keyring) activate(e Event) error {
	var stored events.SigningKeyActivated
	if err := canon.Decode(e.Payload, &stored); err != nil {
		return err
	}
	var record events.SigningKey
	if err := canon.Decode(stored.Record, &record); err != nil {
		return err
	}
	public, err := base64.StdEncoding.Strict().DecodeString(record.PublicKey)
	if err != nil || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != record.KeyID {
		return fmt.Errorf("position %d activates a key that is not the one it names", e.Position)
	}
	if _, again := k[record.KeyID]; again {
		return fmt.Errorf("position %d activates a key a second time", e.Position)
	}
	signer, previous := record.KeyID, record.PreviousKeyID
	own := Keyring{record.KeyID: {ID: record.KeyID, Public: public}}
	by := own
	if previous != nil {
		signer, by = *previous, k
	} else if k.active(record.Purpose) != "" {
		return fmt.Errorf("position %d activates a second first key", e.Position)
	}
	for _, s := range []struct {
		integrity seal.Integrity
		keyID     string
		keys      Keyring
	}{{stored.Integrity, signer, by}, {stored.Confirmation, record.KeyID, own}} {
		envelope := seal.Envelope{Record: stored.Record, Integrity: s.integrity}
		if s.integrity.KeyID != s.keyID || s.integrity.PayloadType != seal.TypeSigningKey || !seal.Good(envelope.Examine(s.keys)) {
			return fmt.Errorf("position %d activates a key without the right signatures", e.Position)
		}
	}
	k[record.KeyID] = SigningKey{ID: record.KeyID, Purpose: record.Purpose, Public: public, From: e.Position}
	return nil
}

// active is the id of a purpose's newest key that is not retired, or empty.
func (k Keyring) active(purpose string) string {
	id, from := "", int64(0)
	for _, key := range k {
		if key.Purpose == purpose && key.To == 0 && key.From > from {
			id, from = key.ID, key.From
		}
	}
	return id
}

// Keyring reads the ledger's signing keys and the stream they stand in, which a
// signed append guards.
func (l *Ledger) Keyring(ctx context.Context) (Keyring, History, error) {
	history, err := l.Read(ctx, ServiceTenant, SigningKeyStream)
	if err != nil {
		return nil, History{}, err
	}
	ring := Keyring{}
	for _, e := range history.Events {
		if err := ring.apply(e); err != nil {
			return nil, History{}, fmt.Errorf("%w: %w", ErrTampered, err)
		}
	}
	return ring, history, nil
}

// ErrForeignKey is a signing key that this ledger never activated or has
// retired: it belongs to another environment, or to the past.
var ErrForeignKey = errors.New("the signing key is not an active key of this ledger")

// Activate makes the signer's key a key of this ledger if it has none for
// records yet, and otherwise checks that it is an active one (ErrForeignKey).
func (l *Ledger) Activate(ctx context.Context, signer *seal.Signer, eventID string) error {
	ring, history, err := l.Keyring(ctx)
	if err != nil {
		return err
	}
	if key, known := ring[signer.KeyID()]; known && key.To == 0 {
		return nil
	}
	if len(ring) > 0 {
		return fmt.Errorf("%w (key id %s)", ErrForeignKey, signer.KeyID())
	}
	envelope, err := signer.Sign(seal.TypeSigningKey, events.SigningKey{
		KeyID: signer.KeyID(), Purpose: "record", Reason: "first",
		PublicKey: base64.StdEncoding.EncodeToString(signer.Public()),
	})
	if err != nil {
		return err
	}
	payload, err := canon.Marshal(events.SigningKeyActivated{
		Record: envelope.Record, Integrity: envelope.Integrity, Confirmation: envelope.Integrity})
	if err != nil {
		return err
	}
	_, err = l.Append(ctx, Append{Tenant: ServiceTenant, Drafts: []Draft{{
		Stream: SigningKeyStream, Expect: history.At(), ID: eventID, Type: events.TypeSigningKeyActivated,
		SchemaVersion: 1, Actor: "system", KeyID: signer.KeyID(), Payload: payload,
	}}})
	if errors.Is(err, ErrMoved) { // another node was first: with the same key that is as good
		return l.Activate(ctx, signer, eventID)
	}
	return err
}
