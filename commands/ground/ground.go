// Package ground holds what all commands share: the ledger with its vault and signer, the clock,
// ids, credentials, the partition that an id belongs to, retries, refusals, and the slots that
// limit how many requests are computed at once.
package ground

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/commands/cache"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Ground is shared by all commands. Vault and Signer may be nil: a command that needs one of them
// is then refused with signing_unavailable and writes nothing.
type Ground struct {
	Ledger *ledger.Ledger
	Vault  *vault.Vault
	Signer *seal.Signer
	// NextSigner signs as soon as its key is active in the ledger. It is nil if no rotation is
	// planned.
	NextSigner *seal.Signer

	Clock   func() time.Time
	BaseURL string // has no slash at the end; it is written in records and answers, and never taken from a request

	// Environment is written in decision records: "live", or "dev" if the signing keys are
	// development keys. Empty means "dev".
	Environment string

	Subjects cache.Cache[string] // ids of data keys, by organization and subject
	signing  signings
	ids      idSource
	compute  compute

	// DrawFor is the number of partitions for which ids are drawn; 0 means the number that the
	// ledger has. Tests set it to get the same ids in ledgers with one partition and with many.
	DrawFor int
}

// ErrTooLarge refuses a request whose events exceed the size that the ledger stores.
var ErrTooLarge = policy.Refuse("too_large", "", "request and answer are too large to be stored")

// signing is the signer for one partition, with the version of the keyring's stream at which its
// key was active. The signer is nil if none of this node's keys is active.
type signing struct {
	history ledger.History
	signer  *seal.Signer
}

// signings caches the signer of each partition.
type signings struct {
	mu sync.Mutex // guards the field by
	by map[int16]*signing
}

func (s *signings) get(p int16) *signing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[p]
}

func (s *signings) put(p int16, known *signing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[int16]*signing{}
	}
	s.by[p] = known
}

func (s *signings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = nil
}

// Codes of refusals whose cause is not a field of the request. Package api maps each to a status.
const (
	CodeUnauthorized   = "unauthorized"
	CodeNotFound       = "not_found"
	CodeKeyReused      = "idempotency_key_reused"
	CodeQuota          = "quota_exhausted"
	CodeTooManyKeys    = "too_many_keys"
	CodeNoSigner       = "signing_unavailable"
	CodeUnavailable    = "temporarily_unavailable"
	CodeNotConfigured  = "x402_not_configured"
	CodeOtherRequest   = "payment_for_other_request"
	CodeNotSettled     = "payment_not_settled"
	CodeNotTheBuyer    = "buyer_not_shown"
	CodeDownloadsUsed  = "downloads_used"
	CodeErased         = "erased"
	CodeClaimed        = "already_claimed"
	signingUnavailable = "signing is unavailable, nothing was written or charged"
	vaultUnavailable   = "personal data cannot be stored until the operator sets DATA_KEK; nothing was written or charged"
)

// ErrNotFound refuses an address or an id that does not exist, or that the caller may not read. It
// does not say which of the two.
var ErrNotFound = policy.Refuse(CodeNotFound, "", "not found")

// SendAgain is the text of a refusal with CodeUnavailable.
const SendAgain = "temporarily unavailable; retry with the same idempotencyKey"

// NoVault refuses a request that would encrypt or decrypt personal data, because no vault is
// configured. The text says that signing is unavailable, or that DATA_KEK must be set.
func (a *Ground) NoVault() error {
	if a.Signer == nil {
		return policy.Refuse(CodeNoSigner, "", signingUnavailable)
	}
	return policy.Refuse(CodeNoSigner, "", vaultUnavailable)
}

// Refusal turns an error of the ledger into a refusal with a text for callers. It returns any
// other error unchanged; callers then get an internal error.
func Refusal(err error) error {
	switch {
	case errors.Is(err, ledger.ErrKeyReused):
		return policy.Refuse(CodeKeyReused, "", "idempotency key was used with different content")
	case errors.Is(err, ledger.ErrTooLarge):
		return ErrTooLarge
	case errors.Is(err, seal.ErrNoSigner):
		return policy.Refuse(CodeNoSigner, "", signingUnavailable)
	case errors.Is(err, ledger.ErrUnknown), errors.Is(err, ledger.ErrBusy), errors.Is(err, ledger.ErrRefused), errors.Is(err, ledger.ErrStopped),
		errors.Is(err, ledger.ErrMoved), errors.Is(err, ledger.ErrTampered), errors.Is(err, ledger.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &Unavailable{err}
	}
	return err
}

// Unavailable is a temporary failure. The caller is told to repeat the request with the same key;
// Cause goes to the log.
type Unavailable struct{ Cause error }

// Error returns the text for the log, with the cause.
func (u *Unavailable) Error() string { return "unavailable: " + u.Cause.Error() }

// Unwrap returns the cause and the refusal that the caller gets.
func (u *Unavailable) Unwrap() []error {
	return []error{u.Cause, policy.Refuse(CodeUnavailable, "", SendAgain)}
}

// Unreadable turns an error of reading the ledger into Unavailable. If the ledger was tampered
// with, it returns the error unchanged, because repeating the request would not help.
func Unreadable(err error) error {
	if errors.Is(err, ledger.ErrTampered) {
		return err
	}
	return &Unavailable{Cause: err}
}

// Now returns the current time in UTC, truncated to milliseconds as in records.
func (a *Ground) Now() time.Time { return a.Clock().UTC().Truncate(time.Millisecond) }

// Stamp formats a time as in records: RFC 3339, UTC, with milliseconds.
func Stamp(t time.Time) string { return canon.Stamp(t) }

// NewID returns a new id: a prefix such as "evt_" and a ULID with the current time.
func (a *Ground) NewID(prefix string) string { return a.ids.next(prefix, a.Clock()) }

// idSource makes ULIDs that are unique within a node, even within one millisecond.
type idSource struct {
	mu      sync.Mutex // guards entropy
	entropy *ulid.MonotonicEntropy
}

func (s *idSource) next(prefix string, t time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entropy == nil {
		s.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	return prefix + ulid.MustNew(ulid.Timestamp(t), s.entropy).String()
}

// ActiveSigner returns the signer for a tenant's records. The precondition must be part of each
// append with a record that it has signed: the append then fails if the key is no longer active.
func (a *Ground) ActiveSigner(ctx context.Context, tenant string) (*seal.Signer, ledger.Precondition, error) {
	if a.Signer == nil {
		return nil, ledger.Precondition{}, seal.ErrNoSigner
	}
	home := a.Ledger.Home(tenant)
	s := a.signing.get(home.Number())
	if s == nil {
		ring, history, err := home.Keyring(ctx)
		if err != nil {
			return nil, ledger.Precondition{}, err
		}
		s = &signing{history: history}
		for _, candidate := range []*seal.Signer{a.Signer, a.NextSigner} {
			if key := ring[candidate.KeyID()]; key.Purpose == ledger.PurposeRecord && key.To == 0 {
				s.signer = candidate
			}
		}
		if s.signer != nil { // do not cache nil: another process may activate one of the keys
			a.signing.put(home.Number(), s)
		}
	}
	if s.signer == nil {
		return nil, ledger.Precondition{}, fmt.Errorf("%w: %w", seal.ErrNoSigner, ledger.ErrForeignKey)
	}
	return s.signer, s.history.Precondition(), nil
}
