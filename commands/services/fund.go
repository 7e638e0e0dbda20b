package services

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// This file finds out who pays for a call. Everything else asks it.

// Kinds of charges.
const (
	chargedFree   = "free"
	chargedCredit = "credit"
	chargedPass   = "pass"
	chargedX402   = "x402" // no fund is asked: the call brought a payment
)

// fund is what a call is paid from: the stream that its call.completed counts in, and what
// must still hold when it is appended there.
type fund struct {
	charge        string
	home          string // name of whose fund it is: the call is recorded where that is at home
	stream        string
	expect        ledger.Expect
	used          int // cents of the pass or credit that are used, with this call
	preconditions []ledger.Precondition
}

// funds are asked in this order. Each says what it can pay a call from; false if the caller
// has no such fund, or too little is left in it: a call is paid from one fund alone.
//
//	free    the free calls of a key's month
//	credit  what an agent was granted
//	pass    the pass of the key's account, or of the customer who claimed the agent
var funds = []func(*Services, context.Context, Call) (fund, bool, error){(*Services).freeFund, (*Services).creditFund, (*Services).passFund}

// fundOf is the first fund that can pay for a call; false if none can. That the free calls
// of a month are used up is found out by the append, so the next try begins with the others.
func (a *Services) fundOf(ctx context.Context, call Call, freeUsedUp bool) (f fund, ok bool, err error) {
	asked := funds
	if freeUsedUp {
		asked = funds[1:]
	}
	for _, ask := range asked {
		if f, ok, err = ask(a, ctx, call); ok || err != nil {
			return f, ok, err
		}
	}
	return fund{}, false, nil
}

// freeFund is the free calls of a key's month. An agent has none.
func (a *Services) freeFund(_ context.Context, call Call) (fund, bool, error) {
	return fund{charge: chargedFree, home: call.Caller.ID, stream: accounts.UsageStream(call.Caller, a.Now()), expect: ledger.Any(accounts.FreeCallsPerMonth)},
		call.Agent == nil, nil
}

// creditFund is the credit of an agent.
func (a *Services) creditFund(ctx context.Context, call Call) (fund, bool, error) {
	if call.Agent == nil || call.Agent.Agent.Credit == 0 {
		return fund{}, false, nil
	}
	owner := call.Agent.ClientID
	last, used, err := a.drawn(ctx, owner, creditStream(owner))
	used += call.Service.PriceCents
	return fund{charge: chargedCredit, home: owner, stream: last.Stream, expect: last.At(), used: used}, used <= call.Agent.Agent.Credit, err
}

// passFund is the pass of a customer. The call lands only if the subscription is still as it
// was judged here: the streams that say so are preconditions.
func (a *Services) passFund(ctx context.Context, call Call) (fund, bool, error) {
	owner := call.customer()
	live, preconditions, err := a.passesOf(ctx, owner)
	if err != nil {
		return fund{}, false, err
	}
	for _, x := range live {
		last, used, err := a.drawn(ctx, owner, passStream(x))
		if err != nil {
			return fund{}, false, err
		}
		if used += call.Service.PriceCents; used <= a.creditOf(x) {
			return fund{charge: chargedPass, home: owner, stream: last.Stream, expect: last.At(), used: used, preconditions: preconditions}, true, nil
		}
	}
	return fund{}, false, nil
}

// customer returns the customer whose pass may pay for a call, or "".
func (c Call) customer() string {
	if c.Agent != nil {
		return c.Agent.CustomerID
	}
	return c.Caller.CustomerID
}

// account is who pays for a call that is not free: calls of one payer are charged one after
// the other.
func (c Call) account() string {
	if c.Agent != nil {
		return c.Agent.Payer()
	}
	return c.Caller.CustomerID
}

// QuotaExhausted is a key that has used its month and has no pass to draw on.
type QuotaExhausted struct{ ResetsAt time.Time }

// Error says so.
func (q *QuotaExhausted) Error() string { return "monthly quota is used up" }

// unfunded refuses a call that nothing is left for.
func (a *Services) unfunded(call Call) error {
	if call.Agent != nil {
		return &payments.PaymentRequired{}
	}
	return &QuotaExhausted{ResetsAt: accounts.NextMonth(a.Now())}
}

