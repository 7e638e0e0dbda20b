// Package vault stores the personal data in payloads in a way that it can be erased. In the
// payload, each member with personal data is replaced by {"$committed":"<commitment in hex>"}:
//
//	commitment = SHA-256( "svc-commitment-v1\n" ‖ 32 random bytes of salt ‖ canonical value )
//
// The payload's member "sealed" {keyId, nonce, box} contains the openings [{pointer, salt,
// value}], encrypted with AES-256-GCM under the subject's data key and the additional data
// S(tenant) ‖ S(event_id) ‖ S(keyId). payload_hash covers commitments and ciphertext, so
// destroying a data key erases a person's data and changes no event. Data keys are in the table
// subject_keys, wrapped under a key-encryption key (DATA_KEK) that is not in the database.
package vault

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/preimage"
	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/policy/canon"
)

// Vault encrypts and decrypts the personal members of a ledger's payloads: the JSON members with
// personal data. It is safe for concurrent use.
type Vault struct {
	ledger *ledger.Ledger
	kek    cipher.AEAD
	kekID  string
	ref    []byte // HMAC key of Reference

	refused map[DataKeyOf]bool // keys that the vault never uses, even if the database has them; set before the vault is used

	mu    sync.Mutex // guards cache
	cache map[string]cachedKey
}

type cachedKey struct {
	key   cipher.AEAD
	until time.Time
}

// cacheFor limits how long a node may still use the data key of an erased subject.
const cacheFor = 60 * time.Second

// cachedDataKeys is the largest number of unwrapped keys in memory.
const cachedDataKeys = 10_000

// ensureTries limits how often a data key is created again because it was destroyed at once.
const ensureTries = 3

// ErrErased means that the data key of an event was destroyed.
var ErrErased = errors.New("ledger: the personal data of this event was erased")

// ErrWrongKEK means that the data keys were wrapped under another key-encryption key.
var ErrWrongKEK = sealing.ErrWrongKEK

// HoldsKeys reports whether a ledger has data keys, so that it needs its key-encryption key.
func HoldsKeys(ctx context.Context, l *ledger.Ledger) (held bool, err error) {
	for _, p := range l.Partitions() {
		err = l.Row(ctx, `select exists (select from subject_keys where p = $1)`, []any{p.Number()}, &held)
		if held || err != nil {
			break
		}
	}
	return held, err
}

// Open opens the vault of a ledger with a key-encryption key of 32 bytes. It returns ErrWrongKEK
// if the ledger's data keys were wrapped under another key.
func Open(ctx context.Context, l *ledger.Ledger, kek []byte) (*Vault, error) {
	aead, err := sealing.Cipher(kek)
	if err != nil {
		return nil, fmt.Errorf("DATA_KEK: %w", err)
	}
	v := &Vault{ledger: l, kek: aead, kekID: sealing.KEKName(kek), cache: map[string]cachedKey{}}
	// The HMAC key of Reference is a row of the same table, with an all-zero reference that no
	// subject has.
	if _, err := v.ensure(ctx, ledger.ServiceTenant, "subject_ref", ledger.Hash{}); err != nil {
		return nil, err
	}
	v.ref, err = v.unwrap(ctx, ledger.ServiceTenant, "subject_ref")
	return v, err
}

// Reference returns the pseudonym of a subject, for example of an e-mail address: HMAC-SHA-256
// under a key that is wrapped in the vault.
func (v *Vault) Reference(tenant, subject string) ledger.Hash {
	mac := hmac.New(sha256.New, v.ref)
	mac.Write(preimage.S(preimage.S(nil, tenant), subject))
	return ledger.Hash(mac.Sum(nil))
}

// Subject returns the id of a subject's data key. If the subject has none, Subject creates one
// with the id newID.
func (v *Vault) Subject(ctx context.Context, tenant, subject, newID string) (string, error) {
	return v.ensure(ctx, tenant, newID, v.Reference(tenant, subject))
}

