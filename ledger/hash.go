package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/countersign/countersign/migrations"
)

// Hash is a SHA-256 digest.
type Hash [32]byte

// String is the digest in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

const (
	eventDomain = "svc-ledger-event-v1\x00"
	idemDomain  = "svc-idem-v1\n"
)

func appendS[T ~string | ~[]byte](b []byte, x T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(x)))
	return append(b, x...)
}

func appendU(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

// Genesis is the prev of a tenant's first event. The migration that makes the
// head row needs it too, and has the code.
func Genesis(origin, tenant string) Hash { return migrations.Genesis(origin, tenant) }

// IdemKey is how an operation's idempotency key is stored: the caller's text
// itself never is.
func IdemKey(operation, key string) Hash {
	return sha256.Sum256(appendS(appendS([]byte(idemDomain), operation), key))
}

// preimage is what an event's hash is taken over.
func (e *Event) preimage(b []byte) []byte {
	b = append(b, eventDomain...)
	b = appendS(b, e.Prev[:])
	b = appendS(b, e.Tenant)
	b = appendU(b, e.Sequence)
	b = appendS(b, e.Stream)
	b = appendU(b, e.Version)
	b = appendS(b, e.ID)
	b = appendS(b, e.Type)
	b = appendU(b, int64(e.SchemaVersion))
	b = appendU(b, int64(e.More))
	b = appendU(b, e.OccurredUS)
	b = appendS(b, e.Actor)
	b = appendS(b, e.KeyID)
	b = appendS(b, e.IdemKey)
	b = appendS(b, e.ContentHash)
	return appendS(b, e.PayloadHash[:])
}

// sum is the event's hash as its columns give it. PayloadHash must be set.
func (e *Event) sum() Hash { return sha256.Sum256(e.preimage(make([]byte, 0, 512))) }

// Sum is the event's hash as its columns give it, for who has the columns alone.
func (e *Event) Sum() Hash { return e.sum() }

// Intact says whether payload hash and hash are those of the columns. Whether
// prev is right only the neighbours know.
func (e *Event) Intact() bool {
	return e.PayloadHash == sha256.Sum256(e.Payload) && e.Hash == e.sum()
}
