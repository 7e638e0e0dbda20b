// Package services implements the call of a priced service: it computes the answer, selects the
// fund that pays, and appends the call with its receipt.
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

// Services implements the commands that call priced services.
type Services struct {
	*ground.Ground
	*accounts.Accounts
	*payments.Payments
	*store.Store

	turns turns
}

// Call is a validated request to a service. If Agent is not nil, the agent pays, otherwise Caller.
type Call struct {
	Service        policy.Service
	Caller         accounts.Caller
	Agent          *accounts.Agent
	Body           []byte // canonical JSON that passed the service's schema
	IdempotencyKey string // empty means that the call is never treated as a repeated one

	payment *payments.Payment // x402 payment that pays for the call; nil if a fund pays
	payer   accounts.Party    // payer of payment
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

// Reply is the answer of a service, as it is stored.
type Reply struct {
	Body      []byte // answer in canonical JSON, with its receipt
	Replayed  bool
	Charge    string // source that paid: "free", "pass", "credit" or "x402"
	Remaining int64  // free calls left this month, if Charge is "free"
	ResetsAt  time.Time
	Payment   *payments.Receipt // set if Charge is "x402"
}

// RunService answers a call of a service and charges it to the caller's free calls, credit or
// pass. A refused call is not charged. It returns the refusals of the service, *QuotaExhausted,
// *payments.PaymentRequired, idempotency_key_reused or signing_unavailable.
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
	// Compute before the tries begin: once only, and outside their time limit.
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

// knownCall returns the stored events of an equal call with the same idempotency key, or nil.
func (a *Services) knownCall(ctx context.Context, t keyedCall) ([]ledger.Event, error) {
	if t.key == (ledger.Hash{}) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ground.TriesWithin)
	defer cancel()
	known, err := a.known(ctx, t, a.homesOf(*t.call))
	return known, ground.Refusal(err)
}

// keyedCall is a call with the key and the content hash that identify equal requests. If the key
// is zero, no other request is equal.
type keyedCall struct {
	call         *Call
	key, content ledger.Hash
}

// again returns the retry rule for a call: before each further try, its caller or agent is read
// again.
func (a *Services) again(call *Call) ground.Tries {
	return ground.Tries{Again: func(ctx context.Context) error {
		now, err := a.currentCall(ctx, *call)
		if err == nil {
			*call = now
		}
		return err
	}}
}

// currentCall reads the caller or agent of a call again.
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

// identity returns the call's idempotency key in the ledger and the hash of the request. The key
// includes the caller, so that a caller cannot find out which keys others have used.
func (c Call) identity() (key, content ledger.Hash) {
	body := c.Body
	if c.IdempotencyKey != "" {
		key = ledger.IdemKey("call:"+c.Service.Operation+":"+c.party().Actor, c.IdempotencyKey)
		body = payments.WithoutKey(body)
	}
	return key, payments.RequestHash(c.Service.Operation, body)
}

// RunPaidService answers a call that an x402 payment pays for. Besides the refusals of the
// service, it returns the errors of Pay.
func (a *Services) RunPaidService(ctx context.Context, call Call, p payments.Payment) (Reply, error) {
	if a.Vault == nil {
		return Reply{}, a.NoVault()
	}
	_, content := call.identity()
	call.payment = &p
	var answer *policy.Answer // computed once, even if the claim is tried several times
	receipt, err := a.Pay(ctx, p, payments.Paid{Operation: call.Service.Operation, RequestHash: content, PriceCents: call.Service.PriceCents,
		IdempotencyKey: call.IdempotencyKey, Content: content,
		VerifyFirst: len(call.Body) >= ground.HeavyBody, // so that a payment without funds does not cause a heavy computation
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

// promise returns the prepared answer in the form that the claim of a payment stores.
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

// replay returns the stored answer of a call, even if the state has changed since.
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

// reply returns a stored answer. If the event has a signed record, it adds the receipt with its
// position in the ledger.
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

// receiptIn returns the signed receipt that an event contains.
func receiptIn(e ledger.Event) (seal.Envelope, error) {
	s, _, err := e.Signed()
	if err != nil {
		return seal.Envelope{}, fmt.Errorf("read a stored receipt: %w", err)
	}
	return seal.Envelope{Record: s.Record, Integrity: s.Integrity, Ledger: ground.PositionOf(e), Verify: &seal.VerifyAt{URL: s.VerifyURL, Method: "POST"}}, nil
}
