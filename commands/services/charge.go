package services

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// Kinds of charges.
const (
	chargedFree   = "free"
	chargedPass   = "pass"
	chargedCredit = "credit"
	chargedX402   = "x402"
)

// QuotaExhausted is a key that has used its month and has no pass to draw on.
type QuotaExhausted struct{ ResetsAt time.Time }

// Error says so.
func (q *QuotaExhausted) Error() string { return "monthly quota is used up" }

// fund is what a call can be paid from: the stream that its call.completed counts
// in, and what must still hold when it lands there.
type fund struct {
	charge        string // "free", "pass" or "credit"
	home          string // name of whose fund it is: the call is recorded where that is at home
	stream        string
	expect        ledger.Expect
	used          int // cents of the pass or credit that are used, with this call
	preconditions []ledger.Precondition
}

// charge makes the prepared answer true: call.completed in the stream of what pays for
// the call. A key pays with the free calls of its month, then with the pass of its
// account; an agent with its credit, then with the pass of who claimed it.
func (a *Services) charge(ctx context.Context, t keyedCall, answer policy.Answer) (Reply, error) {
	call := *t.call
	f := a.freeFund(call)
	var p prepared
	for {
		if f.charge == "" {
			done, err := a.turns.take(ctx, call.account())
			if err != nil {
				return Reply{}, err
			}
			defer done() // once: what is paid for is the last to be tried
			var ok bool
			if f, ok, err = a.paidFund(ctx, call); err != nil {
				return Reply{}, err
			} else if !ok {
				return a.unpaid(ctx, t)
			}
			if known, err := a.knownElsewhere(ctx, t, f); err != nil || known != nil {
				return a.replay(ctx, known, err)
			}
		}
		if p.home != f.home {
			var err error
			if p, err = a.prepare(ctx, call, f.home, answer); err != nil {
				return Reply{}, err
			}
		}
		pending, err := a.pendingCall(ctx, call, p, f)
		if err != nil {
			return Reply{}, err
		}
		tenant := a.ServiceOf(f.home)
		here, elsewhere := a.Apart(tenant, slices.Concat(p.preconditions, call.party().Preconditions, f.preconditions))
		if err := a.Unmoved(ctx, elsewhere); err != nil {
			return Reply{}, err
		}
		result, err := a.Ledger.Append(ctx, ledger.Append{
			Tenant: tenant, IdemKey: t.key, ContentHash: t.content, Events: []ledger.Pending{pending}, Preconditions: here, NotBefore: p.issued,
		})
		switch {
		case f.charge == chargedFree && errors.Is(err, ledger.ErrLimit):
			if call.Caller.CustomerID == "" {
				return Reply{}, a.unfunded(call)
			}
			f = fund{}
			continue
		case err != nil:
			return Reply{}, err
		case result.Replayed:
			return a.replay(ctx, result.Events, nil)
		}
		return reply(result.Events, f.charge, p.answer.Body)
	}
}

// freeFund is the free calls of a key's month. An agent has none.
func (a *Services) freeFund(call Call) fund {
	if call.Agent != nil {
		return fund{}
	}
	return fund{charge: chargedFree, home: call.Caller.ID, stream: accounts.UsageStream(call.Caller, a.Now()), expect: ledger.Any(accounts.FreeCallsPerMonth)}
}

// account is who pays for a call that is not free, one call at a time.
func (c Call) account() string {
	if c.Agent != nil {
		return c.Agent.Payer()
	}
	return c.Caller.CustomerID
}

// paidFund is what a call that is not free can be paid from; false if nothing is
// left.
func (a *Services) paidFund(ctx context.Context, call Call) (fund, bool, error) {
	if call.Agent != nil {
		return a.agentFund(ctx, *call.Agent, call.Service.PriceCents)
	}
	return a.chargePass(ctx, call.Caller.CustomerID, call.Service.PriceCents)
}

