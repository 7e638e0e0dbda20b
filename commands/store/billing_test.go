package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// told returns an event with a payload, as the states read it from the ledger.
func told(t interface{ Fatal(...any) }, eventType string, stored any) ledger.Event {
	payload, err := canon.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Event{Type: eventType, SchemaVersion: 1, Payload: payload}
}

func foldBilling(t interface{ Fatal(...any) }, list []ledger.Event) billing {
	b, err := ground.Folded(ledger.History{Events: list}, billing{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func foldPayment(t interface{ Fatal(...any) }, list []ledger.Event) payment {
	p, err := ground.Folded(ledger.History{Events: list}, payment{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var exported = cmp.AllowUnexported(billing{}, payment{}, ledger.Precondition{})

// reordered returns the facts in random order, some of them twice.
func reordered(t *rapid.T, list []ledger.Event) []ledger.Event {
	again := append([]ledger.Event{}, list...)
	for range rapid.IntRange(0, 3).Draw(t, "repeated") {
		again = append(again, list[rapid.IntRange(0, len(list)-1).Draw(t, "which")])
	}
	shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	shuffle.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	return again
}

// The state does not depend on the order of the provider's reports, nor on repeated ones. Many of
// the random facts have equal times.
func TestStateIsTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	few := rapid.Int64Range(1, 2)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Event {
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				return told(t, events.TypePurchaseFulfilled, events.PurchaseFulfilled{Session: "cs_1",
					PurchaseID: rapid.SampledFrom([]string{"pur_1", "pur_2", "pur_3"}).Draw(t, "purchase")})
			}
			s := events.SubscriptionUpdated{Subscription: "sub_1", Product: "team", PeriodEnd: few.Draw(t, "end"), ProviderAt: few.Draw(t, "at"),
				Status: rapid.SampledFrom([]string{"active", "past_due", "canceled"}).Draw(t, "status"),
				Change: rapid.SampledFrom([]string{"created", "updated", "deleted"}).Draw(t, "change")}
			s.ProviderEvent = fmt.Sprintf("evt_%d%d%s%s", s.PeriodEnd, s.ProviderAt, s.Status, s.Change) // so that no two events have the same id
			return told(t, events.TypeSubscriptionUpdated, s)
		}), 1, 6).Draw(t, "facts")
		if diff := cmp.Diff(foldBilling(t, list), foldBilling(t, reordered(t, list)), exported); diff != "" {
			t.Fatal(diff)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Event {
			r := events.PurchaseRefunded{Payment: "pi_1", ProviderAt: rapid.Int64Range(1, 4).Draw(t, "at"), Object: rapid.SampledFrom([]string{"x_1", "x_2"}).Draw(t, "object")}
			what := rapid.SampledFrom([][2]string{{"refund", "full"}, {"refund", "part"}, {"refund", "failed"},
				{"dispute", "open"}, {"dispute", "won"}, {"dispute", "lost"}}).Draw(t, "what")
			r.Cause, r.State = what[0], what[1]
			return told(t, events.TypePurchaseRefunded, r)
		}), 1, 6).Draw(t, "facts")
		if diff := cmp.Diff(foldPayment(t, list), foldPayment(t, reordered(t, list)), exported); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Each line is the history of one payment, oldest first: the fact, its object and the second at
// which it happened.
func TestRefundsAndDisputes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts []events.PurchaseRefunded
		want  string
	}{
		{nil, StatusActive},
		{refunds("part ch 1"), StatusActive},
		{refunds("part ch 1", "full ch 2"), StatusRefunded},
		{refunds("full ch 1"), StatusRefunded},
		{refunds("full ch 1", "failed re_1 2"), StatusActive},
		{refunds("full ch 1", "failed re_1 1"), StatusActive},
		{refunds("full ch 1", "failed re_1 2", "full ch 3"), StatusRefunded},
		{refunds("full ch 1", "failed re_1 2", "full ch 3", "failed re_1 4"), StatusRefunded}, // the first failure is reported again
		{refunds("full ch 1", "failed re_1 2", "full ch 3", "failed re_2 4"), StatusActive},
		{refunds("open du_1 1"), StatusDisputed},
		{refunds("open du_1 1", "won du_1 2"), StatusActive},
		{refunds("open du_1 1", "lost du_1 2"), StatusDisputed},
		{refunds("open du_1 1", "won du_1 1"), StatusActive},
		{refunds("open du_1 1", "won du_1 2", "open du_2 3"), StatusDisputed},
		{refunds("open du_1 1", "lost du_1 2", "open du_2 3", "won du_2 4"), StatusDisputed},
		{refunds("open du_1 1", "won du_1 2", "full ch 3"), StatusRefunded},
	} {
		var list []ledger.Event
		for _, r := range c.facts {
			list = append(list, told(t, events.TypePurchaseRefunded, r))
		}
		if got := foldPayment(t, list).status(); got != c.want {
			t.Errorf("%v: %s, want %s", c.facts, got, c.want)
		}
	}
}

