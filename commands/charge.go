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
func (a *App) charge(ctx context.Context, call Call, key, content ledger.Hash, p prepared) (Reply, error) {
	if call.Agent != nil {
		done, err := a.turns.take(ctx, call.Agent.payer())
		if err != nil {
			return Reply{}, err
		}
		defer done()
		f, ok, err := a.agentFund(ctx, *call.Agent, call.Service.PriceCents)
		switch {
		case err != nil:
			return Reply{}, err
		case !ok:
			return a.unpaid(ctx, key, content, &PaymentRequired{})
		}
		return a.chargeFund(ctx, call, key, content, p, f)
	}
	now := a.now()
	free := fund{charge: chargedFree, stream: usageStream(call.Caller, now), expect: ledger.Any(FreeCallsPerMonth)}
	r, err := a.chargeFund(ctx, call, key, content, p, free)
	if !errors.Is(err, ledger.ErrLimit) {
		return r, err
	}
	if call.Caller.CustomerID == "" {
		return Reply{}, &QuotaExhausted{ResetsAt: nextMonth(now)}
	}
	done, err := a.turns.take(ctx, call.Caller.CustomerID)
	if err != nil {
		return Reply{}, err
	}
	defer done()
	f, ok, err := a.chargePass(ctx, call.Caller.CustomerID, call.Service.PriceCents)
	switch {
	case err != nil:
		return Reply{}, err
	case !ok:
		return a.unpaid(ctx, key, content, &QuotaExhausted{ResetsAt: nextMonth(now)})
	}
	return a.chargeFund(ctx, call, key, content, p, f)
}

// unpaid refuses a call that nothing is left for, unless its equal was paid for
// while it waited for its turn.
func (a *App) unpaid(ctx context.Context, key, content ledger.Hash, refused error) (Reply, error) {
	if key == (ledger.Hash{}) {
		return Reply{}, refused
	}
	stored, err := a.Ledger.ByKey(ctx, ledger.ServiceTenant, key, content)
	if err == nil && stored == nil {
		err = refused
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

func (a *App) chargeFund(ctx context.Context, call Call, key, content ledger.Hash, p prepared, f fund) (Reply, error) {
	drafts, err := a.drafts(ctx, call, p, f)
	if err != nil {
		return Reply{}, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{
		Tenant: ledger.ServiceTenant, IdemKey: key, ContentHash: content,
		Drafts: drafts, Guards: slices.Concat(p.guards, call.party().guards, f.guards),
	})
	switch {
	case err != nil:
		return Reply{}, err
	case result.Replayed:
		return a.replay(ctx, result.Events, nil)
	}
	return reply(result.Events, f.charge, p.answer.Body)
}

func (a *App) drafts(ctx context.Context, call Call, p prepared, f fund) ([]ledger.Draft, error) {
	id, by := a.NewID("evt_"), call.party()
	p.call.Charge, p.call.UsedCents = f.charge, f.used
	payload, err := a.sealCall(ctx, id, by, p.call)
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

// sealCall seals request and answer under the data key of the party. If the
// person behind it was erased, the party goes on, sealed for itself alone.
func (a *App) sealCall(ctx context.Context, eventID string, by party, completed events.CallCompleted) ([]byte, error) {
	payload, err := a.Vault.Seal(ctx, ledger.ServiceTenant, eventID, by.dataKey, completed)
	if !errors.Is(err, ledger.ErrErased) {
		return payload, err
	}
	dataKey, err := a.Vault.Subject(ctx, ledger.ServiceTenant, by.subject, a.NewID("sub_"))
	if err != nil {
		return nil, err
	}
	return a.Vault.Seal(ctx, ledger.ServiceTenant, eventID, dataKey, completed)
}
