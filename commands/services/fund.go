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

// This file finds out which fund pays for a call.

// Kinds of charges.
const (
	chargedFree   = "free"
	chargedCredit = "credit"
	chargedPass   = "pass"
	chargedX402   = "x402" // no fund is used: the call came with a payment
)

// fund is what a call is paid from: the stream in which its call.completed counts, and the
// preconditions of that append.
type fund struct {
	charge        string
	home          string // name of the owner; the call is recorded in the owner's partition
	stream        string
	expect        ledger.Expect
	used          int // cents of the pass or credit that are used, including this call
	preconditions []ledger.Precondition
}

// funds are asked in this order. Each returns false if the caller has no such fund, or too
// little is left in it: a call is paid from one fund alone.
//
//	free    the free calls of a key's month
//	credit  what an agent was granted
//	pass    the pass of the key's account, or of the customer who claimed the agent
var funds = []func(*Services, context.Context, Call) (fund, bool, error){(*Services).freeFund, (*Services).creditFund, (*Services).passFund}

// fundOf returns the first fund that can pay for a call, or false if none can. Whether the free
// calls of a month are used up is only found out by the append, so the next try begins with the
// other funds.
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

// freeFund returns the free calls of a key's month. An agent has none.
func (a *Services) freeFund(_ context.Context, call Call) (fund, bool, error) {
	return fund{charge: chargedFree, home: call.Caller.ID, stream: accounts.UsageStream(call.Caller, a.Now()), expect: ledger.Any(accounts.FreeCallsPerMonth)},
		call.Agent == nil, nil
}

// creditFund returns the credit of an agent.
func (a *Services) creditFund(ctx context.Context, call Call) (fund, bool, error) {
	if call.Agent == nil || call.Agent.Agent.Credit == 0 {
		return fund{}, false, nil
	}
	owner := call.Agent.ClientID
	last, used, err := a.drawn(ctx, owner, creditStream(owner))
	used += call.Service.PriceCents
	return fund{charge: chargedCredit, home: owner, stream: last.Stream, expect: last.At(), used: used}, used <= call.Agent.Agent.Credit, err
}

// passFund returns the pass of a customer. The call is appended only if the subscription has
// not changed since it was read here: its streams are preconditions.
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

// account names the payer of a call that is not free. Calls of one payer are charged one after
// the other.
func (c Call) account() string {
	if c.Agent != nil {
		return c.Agent.Payer()
	}
	return c.Caller.CustomerID
}

// QuotaExhausted is the refusal for a key that has used the free calls of its month and has no
// pass to draw on.
type QuotaExhausted struct{ ResetsAt time.Time }

// Error returns the text for the log.
func (q *QuotaExhausted) Error() string { return "monthly quota is used up" }

// unfunded returns the refusal of a call for which no fund is left.
func (a *Services) unfunded(call Call) error {
	if call.Agent != nil {
		return &payments.PaymentRequired{}
	}
	return &QuotaExhausted{ResetsAt: accounts.NextMonth(a.Now())}
}

// mayCompute refuses a heavy call for which no fund is left, since the computation would not be
// paid. For a small call the append finds that out. Credit and passes are read when they are
// charged.
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

// homesOf returns the names in whose partitions a call may be recorded. For an agent's call
// they are the agent with credit, and the customer whose pass it draws on.
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

// CanPay reports whether an agent has anything to pay with: credit, or the pass of the customer
// who claimed it. How much is left is checked later, since a call that was paid for before is
// answered again in any case.
func (a *Services) CanPay(ctx context.Context, agent accounts.Agent) (bool, error) {
	if agent.Agent.Credit > 0 {
		return true, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	return len(live) > 0, ground.Refusal(err)
}

// Balance is the state of a credit or a pass. A credit does not expire.
type Balance struct {
	TotalCents, UsedCents int
	Calls                 int64
	EndsAt                time.Time
	Product               string // slug of the pass; empty for an agent's credit
}

// Credit returns what an agent was granted and has used, or nil if it was granted nothing.
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

// Pass returns the sum of the customer's live passes, or nil if there is none.
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

// PassProduct returns the pass of the catalogue, which is offered to a caller whose quota is
// used up. It returns false if none is sold.
func (a *Services) PassProduct() (store.Product, bool) {
	i := slices.IndexFunc(a.Products, func(p store.Product) bool { return p.CreditCents > 0 })
	if i < 0 {
		return store.Product{}, false
	}
	return a.Products[i], true
}

func creditStream(clientID string) string { return "credit/" + clientID }

// A pass is a subscription that adds credit to each paid period. Its stream
// pass/<subscription>/<period start> has the calls that it has paid for. The next period has
// another stream, so unused credit expires with its period.
func passStream(x store.Access) string {
	return "pass/" + x.Subscription.Subscription + "/" + strconv.FormatInt(x.Subscription.PeriodStart, 10)
}

// passesOf returns the customer's live passes, the one that ends first in front, and the
// streams that they were read from.
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

// creditOf returns what a paid period of a subscription adds, in cents.
func (a *Services) creditOf(x store.Access) int {
	product, _ := a.Product(x.Product)
	return int(product.CreditCents)
}

// drawn returns the history of a fund's stream, in the partition of the owner, and what was
// drawn from the fund so far: each event has the total.
func (a *Services) drawn(ctx context.Context, owner, stream string) (ledger.History, int, error) {
	last, err := a.Ledger.Last(ctx, a.ServiceOf(owner), stream)
	if err != nil || len(last.Events) == 0 {
		return last, 0, err
	}
	call, err := events.As[events.CallCompleted](last.Events[0])
	return last, call.UsedCents, err
}