// mayCompute refuses a heavy call that nothing is left to pay for, since nobody would pay for
// its computation. Of a small call the append finds that out. Credit and passes are read when
// they are charged.
func (a *Services) mayCompute(ctx context.Context, call Call) error {
	if len(call.Body) < ground.HeavyBody || call.account() != "" {
		return nil
	}
	used, err := a.Ledger.Version(ctx, a.ServiceOf(call.Caller.ID), accounts.UsageStream(call.Caller, a.Now()))
	switch {
	case err != nil:
		return ground.Refusal(err)
	case used >= accounts.FreeCallsPerMonth:
		return a.unfunded(call)
	}
	return nil
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

// CanPay reports whether an agent has anything to pay with: credit, or the pass of
// who claimed it. How much is left is asked later, since a call it has paid for is
// answered again, whatever is left.
func (a *Services) CanPay(ctx context.Context, agent accounts.Agent) (bool, error) {
	if agent.Agent.Credit > 0 {
		return true, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	return len(live) > 0, ground.Refusal(err)
}

// Balance is what a credit or a pass holds. A credit has no end.
type Balance struct {
	TotalCents, UsedCents int
	Calls                 int64
	EndsAt                time.Time
	Product               string // slug of the pass; empty for an agent's credit
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

// Pass is what the customer's live passes hold together; nil without one.
func (a *Services) Pass(ctx context.Context, customerID string) (*Balance, error) {
	live, _, err := a.passesOf(ctx, customerID)
	if err != nil || len(live) == 0 {
		return nil, ground.Refusal(err)
	}
	b := &Balance{EndsAt: live[0].Until, Product: live[0].Product}
	for _, x := range live {
		last, used, err := a.drawn(ctx, customerID, passStream(x))
		if err != nil {
			return nil, ground.Refusal(err)
		}
		b.TotalCents, b.UsedCents, b.Calls = b.TotalCents+a.creditOf(x), b.UsedCents+used, b.Calls+last.Version()
	}
	return b, nil
}

// PassProduct is the pass of the catalogue, which a caller at the quota is told
// of. False if none is sold.
func (a *Services) PassProduct() (store.Product, bool) {
	i := slices.IndexFunc(a.Products, func(p store.Product) bool { return p.CreditCents > 0 })
	if i < 0 {
		return store.Product{}, false
	}
	return a.Products[i], true
}

func creditStream(clientID string) string { return "credit/" + clientID }

// A pass is a subscription that adds credit to each paid period. Its stream
// pass/<subscription>/<period start> holds the calls it has paid for; what is
// left lapses with the period, since the next one has another stream.
func passStream(x store.Access) string {
	return "pass/" + x.Subscription.Subscription + "/" + strconv.FormatInt(x.Subscription.PeriodStart, 10)
}

// passesOf are the customer's live passes, the one that ends first in front, and
// the streams that say so.
func (a *Services) passesOf(ctx context.Context, customerID string) ([]store.Access, []ledger.Precondition, error) {
	if customerID == "" {
		return nil, nil, nil
	}
	acc, err := a.ReadSubscriptions(ctx, customerID)
	if err != nil {
		return nil, nil, err
	}
	live := slices.DeleteFunc(acc.Accesses, func(x store.Access) bool {
		return x.Subscription == nil || x.Status != store.StatusActive || acc.Revoked[x.Product] || a.creditOf(x) == 0
	})
	slices.SortFunc(live, func(a, b store.Access) int { return a.Until.Compare(b.Until) })
	return live, acc.Preconditions, nil
}

// creditOf is what a paid period of a subscription adds, in cents.
func (a *Services) creditOf(x store.Access) int {
	product, _ := a.Product(x.Product)
	return int(product.CreditCents)
}

// drawn is the end of the stream of a fund, which is at home where its owner is, and
// what was drawn from it so far: each event carries the total.
func (a *Services) drawn(ctx context.Context, owner, stream string) (ledger.History, int, error) {
	last, err := a.Ledger.Last(ctx, a.ServiceOf(owner), stream)
	if err != nil || len(last.Events) == 0 {
		return last, 0, err
	}
	call, err := events.As[events.CallCompleted](last.Events[0])
	return last, call.UsedCents, err
}