// Find returns the id of a subject's data key, or an empty string if the subject has none or the
// key was destroyed.
func (v *Vault) Find(ctx context.Context, tenant, subject string) (id string, err error) {
	reference := v.Reference(tenant, subject)
	err = v.ledger.Row(ctx, `select key_id from subject_keys
		where p = $1 and tenant = $2 and subject_ref = $3 and destroyed_us is null`, []any{v.ledger.Home(tenant).Number(), tenant, reference[:]}, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// Holds reports whether a tenant has a data key with this id, destroyed or not.
func (v *Vault) Holds(ctx context.Context, tenant, keyID string) (held bool, err error) {
	err = v.ledger.Row(ctx, `select exists (select from subject_keys where p = $1 and tenant = $2 and key_id = $3)`,
		[]any{v.ledger.Home(tenant).Number(), tenant, keyID}, &held)
	return held, err
}

// Erase appends the event subject.erased, given as said, and destroys the subject's data key in
// the same transaction. This node drops the key from its cache at once, other nodes within a
// minute.
//
// In a Citus cluster the key is destroyed after that transaction: only the owner of the table may
// destroy it, and the owner's session on the worker sees the event only after the commit. If
// destroying the key fails, Erase returns an error, and the caller must call Erase again.
func (v *Vault) Erase(ctx context.Context, tenant, keyID string, said ledger.Pending) (ledger.Result, error) {
	if keyID == "subject_ref" {
		return ledger.Result{}, errors.New("this data key makes the pseudonyms of all subjects and cannot be erased")
	}
	said.Type, said.SchemaVersion, said.Stream, said.Expect = events.TypeSubjectErased, 1, "subject/"+keyID, ledger.New()
	result, err := v.ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: ledger.IdemKey("erase", keyID),
		ContentHash: sha256.Sum256([]byte(keyID)), Events: []ledger.Pending{said}})
	v.mu.Lock()
	delete(v.cache, tenant+"\x00"+keyID)
	v.mu.Unlock()
	if err != nil {
		return result, err
	}
	return result, v.destroy(ctx, result.Events[0])
}

// destroy destroys the key that an event subject.erased names. It may be repeated.
func (v *Vault) destroy(ctx context.Context, e ledger.Event) error {
	err := v.ledger.Reading(ctx, func() error { // Reading may call this function again
		_, err := v.ledger.Pool().Exec(ctx, `select erase_subject($1, $2)`, e.Partition, e.Position)
		return err
	})
	if err != nil {
		return fmt.Errorf("the event was appended, but the data key is not destroyed yet; erase again: %w", err)
	}
	return nil
}

// ensure creates a wrapped data key unless the subject has one, and returns the id of the
// subject's key. If another request destroys that key between the two statements, ensure creates a
// new one.
func (v *Vault) ensure(ctx context.Context, tenant, id string, reference ledger.Hash) (held string, err error) {
	key := make([]byte, 32)
	rand.Read(key)
	wrapped := sealing.Wrap(v.kek, key, tenant, id, reference[:])
	for range ensureTries {
		err = v.ledger.Reading(ctx, func() error { // Reading may call this function again
			_, err := v.ledger.Pool().Exec(ctx, `insert into subject_keys (p, tenant, key_id, subject_ref, kek_id, wrapped_key)
				values ($1, $2, $3, $4, $5, $6) on conflict do nothing`, v.ledger.Home(tenant).Number(), tenant, id, reference[:], v.kekID, wrapped)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("create a data key: %w", err)
		}
		err = v.ledger.Row(ctx, `select key_id from subject_keys
			where p = $1 and tenant = $2 and subject_ref = $3 and destroyed_us is null`, []any{v.ledger.Home(tenant).Number(), tenant, reference[:]}, &held)
		if !errors.Is(err, pgx.ErrNoRows) {
			return held, err
		}
	}
	return "", fmt.Errorf("create a data key: %w: it was destroyed at the same time", ledger.ErrBusy)
}

func (v *Vault) unwrap(ctx context.Context, tenant, id string) ([]byte, error) {
	var reference, wrapped []byte
	var erased bool
	// The event subject.erased alone is enough to refuse the key, because the row of a destroyed
	// key may have been restored from a backup.
	err := v.ledger.Row(ctx, `select subject_ref, wrapped_key, destroyed_us is not null or exists (
			select from events where p = $1 and tenant = $2 and stream = 'subject/' || $3 and type = $4)
		from subject_keys where p = $1 and tenant = $2 and key_id = $3`,
		[]any{v.ledger.Home(tenant).Number(), tenant, id, events.TypeSubjectErased}, &reference, &wrapped, &erased)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && erased:
		return nil, ErrErased
	case err != nil:
		return nil, fmt.Errorf("read a data key: %w", err)
	}
	return sealing.Unwrap(v.kek, wrapped, tenant, id, reference)
}

// dataKey returns the cipher of a data key, cached for at most a minute.
func (v *Vault) dataKey(ctx context.Context, tenant, id string) (cipher.AEAD, error) {
	now, name := v.ledger.Now(), tenant+"\x00"+id
	v.mu.Lock()
	hit, ok := v.cache[name]
	v.mu.Unlock()
	if ok && now.Before(hit.until) {
		return hit.key, nil
	}
	raw, err := v.unwrap(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	key, err := sealing.Cipher(raw)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.cache) >= cachedDataKeys {
		clear(v.cache)
	}
	v.cache[name] = cachedKey{key, now.Add(cacheFor)}
	return key, nil
}

// DataKey returns the id of the data key for an event's personal members, or an empty string if
// the event has none.
func DataKey(e ledger.Event) string {
	var payload struct {
		Sealed sealing.Sealed `json:"sealed"`
	}
	_ = json.Unmarshal(e.Payload, &payload) // a payload in another form has no encrypted members
	return payload.Sealed.KeyID
}

