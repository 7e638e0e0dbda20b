package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
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
	charge string // "free", "pass" or "credit"
	stream string
	expect ledger.Expect
	used   int // cents of the pass or credit that are used, with this call
	guards []ledger.Guard
}

// charge makes the prepared answer true: call.completed in the stream of what
// pays for the call, and everything else in the same append. A key pays with the
// free calls of its month, then with the pass of its account; an agent with its
// credit, then with the pass of who claimed it.
func (a *App) charge(ctx context.Context, t attempt, p prepared) (Reply, error) {
	call := *t.call
	f := a.freeFund(call)
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
		}
		drafts, err := a.drafts(ctx, call, p, f)
		if err != nil {
			return Reply{}, err
		}
		result, err := a.Ledger.Append(ctx, ledger.Append{
			Tenant: a.tenantOf(call), IdemKey: t.key, ContentHash: t.content,
			Drafts: drafts, Guards: slices.Concat(p.guards, call.party().guards, f.guards), NotBefore: p.issued,
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
func (a *App) freeFund(call Call) fund {
	if call.Agent != nil {
		return fund{}
	}
	return fund{charge: chargedFree, stream: usageStream(call.Caller, a.now()), expect: ledger.Any(FreeCallsPerMonth)}
}

// account is who pays for a call that is not free, one call at a time.
func (c Call) account() string {
	if c.Agent != nil {
		return c.Agent.payer()
	}
	return c.Caller.CustomerID
}

// paidFund is what a call that is not free can be paid from; false if nothing is
// left.
func (a *App) paidFund(ctx context.Context, call Call) (fund, bool, error) {
	if call.Agent != nil {
		return a.agentFund(ctx, *call.Agent, call.Service.PriceCents)
	}
	return a.chargePass(ctx, call.Caller.CustomerID, call.Service.PriceCents)
}

// unfunded refuses a call that nothing is left for.
func (a *App) unfunded(call Call) error {
	if call.Agent != nil {
		return &PaymentRequired{}
	}
	return &QuotaExhausted{ResetsAt: nextMonth(a.now())}
}

// unpaid refuses a call that nothing is left for, unless its equal was paid for
// while it waited for its turn.
func (a *App) unpaid(ctx context.Context, t attempt) (Reply, error) {
	if t.key == (ledger.Hash{}) {
		return Reply{}, a.unfunded(*t.call)
	}
	stored, err := a.Ledger.ByKey(ctx, a.tenantOf(*t.call), t.key, t.content)
	if err == nil && stored == nil {
		err = a.unfunded(*t.call)
	}
	return a.replay(ctx, stored, err)
}

// agentFund is what an agent can pay from; false if it cannot.
func (a *App) agentFund(ctx context.Context, agent Agent, priceCents int) (fund, bool, error) {
	f, ok, err := a.chargeCredit(ctx, agent, priceCents)
	if ok || err != nil || agent.CustomerID == "" {
		return f, ok, err
	}
	return a.chargePass(ctx, agent.CustomerID, priceCents)
}

// CanPay says whether an agent has anything to pay with: credit, or the pass of
// who claimed it. How much is left is asked later, since a call it has paid for is
// answered again, whatever is left.
func (a *App) CanPay(ctx context.Context, agent Agent) (bool, error) {
	if agent.agent.credit > 0 || agent.CustomerID == "" {
		return agent.agent.credit > 0, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	if err != nil {
		return false, refusal(err)
	}
	return len(live) > 0, nil
}

func (a *App) drafts(ctx context.Context, call Call, p prepared, f fund) ([]ledger.Draft, error) {
	id, by := a.NewID("evt_"), call.party()
	p.call.Charge, p.call.UsedCents = f.charge, f.used
	payload, err := a.sealFor(ctx, a.tenantOf(call), id, by, p.call)
	if err != nil {
		return nil, err
	}
	drafts := []ledger.Draft{{
		Stream: f.stream, Expect: f.expect,
		ID: id, Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: by.actor, Payload: payload,
	}}
	if p.call.Integrity != nil {
		drafts[0].KeyID = p.record.Integrity.KeyID
	}
	for _, e := range p.extra {
		payload, err := canon.Marshal(e.stored)
		if err != nil {
			return nil, fmt.Errorf("payload of %s: %w", e.eventType, err)
		}
		d := ledger.Draft{Stream: e.stream, Expect: ledger.New(), ID: a.NewID("evt_"), Type: e.eventType,
			SchemaVersion: 1, Actor: by.actor, Payload: payload}
		if e.signed {
			d.KeyID = p.record.Integrity.KeyID
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// sealFor seals what is stored about a party under its data key. If the person
// behind it was erased, the party goes on, sealed for itself alone.
func (a *App) sealFor(ctx context.Context, tenant, eventID string, by party, stored any) ([]byte, error) {
	payload, err := a.Vault.Seal(ctx, tenant, eventID, by.dataKey, stored)
	if !errors.Is(err, ledger.ErrErased) {
		return payload, err
	}
	dataKey, err := a.Vault.Subject(ctx, tenant, by.subject, a.NewID("sub_"))
	if err != nil {
		return nil, err
	}
	return a.Vault.Seal(ctx, tenant, eventID, dataKey, stored)
}
