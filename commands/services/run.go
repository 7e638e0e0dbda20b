// Package services answers one call of a priced service: it computes the answer, finds out
// who pays, and appends the call with its receipt.
package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Services has the commands that answer calls of priced services.
type Services struct {
	*ground.Ground
	*accounts.Accounts
	*payments.Payments
	*store.Store

	turns turns
}

// Call is one request to a service, decoded and admitted. An agent pays if there
// is one, else the caller.
type Call struct {
	Service        policy.Service
	Caller         accounts.Caller
	Agent          *accounts.Agent
	Body           []byte // canonical JSON that passed the service's schema
	IdempotencyKey string // empty: the call is never taken for a repetition

	payment *payments.Payment // pays for the call instead
	payer   accounts.Party    // of the payment
}

func (c Call) party() accounts.Party {
	switch {
	case c.payment != nil:
		return c.payer
	case c.Agent != nil:
		return c.Agent.Party()
	}
	return c.Caller.Party()
}

// Reply is the answer of a service, read from what was stored.
type Reply struct {
	Body      []byte // canonical JSON
	Replayed  bool
	Charge    string // what paid for it: "free", "pass", "credit" or "x402"
	Remaining int64  // free calls left this month
	ResetsAt  time.Time
	Payment   *payments.Receipt // with "x402"
}

// RunService answers a call of a service. The caller's free calls, credit or pass pay for it; a
// refused call is not counted. Refusals: those of the service, its quota (*QuotaExhausted),
// idempotency_key_reused, signing_unavailable.
func (a *Services) RunService(ctx context.Context, call Call) (Reply, error) {
	if a.Vault == nil {
		return Reply{}, a.NoVault()
	}
	t := keyedCall{call: &call}
	t.key, t.content = call.identity()
	if known, err := a.knownCall(ctx, t); err != nil || known != nil {
		r, err := a.replay(ctx, known, err)
		return r, ground.Refusal(err)
	}
	if err := a.mayCompute(ctx, call); err != nil {
		return Reply{}, err
	}
	// Compute once, and before the time limit for the ledger begins.
	answer, err := a.Evaluate(ctx, call.Service, call.Body)
	if err != nil {
		return Reply{}, err
	}
	ctx, again := a.again(&call).Begin(ctx, a.Ground)
	for {
		r, err := a.charge(ctx, t, answer)
		if !again(&err) {
			return r, err
		}
	}
}

// knownCall returns what was stored for an equal call with the same key, or nil.
func (a *Services) knownCall(ctx context.Context, t keyedCall) ([]ledger.Event, error) {
	if t.key == (ledger.Hash{}) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ground.TriesWithin)
	defer cancel()
	known, err := a.known(ctx, t, a.homesOf(*t.call))
	return known, ground.Refusal(err)
}

// keyedCall is a call with the key and the content by which an equal request is found, which
// gets the stored answer. With a zero key no request is equal to it.
type keyedCall struct {
	call         *Call
	key, content ledger.Hash
}

// again says how a call is tried again: before each further try the caller or the agent
// of the call is read again.
func (a *Services) again(call *Call) ground.Tries {
	return ground.Tries{Again: func(ctx context.Context) error {
		now, err := a.currentCall(ctx, *call)
		if err == nil {
			*call = now
		}
		return err
	}}
}

// currentCall reads the caller or agent of the call again.
func (a *Services) currentCall(ctx context.Context, call Call) (Call, error) {
	if call.Agent == nil {
		var err error
		call.Caller, err = a.Current(ctx, call.Caller)
		return call, err
	}
	agent, err := a.CurrentAgent(ctx, *call.Agent)
	call.Agent = &agent
	return call, err
}

// identity returns the call's key in the ledger and the hash of the request. The key contains
// the caller, so that nobody can probe another caller's keys.
func (c Call) identity() (key, content ledger.Hash) {
	body := c.Body
	if c.IdempotencyKey != "" {
		key = ledger.IdemKey("call:"+c.Service.Operation+":"+c.party().Actor, c.IdempotencyKey)
		body = payments.WithoutKey(body)
	}
	return key, payments.RequestHash(c.Service.Operation, body)
}

