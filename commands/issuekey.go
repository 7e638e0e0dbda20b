package commands

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// An API key is
//
//	svck_<12 id>_<43 secret>_<6 check>
//
// id is public and names the stream key/<id>; secret is 32 random octets in
// base64url, of which only the SHA-256 is stored; check is the CRC-32 (IEEE) of
// everything before its underscore, in base64url, so that scanners can tell a
// leaked key from noise.
const (
	keyPrefix    = "svck_"
	keyIDLength  = 12
	secretLength = 43
	keyLength    = len(keyPrefix) + keyIDLength + 1 + secretLength + 1 + 6
)

// keyAlphabet has 32 letters and digits without those that look alike.
const keyAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// IssuedKey is a key just made. APIKey is shown once and kept nowhere.
type IssuedKey struct {
	APIKey, KeyID string
	ResetsAt      time.Time
}

// IssueFreeKey issues a key of the free plan to an e-mail address, which is not
// verified: the key draws on its own quota only. Errors: invalid_email,
// *KeysExhausted after 3 of an address in a calendar month (UTC).
func (a *App) IssueFreeKey(ctx context.Context, email string) (IssuedKey, error) {
	address, err := checkEmail(email)
	if err != nil {
		return IssuedKey{}, err
	}
	if a.Vault == nil {
		return IssuedKey{}, policy.Refuse(CodeNoSigner, "", signingUnavailable)
	}
	return attempt(ctx, a, func(ctx context.Context) (IssuedKey, error) { return a.issueFreeKey(ctx, address) })
}

func (a *App) issueFreeKey(ctx context.Context, address string) (IssuedKey, error) {
	now := a.now()
	subject := "email:" + address
	dataKey, err := a.Vault.Subject(ctx, ledger.ServiceTenant, subject, a.NewID("sub_"))
	if err != nil {
		return IssuedKey{}, err
	}
	apiKey, id, secret := newCredential(keyPrefix)
	issued := IssuedKey{APIKey: apiKey, KeyID: a.NewID("key_"), ResetsAt: nextMonth(now)}
	requested, err := canon.Marshal(events.KeyRequested{KeyID: issued.KeyID})
	if err != nil {
		return IssuedKey{}, err
	}
	eventID, hash := a.NewID("evt_"), sha256.Sum256(secret)
	payload, err := a.Vault.Seal(ctx, ledger.ServiceTenant, eventID, dataKey, events.KeyIssued{
		KeyID: issued.KeyID, Plan: "free", SecretHash: hex.EncodeToString(hash[:]), Email: address, Subject: dataKey})
	if err != nil {
		return IssuedKey{}, err
	}
	reference := a.Vault.Reference(ledger.ServiceTenant, "email:"+Mailbox(address)).String()[:32]
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Drafts: []ledger.Draft{
		{Stream: "free_keys/" + reference + "/" + month(now), Expect: ledger.Any(freeKeysPerMonth),
			ID: a.NewID("evt_"), Type: events.TypeKeyRequested, SchemaVersion: 1, Actor: "system", Payload: requested},
		{Stream: "key/" + id, Expect: ledger.New(),
			ID: eventID, Type: events.TypeKeyIssued, SchemaVersion: 1, Actor: "system", Payload: payload},
	}})
	if errors.Is(err, ledger.ErrLimit) {
		return IssuedKey{}, &KeysExhausted{ResetsAt: issued.ResetsAt}
	}
	return issued, err
}

// KeysExhausted is an e-mail address that has had its keys of the month.
type KeysExhausted struct{ ResetsAt time.Time }

// Error says when the next one is possible.
func (k *KeysExhausted) Error() string {
	return "this address has had its " + strconv.Itoa(freeKeysPerMonth) + " keys of the month; the next one is possible from " + Stamp(k.ResetsAt)
}

