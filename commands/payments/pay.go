// Package payments has the commands about x402 payments: claim, settle, resolve.
package payments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Payments has the commands about x402 payments.
type Payments struct {
	*ground.Ground
	*accounts.Accounts

	// Settler moves the money of x402 payments; nil turns x402 off.
	Settler Settler
	// Settling settles a claimed payment after the call that claimed it has returned: it calls
	// Settle from this attempt on, and closes the channel when it can do no more for now. The
	// service runs it. If it is nil, the call settles the payment itself.
	Settling func(paymentID string, attempt int) (ended <-chan struct{})
	// PaymentWait is the longest time that an answer waits for its settlement; 0: 12 s.
	PaymentWait time.Duration
}

// A payment is spent in steps that may each be the last one this process makes:
//
//	claim    the payment belongs to this request; answer and events are prepared
//	settle   the money moves, or it is found out whether it has moved
//	record   payment.settled and the prepared events, in one append
//	answer   read from the ledger, on every request
//
// Between claim and record the result is open, and the node that serves finds it out: nobody
// is charged without an answer stored for the same payment.

// Paid is what a payment is claimed for.
type Paid struct {
	Operation   string      // id
	RequestHash ledger.Hash // of RequestHash
	PriceCents  int
	// IdempotencyKey is the buyer's own key of the request; if it is empty, every payment is a
	// request of its own. Content is the hash of what is requested under the key.
	IdempotencyKey string
	Content        ledger.Hash
	// Prepare computes the answer and everything that is to be recorded with it,
	// signed and sealed. It is called only for a payment that nobody has claimed;
	// nothing of it is visible before the payment has settled.
	Prepare func(context.Context) (Promise, error)
	// VerifyFirst is for a Prepare that writes or computes much: the payment is verified
	// before. Otherwise Prepare is called first, and a request that it refuses needs no
	// verification.
	VerifyFirst bool
}

// Promise holds the events that are recorded when a payment has settled: at most 62.
type Promise struct {
	Events        []events.PreparedEvent
	Preconditions []ledger.Precondition // streams that the events depend on
	Issued        time.Time             // the time in their record; zero if there is none
	OutputHash    string
	EngineVersion string
}

// Receipt is a settled payment with what it was paid for.
type Receipt struct {
	PaymentID, Transaction, Payer, Network, Amount, Mode string

	Extensions string         // what the facilitator answered about the payment's extensions
	Events     []ledger.Event // the promised events, as they were appended
	Replayed   bool           // it had been claimed by an earlier request
	ByKey      bool           // another payment of the same payer had paid, with the same Idempotency-Key
}

// RequestHash is the hash of what a request asks for:
// SHA-256("svc-request-v1\n" ‖ operation ‖ "\n" ‖ canonical body).
func RequestHash(operation string, canonical []byte) ledger.Hash {
	return sha256.Sum256(append([]byte("svc-request-v1\n"+operation+"\n"), canonical...))
}

// errOtherRequest is a payment that belongs to something else.
var (
	errOtherRequest    = policy.Refuse(ground.CodeOtherRequest, "", "this payment was made for another request")
	errOtherIdentifier = policy.Refuse(ground.CodeOtherRequest, "", "this payment identifier was used with another payment")
	errPayerErased     = policy.Refuse(ground.CodeErased, "", "what this payment was made for was erased on request: it answers nothing any more")
	errNoFacilitator   = policy.Refuse(CodeNoFacilitator, "", "payment facilitator unavailable, nothing was charged")
)

// CodeNoFacilitator is the code for a payment that cannot be verified now.
const CodeNoFacilitator = "payment_facilitator_unavailable"

// KnownPayment reports whether a payment has been claimed, by any request. If so, its time
// window and the price are not checked again, but its signature must be the one that was
// claimed; otherwise it is refused.
func (a *Payments) KnownPayment(ctx context.Context, p Payment) (bool, error) {
	s, err := a.ReadPayment(ctx, p.ID)
	if err != nil {
		return false, ground.Refusal(err)
	}
	if s.State != "" && !s.erased && string(s.Claim.Signature) != p.Signature {
		return true, &PaymentRefused{Reason: "invalid_exact_evm_signature"}
	}
	return s.State != "", nil
}

