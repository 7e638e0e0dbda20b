package ledger

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// SigningKeyStream contains the activations and retirements of signing keys. Each partition has
// such a stream in its service tenant, because the validity of a key is a range of positions. The
// stream is a precondition of every append with a signature, so no event that a retired key has
// signed is appended after the retirement.
const SigningKeyStream = "signing_key"

// Purposes of signing keys. A key has one purpose.
const (
	PurposeRecord     = "record"     // signs decisions, receipts and all other records
	PurposeCheckpoint = "checkpoint" // signs tree heads
)

// SigningKey is a key that was activated in a partition. It is valid for events at positions from
// From up to, but not including, To. Time does not matter.
type SigningKey struct {
	ID      string
	Purpose string // PurposeRecord or PurposeCheckpoint
	Public  ed25519.PublicKey
	From    int64 // position of its activation
	To      int64 // position of its retirement; 0 if the key is active
	Void    int64 // if the key is compromised, the position from which its signatures do not count; otherwise 0
}

// Compromised reports whether the key's signature at a position does not count because the key is
// compromised. Position 0 means unknown: then the result is true if the key was ever declared
// compromised.
func (k SigningKey) Compromised(position int64) bool {
	return k.Void > 0 && (position == 0 || position >= k.Void)
}

// Retired reports whether the key was retired at or before a position. A note of a tree that
// contains the retirement must not be signed with the key.
func (k SigningKey) Retired(position int64) bool { return k.To > 0 && position >= k.To }

// Keyring maps key ids to all signing keys that a partition ever had.
type Keyring map[string]SigningKey

// Keyrings contains the keyring of each partition, indexed by its number.
type Keyrings []Keyring

// Find implements seal.Keys. It searches the keyring of the partition.
func (k Keyrings) Find(id string, partition int16, position int64) (ed25519.PublicKey, string) {
	if partition < 0 || int(partition) >= len(k) {
		return nil, "this ledger has no such partition"
	}
	return k[partition].Find(id, partition, position)
}

// Keyrings reads the signing keys of all partitions.
func (l *Ledger) Keyrings(ctx context.Context) (Keyrings, error) {
	rings := make(Keyrings, len(l.partitions))
	return rings, l.each(func(p *Partition) (err error) {
		rings[p.p], _, err = p.Keyring(ctx)
		return err
	})
}

// Find implements seal.Keys. It returns a record key that is valid and not compromised at the
// position, or says why there is none.
func (k Keyring) Find(id string, _ int16, position int64) (ed25519.PublicKey, string) {
	key, whyNot := k.InUse(id, position)
	if whyNot == "" && key.Compromised(position) {
		return nil, "the key is compromised"
	}
	return key.Public, whyNot
}

// InUse returns a record key that was in use at a position, compromised or not. If there is none,
// whyNot says why.
func (k Keyring) InUse(id string, position int64) (_ SigningKey, whyNot string) {
	key, known := k[id]
	switch {
	case !known:
		return SigningKey{}, "this ledger never activated the key"
	case key.Purpose != PurposeRecord:
		return SigningKey{}, "the key is not for records"
	case position > 0 && position < key.From:
		return SigningKey{}, fmt.Sprintf("the key was activated later, at position %d", key.From)
	case position > 0 && key.Retired(position):
		return SigningKey{}, fmt.Sprintf("the key was retired before, at position %d", key.To)
	}
	return key, ""
}

// Public lists the public keys of a purpose, with retired and compromised keys, whose signatures
// must still be recognized. Find and OpenNote decide whether such a signature counts.
func (k Keyring) Public(purpose string) []ed25519.PublicKey {
	return k.public(func(key SigningKey) bool { return key.Purpose == purpose })
}

func (k Keyring) public(wanted func(SigningKey) bool) []ed25519.PublicKey {
	var keys []ed25519.PublicKey
	for _, id := range slices.Sorted(maps.Keys(k)) {
		if wanted(k[id]) {
			keys = append(keys, k[id].Public)
		}
	}
	return keys
}

