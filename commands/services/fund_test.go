package services

import (
	"errors"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/ground/groundtest"
	"github.com/countersign/countersign/policy"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// A call is not appended if the subscription or the entitlement of its pass changed after it was
// read.
func TestPassIsGuarded(t *testing.T) {
	t.Parallel()
	a := newServices(t, store.Product{Slug: "pass", Kind: store.Subscription, PriceCents: 100, CreditCents: 30})
	now := time.Now().Unix()
	told := 0
	tell := func(change string) {
		t.Helper()
		told++
		err := a.RecordSubscription(t.Context(), store.ProviderEvent{ID: "evt_" + change + string(rune('0'+told)), At: now + int64(told)}, "cus_p",
			events.SubscriptionUpdated{Subscription: "sub_p", Product: "pass", Status: "active", Change: change, PeriodStart: now, PeriodEnd: now + 1000})
		if err != nil {
			t.Fatal(err)
		}
	}
	tell("created")
	if err := a.FulfilCheckout(t.Context(), store.ProviderEvent{ID: "evt_bought", At: now},
		store.CompletedCheckout{Session: "cs_p", Customer: "cus_p", Subscription: "sub_p", Product: "pass", Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	customer, err := a.CustomerByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for name, moves := range map[string]func(){
		"the provider told":    func() { tell("updated") },
		"the operator revoked": func() { mustRevoke(t, a, customer) },
	} {
		f, ok, err := a.passFund(t.Context(), callOf(customer, 30))
		if err != nil || !ok || f.charge != chargedPass || f.used != 30 {
			t.Fatalf("%s: %+v, %v, %v", name, f, ok, err)
		}
		moves()
		here, elsewhere := a.Apart(a.ServiceOf(f.home), f.preconditions)
		if err = a.Unmoved(t.Context(), elsewhere); err == nil {
			_, err = a.Ledger.Append(t.Context(), ledger.Append{Tenant: a.ServiceOf(f.home), Preconditions: here, Events: []ledger.Pending{{
				Stream: f.stream, Expect: f.expect, ID: a.NewID("evt_"), Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "key_1", Payload: []byte(`{}`)}}})
		}
		if !errors.Is(err, ledger.ErrMoved) {
			t.Errorf("%s: %v, want that it has moved", name, err)
		}
		if _, err := a.GrantEntitlement(t.Context(), customer, "pass", time.Time{}, "again"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := a.passFund(t.Context(), callOf(customer, 31)); ok || err != nil {
		t.Errorf("a call above the rest: %v, %v", ok, err)
	}
	if _, ok, err := a.passFund(t.Context(), callOf("", 1)); ok || err != nil {
		t.Errorf("a call of nobody: %v, %v", ok, err)
	}
	tell("deleted")
	if _, ok, err := a.passFund(t.Context(), callOf(customer, 1)); ok || err != nil {
		t.Errorf("a call after the end: %v, %v", ok, err)
	}
}

// callOf returns a call with a key of a customer's account.
func callOf(customer string, priceCents int) Call {
	return Call{Caller: accounts.Caller{CustomerID: customer}, Service: policy.Service{PriceCents: priceCents}}
}

func mustRevoke(t *testing.T, a *Services, customer string) {
	t.Helper()
	if _, err := a.RevokeEntitlement(t.Context(), customer, "pass", "abuse"); err != nil {
		t.Fatal(err)
	}
}

// newServices returns the services on an empty ledger with a vault.
func newServices(t *testing.T, products ...store.Product) *Services {
	t.Helper()
	g := groundtest.New(t)
	accounts := &accounts.Accounts{Ground: g}
	organizations, payments := &organizations.Organizations{Ground: g, Accounts: accounts}, &payments.Payments{Ground: g, Accounts: accounts}
	store := &store.Store{Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments, Products: products}
	return &Services{Ground: g, Accounts: accounts, Payments: payments, Store: store}
}