// Pay uses a payment, whose signature was verified or is that of its claim, for one request,
// and returns the receipt. A payment that was used for the same request before always returns
// the same receipt; one that was used for another request is a conflict. The same holds for
// the Idempotency-Key, which belongs to the payer: if a payment of the payer was claimed with
// it, the new payment is not used. Errors other than refusals: *PaymentRefused,
// *SettlementPending.
func (a *Payments) Pay(ctx context.Context, p Payment, paid Paid) (_ Receipt, err error) {
	if a.Settler == nil {
		return Receipt{}, errNotConfigured
	}
	defer func() { err = PendingOf(p, err) }()
	c, err := ground.Retry(ctx, a.Ground, ground.Tries{Outside: true}, a.claiming(p, paid))
	s := c.Progress
	switch {
	case err != nil:
		return Receipt{}, err
	case s.erased:
		return Receipt{}, errPayerErased
	case c.byKey: // request and payer were compared
	case string(s.Claim.Signature) != p.Signature:
		return Receipt{}, &PaymentRefused{Reason: "invalid_exact_evm_signature"}
	case s.Claim.RequestHash != paid.RequestHash.String():
		return Receipt{}, errOtherRequest
	}
	attempt := 2 // a process that has not claimed the payment cannot know that nothing was sent
	if c.ours {
		attempt = 1
	}
	now, err := a.outcome(ctx, s, attempt)
	if err != nil {
		return Receipt{}, s.pending(err)
	}
	receipt, err := a.receipt(ctx, now, !c.ours)
	receipt.ByKey = c.byKey
	return receipt, err
}

// PendingOf turns an error of the ledger into "not known yet": the payment may have been
// claimed or settled, or neither. The same payment sent again finds that out.
func PendingOf(p Payment, err error) error {
	var unavailable *ground.Unavailable
	if errors.As(err, &unavailable) {
		return &SettlementPending{PaymentID: p.ID, Until: time.Unix(p.ValidBefore, 0), Cause: err}
	}
	return err
}

// claimed is the state of a claimed payment.
type claimed struct {
	Progress
	ours  bool // claimed by this request
	byKey bool // it is another payment, which was claimed with the same Idempotency-Key
}

// claiming claims the payment unless it is claimed. If a stream has moved meanwhile, the
// payment is claimed by now, or the prepared events depend on an old state.
func (a *Payments) claiming(p Payment, paid Paid) func(context.Context) (claimed, error) {
	verified := false
	verify := func(ctx context.Context) error {
		if verified {
			return nil
		}
		err := a.verify(ctx, p)
		verified = err == nil
		return err
	}
	return func(ctx context.Context) (c claimed, err error) {
		if c.Progress, err = a.ReadPayment(ctx, p.ID); err != nil || c.State != "" {
			return c, err
		}
		key, err := a.readKey(ctx, p, paid)
		if err != nil {
			return c, err
		}
		if key.held() {
			return a.heldByKey(ctx, p, paid, key, verify)
		}
		promise, err := paid.ready(ctx, verify)
		if err != nil {
			// An equal request may have claimed and settled it meanwhile.
			if now, readErr := a.ReadPayment(ctx, p.ID); readErr == nil && now.State != "" {
				return claimed{Progress: now}, nil
			}
			return c, err
		}
		claim, err := a.claim(ctx, p, paid, promise)
		if err == nil {
			err = a.takeKey(ctx, key, p, paid, &claim)
		}
		if err != nil {
			return c, err
		}
		var result ledger.Result
		if err = a.reserve(ctx, p); err == nil {
			result, err = a.Ledger.Append(ctx, claim)
		}
		switch {
		case errors.Is(err, ledger.ErrKeyReused), err == nil && result.Replayed && result.Events[0].Stream != claim.Events[0].Stream:
			return c, a.reused(ctx, p)
		case err != nil:
			return c, err
		}
		c.ours = !result.Replayed // an equal request was faster
		c.Progress, err = a.ReadPayment(ctx, p.ID)
		return c, err
	}
}

// ready verifies the payment and prepares the promise. Both come before the claim, since a
// payment that was spent elsewhere must not be claimed here.
func (p Paid) ready(ctx context.Context, verify func(context.Context) error) (Promise, error) {
	if p.VerifyFirst {
		if err := verify(ctx); err != nil {
			return Promise{}, err
		}
	}
	promise, err := p.Prepare(ctx)
	if err == nil {
		err = verify(ctx)
	}
	return promise, err
}