// checkEmail accepts one bare address of at most 254 octets and returns it in
// lower case, as it is counted.
func checkEmail(email string) (string, error) {
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

// newCredential makes a secret with a public id; prefixes have five characters.
func newCredential(prefix string) (text, id string, secret []byte) {
	random := make([]byte, keyIDLength+32)
	rand.Read(random)
	letters := random[:keyIDLength]
	for i, b := range letters {
		letters[i] = keyAlphabet[b%32]
	}
	id, secret = string(letters), random[keyIDLength:]
	body := prefix + id + "_" + base64.RawURLEncoding.EncodeToString(secret)
	return body + "_" + checkDigits(body), id, secret
}

func checkDigits(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return base64.RawURLEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// parseCredential takes one apart; ok is false for what cannot be one.
func parseCredential(prefix, key string) (id string, secret []byte, ok bool) {
	if len(key) != keyLength || !strings.HasPrefix(key, prefix) || key[17] != '_' || key[61] != '_' || checkDigits(key[:61]) != key[62:] {
		return "", nil, false
	}
	secret, err := base64.RawURLEncoding.DecodeString(key[18:61])
	return key[5:17], secret, err == nil
}

// Caller is the bearer of an API key.
type Caller struct {
	KeyID      string // key_…
	CustomerID string // cus_… in whose account the key was issued; empty for a free key
	id         string // public part of the key, names its stream
	dataKey    string // under which the caller's requests and answers are sealed
	guard      ledger.Guard
}

// party is the caller as the one a call is recorded of.
func (c Caller) party() party {
	return party{actor: c.KeyID, dataKey: c.dataKey, subject: "key:" + c.KeyID, guards: []ledger.Guard{c.guard}}
}

// knownKey is an issued key as its stream tells, at a version of the stream.
type knownKey struct {
	caller  Caller
	hash    [32]byte
	revoked bool
}

// keyCache remembers streams of keys. It may be stale: an append guards the
// version it rests on, and Forget follows a revocation.
type keyCache struct {
	mu   sync.Mutex // guards keys
	keys map[string]knownKey
}

func (c *keyCache) get(id string) (knownKey, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.keys[id]
	return k, ok
}

func (c *keyCache) put(id string, k knownKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil || len(c.keys) >= cachedKeys {
		c.keys = map[string]knownKey{}
	}
	c.keys[id] = k
}

func (c *keyCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = nil
}

var errUnauthorized = policy.Refuse(CodeUnauthorized, "", "API key is not valid")

// Authenticate returns the caller behind an API key. A malformed, unknown or
// revoked key is CodeUnauthorized, in one text and after one comparison.
func (a *App) Authenticate(ctx context.Context, apiKey string) (Caller, error) {
	id, secret, ok := parseCredential(keyPrefix, apiKey)
	known := knownKey{revoked: true}
	if ok {
		var err error
		if known, err = a.lookUpKey(ctx, id); err != nil {
			return Caller{}, refusal(err)
		}
	}
	hash := sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(hash[:], known.hash[:]) != 1 || known.revoked {
		return Caller{}, errUnauthorized
	}
	return known.caller, nil
}

func (a *App) lookUpKey(ctx context.Context, id string) (knownKey, error) {
	if known, ok := a.keys.get(id); ok {
		return known, nil
	}
	history, err := a.Ledger.Read(ctx, ledger.ServiceTenant, "key/"+id)
	if err != nil {
		return knownKey{}, err
	}
	known := knownKey{revoked: true}
	for _, e := range history.Events {
		switch e.Type {
		case events.TypeKeyIssued:
			// An erased e-mail address takes nothing from the key.
			if a.Vault == nil {
				return knownKey{}, policy.Refuse(CodeNoSigner, "", signingUnavailable)
			}
			var issued events.KeyIssued
			if err := a.Vault.Open(ctx, e, &issued); err != nil && !errors.Is(err, ledger.ErrErased) {
				return knownKey{}, err
			}
			if n, err := hex.Decode(known.hash[:], []byte(issued.SecretHash)); err != nil || n != len(known.hash) {
				return knownKey{}, ledger.ErrTampered
			}
			known.revoked = false
			known.caller = Caller{KeyID: issued.KeyID, CustomerID: issued.CustomerID, id: id, dataKey: issued.Subject}
		case events.TypeKeyRevoked:
			known.revoked = true
		}
	}
	known.caller.guard = history.Guard()
	if history.Version() > 0 { // unknown ids must not fill the cache
		a.keys.put(id, known)
	}
	return known, nil
}

// current is the caller as the key's stream is now, after it has moved.
func (a *App) current(ctx context.Context, caller Caller) (Caller, error) {
	known, err := a.lookUpKey(ctx, caller.id)
	if err != nil {
		return Caller{}, err
	}
	if known.revoked {
		return Caller{}, errUnauthorized
	}
	return known.caller, nil
}

// RevokeKey ends a key at once. Revoking it again changes nothing.
func (a *App) RevokeKey(ctx context.Context, id, reason string) error {
	return a.revokeKey(ctx, id, "operator", reason)
}

func (a *App) revokeKey(ctx context.Context, id, actor, reason string) error {
	_, err := attempt(ctx, a, func(ctx context.Context) (struct{}, error) {
		a.keys.clear()
		known, err := a.lookUpKey(ctx, id)
		if err != nil {
			return struct{}{}, err
		}
		if known.caller.KeyID == "" {
			return struct{}{}, errNoKey
		}
		if known.revoked {
			return struct{}{}, nil
		}
		payload, err := canon.Marshal(events.KeyRevoked{KeyID: known.caller.KeyID, Reason: reason})
		if err != nil {
			return struct{}{}, err
		}
		history, err := a.Ledger.Read(ctx, ledger.ServiceTenant, "key/"+id)
		if err != nil {
			return struct{}{}, err
		}
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Drafts: []ledger.Draft{{
			Stream: history.Stream, Expect: history.At(), ID: a.NewID("evt_"), Type: events.TypeKeyRevoked,
			SchemaVersion: 1, Actor: actor, Payload: payload}}})
		a.keys.clear()
		return struct{}{}, err
	})
	return err
}

