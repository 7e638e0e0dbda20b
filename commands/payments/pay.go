// Package payments implements the commands for x402 payments: claim, settle and resolve.
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

// Payments implements the commands for x402 payments.
type Payments struct {
	*ground.Ground
	*accounts.Accounts

	// Settler verifies and settles payments. If it is nil, x402 is off.
	Settler Settler
	// Settling settles a claimed payment in the background, even after the request has ended. It
	// calls Settle with this attempt number and the following ones, and closes the channel when it
	// pauses or is done. If Settling is nil, the request itself settles the payment.
	Settling func(paymentID string, attempt int) (ended <-chan struct{})
	// PaymentWait is the longest time that a request waits for the settlement; 0 means
	// paymentWait.
	PaymentWait time.Duration
}

// A payment is processed in four steps. The process may crash after each of them:
//
// 	claim    bind the payment to this request; answer and events are prepared
// 	settle   move the money, or find out whether it has moved
// 	record   append payment.settled and the prepared events, at once
// 	answer   read the answer from the ledger, for this request and every repeated one
//
// Between claim and record the result is unknown, and any node can continue. No payer is
// charged without an answer that is stored for the payment.

// Paid is the request that a payment is claimed for.
type Paid struct {
	Operation   string      // id of the operation
	RequestHash ledger.Hash // result of the function RequestHash
	PriceCents  int
	// IdempotencyKey is the buyer's key for the request. Without a key each payment is a separate
	// request. Content is the hash of the request without the key.
	IdempotencyKey string
	Content        ledger.Hash
	// Prepare computes the answer and the events to record with it, signed and encrypted. It is
	// called only for a payment that is not claimed. Its results stay invisible until the payment
	// has settled.
	Prepare func(context.Context) (Promise, error)
	// VerifyFirst is true if Prepare writes or computes much, so that the payment must be verified
	// before. Otherwise Prepare is called first, and if it refuses the request, the payment need
	// not be verified.
	VerifyFirst bool
}

// Promise has the events to record when the payment has settled, at most 62.
type Promise struct {
	Events        []events.PreparedEvent
	Preconditions []ledger.Precondition // streams that the events depend on
	Issued        time.Time             // issue time in the signed record of the events; zero if there is none
	OutputHash    string
	EngineVersion string
}

// Receipt is a settled payment with the recorded events.
type Receipt struct {
	PaymentID, Transaction, Payer, Network, Amount, Mode string

	Extensions string         // the facilitator's answer about the payment's extensions
	Events     []ledger.Event // the promised events as they were appended
	Replayed   bool           // an earlier request had claimed the payment
	ByKey      bool           // an earlier payment of the same payer, with the same Idempotency-Key, has paid instead of this one
}

// RequestHash returns the hash of a request: SHA-256("svc-request-v1\n" ‖ operation ‖ "\n" ‖
// canonical body).
func RequestHash(operation string, canonical []byte) ledger.Hash {
	return sha256.Sum256(append([]byte("svc-request-v1\n"+operation+"\n"), canonical...))
}

// Refusals of a payment: errOtherRequest and errOtherIdentifier if it was used before.
var (
	errOtherRequest    = policy.Refuse(ground.CodeOtherRequest, "", "this payment was made for another request")
	errOtherIdentifier = policy.Refuse(ground.CodeOtherRequest, "", "this payment identifier was used with another payment")
	errPayerErased     = policy.Refuse(ground.CodeErased, "", "the answer to this payment was erased on request")
	errNoFacilitator   = policy.Refuse(CodeNoFacilitator, "", "payment facilitator unavailable; nothing was charged")
)

// CodeNoFacilitator is the code for a payment that the facilitator cannot verify at the moment.
const CodeNoFacilitator = "payment_facilitator_unavailable"

// KnownPayment reports whether any request has claimed this payment. If so, its time window and
// price are not checked again, but it is refused if its signature differs from the claimed one.
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

// Pay uses a payment for one request and returns the receipt. The payment's signature must be
// verified before, or be equal to that of the claim. Repeating the same request with the payment
// returns the same receipt; another request is refused. If an earlier payment of this payer was
// claimed with the same Idempotency-Key, its receipt is returned and p is not used. Besides
// refusals, Pay returns *PaymentRefused and *SettlementPending.
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
	case c.byKey: // readKey has compared request and payer
	case string(s.Claim.Signature) != p.Signature:
		return Receipt{}, &PaymentRefused{Reason: "invalid_exact_evm_signature"}
	case s.Claim.RequestHash != paid.RequestHash.String():
		return Receipt{}, errOtherRequest
	}
	attempt := 2 // another process has claimed the payment, so an attempt may have been made
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