// RunPaidService is RunService for a call paid by an x402 payment. It also returns the errors
// of Pay.
func (a *Services) RunPaidService(ctx context.Context, call Call, p payments.Payment) (Reply, error) {
	if a.Vault == nil {
		return Reply{}, a.NoVault()
	}
	_, content := call.identity()
	call.payment = &p
	var answer *policy.Answer // computed once, however often the claim is tried
	receipt, err := a.Pay(ctx, p, payments.Paid{Operation: call.Service.Operation, RequestHash: content, PriceCents: call.Service.PriceCents,
		IdempotencyKey: call.IdempotencyKey, Content: content,
		VerifyFirst: len(call.Body) >= ground.HeavyBody, // otherwise a payment without funds would cost a computation
		Prepare: func(ctx context.Context) (payments.Promise, error) {
			if answer == nil {
				computed, err := a.Evaluate(ctx, call.Service, call.Body)
				if err != nil {
					return payments.Promise{}, err
				}
				answer = &computed
			}
			return a.promise(ctx, call, *answer)
		}})
	if err != nil {
		return Reply{}, err
	}
	r, err := a.replay(ctx, receipt.Events, nil)
	r.Replayed, r.Payment = receipt.Replayed, &receipt
	return r, payments.PendingOf(p, ground.Refusal(err))
}

// promise returns the prepared answer in the form in which the payment's claim stores it.
func (a *Services) promise(ctx context.Context, call Call, answer policy.Answer) (payments.Promise, error) {
	p, err := a.prepare(ctx, call, call.payment.ID, answer)
	switch {
	case err != nil:
		return payments.Promise{}, err
	case len(p.answer.Body) > maxPaidAnswer:
		return payments.Promise{}, ground.ErrTooLarge
	}
	if call.payer, err = a.Payer(ctx, a.ServiceOf(p.home), call.payment.Network, call.payment.Payer); err != nil {
		return payments.Promise{}, err
	}
	p.call.PaymentID = call.payment.ID
	d, err := a.pendingCall(ctx, call, p, fund{charge: chargedX402, home: p.home, stream: payments.Stream(call.payment.ID)})
	if err != nil {
		return payments.Promise{}, err
	}
	return payments.Promise{Preconditions: p.preconditions, Issued: p.issued, OutputHash: p.answer.OutputHash, EngineVersion: policy.Version,
		Events: []events.PreparedEvent{{Stream: d.Stream, Joins: true, ID: d.ID, Type: d.Type,
			SchemaVersion: d.SchemaVersion, Actor: d.Actor, KeyID: d.KeyID, Payload: d.Payload}}}, nil
}

// replay answers from stored events alone, whatever has changed since.
func (a *Services) replay(ctx context.Context, stored []ledger.Event, err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	var call events.CallCompleted
	if err := a.Vault.Open(ctx, stored[0], &call); err != nil {
		if errors.Is(err, vault.ErrErased) {
			return Reply{}, policy.Refuse(ground.CodeErased, "", "the answer under this idempotency key was erased")
		}
		return Reply{}, err
	}
	body, err := canon.Marshal(call.Answer)
	if err != nil {
		return Reply{}, err
	}
	r, err := reply(stored, call.Charge, body)
	r.Replayed = true
	return r, err
}

// reply returns the stored answer with its receipt, if there is one, and the position of its
// record in the ledger.
func reply(stored []ledger.Event, charge string, body []byte) (Reply, error) {
	r := Reply{Body: body, Charge: charge, ResetsAt: accounts.NextMonth(stored[0].Occurred())}
	if charge == chargedFree {
		r.Remaining = accounts.FreeCallsPerMonth - stored[0].Version
	}
	if stored[0].KeyID == "" {
		return r, nil
	}
	receipt, err := receiptIn(stored[0])
	if err == nil {
		r.Body, err = withMembers(body, map[string]any{"receipt": receipt})
	}
	return r, err
}

// receiptIn returns the receipt from the event with its record.
func receiptIn(e ledger.Event) (seal.Envelope, error) {
	s, _, err := e.Signed()
	if err != nil {
		return seal.Envelope{}, fmt.Errorf("read a stored receipt: %w", err)
	}
	return seal.Envelope{Record: s.Record, Integrity: s.Integrity, Ledger: ground.PositionOf(e), Verify: &seal.VerifyAt{URL: s.VerifyURL, Method: "POST"}}, nil
}
