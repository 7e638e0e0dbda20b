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

// A refund or a dispute names a payment. What ties the payment to a subscription is the
// invoice that it paid, and the provider tells that in several events: one names the
// invoice and the subscription, one the invoice and the payment. Each is recorded where
// the next one looks: in billing/<invoice> and in billing/<provider payment>. Whichever
// comes last finds the other ones, and records in billing/<provider customer> what
// became of the charge (subscription.charged), so that one stream is enough
// to judge the subscription.

// RecordInvoice records what an event tells of a paid invoice.
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

// RecordRefund records what became of a payment: a refund, a dispute. invoice is the
// one that was paid, empty if the event does not name it.
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

// invoice is the fold of billing/<invoice>.
type invoice struct {
	id, subscription, customer string
	payments                   map[string]bool
	periodEnd, at              int64
}

// Apply folds one event of the stream. The order does not matter.
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

// followInvoice records at the customer what became of the payments of an invoice of a
// subscription, once enough of it is known, and lets the organization follow.
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

// followCharges appends what is new about the payments of an invoice. The append
// requires that the customer's stream is as it was read; a newer event makes it start over.
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
			expect = organizations.Unlimited // follows the one before it, which is at the end
		}
		pending = append(pending, ledger.Pending{Stream: history.Stream, Expect: expect, ID: a.NewID("evt_"), Type: events.TypeSubscriptionCharged,
			SchemaVersion: 1, Actor: "stripe", Payload: payload})
	}
	if len(pending) > 0 {
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: history.Tenant, Events: pending})
	}
	return b, err
}
