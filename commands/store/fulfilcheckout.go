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

// CompletedCheckout is a checkout that was paid, or for which nothing had to be paid, as the
// provider reports.
type CompletedCheckout struct {
	Session      string // the provider's checkout
	Customer     string // the provider's customer
	Payment      string // the provider's payment; none for a subscription
	Subscription string // the provider's subscription; none for a one-time product
	Product      string // slug, as it was sent when the checkout was created
	Reference    string // cus_… of the customer who was signed in then; otherwise empty
	Email        string // as typed at the checkout
	AmountCents  int64
	Currency     string // ISO 4217 in lower case, as the provider writes it; empty if the provider named none
}

var customerID = regexp.MustCompile(`^cus_[0-9A-HJKMNP-TV-Z]{26}$`)

// FulfilCheckout records what a completed checkout bought, and for which customer: the one who
// was signed in, else the one to whom this provider customer is bound, else the one with the
// e-mail address that was typed. That is safe, since only a person who receives mail at the
// address can sign in. If a checkout is reported several times, the first report counts.
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

// ownerOf returns the customer whom a completed checkout belongs to.
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
		return "", policy.Refuse("missing_field", "", "the checkout names nobody it could belong to")
	}
	return a.EnsureCustomer(ctx, address)
}

// knowsProvider reports whether a customer's stream names the provider's customer.
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

// billingFact is an event to be appended at the end of a stream that was read.
type billingFact struct {
	history   ledger.History
	eventType string
	stored    any
}

// appendFacts appends what a provider's event reports, once. If all facts belong to one tenant,
// they are one append. Otherwise there is one append for each tenant, under the same key, in
// this order: first the facts that decide, then those that follow from them. If the process
// crashes in between, the provider gets no answer and reports the event again, and the missing
// facts are appended then. Without new facts nothing is appended.
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
			expect = organizations.Unlimited // it comes after the previous fact, which is at the end
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
