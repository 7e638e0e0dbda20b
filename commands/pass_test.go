package commands

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/vault"
)

// A call that was judged payable lands only if nothing that its pass rests on has
// moved since.
func TestPassIsGuarded(t *testing.T) {
	t.Parallel()
	a := newTestApp(t, Product{Slug: "pass", Kind: Subscription, PriceCents: 100, CreditCents: 30})
	now := time.Now().Unix()
	told := 0
	tell := func(change string) {
		t.Helper()
		told++
		err := a.RecordSubscription(t.Context(), ProviderEvent{ID: "evt_" + change + string(rune('0'+told)), At: now + int64(told)}, "cus_p",
			events.SubscriptionUpdated{Subscription: "sub_p", Product: "pass", Status: "active", Change: change, PeriodStart: now, PeriodEnd: now + 1000})
		if err != nil {
			t.Fatal(err)
		}
	}
	tell("created")
	if err := a.FulfilCheckout(t.Context(), ProviderEvent{ID: "evt_bought", At: now},
		CompletedCheckout{Session: "cs_p", Customer: "cus_p", Subscription: "sub_p", Product: "pass", Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	customer, err := a.CustomerByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for name, moves := range map[string]func(){
		"the provider told":    func() { tell("updated") },
		"the operator revoked": func() { a.mustRevoke(t, customer) },
	} {
		f, ok, err := a.chargePass(t.Context(), customer, 30)
		if err != nil || !ok || f.charge != chargedPass || f.used != 30 {
			t.Fatalf("%s: %+v, %v, %v", name, f, ok, err)
		}
		moves()
		here, elsewhere := a.apart(a.serviceOf(f.home), f.guards)
		if err = a.unmoved(t.Context(), elsewhere); err == nil {
			_, err = a.Ledger.Append(t.Context(), ledger.Append{Tenant: a.serviceOf(f.home), Guards: here, Drafts: []ledger.Draft{{
				Stream: f.stream, Expect: f.expect, ID: a.NewID("evt_"), Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "key_1", Payload: []byte(`{}`)}}})
		}
		if !errors.Is(err, ledger.ErrMoved) {
			t.Errorf("%s: %v, want that it has moved", name, err)
		}
		if _, err := a.GrantEntitlement(t.Context(), customer, "pass", time.Time{}, "again"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := a.chargePass(t.Context(), customer, 31); ok || err != nil {
		t.Errorf("a call above the rest: %v, %v", ok, err)
	}
	if _, ok, err := a.chargePass(t.Context(), "", 1); ok || err != nil {
		t.Errorf("a call of nobody: %v, %v", ok, err)
	}
	tell("deleted")
	if _, ok, err := a.chargePass(t.Context(), customer, 1); ok || err != nil {
		t.Errorf("a call after the end: %v, %v", ok, err)
	}
}

// An organization is started, or changed, only if the subscriptions are still what
// they were when it was judged.
func TestPlanIsGuarded(t *testing.T) {
	t.Parallel()
	a := newTestApp(t, Product{Slug: "team", Kind: Subscription, PriceCents: 100, Plan: PlanTeam})
	now := time.Now().Unix()
	tell := func(id, change string, at int64) {
		t.Helper()
		if err := a.RecordSubscription(t.Context(), ProviderEvent{ID: id, At: at}, "cus_p",
			events.SubscriptionUpdated{Subscription: "sub_p", Product: "team", Status: "active", Change: change, PeriodStart: now, PeriodEnd: now + 1000}); err != nil {
			t.Fatal(err)
		}
	}
	// The checkout is told first, so that no organization is there yet.
	if err := a.FulfilCheckout(t.Context(), ProviderEvent{ID: "evt_bought", At: now},
		CompletedCheckout{Session: "cs_p", Customer: "cus_p", Subscription: "sub_p", Product: "team", Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	customer, err := a.CustomerByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	read := func() account {
		t.Helper()
		acc, err := a.readSubscriptions(t.Context(), customer)
		if err != nil {
			t.Fatal(err)
		}
		return acc
	}
	orgID, old := organizationOfSubscriptions(customer), read()
	tell("evt_1", "created", now+1) // which starts it
	if err := a.startOrganization(t.Context(), old, orgID+"X", PlanTeam); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("start: %v, want that it has moved", err)
	}
	old = read()
	o, history, err := a.readOrganization(t.Context(), orgID)
	if err != nil || o.plan != PlanTeam || o.state != StateActive {
		t.Fatalf("%+v, %v", o, err)
	}
	tell("evt_2", "updated", now+2)
	if err := a.changePlan(t.Context(), old, o, history, ""); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("change: %v, want that it has moved", err)
	}
	if o, history, err = a.readOrganization(t.Context(), orgID); err != nil { // it may have changed before it was looked at again
		t.Fatal(err)
	}
	if err := a.changePlan(t.Context(), read(), o, history, ""); err != nil {
		t.Error(err)
	}
}

// newTestApp is an app with a vault on a ledger of its own.
func newTestApp(t *testing.T, products ...Product) *App {
	t.Helper()
	db := ledgertest.New(t)
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	a := &App{Ledger: l, Clock: time.Now, Products: products}
	if a.Vault, err = vault.Open(t.Context(), l, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *App) mustRevoke(t *testing.T, customer string) {
	t.Helper()
	if _, err := a.RevokeEntitlement(t.Context(), customer, "pass", "abuse"); err != nil {
		t.Fatal(err)
	}
}