func (a *Payments) verify(ctx context.Context, p Payment) error {
	err := a.Settler.Verify(ctx, p)
	var refused *PaymentRefused
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return &unasked{err}
}

// claim is the append that claims the payment for this request.
func (a *Payments) claim(ctx context.Context, p Payment, paid Paid, promise Promise) (ledger.Append, error) {
	tenant := a.ServiceOf(p.ID)
	by, err := a.Payer(ctx, tenant, p.Network, p.Payer)
	if err != nil {
		return ledger.Append{}, err
	}
	claim := events.PaymentClaimed{
		PaymentID: p.ID, Operation: paid.Operation, RequestHash: paid.RequestHash.String(), PriceCents: paid.PriceCents, Mode: a.Settler.Mode(),
		Network: p.Network, Asset: p.Asset, Payer: events.Text(p.Payer), PayTo: p.PayTo, Amount: p.Amount, Nonce: events.Text(p.Nonce),
		Signature: events.Text(p.Signature), Subject: by.DataKey,
		ValidAfter: strconv.FormatInt(p.ValidAfter, 10), ValidBefore: strconv.FormatInt(p.ValidBefore, 10),
		Identifier: events.Text(p.Identifier), Payload: events.Text(p.Payload), HeadBlock: a.Settler.Head(ctx),
		OutputHash: promise.OutputHash, EngineVersion: promise.EngineVersion, Prepared: promise.Events,
	}
	pending := ledger.Pending{Stream: Stream(p.ID), Expect: ledger.New(), ID: a.NewID("evt_"),
		Type: events.TypePaymentClaimed, SchemaVersion: events.Newest(events.TypePaymentClaimed), Actor: by.Actor}
	pending.Payload, err = a.Vault.Seal(ctx, tenant, pending.ID, by.DataKey, claim)
	if errors.Is(err, vault.ErrErased) {
		a.ForgetDataKey(by.DataKey) // the next attempt begins a new one
		err = ledger.ErrMoved
	}
	return ledger.Append{Tenant: tenant, IdemKey: a.claimKey(p), ContentHash: paid.RequestHash, NotBefore: promise.Issued,
		Preconditions: promise.Preconditions, Events: []ledger.Pending{pending}}, err
}

// claimKey is the key of the claim in the ledger: the payment's, or the buyer's identifier for
// it, which is valid once for each address that receives payments. The two kinds of keys
// differ, so that nobody can block another buyer's payment by using its id as an identifier.
func (a *Payments) claimKey(p Payment) ledger.Hash {
	if p.Identifier == "" || a.reservedIn(p) != "" {
		return ledger.IdemKey("payment", p.ID)
	}
	return identifierKey(p)
}

func identifierName(p Payment) string { return p.PayTo + "|" + p.Identifier }

func identifierKey(p Payment) ledger.Hash {
	return ledger.IdemKey("payment_identifier", identifierName(p))
}

// reservedIn returns the tenant where a payment's identifier is reserved before the claim. It
// is empty if identifier and payment are in the same partition: then the claim itself takes the
// identifier.
func (a *Payments) reservedIn(p Payment) string {
	if tenant := a.ServiceOf(identifierName(p)); p.Identifier != "" && tenant != a.ServiceOf(p.ID) {
		return tenant
	}
	return ""
}

// reserve gives an identifier from another partition to a payment, for ever. If the payment is
// not claimed afterwards, the identifier stays with it, and it may be sent again. If another
// payment has the identifier, by a reservation or a claim, the error is ErrKeyReused.
func (a *Payments) reserve(ctx context.Context, p Payment) error {
	tenant := a.reservedIn(p)
	if tenant == "" {
		return nil
	}
	payload, err := canon.Marshal(events.IdentifierReserved{PaymentID: p.ID})
	if err != nil {
		return err
	}
	key := identifierKey(p)
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: sha256.Sum256([]byte(p.ID)), Events: []ledger.Pending{{
		Stream: "payment_identifier/" + key.String()[:32], Expect: ledger.New(), ID: a.NewID("evt_"), Type: events.TypeIdentifierReserved,
		SchemaVersion: 1, Actor: "system", Payload: payload}}})
	return err
}

