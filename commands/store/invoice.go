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

// A refund or a dispute names a payment, and the payment belongs to a subscription through the
// invoice that it paid. The provider reports that in several events: one names the invoice and
// the subscription, another the invoice and the payment. Each is recorded in the streams that
// the others are found by: billing/<invoice> and billing/<provider payment>. When the last of
// them arrives, the others are read, and what happened to the charge is recorded in
// billing/<provider customer> (subscription.charged). So the state of a subscription depends on
// one stream only.

// RecordInvoice records what an event reports about a paid invoice.
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

// RecordRefund records a refund or a dispute of a payment. invoice is the one that was paid,
// empty if the event does not name it.
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

// followInvoice records in the customer's stream what happened to the payments of a
// subscription's invoice, once enough of it is known, and then updates the organization.
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

// followCharges appends what is new about the payments of an invoice. The append requires that
// the customer's stream has not moved since it was read; if it has, followCharges starts over.
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
			expect = organizations.Unlimited // it comes after the previous fact, which is at the end
		}
		pending = append(pending, ledger.Pending{Stream: history.Stream, Expect: expect, ID: a.NewID("evt_"), Type: events.TypeSubscriptionCharged,
			SchemaVersion: 1, Actor: "stripe", Payload: payload})
	}
	if len(pending) > 0 {
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: history.Tenant, Events: pending})
	}
	return b, err
}