// ErrRetiredKey means that only a retired key has signed a note, and the tree of the note contains
// the retirement.
var ErrRetiredKey = errors.New("the tree contains the retirement of the key that signed the note")

// OpenNote reads a note that a checkpoint key of the ring has signed. void is true if only
// compromised keys have signed it. It returns ErrRetiredKey for a note that was signed after the
// retirement of its key.
func (k Keyring) OpenNote(text []byte, origin string) (c checkpoint.Checkpoint, void bool, err error) {
	claimed, _ := checkpoint.Parse(text) // Open reports an unreadable note
	maySign := func(key SigningKey) bool { return key.Purpose == PurposeCheckpoint && !key.Retired(claimed.Size) }
	sound := k.public(func(key SigningKey) bool { return maySign(key) && !key.Compromised(claimed.Size) })
	if c, err = checkpoint.Open(text, origin, sound...); err == nil {
		return c, false, nil
	}
	if c, err = checkpoint.Open(text, origin, k.public(maySign)...); err == nil {
		return c, true, nil
	}
	if c, err = checkpoint.Open(text, origin, k.Public(PurposeCheckpoint)...); err == nil {
		err = ErrRetiredKey
	}
	return c, false, err
}

// Apply folds one event of the stream into the ring. An activation must be signed by the previous
// key (the first key signs its own activation) and confirmed by the new key.
func (k Keyring) Apply(e Event) error {
	switch e.Type {
	case events.TypeSigningKeyActivated:
		return k.activate(e)
	case events.TypeSigningKeyRetired:
		var retired events.SigningKeyRetired
		if err := e.Read(&retired); err != nil {
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
	if err := e.Read(&stored); err != nil {
		return err
	}
	var record events.SigningKey
	if err := canon.Decode(stored.Record, &record); err != nil {
		return err
	}
	public, err := base64.StdEncoding.Strict().DecodeString(record.PublicKey)
	if err != nil || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != record.KeyID {
		return fmt.Errorf("position %d activates a key that does not match its id", e.Position)
	}
	if _, again := k[record.KeyID]; again {
		return fmt.Errorf("position %d activates a key a second time", e.Position)
	}
	if record.Purpose != PurposeRecord && record.Purpose != PurposeCheckpoint {
		return fmt.Errorf("position %d activates a key for an unknown purpose", e.Position)
	}
	by, err := k.activator(e, record, public)
	if err != nil {
		return err
	}
	own := onlyKey{record.KeyID, public}
	for _, s := range []struct {
		integrity seal.Integrity
		key       onlyKey
	}{{stored.Integrity, by}, {stored.Confirmation, own}} {
		envelope := seal.Envelope{Record: stored.Record, Integrity: s.integrity}
		if s.integrity.PayloadType != seal.TypeSigningKey || !seal.Good(envelope.Examine(s.key)) {
			return fmt.Errorf("position %d activates a key without the right signatures", e.Position)
		}
	}
	k[record.KeyID] = SigningKey{ID: record.KeyID, Purpose: record.Purpose, Public: public, From: e.Position}
	return nil
}

// activator returns the key that must sign an activation: the active key that the new one
// replaces, or the new key itself if it is the first of its purpose.
func (k Keyring) activator(e Event, record events.SigningKey, public ed25519.PublicKey) (onlyKey, error) {
	if record.PreviousKeyID == nil {
		for _, key := range k {
			if key.Purpose == record.Purpose {
				return onlyKey{}, fmt.Errorf("position %d activates a first key, but there is one already", e.Position)
			}
		}
		return onlyKey{record.KeyID, public}, nil
	}
	previous, known := k[*record.PreviousKeyID]
	if !known || previous.Purpose != record.Purpose || previous.To != 0 {
		return onlyKey{}, fmt.Errorf("position %d replaces a key that was not active", e.Position)
	}
	return onlyKey{previous.ID, previous.Public}, nil
}

// onlyKey is a seal.Keys that contains one key, valid at every position.
type onlyKey struct {
	id     string
	public ed25519.PublicKey
}

// Find implements seal.Keys.
func (o onlyKey) Find(id string, _ int16, _ int64) (ed25519.PublicKey, string) {
	if id != o.id {
		return nil, "another key must sign this"
	}
	return o.public, ""
}

// Active returns the id of the newest key of a purpose that is not retired, or an empty string.
func (k Keyring) Active(purpose string) string {
	id, from := "", int64(0)
	for _, key := range k {
		if key.Purpose == purpose && key.To == 0 && key.From > from {
			id, from = key.ID, key.From
		}
	}
	return id
}

// Keyring reads the partition's signing keys. It also returns their stream, which every append
// with a signature needs as a precondition.
func (p *Partition) Keyring(ctx context.Context) (Keyring, History, error) {
	history, err := p.ledger.Read(ctx, p.Service(), SigningKeyStream)
	if err != nil {
		return nil, History{}, err
	}
	ring := Keyring{}
	for _, e := range history.Events {
		if err := ring.Apply(e); err != nil {
			return nil, History{}, fmt.Errorf("%w: %w", ErrTampered, err)
		}
	}
	return ring, history, nil
}

// ErrForeignKey means that the signing key was never activated in this ledger, or was retired.
var ErrForeignKey = errors.New("the signing key is not an active key of this ledger")

// Activate makes the signer's key the record key of this ledger if the ledger has none yet. If it
// has one, Activate returns ErrForeignKey unless that key is the signer's. Each partition gets its
// own event.
func (l *Ledger) Activate(ctx context.Context, signer *seal.Signer, eventID string) error {
	return l.each(func(p *Partition) error {
		return p.ActivateFirst(ctx, PurposeRecord, signer, p.eventID(eventID), nil)
	})
}

// eventID returns the id of this partition's copy of an event of which every partition stores a
// copy.
func (p *Partition) eventID(id string) string {
	if p.p == 0 {
		return id
	}
	return id + "/" + strconv.Itoa(int(p.p))
}

// ActivateFirst activates the first key of a purpose. It appends the activation together with the
// events in the parameter "also".
func (p *Partition) ActivateFirst(ctx context.Context, purpose string, signer *seal.Signer, eventID string, also []Pending) error {
	ring, history, err := p.Keyring(ctx)
	if err != nil {
		return err
	}
	if active, err := ring.MayActivate(purpose, signer); active || err != nil {
		return err
	}
	pending, err := activation(signer, signer, events.SigningKey{Purpose: purpose, Reason: "first"})
	if err != nil {
		return err
	}
	pending.Expect, pending.ID = history.At(), eventID
	_, err = p.ledger.Append(ctx, Append{Tenant: p.Service(), Events: append([]Pending{pending}, also...)})
	if errors.Is(err, ErrMoved) { // another node has activated a key first: if it is the same key, the retry returns nil
		return p.ActivateFirst(ctx, purpose, signer, eventID, also)
	}
	return err
}

// MayActivate reports whether the signer's key is already the active key of a purpose. It returns
// ErrForeignKey if the key is not active and cannot become the first key.
func (k Keyring) MayActivate(purpose string, signer *seal.Signer) (active bool, err error) {
	if key, known := k[signer.KeyID()]; known && key.To == 0 && key.Purpose == purpose {
		return true, nil
	}
	for _, key := range k {
		if key.Purpose == purpose || key.ID == signer.KeyID() {
			return false, fmt.Errorf("%w (key id %s, for %ss)", ErrForeignKey, signer.KeyID(), purpose)
		}
	}
	return false, nil
}

// activation returns the event signing_key.activated. Its record is signed with the key of the
// first signer, and confirmed with the new key.
func activation(by, signer *seal.Signer, record events.SigningKey) (Pending, error) {
	record.KeyID, record.PublicKey = signer.KeyID(), base64.StdEncoding.EncodeToString(signer.Public())
	envelope, err := by.Sign(seal.TypeSigningKey, record)
	if err != nil {
		return Pending{}, err
	}
	confirmation, err := signer.Sign(seal.TypeSigningKey, record)
	if err != nil {
		return Pending{}, err
	}
	payload, err := canon.Marshal(events.SigningKeyActivated{
		Record: envelope.Record, Integrity: envelope.Integrity, Confirmation: confirmation.Integrity})
	return Pending{Stream: SigningKeyStream, Type: events.TypeSigningKeyActivated,
		SchemaVersion: 1, Actor: "system", KeyID: by.KeyID(), Payload: payload}, err
}

// Rotation replaces one signing key by the next.
type Rotation struct {
	Purpose         string
	From, To        *seal.Signer
	CompromisedFrom []int64 // for each partition the position from which signatures of the old key do not count; empty if the key is not compromised
	Actor           string  // actor of the events
	EventIDs        [2]string
}

// Rotate activates the key r.To, signed by r.From and by itself, and retires r.From. Each
// partition does both in one append, so exactly one of the keys is valid for every later append.
// Nodes that have both keys use the new one at once. If a rotation stopped between two partitions,
// a repeated call completes it.
func (l *Ledger) Rotate(ctx context.Context, r Rotation) error {
	if len(r.CompromisedFrom) > 0 {
		if err := l.mayBeCompromised(ctx, r.CompromisedFrom); err != nil {
			return err
		}
	}
	var rotated int
	for _, p := range l.partitions {
		ring, _, err := p.Keyring(ctx)
		if err != nil {
			return err
		}
		if key, known := ring[r.To.KeyID()]; known && key.To == 0 && ring.Active(r.Purpose) == key.ID && rotated+1 < len(l.partitions) {
			rotated++
			continue
		}
		if err := p.rotate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// mayBeCompromised checks the list from: it must have one position for each partition, and each
// position must be at most one after the last event.
func (l *Ledger) mayBeCompromised(ctx context.Context, from []int64) error {
	if len(from) != len(l.partitions) {
		return fmt.Errorf("compromised from: must have one position for each of the %d partitions", len(l.partitions))
	}
	heads, err := l.Heads(ctx)
	if err != nil {
		return err
	}
	for p, head := range heads {
		if from[p] < 1 || from[p] > head+1 {
			return fmt.Errorf("compromised from: must be a position from 1 to %d, which follows the last event of partition %d", head+1, p)
		}
	}
	return nil
}

func (p *Partition) rotate(ctx context.Context, r Rotation) error {
	ring, history, err := p.Keyring(ctx)
	if err != nil {
		return err
	}
	previous := r.From.KeyID()
	if key := ring[previous]; key.Purpose != r.Purpose || key.To != 0 {
		return fmt.Errorf("%w (key id %s, for %ss)", ErrForeignKey, previous, r.Purpose)
	}
	if _, used := ring[r.To.KeyID()]; used {
		return fmt.Errorf("the new key %s was already a key of this ledger: create another key", r.To.KeyID())
	}
	activated, err := activation(r.From, r.To, events.SigningKey{Purpose: r.Purpose, PreviousKeyID: &previous, Reason: "rotated"})
	if err != nil {
		return err
	}
	reason := events.SigningKeyRetired{KeyID: previous, Reason: "rotated"}
	if len(r.CompromisedFrom) > 0 {
		reason.Reason, reason.CompromisedFrom = "compromised", r.CompromisedFrom[p.p]
	}
	payload, err := canon.Marshal(reason)
	if err != nil {
		return err
	}
	activated.Expect, activated.ID, activated.Actor = history.At(), p.eventID(r.EventIDs[0]), r.Actor
	_, err = p.ledger.Append(ctx, Append{Tenant: p.Service(), Events: []Pending{activated, {
		Stream: SigningKeyStream, Expect: Expect{expectAt, history.Version() + 1}, ID: p.eventID(r.EventIDs[1]),
		Type: events.TypeSigningKeyRetired, SchemaVersion: 1, Actor: r.Actor, Payload: payload}}})
	return err
}
