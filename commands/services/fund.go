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

// This file selects the fund that pays for a call.

// The values of Reply.Charge.
const (
	chargedFree   = "free"
	chargedCredit = "credit"
	chargedPass   = "pass"
	chargedX402   = "x402" // paid by an x402 payment, not by a fund
)

// fund is the source that pays for a call. The event call.completed is appended to its stream,
// under its preconditions.
type fund struct {
	charge        string
	home          string // id of the owner; the call is recorded in the partition of this id
	stream        string
	expect        ledger.Expect
	used          int // US cents of the credit or pass that are used up, including this call
	preconditions []ledger.Precondition
}

// funds are tried in this order. Each returns false if the caller has no such fund, or if too
// little is left to pay for the whole call; a call is never paid from two funds.
//
//	free    the free calls of a key in this month
//	credit  the credit that an agent was granted
//	pass    the pass of the key's account, or of the customer who claimed the agent
var funds = []func(*Services, context.Context, Call) (fund, bool, error){(*Services).freeFund, (*Services).creditFund, (*Services).passFund}

// fundOf returns the first fund that can pay for a call, or false if there is none. Only the
// append detects that the free calls of a month are used up; then freeUsedUp is true in the next
// round.
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

// freeFund returns the fund of a key's free calls in this month. An agent has none.
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

// passFund returns a pass of a customer. The streams of the subscription are preconditions, so the
// call is not appended if the subscription has changed since it was read.
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

// customer returns the id of the customer whose pass may pay for a call, or "".
func (c Call) customer() string {
	if c.Agent != nil {
		return c.Agent.CustomerID
	}
	return c.Caller.CustomerID
}

// account returns the id of the payer of a call that is not free, or "" if there is none. Calls of
// one payer are charged one after the other.
func (c Call) account() string {
	if c.Agent != nil {
		return c.Agent.Payer()
	}
	return c.Caller.CustomerID
}

// QuotaExhausted refuses a call with a key whose free calls of the month are used up, if no pass
// pays for it.
type QuotaExhausted struct{ ResetsAt time.Time }

// Error returns the text for the log.
func (q *QuotaExhausted) Error() string { return "monthly quota is used up" }

// unfunded returns the refusal of a call that no fund can pay for.
func (a *Services) unfunded(call Call) error {
	if call.Agent != nil {
		return &payments.PaymentRequired{}
	}
	return &QuotaExhausted{ResetsAt: accounts.NextMonth(a.Now())}
}

// mayCompute refuses a heavy call with a free key whose quota is used up, so that nothing is
// computed for it. For a small call the append detects this. Credit and passes are read later,
// when they are charged.
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

// homesOf returns the ids in whose partitions a call may be recorded. An agent's call is recorded
// in the partition of the agent if credit pays, or of the customer if a pass pays.
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

// CanPay reports whether an agent has credit or the customer who claimed it has a pass. It does
// not check whether enough is left, because a repeated call is answered even if nothing is left.
func (a *Services) CanPay(ctx context.Context, agent accounts.Agent) (bool, error) {
	if agent.Agent.Credit > 0 {
		return true, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	return len(live) > 0, ground.Refusal(err)
}

// Balance is the state of a credit or a pass. EndsAt is zero for a credit, which does not expire.
type Balance struct {
	TotalCents, UsedCents int
	Calls                 int64
	EndsAt                time.Time
	Product               string // slug of the pass; empty for an agent's credit
}

// Credit returns the state of an agent's credit, or nil if it was granted none.
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

// Pass returns the sum of the customer's active passes, or nil if there is none.
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

// PassProduct returns the first pass in the catalogue, to offer it to a caller whose quota is used
// up. It returns false if the catalogue has none.
func (a *Services) PassProduct() (store.Product, bool) {
	i := slices.IndexFunc(a.Products, func(p store.Product) bool { return p.CreditCents > 0 })
	if i < 0 {
		return store.Product{}, false
	}
	return a.Products[i], true
}

func creditStream(clientID string) string { return "credit/" + clientID }

// passStream returns the stream of a pass in one paid period: pass/<subscription>/<start of the
// period>. It contains the calls that the pass has paid for. A pass is a subscription with credit
// for each period; each period has its own stream, so credit that is not used expires.
func passStream(x store.Access) string {
	return "pass/" + x.Subscription.Subscription + "/" + strconv.FormatInt(x.Subscription.PeriodStart, 10)
}

// passesOf returns the customer's active passes, ordered by their end, and the streams that they
// were read from.
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

// creditOf returns the credit in US cents that each paid period of a subscription has.
func (a *Services) creditOf(x store.Access) int {
	product, _ := a.Product(x.Product)
	return int(product.CreditCents)
}

// drawn returns the last event of a fund's stream, and the US cents that were used, which each
// event states as a total.
func (a *Services) drawn(ctx context.Context, owner, stream string) (ledger.History, int, error) {
	last, err := a.Ledger.Last(ctx, a.ServiceOf(owner), stream)
	if err != nil || len(last.Events) == 0 {
		return last, 0, err
	}
	call, err := events.As[events.CallCompleted](last.Events[0])
	return last, call.UsedCents, err
}
