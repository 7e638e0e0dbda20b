package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// The keys that are issued in a customer's account share one monthly count of free calls. When it
// is used up, calls are paid from the customer's pass. The stream account_keys/<customer> lists
// the keys.

func accountKeysStream(customerID string) string { return "account_keys/" + customerID }

// AccountKey is an issued key as the account page lists it, without the secret.
type AccountKey struct {
	KeyID     string `json:"keyId"`
	Prefix    string `json:"prefix"` // svck_ and the public id, with which the key begins
	State     string `json:"state" jsonschema:"enum=active,enum=revoked"`
	CreatedAt string `json:"createdAt" jsonschema:"format=date-time"`

	id string // public id, which names the stream key/<id>
}

var errNoKey = policy.Refuse(ground.CodeNotFound, "", "key not found")

// IssueAccountKey issues a key in a customer's account. It returns the refusal too_many_keys after
// maxAccountKeys keys.
func (a *Accounts) IssueAccountKey(ctx context.Context, customerID string) (IssuedKey, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (IssuedKey, error) {
		dataKey, created, err := a.customerOf(ctx, customerID)
		if err != nil {
			return IssuedKey{}, err
		}
		address, err := a.AddressOf(ctx, created)
		if err != nil {
			return IssuedKey{}, err
		}
		if address == "" {
			return IssuedKey{}, ErrNoCustomer // the customer was erased, so no notice about the key could be sent
		}
		apiKey, id, secret := a.NewCredential(ground.KeyPrefix, customerID)
		issued := IssuedKey{APIKey: apiKey, KeyID: a.NewID(events.KeyPrefix), ResetsAt: NextMonth(a.Now())}
		requested, err := canon.Marshal(events.KeyRequested{KeyID: issued.KeyID, ID: id})
		if err != nil {
			return IssuedKey{}, err
		}
		eventID, hash, tenant := a.NewID("evt_"), sha256.Sum256(secret), a.ServiceOf(customerID)
		payload, err := a.Vault.Seal(ctx, tenant, eventID, dataKey, events.KeyIssued{KeyID: issued.KeyID, Plan: "free",
			SecretHash: hex.EncodeToString(hash[:]), Email: address, Subject: dataKey, CustomerID: customerID})
		if err != nil {
			return IssuedKey{}, err
		}
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, Events: []ledger.Pending{
			{Stream: accountKeysStream(customerID), Expect: ledger.Any(maxAccountKeys), ID: a.NewID("evt_"), Type: events.TypeKeyRequested,
				SchemaVersion: 1, Actor: customerID, Payload: requested},
			{Stream: "key/" + id, Expect: ledger.New(), ID: eventID, Type: events.TypeKeyIssued, SchemaVersion: 1, Actor: customerID, Payload: payload},
		}})
		if errors.Is(err, ledger.ErrLimit) {
			return IssuedKey{}, policy.Refuse(ground.CodeTooManyKeys, "", "the account has reached the limit of 100 keys; use one of them, or write to support")
		}
		return issued, err
	})
}

// AccountKeys lists the keys of a customer's account, the oldest first.
func (a *Accounts) AccountKeys(ctx context.Context, customerID string) ([]AccountKey, error) {
	history, err := a.Ledger.Read(ctx, a.ServiceOf(customerID), accountKeysStream(customerID))
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []AccountKey{}
	for _, e := range history.Events {
		requested, err := events.As[events.KeyRequested](e)
		if err != nil {
			return nil, err
		}
		known, err := a.lookUpKey(ctx, requested.ID)
		if err != nil {
			return nil, ground.Refusal(err)
		}
		key := AccountKey{KeyID: requested.KeyID, Prefix: ground.KeyPrefix + requested.ID, State: "active", CreatedAt: canon.Stamp(e.Occurred()), id: requested.ID}
		if known.revoked {
			key.State = "revoked"
		}
		list = append(list, key)
	}
	return list, nil
}

// RevokeAccountKey revokes a key of a customer's account, with immediate effect.
func (a *Accounts) RevokeAccountKey(ctx context.Context, customerID, keyID, reason string) error {
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return err
	}
	list, err := a.AccountKeys(ctx, customerID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(k AccountKey) bool { return k.KeyID == keyID })
	if i < 0 { // same text for an unknown key and for another customer's key
		return errNoKey
	}
	return a.revokeKey(ctx, list[i].id, customerID, reason)
}

// AccountUsage returns the number of free calls that all keys of an account have used this month.
func (a *Accounts) AccountUsage(ctx context.Context, customerID string) (Usage, error) {
	now := a.Now()
	used, err := a.Ledger.Version(ctx, a.ServiceOf(customerID), UsageStream(Caller{CustomerID: customerID}, now))
	return Usage{Used: used, Remaining: max(FreeCallsPerMonth-used, 0), ResetsAt: NextMonth(now)}, ground.Refusal(err)
}