func refunds(lines ...string) []events.PurchaseRefunded {
	var list []events.PurchaseRefunded
	for _, line := range lines {
		r := events.PurchaseRefunded{Cause: "refund"}
		if _, err := fmt.Sscan(line, &r.State, &r.Object, &r.ProviderAt); err != nil {
			panic(err)
		}
		if r.State == "open" || r.State == "won" || r.State == "lost" {
			r.Cause = "dispute"
		}
		list = append(list, r)
	}
	return list
}

// If a customer has access to a product in several ways, the best one is shown.
func TestTheBestAccessIsShown(t *testing.T) {
	t.Parallel()
	at := func(day int) time.Time { return time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC) }
	ranked := []Access{ // from the best to the worst
		{Status: StatusActive, reference: "for ever"}, {Status: StatusActive, reference: "long", Until: at(2)}, {Status: StatusActive, reference: "short", Until: at(1)},
		{Status: StatusPastDue}, {Status: StatusDisputed}, {Status: StatusCanceled, Until: at(9)}, {Status: StatusExpired}, {Status: StatusRefunded},
	}
	for i, x := range ranked {
		for j, y := range ranked {
			if got, want := x.better(y), i < j; got != want && i != j {
				t.Errorf("%s %s is better than %s %s: %v", x.Status, x.reference, y.Status, y.reference, got)
			}
			acc := account{Accesses: []Access{x, y}, Revoked: map[string]bool{}}
			if got := acc.entitlements(); len(got) != 1 || got[0].Status != ranked[min(i, j)].Status || got[0].reference != ranked[min(i, j)].reference {
				t.Errorf("%s and %s are shown as %+v", x.Status, y.Status, got)
			}
		}
	}
	acc := account{Accesses: ranked, Revoked: map[string]bool{"": true, "other": true}}
	for _, e := range acc.entitlements() {
		if e.Status != StatusRevoked {
			t.Errorf("revoked, and shown as %s", e.Status)
		}
	}
}

func TestSubscriptionStatus(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		status, change string
		end            int64
		want           string
	}{
		{"active", "updated", 1001, StatusActive},
		{"trialing", "created", 1001, StatusActive},
		{"active", "updated", 1000, StatusExpired},
		{"trialing", "updated", 999, StatusExpired},
		{"past_due", "updated", 2000, StatusPastDue},
		{"unpaid", "updated", 2000, StatusPastDue},
		{"paused", "paused", 2000, StatusPastDue},
		{"incomplete", "created", 2000, StatusPastDue},
		{"incomplete_expired", "updated", 2000, StatusExpired},
		{"canceled", "updated", 2000, StatusCanceled},
		{"active", "deleted", 2000, StatusCanceled},
		{"something new", "updated", 2000, StatusPastDue},
	} {
		if got := subscriptionStatus(events.SubscriptionUpdated{Status: c.status, Change: c.change, PeriodEnd: c.end}, now); got != c.want {
			t.Errorf("%s %s until %d: %s, want %s", c.status, c.change, c.end, got, c.want)
		}
	}
}

func TestTheSubscriptionFactThatCounts(t *testing.T) {
	t.Parallel()
	older := events.SubscriptionUpdated{Change: "updated", ProviderAt: 10, Status: "active"}
	for name, newer := range map[string]events.SubscriptionUpdated{
		"a later one":                        {Change: "updated", ProviderAt: 11},
		"deleted, though told of earlier":    {Change: "deleted", ProviderAt: 9},
		"of one second with the longer time": {Change: "updated", ProviderAt: 10, PeriodEnd: 1},
	} {
		if compareFacts(newer, older) <= 0 || compareFacts(older, newer) >= 0 {
			t.Error(name)
		}
	}
	created := events.SubscriptionUpdated{Change: "created", ProviderAt: 10, PeriodEnd: 99}
	if compareFacts(created, older) >= 0 {
		t.Error("on a tie a created event must lose")
	}
}
