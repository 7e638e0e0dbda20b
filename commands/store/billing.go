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

// These streams record what the card provider reports:
//
// - billing/<provider customer>: facts about a customer
// - billing/<provider payment>: facts about a payment
// - billing/<invoice>: which payment paid an invoice (see invoice.go)
//
// Reports arrive in any order and more than once. Each state below is the same for the same facts
// in any order, because facts are compared by the provider's time.

// billingStream returns the stream of facts about a provider's customer, payment or invoice.
func billingStream(providerID string) string { return "billing/" + providerID }

// billing is the state of the stream of a provider's customer.
type billing struct {
	boundTo       string                                // id (cus_…) of our customer, from the first completed checkout
	purchases     map[string]events.PurchaseFulfilled   // by id of the provider's checkout
	subscriptions map[string]events.SubscriptionUpdated // by subscription: the fact that compareFacts ranks highest
	began         map[string]events.CustomerBound       // by subscription: the checkout in which it began
	charges       map[string]events.SubscriptionCharged // by invoice and payment
	precondition  ledger.Precondition
}

// Apply returns the state after one more event of the stream.
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

// ownerOf returns the customer that a subscription belongs to, or "" until its checkout is
// reported.
func (b billing) ownerOf(subscription string) string {
	if began, ok := b.began[subscription]; ok {
		return began.CustomerID
	}
	return b.boundTo
}

// status returns the state of a subscription at a time. A subscription is not active if the
// payment for its current period was refunded or disputed. That payment belongs to an invoice
// whose period is not over or, if no event states the invoice's period, to the newest invoice.
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

// compareFacts ranks two facts about one subscription; the greater one is its state. A deletion
// ranks above all other facts. Otherwise it compares, in this order: the provider's time; whether
// the fact is the creation, which ranks below; the end of the period; the id of the event.
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

// payment is the state of the stream of a provider's payment.
type payment struct {
	full, part int64                              // provider's time of the newest full and the newest partial refund; 0 if there is none
	failed     map[string]int64                   // by refund: time of the first report that it failed
	disputes   map[string]events.PurchaseRefunded // by dispute: the fact that compareDisputes ranks highest
	invoices   map[string]bool                    // invoices that the payment has paid
}

// Apply returns the state after one more event of the stream.
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

// compareDisputes ranks two facts about one dispute: the newer is greater, and at equal times the
// one that ends the dispute.
func compareDisputes(a, b events.PurchaseRefunded) int {
	rank := map[string]int{"open": 0, "won": 1, "lost": 2}
	return cmp.Or(cmp.Compare(a.ProviderAt, b.ProviderAt), cmp.Compare(rank[a.State], rank[b.State]))
}

// status returns the state of the access that a payment has bought. A partial refund does not end
// it. A full refund ends it, unless part of the refund failed afterwards; a later full refund ends
// it again.
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

// subscriptionStatus returns the state of a subscription at a time, without regard to refunds. It
// is active if the provider's state is active or trialing and the paid period is not over.
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

// account is the state of a customer: everything bought, granted, refunded and revoked.
type account struct {
	customerID    string
	now           time.Time             // time for which access is computed
	dataKey       string                // id of the data key that encrypts the e-mail address
	created       ledger.Event          // the event customer.created, which contains the address
	providers     []string              // ids of the provider's customers, in the order in which they were bound
	Accesses      []Access              // all purchases, subscriptions and grants, ended ones, too
	Revoked       map[string]bool       // products that the operator has revoked
	Preconditions []ledger.Precondition // all streams that were read; the first is customer/<id>
}

// Access is a purchase, a subscription or a grant that gives access to a product.
type Access struct {
	Product, Status, source string
	reference               string    // id of the purchase (pur_…) or the provider's id of the subscription
	Until                   time.Time // end of the access; zero means no end

	Subscription *events.SubscriptionUpdated
	provider     string // provider's id of the customer who has the subscription
}

// readAccount returns the state of a customer, from the customer's stream and all facts that the
// provider reported.
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

// markSentBack marks access as refunded if the operator has refunded the x402 payment for it.
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

// ReadSubscriptions returns the state of a customer without the purchases by card, so it need not
// read the facts about their payments.
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

// readCustomer returns the part of a customer's state that is in the customer's own stream.
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

// Apply returns the state after one more event of customer/<id>.
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
		// A revocation ends all earlier grants of the operator. A later grant does not restore
		// them.
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

// addPurchases adds the purchases of a provider's customer that belong to this account.
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

// addSubscriptions adds the subscriptions of a provider's customer that belong to this account, in
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
		return StatusActive, nil // a checkout without a payment
	}
	p, err := a.readProviderPayment(ctx, providerPayment)
	return p.status(), err
}

func (a *Store) readProviderPayment(ctx context.Context, providerPayment string) (p payment, err error) {
	p, _, err = ground.Fold(ctx, a.Ground, a.ServiceOf(providerPayment), billingStream(providerPayment), payment{})
	return p, err
}
