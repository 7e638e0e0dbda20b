package accounts

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
)

// Caller is the bearer of an API key.
type Caller struct {
	KeyID        string // key_…
	CustomerID   string // cus_… of the account in which the key was issued; empty for a free key
	ID           string // public part of the key, which names its stream
	dataKey      string // with which the caller's requests and answers are encrypted
	precondition ledger.Precondition
}

// Party returns the caller as the party that a call is recorded for.
func (c Caller) Party() Party {
	return Party{Actor: c.KeyID, DataKey: c.dataKey, Subject: "key:" + c.KeyID, Preconditions: []ledger.Precondition{c.precondition}}
}

// knownKey is an issued key as read from its stream, at one version of the stream.
type knownKey struct {
	caller  Caller
	hash    [32]byte
	revoked bool
}

// ErrUnauthorized refuses an API key that is malformed, unknown or revoked.
var ErrUnauthorized = policy.Refuse(ground.CodeUnauthorized, "", "API key is not valid")

// Authenticate returns the caller with an API key. A malformed, unknown or revoked key is
// refused with CodeUnauthorized, with the same text and after one comparison in every case.
func (a *Accounts) Authenticate(ctx context.Context, apiKey string) (Caller, error) {
	id, secret, ok := ground.ParseCredential(ground.KeyPrefix, apiKey)
	known := knownKey{revoked: true}
	if ok {
		var err error
		if known, err = a.lookUpKey(ctx, id); err != nil {
			return Caller{}, ground.Refusal(err)
		}
	}
	hash := sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(hash[:], known.hash[:]) != 1 || known.revoked {
		return Caller{}, ErrUnauthorized
	}
	return known.caller, nil
}

func (a *Accounts) lookUpKey(ctx context.Context, id string) (knownKey, error) {
	if known, ok := a.keys.Get(id); ok {
		return known, nil
	}
	history, err := a.Ledger.Read(ctx, a.ServiceOf(id), "key/"+id)
	if err != nil {
		return knownKey{}, err
	}
	known := knownKey{revoked: true}
	for _, e := range history.Events {
		switch e.Type {
		case events.TypeKeyIssued:
			// The key stays valid after its e-mail address was erased.
			if a.Vault == nil {
				return knownKey{}, a.NoVault()
			}
			var issued events.KeyIssued
			if err := a.Vault.Open(ctx, e, &issued); err != nil && !errors.Is(err, vault.ErrErased) {
				return knownKey{}, err
			}
			if n, err := hex.Decode(known.hash[:], []byte(issued.SecretHash)); err != nil || n != len(known.hash) {
				return knownKey{}, ledger.ErrTampered
			}
			known.revoked = false
			known.caller = Caller{KeyID: issued.KeyID, CustomerID: issued.CustomerID, ID: id, dataKey: issued.Subject}
		case events.TypeKeyRevoked:
			known.revoked = true
		}
	}
	known.caller.precondition = history.Precondition()
	if history.Version() > 0 { // unknown ids must not fill the cache
		a.keys.Put(id, known)
	}
	return known, nil
}

// Current reads the caller's key again, after its stream has moved.
func (a *Accounts) Current(ctx context.Context, caller Caller) (Caller, error) {
	a.keys.Remove(caller.ID)
	known, err := a.lookUpKey(ctx, caller.ID)
	if err != nil {
		return Caller{}, err
	}
	if known.revoked {
		return Caller{}, ErrUnauthorized
	}
	return known.caller, nil
}