// reused returns which of the two conflicts of a claim has occurred.
func (a *Payments) reused(ctx context.Context, p Payment) error {
	s, err := a.ReadPayment(ctx, p.ID)
	switch {
	case err != nil:
		return err
	case s.State == "":
		return errOtherIdentifier
	}
	return errOtherRequest
}

var errNotConfigured = policy.Refuse(ground.CodeNotConfigured, "", "x402 not configured")

// unasked is the error for a facilitator that did not answer. The caller learns that nothing
// was charged, and the cause is logged.
type unasked struct{ cause error }

// Error is for the log.
func (u *unasked) Error() string { return "verify a payment: " + u.cause.Error() }

// Unwrap returns the refusal that the API answers with. It leaves out the cause: a timeout of
// the facilitator must not be taken for one of the ledger.
func (u *unasked) Unwrap() error { return errNoFacilitator }

// outcome waits for the result of a claimed payment and returns its state afterwards. If the
// time is over, the state is still open, and settling goes on in the background.
func (a *Payments) outcome(ctx context.Context, s Progress, attempt int) (Progress, error) {
	if !s.Open() {
		return s, nil
	}
	id := s.Claim.PaymentID
	if a.Settling == nil {
		for n := attempt; n < attempt+settleAttempts && s.Open(); n++ {
			if _, err := a.Settle(ctx, id, n); err != nil {
				return s, err
			}
			var err error
			if s, err = a.ReadPayment(ctx, id); err != nil {
				return s, err
			}
		}
		return s, nil
	}
	over := time.NewTimer(a.waitsFor())
	defer over.Stop()
	poll := time.NewTicker(pollPayment) // another node may be settling it
	defer poll.Stop()
	var ended <-chan struct{}
	for asked := false; ; {
		// Leave a new claim to the process that made it: a second attempt at the same time
		// would make a refusal of the first one indefinite.
		if !asked && (attempt == 1 || s.State == PaymentIsUnknown || a.Clock().Sub(s.claimedAt) >= claimIsTaken) {
			ended, asked = a.Settling(id, attempt), true
		}
		select {
		case <-ended:
			ended = nil
		case <-poll.C:
		case <-over.C:
			return s, nil
		case <-ctx.Done():
			return s, nil
		}
		now, err := a.ReadPayment(ctx, id)
		if err != nil {
			return s, err
		}
		if s = now; !s.Open() {
			return s, nil
		}
	}
}

// waitsFor returns how long an answer waits for another request that works on the same payment.
func (a *Payments) waitsFor() time.Duration { return cmp.Or(a.PaymentWait, paymentWait) }

// settlementKey is the key of the append that records the events of a promise.
func settlementKey(id string) ledger.Hash { return ledger.IdemKey("settlement", id) }

// receipt reads from the ledger what was recorded for a payment.
func (a *Payments) receipt(ctx context.Context, s Progress, replayed bool) (Receipt, error) {
	switch s.State {
	case PaymentIsSettled:
	case PaymentIsRefused:
		return Receipt{}, &PaymentRefused{Reason: s.refused.Reason, Settled: true}
	default:
		return Receipt{}, s.pending(nil)
	}
	hash, err := s.requestHash()
	if err != nil {
		return Receipt{}, err
	}
	landed, err := a.Ledger.ByKey(ctx, s.History.Tenant, settlementKey(s.Claim.PaymentID), hash)
	if err != nil {
		return Receipt{}, ground.Refusal(err)
	}
	here, _ := a.promised(s)
	if len(landed) != len(here)+1 {
		return Receipt{}, ledger.ErrTampered
	}
	return Receipt{PaymentID: s.Claim.PaymentID, Transaction: string(s.Settled.Transaction), Payer: string(s.Settled.Payer), Network: s.Claim.Network,
		Amount: s.Claim.Amount, Mode: s.Claim.Mode, Extensions: s.Settled.Extensions, Events: landed[1:], Replayed: replayed}, nil
}

func (s Progress) requestHash() (hash ledger.Hash, err error) {
	if n, err := hex.Decode(hash[:], []byte(s.Claim.RequestHash)); err != nil || n != len(hash) {
		return hash, ledger.ErrTampered
	}
	return hash, nil
}

// WithoutKey removes the member idempotencyKey: content is compared without the key.
func WithoutKey(body []byte) []byte {
	members, err := canon.Members(body)
	if err != nil {
		return body
	}
	delete(members, "idempotencyKey")
	return canon.Object(members)
}
