package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// The stream billing/<provider customer> has what the checkout provider reported about a
// customer, billing/<provider payment> what happened to a payment, and billing/<invoice> what
// paid an invoice (invoice.go). Reports come in any order and more than once, so each fold
// below gives the same state for the same facts in any order: facts are compared by the
// provider's own time.

// billingStream names the stream with the facts about a provider's customer, or about one of
// its payments.
func billingStream(providerID string) string { return "billing/" + providerID }

// billing is the fold of a provider customer's stream.
type billing struct {
	boundTo       string                                // the customer of the first completed checkout
	purchases     map[string]events.PurchaseFulfilled   // by the provider's checkout
	subscriptions map[string]events.SubscriptionUpdated // the fact that counts, by subscription
	began         map[string]events.CustomerBound       // by subscription: the checkout that began it
	charges       map[string]events.SubscriptionCharged // by invoice and payment
	precondition  ledger.Precondition
}

// Apply folds one event of the stream.
func (b billing) Apply(e ledger.Event) (billing, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.CustomerBound:
		if b.boundTo == "" {
			b.boundTo = fact.CustomerID
		}
		if fact.Subscription != "" {
			b.began = withEntry(b.began, fact.Subscription, fact)
		}
	case events.PurchaseFulfilled:
		if known, ok := b.purchases[fact.Session]; !ok || fact.PurchaseID < known.PurchaseID {
			b.purchases = withEntry(b.purchases, fact.Session, fact)
		}
	case events.SubscriptionUpdated:
		if known, ok := b.subscriptions[fact.Subscription]; !ok || compareFacts(fact, known) > 0 {
			b.subscriptions = withEntry(b.subscriptions, fact.Subscription, fact)
		}
	case events.SubscriptionCharged:
		b.charges = withEntry(b.charges, fact.Invoice+" "+fact.Payment, fact)
	}
	return b, err
}

// ownerOf returns the customer that a subscription belongs to; empty while its checkout has not
// been reported.
func (b billing) ownerOf(subscription string) string {
	if began, ok := b.began[subscription]; ok {
		return began.CustomerID
	}
	return b.boundTo
}

// status returns the state of a subscription at a time. It is not live if the payment of its
// current period was refunded or disputed. For that, an invoice counts if its period is not
// over, or if no event has its period and it is the newest invoice of the subscription.
func (b billing) status(s events.SubscriptionUpdated, now time.Time) string {
	status, newest := subscriptionStatus(s, now), int64(0)
	for _, c := range b.charges {
		if c.Subscription == s.Subscription {
			newest = max(newest, c.ProviderAt)
		}
	}
	for _, c := range b.charges {
		present := c.PeriodEnd > now.Unix() || c.PeriodEnd == 0 && c.ProviderAt == newest
		if c.Subscription != s.Subscription || !present || c.Status == StatusActive {
			continue
		}
		if status == StatusActive || status == StatusDisputed && c.Status == StatusRefunded {
			status = c.Status
		}
	}
	return status
}

// withEntry returns a copy of a map with one entry set.
func withEntry[V any](m map[string]V, key string, value V) map[string]V {
	changed := make(map[string]V, len(m)+1)
	for k, v := range m {
		changed[k] = v
	}
	changed[key] = value
	return changed
}

// compareFacts orders two facts about one subscription: the greater one counts. A deletion is
// final; otherwise the later time of the provider counts. If the times are equal, a fact other
// than the subscription's first counts, and then the longer period, and then the greater id of
// the event.
func compareFacts(a, b events.SubscriptionUpdated) int {
	rank := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(rank(a.Change == "deleted"), rank(b.Change == "deleted")),
		cmp.Compare(a.ProviderAt, b.ProviderAt),
		cmp.Compare(rank(b.Change == "created"), rank(a.Change == "created")),
		cmp.Compare(a.PeriodEnd, b.PeriodEnd),
		cmp.Compare(a.ProviderEvent, b.ProviderEvent),
	)
}

// payment is the fold of a provider payment's stream.
type payment struct {
	full, part int64                              // the provider's time of the newest such refund
	failed     map[string]int64                   // by refund: when its failure was first known
	disputes   map[string]events.PurchaseRefunded // the fact that counts, by dispute
	invoices   map[string]bool                    // that the payment has paid
}

// Apply folds one event of the stream.
func (p payment) Apply(e ledger.Event) (payment, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.InvoicePaid:
		p.invoices = withEntry(p.invoices, fact.Invoice, true)
	case events.PurchaseRefunded:
		p = p.refunded(fact)
	}
	return p, err
}

