package store

import (
	"context"
	"maps"
	"slices"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// A report of a refund or a dispute names a payment. To find the subscription that it affects, two
// links are needed: from the payment to its invoice, and from the invoice to its subscription. The
// provider reports the links in separate events. Each event is recorded in the stream of the
// invoice or of the payment. When the last of these events arrives, the result is recorded in
// billing/<provider customer> as subscription.charged. So the state of a subscription depends on
// one stream only.

// RecordInvoice records an event of the provider about a paid invoice.
func (a *Store) RecordInvoice(ctx context.Context, from ProviderEvent, i events.InvoicePaid) error {
	if err := a.recordFacts(ctx, from, invoiceFacts(from, i)...); err != nil {
		return err
	}
	return a.followInvoice(ctx, i.Invoice)
}

func invoiceFacts(from ProviderEvent, i events.InvoicePaid) []providerFact {
	i.ProviderAt = from.At
	facts := []providerFact{{billingStream(i.Invoice), events.TypeInvoicePaid, i}}
	if i.Payment != "" {
		facts = append(facts, providerFact{billingStream(i.Payment), events.TypeInvoicePaid, i})
	}
	return facts
}

// RecordRefund records a refund or a dispute of a payment. invoice is the provider's id of the
// invoice that the payment has paid, or "" if the event does not name it.
func (a *Store) RecordRefund(ctx context.Context, from ProviderEvent, r events.PurchaseRefunded, invoice string) error {
	r.ProviderAt = from.At
	facts := []providerFact{{billingStream(r.Payment), events.TypePurchaseRefunded, r}}
	if invoice != "" {
		facts = append(facts, invoiceFacts(from, events.InvoicePaid{Invoice: invoice, Payment: r.Payment})...)
	}
	if err := a.recordFacts(ctx, from, facts...); err != nil {
		return err
	}
	p, err := a.readProviderPayment(ctx, r.Payment)
	if err != nil {
		return ground.Refusal(err)
	}
	for _, invoice := range slices.Sorted(maps.Keys(p.invoices)) {
		if err := a.followInvoice(ctx, invoice); err != nil {
			return err
		}
	}
	return nil
}

// invoice is the state of billing/<invoice>.
type invoice struct {
	id, subscription, customer string
	payments                   map[string]bool
	periodEnd, at              int64
}

// Apply returns the state after one more event of the stream. The order of the events does not
// matter.
func (i invoice) Apply(e ledger.Event) (invoice, error) {
	paid, err := events.As[events.InvoicePaid](e)
	if err != nil {
		return i, err
	}
	i.id = paid.Invoice
	if paid.Subscription != "" {
		i.subscription, i.customer = paid.Subscription, paid.ProviderCustomer
		i.at = max(i.at, paid.ProviderAt)
	}
	if paid.Payment != "" {
		i.payments = withEntry(i.payments, paid.Payment, true)
	}
	i.periodEnd = max(i.periodEnd, paid.PeriodEnd)
	return i, nil
}

// followInvoice records refunds and disputes of an invoice's payments in the customer's stream, if
// the invoice's subscription and payment are known, and then updates the organization.
func (a *Store) followInvoice(ctx context.Context, id string) error {
	type followed struct {
		billing
		subscription string
	}
	f, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (f followed, err error) {
		i, _, err := ground.Fold(ctx, a.Ground, a.ServiceOf(id), billingStream(id), invoice{})
		if err != nil || i.subscription == "" || len(i.payments) == 0 {
			return f, err
		}
		f.subscription = i.subscription
		f.billing, err = a.followCharges(ctx, i)
		return f, err
	})
	if err != nil || f.subscription == "" {
		return err
	}
	return a.followOwner(ctx, f.billing, f.subscription)
}

// followCharges appends the new facts about the payments of an invoice to the customer's stream.
// If that stream got an event after it was read, it starts over.
func (a *Store) followCharges(ctx context.Context, i invoice) (billing, error) {
	b, history, err := a.readBilling(ctx, i.customer)
	if err != nil {
		return b, err
	}
	var pending []ledger.Pending
	for _, paid := range slices.Sorted(maps.Keys(i.payments)) {
		status, err := a.paymentStatus(ctx, paid)
		if err != nil {
			return b, err
		}
		now := events.SubscriptionCharged{Subscription: i.subscription, Invoice: i.id, Payment: paid, PeriodEnd: i.periodEnd, ProviderAt: i.at, Status: status}
		if b.charges[i.id+" "+paid] == now {
			continue
		}
		payload, err := canon.Marshal(now)
		if err != nil {
			return b, err
		}
		expect := history.At()
		if len(pending) > 0 {
			expect = organizations.Unlimited // the previous fact of this append is in the same stream
		}
		pending = append(pending, ledger.Pending{Stream: history.Stream, Expect: expect, ID: a.NewID("evt_"), Type: events.TypeSubscriptionCharged,
			SchemaVersion: 1, Actor: "stripe", Payload: payload})
	}
	if len(pending) > 0 {
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: history.Tenant, Events: pending})
	}
	return b, err
}
