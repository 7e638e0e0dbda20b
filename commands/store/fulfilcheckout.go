package store

import (
	"context"
	"regexp"
	"slices"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// CompletedCheckout is the provider's report of a checkout that was paid or had nothing to pay.
type CompletedCheckout struct {
	Session      string // provider's id of the checkout
	Customer     string // provider's id of the customer
	Payment      string // provider's id of the payment; empty for a subscription
	Subscription string // provider's id of the subscription; empty for a one-time product
	Product      string // slug of the product, which the service sent when it created the checkout
	Reference    string // id (cus_…) of the customer who was signed in at that time; empty if none was
	Email        string // address that the buyer typed at the checkout
	AmountCents  int64
	Currency     string // ISO 4217 code in lower case, as the provider sends it; may be empty
}

var customerID = regexp.MustCompile(`^cus_[0-9A-HJKMNP-TV-Z]{26}$`)

// FulfilCheckout records the purchase of a completed checkout. The purchase belongs to the
// customer who was signed in, or else to the customer to whom this provider's customer is bound,
// or else to the customer with the typed e-mail address. A stranger can type any address, but only
// a person who receives mail there can sign in. If a checkout is reported several times, the first
// report counts.
func (a *Store) FulfilCheckout(ctx context.Context, from ProviderEvent, c CompletedCheckout) error {
	owner, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (string, error) { return a.fulfilCheckout(ctx, from, c) })
	if err != nil {
		return err
	}
	return a.followPlan(ctx, owner)
}

func (a *Store) fulfilCheckout(ctx context.Context, from ProviderEvent, c CompletedCheckout) (string, error) {
	b, billingHistory, err := a.readBilling(ctx, c.Customer)
	if err != nil {
		return "", err
	}
	owner, err := a.ownerOf(ctx, b, c)
	if err != nil {
		return "", err
	}
	customerHistory, err := a.Ledger.Read(ctx, a.ServiceOf(owner), "customer/"+owner)
	if err != nil {
		return "", err
	}
	bound := events.CustomerBound{CustomerID: owner, ProviderCustomer: c.Customer}
	var facts []billingFact
	switch _, known := b.purchases[c.Session]; {
	case c.Subscription != "":
		bound.Product, bound.Subscription = c.Product, c.Subscription
	case !known:
		facts = append(facts, billingFact{billingHistory, events.TypePurchaseFulfilled, events.PurchaseFulfilled{PurchaseID: a.NewID("pur_"),
			Product: c.Product, Source: SourceCard, CustomerID: owner, PriceCents: c.AmountCents, Session: c.Session, Payment: c.Payment}})
	}
	if _, began := b.began[c.Subscription]; b.boundTo == "" || c.Subscription != "" && !began {
		facts = append(facts, billingFact{billingHistory, events.TypeCustomerBound, bound})
	}
	known, err := knowsProvider(customerHistory, c.Customer)
	if err != nil {
		return "", err
	}
	if !known {
		bound.Product, bound.Subscription = "", ""
		facts = append(facts, billingFact{customerHistory, events.TypeCustomerBound, bound})
	}
	return owner, a.appendFacts(ctx, from, facts)
}

// ownerOf returns the customer that a completed checkout belongs to.
func (a *Store) ownerOf(ctx context.Context, b billing, c CompletedCheckout) (string, error) {
	if customerID.MatchString(c.Reference) {
		version, err := a.Ledger.Version(ctx, a.ServiceOf(c.Reference), "customer/"+c.Reference)
		if err != nil || version > 0 {
			return c.Reference, err
		}
	}
	if b.boundTo != "" {
		return b.boundTo, nil
	}
	address, err := accounts.CheckEmail(c.Email)
	if err != nil {
		return "", policy.Refuse("missing_field", "", "the checkout names no customer and no e-mail address")
	}
	return a.EnsureCustomer(ctx, address)
}

// knowsProvider reports whether a customer's stream contains this id of a provider's customer.
func knowsProvider(customer ledger.History, provider string) (bool, error) {
	acc := account{Revoked: map[string]bool{}}
	for _, e := range customer.Events {
		if e.Type != events.TypeCustomerBound {
			continue
		}
		var err error
		if acc, err = acc.Apply(e); err != nil {
			return false, err
		}
	}
	return slices.Contains(acc.providers, provider), nil
}

// billingFact is an event to append to a stream that was read.
type billingFact struct {
	history   ledger.History
	eventType string
	stored    any
}

// appendFacts appends the facts of one event of the provider, once. The facts of each tenant are
// one append. These appends have the same idempotency key and are made in the given order: first
// the facts that decide, then those that follow from them. If the process crashes between two
// appends, the provider gets no answer and delivers the event again, and the missing facts are
// appended. Without new facts it appends nothing.
func (a *Store) appendFacts(ctx context.Context, from ProviderEvent, facts []billingFact) error {
	if len(facts) == 0 {
		return nil
	}
	tenant := facts[0].history.Tenant
	var pending []ledger.Pending
	var elsewhere []billingFact
	for _, f := range facts {
		if f.history.Tenant != tenant {
			elsewhere = append(elsewhere, f)
			continue
		}
		payload, err := canon.Marshal(f.stored)
		if err != nil {
			return err
		}
		expect := f.history.At()
		if slices.ContainsFunc(pending, func(d ledger.Pending) bool { return d.Stream == f.history.Stream }) {
			expect = organizations.Unlimited // the previous fact of this append is in the same stream
		}
		pending = append(pending, ledger.Pending{Stream: f.history.Stream, Expect: expect, ID: a.NewID("evt_"), Type: f.eventType,
			SchemaVersion: 1, Actor: "stripe", Payload: payload})
	}
	key, content := from.key()
	if _, err := a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: content, Events: pending}); err != nil {
		return err
	}
	return a.appendFacts(ctx, from, elsewhere)
}
