package store

import (
	"errors"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/ground/groundtest"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// An organization is not created or changed if the customer's subscriptions have changed after
// they were read.
func TestPlanIsGuarded(t *testing.T) {
	t.Parallel()
	a := newStore(t, Product{Slug: "team", Kind: Subscription, PriceCents: 100, Plan: organizations.PlanTeam})
	now := time.Now().Unix()
	tell := func(id, change string, at int64) {
		t.Helper()
		if err := a.RecordSubscription(t.Context(), ProviderEvent{ID: id, At: at}, "cus_p",
			events.SubscriptionUpdated{Subscription: "sub_p", Product: "team", Status: "active", Change: change, PeriodStart: now, PeriodEnd: now + 1000}); err != nil {
			t.Fatal(err)
		}
	}
	// Without the subscription's report there is no organization yet.
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
		acc, err := a.ReadSubscriptions(t.Context(), customer)
		if err != nil {
			t.Fatal(err)
		}
		return acc
	}
	orgID, old := organizationOfSubscriptions(customer), read()
	tell("evt_1", "created", now+1) // creates the organization
	if err := a.startOrganization(t.Context(), old, orgID+"X", organizations.PlanTeam); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("start: %v, want that it has moved", err)
	}
	old = read()
	o, history, err := a.ReadOrganization(t.Context(), orgID)
	if err != nil || o.Plan != organizations.PlanTeam || o.State != organizations.StateActive {
		t.Fatalf("%+v, %v", o, err)
	}
	tell("evt_2", "updated", now+2)
	if err := a.changePlan(t.Context(), old, o, history, ""); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("change: %v, want that it has moved", err)
	}
	if o, history, err = a.ReadOrganization(t.Context(), orgID); err != nil { // the second report may have changed the organization
		t.Fatal(err)
	}
	if err := a.changePlan(t.Context(), read(), o, history, ""); err != nil {
		t.Error(err)
	}
}

// newStore returns a store on an empty ledger with a vault.
func newStore(t *testing.T, products ...Product) *Store {
	t.Helper()
	g := groundtest.New(t)
	accounts := &accounts.Accounts{Ground: g}
	organizations, payments := &organizations.Organizations{Ground: g, Accounts: accounts}, &payments.Payments{Ground: g, Accounts: accounts}
	return &Store{Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments, Products: products}
}
