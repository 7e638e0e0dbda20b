package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// IssuedKey is a newly issued key. APIKey contains the secret: it is shown once and not stored.
type IssuedKey struct {
	APIKey, KeyID string
	ResetsAt      time.Time
}

// IssueFreeKey issues a key of the free plan to an e-mail address. The address is not verified, so
// the key has a quota of its own and no access to the account. network is the IP network that the
// request came from, empty if the operator issues the key. It returns the refusal invalid_email,
// or *KeysExhausted after freeKeysPerMonth keys for the same mailbox and network in a calendar
// month (UTC).
func (a *Accounts) IssueFreeKey(ctx context.Context, email, network string) (IssuedKey, error) {
	address, err := CheckEmail(email)
	if err != nil {
		return IssuedKey{}, err
	}
	if a.Vault == nil {
		return IssuedKey{}, a.NoVault()
	}
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (IssuedKey, error) { return a.issueFreeKey(ctx, address, network) })
}

func (a *Accounts) issueFreeKey(ctx context.Context, address, network string) (IssuedKey, error) {
	now := a.Now()
	// A mailbox, the count of its keys and the keys themselves are stored in the same partition.
	reference := a.MailboxRef(address)
	counted := "free_keys/" + reference + "/" + month(now)
	if network != "" {
		counted += "/" + a.Vault.Reference(ledger.ServiceTenant, "network:"+network).String()[:16]
	}
	tenant := a.ServiceOf(reference)
	dataKey, err := a.Vault.Subject(ctx, tenant, "email:"+address, a.NewID("sub_"))
	if err != nil {
		return IssuedKey{}, err
	}
	apiKey, id, secret := a.NewCredential(ground.KeyPrefix, reference)
	issued := IssuedKey{APIKey: apiKey, KeyID: a.NewID(events.KeyPrefix), ResetsAt: NextMonth(now)}
	requested, err := canon.Marshal(events.KeyRequested{KeyID: issued.KeyID})
	if err != nil {
		return IssuedKey{}, err
	}
	eventID, hash := a.NewID("evt_"), sha256.Sum256(secret)
	payload, err := a.Vault.Seal(ctx, tenant, eventID, dataKey, events.KeyIssued{
		KeyID: issued.KeyID, Plan: "free", SecretHash: hex.EncodeToString(hash[:]), Email: address, Subject: dataKey})
	if err != nil {
		return IssuedKey{}, err
	}
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, Events: []ledger.Pending{
		{Stream: counted, Expect: ledger.Any(freeKeysPerMonth),
			ID: a.NewID("evt_"), Type: events.TypeKeyRequested, SchemaVersion: 1, Actor: "system", Payload: requested},
		{Stream: "key/" + id, Expect: ledger.New(),
			ID: eventID, Type: events.TypeKeyIssued, SchemaVersion: 1, Actor: "system", Payload: payload},
	}})
	if errors.Is(err, ledger.ErrLimit) {
		return IssuedKey{}, &KeysExhausted{ResetsAt: issued.ResetsAt}
	}
	return issued, err
}

// KeysExhausted refuses a key because the mailbox has had all its keys of this month from this
// network.
type KeysExhausted struct{ ResetsAt time.Time }

// Error returns a text that states when the next key can be issued.
func (k *KeysExhausted) Error() string {
	return "this address has had all " + strconv.Itoa(freeKeysPerMonth) + " keys of this month; the next key can be issued from " + canon.Stamp(k.ResetsAt)
}

// CheckEmail checks that a text is one e-mail address of at most 254 bytes, without a display
// name. It returns the address in lower case.
func CheckEmail(email string) (string, error) {
	bad := policy.Refuse("invalid_email", "/email", "email must be one e-mail address of at most 254 characters")
	if len(email) > 254 || strings.ContainsFunc(email, func(r rune) bool { return r < 0x21 || r == 0x7f || normal.Invisible(r) }) {
		return "", bad
	}
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || parsed.Name != "" {
		return "", bad
	}
	return strings.ToLower(email), nil
}
