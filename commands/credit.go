package commands

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
)

// party is the agent as the one a call is recorded of.
func (g Agent) party() party {
	return party{actor: g.ClientID, dataKey: g.agent.dataKey, subject: "agent:" + g.ClientID, guards: []ledger.Guard{g.agent.guard}}
}

// agentDataKey is the data key under which an agent's calls are sealed in a tenant. In
// another than the agent's own it is one of the same person, so that whoever is erased
// is erased there too.
func (a *App) agentDataKey(ctx context.Context, tenant string, g agent) (string, error) {
	if tenant == g.guard.Tenant {
		return g.dataKey, nil
	}
	var registered events.AgentRegistered
	if err := a.Vault.Open(ctx, g.born, &registered); errors.Is(err, vault.ErrErased) {
		registered = events.AgentRegistered{ClientID: g.id}
	} else if err != nil {
		return "", err
	}
	return a.dataKeyOf(ctx, tenant, agentSubject(registered))
}

// currentAgent is the agent as its stream is now, after it has moved.
func (a *App) currentAgent(ctx context.Context, g Agent) (Agent, error) {
	now, err := a.agentOf(ctx, g.ClientID)
	if err == nil && (now.revoked || now.ended[g.claims.ID]) {
		err = errToken
	}
	g.agent, g.CustomerID = now, now.customer
	return g, err
}

// payer names what an agent's calls draw on: itself, or the customer who claimed
// it.
func (g Agent) payer() string {
	if g.CustomerID != "" {
		return g.CustomerID
	}
	return g.ClientID
}

// Balance is what a credit or a pass holds. A credit has no end.
type Balance struct {
	TotalCents, UsedCents int
	Calls                 int64
	EndsAt                time.Time
	Product               string // slug of the pass; empty for an agent's credit
}

func creditStream(clientID string) string { return "credit/" + clientID }

// chargeCredit is the fund that a call of this price may draw from an agent's
// credit; false if there is none, or too little is left: calls are paid whole.
func (a *App) chargeCredit(ctx context.Context, g Agent, priceCents int) (fund, bool, error) {
	if g.agent.credit == 0 {
		return fund{}, false, nil
	}
	last, used, err := a.drawn(ctx, g.ClientID, creditStream(g.ClientID))
	if err != nil || used+priceCents > g.agent.credit {
		return fund{}, false, err
	}
	return fund{charge: chargedCredit, home: g.ClientID, stream: last.Stream, expect: last.At(), used: used + priceCents}, true, nil
}

// drawn is the end of the stream of a fund, which is at home where its owner is, and
// what was drawn from it so far: each event carries the total.
func (a *App) drawn(ctx context.Context, owner, stream string) (ledger.History, int, error) {
	last, err := a.Ledger.Last(ctx, a.serviceOf(owner), stream)
	if err != nil || len(last.Events) == 0 {
		return last, 0, err
	}
	var call events.CallCompleted
	err = last.Events[0].Read(&call)
	return last, call.UsedCents, err
}

// Credit is what an agent was granted and has used; nil if it was granted
// nothing.
func (a *App) Credit(ctx context.Context, g Agent) (*Balance, error) {
	if g.agent.credit == 0 {
		return nil, nil
	}
	last, used, err := a.drawn(ctx, g.ClientID, creditStream(g.ClientID))
	if err != nil {
		return nil, refusal(err)
	}
	return &Balance{TotalCents: g.agent.credit, UsedCents: used, Calls: last.Version()}, nil
}

// turns lets what draws on one fund go one after the other on this node. Its
// stream is appended to at the version read, so all but one at a time would only
// move it under each other.
type turns struct {
	mu    sync.Mutex // guards queue
	queue map[string]*turn
}

// turn is one fund's. Who has put something into taken has the turn.
type turn struct {
	taken chan struct{}
	users int // who has it or waits for it
}

// take waits for the turn of a fund; done gives it on.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	own := t.queue[name]
	if own == nil {
		if t.queue == nil {
			t.queue = map[string]*turn{}
		}
		own = &turn{taken: make(chan struct{}, 1)}
		t.queue[name] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.queue, name)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