// Seal converts a struct to a payload: canonical JSON in which a commitment replaces each member
// that is tagged personal:"true". keyID is the id of the data key of the person whom the event
// concerns. A struct without personal members needs only canon.Marshal.
func (v *Vault) Seal(ctx context.Context, tenant, eventID, keyID string, stored any) ([]byte, error) {
	key, err := v.dataKey(ctx, tenant, keyID)
	if err != nil {
		return nil, err
	}
	text, err := canon.Marshal(stored)
	if err != nil {
		return nil, err
	}
	members, err := canon.Members(text)
	if err != nil {
		return nil, err
	}
	var openings []sealing.Opening
	for _, name := range personal(reflect.TypeOf(stored)) {
		value, present := members[name]
		if !present {
			continue
		}
		o := sealing.NewOpening("/"+name, value)
		openings = append(openings, o)
		members[name] = o.Committed()
	}
	s := sealing.Sealed{KeyID: keyID}
	if err := s.Seal(key, tenant, eventID, openings); err != nil {
		return nil, err
	}
	if members["sealed"], err = canon.Marshal(s); err != nil {
		return nil, err
	}
	return canon.Object(members), nil
}

// personalOf caches the results of personal, which depend only on the type.
var personalOf sync.Map // []string by reflect.Type

// personal lists the JSON names of the struct's members that are tagged personal:"true", in order.
func personal(t reflect.Type) []string {
	if known, ok := personalOf.Load(t); ok {
		return known.([]string)
	}
	var names []string
	for field := range t.Fields() {
		if field.Tag.Get("personal") == "true" {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	personalOf.Store(t, names)
	return names
}

// Sealed reports whether an event has personal members, which only Open can read.
func Sealed(e ledger.Event) bool {
	_, _, sealed := canon.Find(e.Payload, "sealed")
	return sealed
}

// Open decodes an event's payload into its struct, with the personal members restored. If the
// person was erased, it decodes the other members and returns ErrErased. If a decrypted value does
// not match its commitment, it returns ledger.ErrTampered.
func (v *Vault) Open(ctx context.Context, e ledger.Event, stored any) error {
	members, err := canon.Members(e.Payload)
	if err != nil {
		return fmt.Errorf("read payload of %s: %w", e.Type, err)
	}
	var erased error
	if box, isSealed := members["sealed"]; isSealed {
		delete(members, "sealed")
		erased = v.open(ctx, e, box, members)
		if erased != nil && !errors.Is(erased, ErrErased) {
			return erased
		}
	}
	if err := events.ReadOpened(e.Type, e.SchemaVersion, canon.Object(members), stored); err != nil {
		return fmt.Errorf("read payload of %s: %w", e.Type, err)
	}
	return erased
}

// Opening is a decrypted personal member with the salt of its commitment.
type Opening struct {
	Pointer string // JSON pointer in the payload
	Salt    []byte // 32 bytes
	Value   jsontext.Value
}

// Openings returns the openings of an event's payload, or none if it has no personal members. It
// returns ErrErased if the person was erased.
func (v *Vault) Openings(ctx context.Context, e ledger.Event) ([]Opening, error) {
	members, err := canon.Members(e.Payload)
	if err != nil || members["sealed"] == nil {
		return nil, err
	}
	found, err := v.openBox(ctx, e, members["sealed"])
	if err != nil {
		return nil, err
	}
	openings := make([]Opening, len(found))
	for i, o := range found {
		openings[i] = Opening{o.Pointer, o.Salt, jsontext.Value(o.Value)}
	}
	return openings, nil
}

func (v *Vault) open(ctx context.Context, e ledger.Event, box jsontext.Value, members map[string]jsontext.Value) error {
	openings, err := v.openBox(ctx, e, box)
	if err != nil {
		return err
	}
	if err := sealing.Reopen(members, openings); err != nil {
		return fmt.Errorf("%w: %w of %s", ledger.ErrTampered, err, e.ID)
	}
	return nil
}

func (v *Vault) openBox(ctx context.Context, e ledger.Event, box jsontext.Value) ([]sealing.Opening, error) {
	var s sealing.Sealed
	if err := json.Unmarshal(box, &s); err != nil {
		return nil, fmt.Errorf("%w: the member sealed of %s is malformed", ledger.ErrTampered, e.ID)
	}
	if v.refused[DataKeyOf{e.Tenant, s.KeyID}] {
		return nil, ErrErased
	}
	key, err := v.dataKey(ctx, e.Tenant, s.KeyID)
	if err != nil {
		return nil, err
	}
	openings, err := s.Open(key, e.Tenant, e.ID)
	if err != nil {
		return nil, fmt.Errorf("%w: the member sealed of %s cannot be decrypted", ledger.ErrTampered, e.ID)
	}
	return openings, nil
}