func (p payment) refunded(r events.PurchaseRefunded) payment {
	switch {
	case r.Cause == "dispute":
		if known, ok := p.disputes[r.Object]; !ok || compareDisputes(r, known) > 0 {
			p.disputes = withEntry(p.disputes, r.Object, r)
		}
	case r.State == "full":
		p.full = max(p.full, r.ProviderAt)
	case r.State == "part":
		p.part = max(p.part, r.ProviderAt)
	case r.State == "failed":
		if known, ok := p.failed[r.Object]; !ok || r.ProviderAt < known {
			p.failed = withEntry(p.failed, r.Object, r.ProviderAt)
		}
	}
	return p
}

// compareDisputes orders two facts about one dispute: the newest counts, and if the times are
// equal, the one that ends the dispute.
func compareDisputes(a, b events.PurchaseRefunded) int {
	rank := map[string]int{"open": 0, "won": 1, "lost": 2}
	return cmp.Or(cmp.Compare(a.ProviderAt, b.ProviderAt), cmp.Compare(rank[a.State], rank[b.State]))
}

// status returns the state of what the payment bought. A partial refund does not end access. A
// full refund of which a part failed afterwards does not count; a new full refund does.
func (p payment) status() string {
	refunded := p.full > 0 && p.full >= p.part
	for _, at := range p.failed {
		refunded = refunded && at < p.full
	}
	if refunded {
		return StatusRefunded
	}
	for _, d := range p.disputes {
		if d.State != "won" {
			return StatusDisputed
		}
	}
	return StatusActive
}

// subscriptionStatus returns the state of a subscription at a time: it is live while the
// provider calls it active or trialing and its paid period lasts.
func subscriptionStatus(s events.SubscriptionUpdated, now time.Time) string {
	switch {
	case s.Change == "deleted", s.Status == "canceled":
		return StatusCanceled
	case s.Status != "active" && s.Status != "trialing" && s.Status != "incomplete_expired":
		return StatusPastDue
	case s.Status == "incomplete_expired", s.PeriodEnd <= now.Unix():
		return StatusExpired
	}
	return StatusActive
}

// account is everything that a customer has bought, been granted and lost.
type account struct {
	customerID    string
	now           time.Time             // the time for which access is computed
	dataKey       string                // of the e-mail address
	created       ledger.Event          // customer.created, which holds the address
	providers     []string              // the provider's ids of the customer, the first bound first
	Accesses      []Access              // each thing that gives, or gave, access
	Revoked       map[string]bool       // products, by the operator
	Preconditions []ledger.Precondition // of everything that was read, customer/<id> first
}

// Access is one thing that gives access to a product.
type Access struct {
	Product, Status, source string
	reference               string    // pur_… or the provider's subscription
	Until                   time.Time // zero: without end

	Subscription *events.SubscriptionUpdated
	provider     string // the provider's customer of a subscription
}

// readAccount folds a customer's own stream and everything that the provider reported.
func (a *Store) readAccount(ctx context.Context, customerID string) (account, error) {
	acc, all, err := a.readBillings(ctx, customerID)
	for i, provider := range acc.providers {
		if err == nil {
			acc.addSubscriptions(provider, all[i], a.Now())
			err = a.addPurchases(ctx, &acc, all[i])
		}
	}
	if err == nil {
		err = a.markSentBack(ctx, &acc)
	}
	return acc, err
}

// markSentBack ends access that was paid by x402 if the operator has refunded the payment.
func (a *Store) markSentBack(ctx context.Context, acc *account) error {
	for i, x := range acc.Accesses {
		if x.source != SourceX402 {
			continue
		}
		history, err := a.Ledger.Read(ctx, a.ServiceOf(x.reference), "purchase/"+x.reference)
		if err != nil {
			return err
		}
		for _, e := range history.Events {
			bought, err := events.As[events.PurchaseFulfilled](e)
			if err != nil {
				return err
			}
			paid, err := a.ReadPayment(ctx, bought.PaymentID)
			if err != nil {
				return err
			}
			if paid.Refund == payments.RefundSent {
				acc.Accesses[i].Status = StatusRefunded
			}
		}
	}
	return nil
}

// ReadSubscriptions is readAccount without one-time purchases and what happened to the payments
// for them.
func (a *Store) ReadSubscriptions(ctx context.Context, customerID string) (account, error) {
	acc, all, err := a.readBillings(ctx, customerID)
	for i, provider := range acc.providers {
		if err == nil {
			acc.addSubscriptions(provider, all[i], a.Now())
		}
	}
	return acc, err
}

