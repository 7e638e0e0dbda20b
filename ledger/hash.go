package ledger

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/countersign/countersign/ledger/internal/preimage"
	"github.com/countersign/countersign/migrations"
)

// Hash is a SHA-256 digest.
type Hash [32]byte

// ScanBytes reads the digest from a bytea column (pgx.BytesScanner). It returns ErrTampered if the
// column does not have 32 bytes.
func (h *Hash) ScanBytes(column []byte) error {
	if len(column) != len(h) {
		return ErrTampered
	}
	copy(h[:], column)
	return nil
}

// String returns the digest in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

const (
	eventDomain = "svc-ledger-event-v1\x00"
	idemDomain  = "svc-idem-v1\n"
)

// Genesis returns the value of prev in a tenant's first event. The code is in package migrations,
// because the migration that creates the head row needs the value too.
func Genesis(origin, tenant string) Hash { return migrations.Genesis(origin, tenant) }

// IdemKey returns the hash under which an operation's idempotency key is stored. The ledger never
// stores the caller's text.
func IdemKey(operation, key string) Hash {
	return sha256.Sum256(preimage.S(preimage.S([]byte(idemDomain), operation), key))
}

// Preimage appends the bytes whose SHA-256 is the event's hash. PayloadHash must be set.
func (e *Event) Preimage(b []byte) []byte {
	b = append(b, eventDomain...)
	b = preimage.S(b, e.Prev[:])
	b = preimage.S(b, e.Tenant)
	b = preimage.U(b, e.Sequence)
	b = preimage.S(b, e.Stream)
	b = preimage.U(b, e.Version)
	b = preimage.S(b, e.ID)
	b = preimage.S(b, e.Type)
	b = preimage.U(b, int64(e.SchemaVersion))
	b = preimage.U(b, int64(e.More))
	b = preimage.U(b, e.OccurredUS)
	b = preimage.S(b, e.Actor)
	b = preimage.S(b, e.KeyID)
	b = preimage.S(b, e.IdemKey)
	b = preimage.S(b, e.ContentHash)
	b = preimage.S(b, e.PayloadHash[:])
	agent := e.Agent != "" || e.AgentN != 0 || len(e.AgentPrev) > 0
	if agent || e.Series != "" || e.SeriesN != 0 || len(e.SeriesPrev) > 0 {
		b = preimage.S(preimage.U(preimage.S(b, e.Series), e.SeriesN), e.SeriesPrev)
	}
	if agent {
		b = preimage.S(preimage.U(preimage.S(b, e.Agent), e.AgentN), e.AgentPrev)
	}
	return b
}

// Sum computes the event's hash from its columns. PayloadHash must be set.
func (e *Event) Sum() Hash { return sha256.Sum256(e.Preimage(make([]byte, 0, 512))) }

// Intact reports whether PayloadHash and Hash match the other columns. It cannot check Prev, which
// is the hash of the tenant's previous event.
func (e *Event) Intact() bool {
	return e.PayloadHash == sha256.Sum256(e.Payload) && e.Hash == e.Sum()
}
