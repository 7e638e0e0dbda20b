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

// Caller is the holder of an API key.
type Caller struct {
	KeyID        string // key_…
	CustomerID   string // id (cus_…) of the account in which the key was issued; empty for a free key
	ID           string // public id of the key, which names its stream
	dataKey      string // id of the data key that encrypts the caller's requests and answers
	precondition ledger.Precondition
}

// Party returns the actor and data key with which the caller's calls are recorded.
func (c Caller) Party() Party {
	return Party{Actor: c.KeyID, DataKey: c.dataKey, Subject: "key:" + c.KeyID, Preconditions: []ledger.Precondition{c.precondition}}
}

// knownKey is the state of an issued key, read at one version of its stream.
type knownKey struct {
	caller  Caller
	hash    [32]byte
	revoked bool
}

// ErrUnauthorized refuses an API key that is malformed, unknown or revoked.
var ErrUnauthorized = policy.Refuse(ground.CodeUnauthorized, "", "API key is not valid: issue a new one on the page /account or with POST /api/keys/free")

// Authenticate returns the caller of an API key. It refuses a malformed, unknown or revoked key
// with CodeUnauthorized. The text is the same in each case, and the hashes are compared even if
// the id is unknown.
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
			// Ignore ErrErased: the key stays valid after the e-mail address of its owner was
			// erased.
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
	if history.Version() > 0 { // guessed ids must not fill the cache
		a.keys.Put(id, known)
	}
	return known, nil
}

// Current reads the caller's key again. It is called after an event was added to the key's stream.
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