func (a *Store) readBillings(ctx context.Context, customerID string) (account, []billing, error) {
	acc, err := a.readCustomer(ctx, customerID)
	if err != nil {
		return account{}, nil, err
	}
	var all []billing
	for _, provider := range acc.providers {
		b, _, err := a.readBilling(ctx, provider)
		if err != nil {
			return account{}, nil, err
		}
		acc.Preconditions = append(acc.Preconditions, b.precondition)
		all = append(all, b)
	}
	return acc, all, nil
}

// readCustomer folds the customer's own stream.
func (a *Store) readCustomer(ctx context.Context, customerID string) (account, error) {
	acc := account{customerID: customerID, now: a.Now(), Revoked: map[string]bool{}}
	if !strings.HasPrefix(customerID, "cus_") {
		return acc, accounts.ErrNoCustomer
	}
	acc, history, err := ground.Fold(ctx, a.Ground, a.ServiceOf(customerID), "customer/"+customerID, acc)
	if err == nil && acc.dataKey == "" {
		err = accounts.ErrNoCustomer
	}
	acc.Preconditions = []ledger.Precondition{history.Precondition()}
	return acc, err
}

// Apply folds one event of customer/<id>.
func (acc account) Apply(e ledger.Event) (account, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.CustomerCreated:
		acc.dataKey, acc.created = fact.Subject, e
	case events.CustomerBound:
		if !slices.Contains(acc.providers, fact.ProviderCustomer) {
			acc.providers = append(slices.Clip(acc.providers), fact.ProviderCustomer)
		}
	case events.EntitlementGranted:
		return acc.grant(fact)
	case events.EntitlementRevoked:
		acc.Revoked = withEntry(acc.Revoked, fact.Product, true)
		// A revocation ends every earlier grant of the operator, whatever is granted later.
		acc.Accesses = slices.DeleteFunc(slices.Clone(acc.Accesses), func(x Access) bool { return x.Product == fact.Product && x.source == SourceOperator })
	}
	return acc, err
}

func (acc account) grant(granted events.EntitlementGranted) (account, error) {
	given := Access{Product: granted.Product, Status: StatusActive, source: granted.Source, reference: granted.PurchaseID}
	if granted.ValidUntil != "" {
		until, err := time.Parse(time.RFC3339, granted.ValidUntil)
		if err != nil {
			return acc, ledger.ErrTampered
		}
		if given.Until = until; !acc.now.Before(until) {
			given.Status = StatusExpired
		}
	}
	acc.Accesses = append(slices.Clip(acc.Accesses), given)
	if granted.Source == SourceOperator {
		acc.Revoked = maps.Clone(acc.Revoked)
		delete(acc.Revoked, granted.Product)
	}
	return acc, nil
}

func (a *Store) readBilling(ctx context.Context, provider string) (billing, ledger.History, error) {
	b, history, err := ground.Fold(ctx, a.Ground, a.ServiceOf(provider), billingStream(provider), billing{})
	b.precondition = history.Precondition()
	return b, history, err
}

// addPurchases adds those of a provider customer's purchases that the account owns.
func (a *Store) addPurchases(ctx context.Context, acc *account, b billing) error {
	for _, p := range b.purchases {
		if p.CustomerID != acc.customerID {
			continue
		}
		status, err := a.paymentStatus(ctx, p.Payment)
		if err != nil {
			return err
		}
		acc.Accesses = append(acc.Accesses, Access{Product: p.Product, Status: status, source: SourceCard, reference: p.PurchaseID})
	}
	return nil
}

// addSubscriptions adds those of a provider customer's subscriptions that the account owns, in
// their state at a time.
func (acc *account) addSubscriptions(provider string, b billing, now time.Time) {
	for id, s := range b.subscriptions {
		if b.ownerOf(id) != acc.customerID {
			continue
		}
		acc.Accesses = append(acc.Accesses, Access{Product: cmp.Or(s.Product, b.began[id].Product), Status: b.status(s, now), source: SourceCard,
			reference: id, Until: time.Unix(s.PeriodEnd, 0).UTC(), Subscription: &s, provider: provider})
	}
}

func (a *Store) paymentStatus(ctx context.Context, providerPayment string) (string, error) {
	if providerPayment == "" {
		return StatusActive, nil // nothing had to be paid
	}
	p, err := a.readProviderPayment(ctx, providerPayment)
	return p.status(), err
}

func (a *Store) readProviderPayment(ctx context.Context, providerPayment string) (p payment, err error) {
	p, _, err = ground.Fold(ctx, a.Ground, a.ServiceOf(providerPayment), billingStream(providerPayment), payment{})
	return p, err
}
