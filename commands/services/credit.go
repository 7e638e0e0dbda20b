package services

import (
	"context"
	"sync"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

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
func (a *Services) chargeCredit(ctx context.Context, g accounts.Agent, priceCents int) (fund, bool, error) {
	if g.Agent.Credit == 0 {
		return fund{}, false, nil
	}
	last, used, err := a.drawn(ctx, g.ClientID, creditStream(g.ClientID))
	if err != nil || used+priceCents > g.Agent.Credit {
		return fund{}, false, err
	}
	return fund{charge: chargedCredit, home: g.ClientID, stream: last.Stream, expect: last.At(), used: used + priceCents}, true, nil
}

// drawn is the end of the stream of a fund, which is at home where its owner is, and
// what was drawn from it so far: each event carries the total.
func (a *Services) drawn(ctx context.Context, owner, stream string) (ledger.History, int, error) {
	last, err := a.Ledger.Last(ctx, a.ServiceOf(owner), stream)
	if err != nil || len(last.Events) == 0 {
		return last, 0, err
	}
	var call events.CallCompleted
	err = last.Events[0].Read(&call)
	return last, call.UsedCents, err
}

// Credit is what an agent was granted and has used; nil if it was granted
// nothing.
func (a *Services) Credit(ctx context.Context, g accounts.Agent) (*Balance, error) {
	if g.Agent.Credit == 0 {
		return nil, nil
	}
	last, used, err := a.drawn(ctx, g.ClientID, creditStream(g.ClientID))
	if err != nil {
		return nil, ground.Refusal(err)
	}
	return &Balance{TotalCents: g.Agent.Credit, UsedCents: used, Calls: last.Version()}, nil
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
