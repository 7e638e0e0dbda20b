// Package ground is what every command stands on: the ledger with its vault and signer, the
// clock, ids, credentials, the partition that an id belongs to, retries, refusals, and the
// slots in which requests are computed.
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

// Ground is what every command stands on. Vault and Signer may be nil: what needs them is
// then refused with signing_unavailable, and nothing is written.
type Ground struct {
	Ledger *ledger.Ledger
	Vault  *vault.Vault
	Signer *seal.Signer
	// NextSigner takes over as soon as its key is active in the ledger; nil where no
	// rotation is planned.
	NextSigner *seal.Signer

	Clock   func() time.Time
	BaseURL string // without a slash at its end; it is in records and answers, and never taken from a request

	// Environment is written in decision records: "live", or "dev" where the keys are
	// development keys. Empty is "dev".
	Environment string

	Subjects cache.Cache[string] // data keys, by organization and subject
	signing  signings
	ids      idSource
	compute  compute

	// DrawFor is for how many partitions ids are drawn; 0: for as many as there are. With it
	// tests have the same ids in ledgers of one partition and of many.
	DrawFor int
}

// ErrTooLarge refuses a request whose events are too large for the ledger.
var ErrTooLarge = policy.Refuse("too_large", "", "request and answer are too large to be kept")

// signing is what a signed append to a partition depends on: the key of the signer is active
// in the keyring's stream at this version. The signer is nil if none of our keys is active.
type signing struct {
	history ledger.History
	signer  *seal.Signer
}

// signings remembers what signed appends depend on, by partition.
type signings struct {
	mu sync.Mutex // guards by
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

// Codes of refusals that are not about the input. The API maps each to a status.
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
	vaultUnavailable   = "nothing personal can be kept until the operator sets DATA_KEK; nothing was written or charged"
)

// SendAgain is the text of the refusal with CodeUnavailable.
const SendAgain = "temporarily unavailable; retry with the same idempotencyKey"

// NoVault refuses a request for which personal data would be sealed or opened, without a vault.
// It reports whether the signing key or the vault's key is missing.
func (a *Ground) NoVault() error {
	if a.Signer == nil {
		return policy.Refuse(CodeNoSigner, "", signingUnavailable)
	}
	return policy.Refuse(CodeNoSigner, "", vaultUnavailable)
}

// Refusal turns an error of the ledger into a refusal that callers may read. Any other error
// is returned as it is, and callers see an internal error.
func Refusal(err error) error {
	switch {
	case errors.Is(err, ledger.ErrKeyReused):
		return policy.Refuse(CodeKeyReused, "", "idempotency key was used with other content")
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

// Unavailable is a failure that may pass. The caller is told to repeat the request with the
// same key, and the cause is logged.
type Unavailable struct{ Cause error }

// Error returns the text for the log.
func (u *Unavailable) Error() string { return "unavailable: " + u.Cause.Error() }

// Unwrap returns the cause and the refusal that the API answers with.
func (u *Unavailable) Unwrap() []error {
	return []error{u.Cause, policy.Refuse(CodeUnavailable, "", SendAgain)}
}

// Unreadable returns the error for a ledger that cannot be read now: Unavailable, but for a
// ledger that was tampered with, since waiting does not help there.
func Unreadable(err error) error {
	if errors.Is(err, ledger.ErrTampered) {
		return err
	}
	return &Unavailable{Cause: err}
}

// Now returns the time in UTC with the precision of records, which is a millisecond.
func (a *Ground) Now() time.Time { return a.Clock().UTC().Truncate(time.Millisecond) }

// Stamp formats a time as records do: RFC 3339, UTC, with milliseconds.
func Stamp(t time.Time) string { return canon.Stamp(t) }

// NewID makes an id: a prefix such as "evt_" and a ULID of the present time.
func (a *Ground) NewID(prefix string) string { return a.ids.next(prefix, a.Clock()) }

// idSource makes ULIDs that differ within a node, also within a millisecond.
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

// ActiveSigner returns the signer and the precondition of every append to a tenant with a
// record that it has signed: the key is still active at the position of the append.
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
		if s.signer != nil { // another process may activate a key that is not active now
			a.signing.put(home.Number(), s)
		}
	}
	if s.signer == nil {
		return nil, ledger.Precondition{}, fmt.Errorf("%w: %w", seal.ErrNoSigner, ledger.ErrForeignKey)
	}
	return s.signer, s.history.Precondition(), nil
}