// unfunded refuses a call that nothing is left for.
func (a *Services) unfunded(call Call) error {
	if call.Agent != nil {
		return &payments.PaymentRequired{}
	}
	return &QuotaExhausted{ResetsAt: accounts.NextMonth(a.Now())}
}

// unpaid refuses a call that nothing is left for, unless its equal was paid for
// while it waited for its turn.
func (a *Services) unpaid(ctx context.Context, t keyedCall) (Reply, error) {
	stored, err := a.known(ctx, t, a.homesOf(*t.call))
	if err == nil && stored == nil {
		err = a.unfunded(*t.call)
	}
	return a.replay(ctx, stored, err)
}

// homesOf are the names where a call may be recorded, by who pays: an agent's with the
// agent that has credit, or with the customer whose pass it draws on.
func (a *Services) homesOf(c Call) []string {
	switch {
	case c.payment != nil:
		return []string{c.payment.ID}
	case c.Agent == nil:
		return []string{c.Caller.ID}
	case c.Agent.CustomerID == "" || a.ServiceOf(c.Agent.CustomerID) == a.ServiceOf(c.Agent.ClientID):
		return []string{c.Agent.ClientID}
	}
	return []string{c.Agent.ClientID, c.Agent.CustomerID}
}

// known is what was stored for an equal call at one of the homes; nil for none.
func (a *Services) known(ctx context.Context, t keyedCall, homes []string) ([]ledger.Event, error) {
	if t.key == (ledger.Hash{}) {
		return nil, nil
	}
	for _, home := range homes {
		if stored, err := a.Ledger.ByKey(ctx, a.ServiceOf(home), t.key, t.content); err != nil || stored != nil {
			return stored, err
		}
	}
	return nil, nil
}

// knownElsewhere is what an equal call has been answered with where the append to a
// fund does not see it. What the fund was chosen for has landed before: credit that is
// used up by that very call, for example.
func (a *Services) knownElsewhere(ctx context.Context, t keyedCall, f fund) ([]ledger.Event, error) {
	return a.known(ctx, t, slices.DeleteFunc(a.homesOf(*t.call), func(home string) bool { return a.ServiceOf(home) == a.ServiceOf(f.home) }))
}

// agentFund is what an agent can pay from; false if it cannot.
func (a *Services) agentFund(ctx context.Context, agent accounts.Agent, priceCents int) (fund, bool, error) {
	f, ok, err := a.chargeCredit(ctx, agent, priceCents)
	if ok || err != nil || agent.CustomerID == "" {
		return f, ok, err
	}
	return a.chargePass(ctx, agent.CustomerID, priceCents)
}

// CanPay says whether an agent has anything to pay with: credit, or the pass of
// who claimed it. How much is left is asked later, since a call it has paid for is
// answered again, whatever is left.
func (a *Services) CanPay(ctx context.Context, agent accounts.Agent) (bool, error) {
	if agent.Agent.Credit > 0 || agent.CustomerID == "" {
		return agent.Agent.Credit > 0, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	if err != nil {
		return false, ground.Refusal(err)
	}
	return len(live) > 0, nil
}

// pendingCall makes the event call.completed in the stream of the fund that pays.
func (a *Services) pendingCall(ctx context.Context, call Call, p prepared, f fund) (ledger.Pending, error) {
	by, tenant := call.party(), a.ServiceOf(f.home)
	p.call.Charge, p.call.UsedCents = f.charge, f.used
	if call.Agent != nil {
		var err error
		if by.DataKey, err = a.AgentDataKey(ctx, tenant, call.Agent.Agent); err != nil {
			return ledger.Pending{}, err
		}
	}
	d := ledger.Pending{Stream: f.stream, Expect: f.expect, ID: a.NewID("evt_"), Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: by.Actor}
	if p.call.Integrity != nil {
		d.KeyID = p.call.Integrity.KeyID
	}
	var err error
	d.Payload, err = a.SealFor(ctx, tenant, d.ID, by, p.call)
	return d, err
}