// PendingOf turns the error Unavailable into *SettlementPending: the payment may have been claimed
// or settled, and sending it again shows which. It returns all other errors unchanged.
func PendingOf(p Payment, err error) error {
	var unavailable *ground.Unavailable
	if errors.As(err, &unavailable) {
		return &SettlementPending{PaymentID: p.ID, Until: time.Unix(p.ValidBefore, 0), Cause: err}
	}
	return err
}

// claimed is the state of the payment that pays for a request.
type claimed struct {
	Progress
	ours  bool // this request has claimed it
	byKey bool // it is an earlier payment with the same Idempotency-Key
}

// claiming returns a function that claims the payment, unless it is claimed already. If it returns
// ErrMoved it is called again: the payment may be claimed by then, or the prepared events depend
// on an outdated state.
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
			// An equal request may have claimed and settled the payment meanwhile.
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
		c.ours = !result.Replayed // replayed: an equal request has claimed it first
		c.Progress, err = a.ReadPayment(ctx, p.ID)
		return c, err
	}
}

// ready prepares the promise and verifies the payment. Both come before the claim, so that no
// payment is claimed that was spent elsewhere or whose request cannot be answered.
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

// claim returns the append that claims the payment for this request.
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
		a.ForgetDataKey(by.DataKey) // the next try makes a new data key
		err = ledger.ErrMoved
	}
	return ledger.Append{Tenant: tenant, IdemKey: a.claimKey(p), ContentHash: paid.RequestHash, NotBefore: promise.Issued,
		Preconditions: promise.Preconditions, Events: []ledger.Pending{pending}}, err
}

// claimKey returns the idempotency key of the claim: the hash of the payment's id, or of the
// buyer's payment identifier, which is unique for each receiving address. The two hashes have
// different prefixes, so no buyer can block another buyer's payment by choosing the id of that
// payment as an identifier.
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

// reservedIn returns the tenant in which a payment's identifier must be reserved before the claim,
// because it is in another partition than the payment. It returns "" if the claim itself reserves
// the identifier, or if there is none.
func (a *Payments) reservedIn(p Payment) string {
	if tenant := a.ServiceOf(identifierName(p)); p.Identifier != "" && tenant != a.ServiceOf(p.ID) {
		return tenant
	}
	return ""
}

// reserve reserves an identifier in another partition for a payment, permanently. If the payment
// is then not claimed, it can be sent again with the same identifier. If another payment has
// reserved or claimed the identifier, it returns ErrKeyReused.
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

// reused returns the refusal for a claim whose key was used before: for another request, or for
// another payment with the same identifier.
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

// unasked is the error for a facilitator that did not answer. The caller is told that nothing was
// charged; the cause goes to the log.
type unasked struct{ cause error }

// Error returns the text for the log.
func (u *unasked) Error() string { return "verify a payment: " + u.cause.Error() }

// Unwrap returns the refusal for the caller, but not the cause: a timeout of the facilitator must
// not be handled as a timeout of the ledger.
func (u *unasked) Unwrap() error { return errNoFacilitator }

// outcome waits until a claimed payment has a final result, and returns its state. If the time is
// over, the state is still open, and the payment is settled in the background.
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
	poll := time.NewTicker(pollPayment) // another node may settle it without closing our channel
	defer poll.Stop()
	var ended <-chan struct{}
	for asked := false; ; {
		// Wait before settling a payment that another process has just claimed: after a second
		// attempt, a refusal of the first one would not be final.
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

// waitsFor returns the time that a request waits for the result of a payment.
func (a *Payments) waitsFor() time.Duration { return cmp.Or(a.PaymentWait, paymentWait) }

// settlementKey returns the idempotency key of the append that records a settled payment.
func settlementKey(id string) ledger.Hash { return ledger.IdemKey("settlement", id) }

// receipt returns the receipt of a settled payment, read from the ledger, or the error for a
// payment that is refused or open.
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

// WithoutKey returns the body without the member idempotencyKey, because requests are compared
// without it.
func WithoutKey(body []byte) []byte {
	members, err := canon.Members(body)
	if err != nil {
		return body
	}
	delete(members, "idempotencyKey")
	return canon.Object(members)
}