// Usage is what a free key has used of its month.
type Usage struct {
	Used, Remaining int64
	ResetsAt        time.Time
}

// Usage counts the calls of the caller's month: the version of its usage stream.
// Nothing is appended that could guard the key, so its stream is looked at, too.
func (a *App) Usage(ctx context.Context, caller Caller) (Usage, error) {
	now := a.now()
	version, err := a.Ledger.Version(ctx, ledger.ServiceTenant, caller.guard.Stream)
	if err != nil {
		return Usage{}, refusal(err)
	}
	if version != caller.guard.Version {
		a.keys.clear()
		if _, err := a.current(ctx, caller); err != nil {
			return Usage{}, refusal(err)
		}
	}
	used, err := a.Ledger.Version(ctx, ledger.ServiceTenant, usageStream(caller, now))
	if err != nil {
		return Usage{}, refusal(err)
	}
	return Usage{Used: used, Remaining: max(FreeCallsPerMonth-used, 0), ResetsAt: nextMonth(now)}, nil
}

// AccountUsage counts the free calls that all keys of an account have used of the
// month.
func (a *App) AccountUsage(ctx context.Context, customerID string) (Usage, error) {
	now := a.now()
	used, err := a.Ledger.Version(ctx, ledger.ServiceTenant, usageStream(Caller{CustomerID: customerID}, now))
	return Usage{Used: used, Remaining: max(FreeCallsPerMonth-used, 0), ResetsAt: nextMonth(now)}, refusal(err)
}

// usageStream counts the free calls of a month. Keys of one account share it.
func usageStream(caller Caller, now time.Time) string {
	owner := caller.KeyID
	if caller.CustomerID != "" {
		owner = caller.CustomerID
	}
	return "usage/" + owner + "/" + month(now)
}

// MonthEnds is when the free calls of this month end.
func (a *App) MonthEnds() time.Time { return nextMonth(a.now()) }

func month(t time.Time) string { return t.UTC().Format("2006-01") }

func nextMonth(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}
