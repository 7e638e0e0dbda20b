package stripe

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// notice is a message of the checkout provider. The structs here contain only what we read.
// Several versions of the provider's objects are in use, so members that have moved are read from
// both places.
type notice struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"`
	// Live reports whether the account was in live mode; otherwise it was in test mode.
	Live *bool `json:"livemode"`
	// Account is the connected account that the notice concerns; empty for our own account.
	Account string `json:"account"`
	Data    struct {
		Object jsontext.Value `json:"object"`
	} `json:"data"`
}

// providerID matches the ids of the provider.
var providerID = normal.Pattern(`^[A-Za-z0-9_]{1,128}$`)

var errNotice = policy.Refuse(codeInvalid, "", "the notice of the checkout provider cannot be read")

// Notice verifies the signature of a notice and parses it.
func (p *Provider) Notice(body []byte, header http.Header) (checkout.Notice, error) {
	if err := p.signed(body, header); err != nil {
		return checkout.Notice{}, err
	}
	var n notice
	if err := decode(body, &n); err != nil || !providerID(n.ID) || n.Type == "" || n.Created <= 0 || n.Data.Object.Kind() != '{' {
		return checkout.Notice{}, errNotice
	}
	if !p.concerns(n) {
		return checkout.Notice{}, nil
	}
	means, err := n.read()
	if err == nil && !isRecordable(means) {
		err = errNotice
	}
	return means, err
}

// concerns reports whether a notice concerns our own account, in the mode of our key. An endpoint
// may receive test events while the key is a live key, or events of connected accounts. Neither
// means that we were paid.
func (p *Provider) concerns(n notice) bool {
	if n.Account != "" {
		return false
	}
	_, kind, _ := strings.Cut(p.key, "_") // keys look like sk_live_… or rk_test_…
	world, _, _ := strings.Cut(kind, "_")
	return n.Live == nil || world != "live" && world != "test" || *n.Live == (world == "live")
}

// decode parses a text that the provider has signed. It is lenient, because the signature proves
// the sender. Members that we do not use may contain text that other callers must not send: half
// of a surrogate pair, NUL, a large integer. For example, a buyer's name that was cut inside an
// emoji must not prevent the fulfilment of an order.
func decode(text []byte, into any) error {
	return json.Unmarshal(text, into, jsontext.AllowInvalidUTF8(true))
}

// isRecordable reports whether the values read from a notice can be recorded unchanged. They must
// not contain NUL, half of a surrogate pair, or an integer beyond 2^53-1.
func isRecordable(n checkout.Notice) bool {
	text, err := canon.Marshal([]any{n.Checkout, n.Refund, n.Refunded, n.Invoice, n.Subscription, n.Customer, n.Event.ID})
	return err == nil && !bytes.ContainsRune(text, utf8.RuneError)
}

// read converts a notice to our form. For an unknown type the result is empty.
func (n notice) read() (checkout.Notice, error) {
	means := checkout.Notice{Event: store.ProviderEvent{ID: n.ID, At: n.Created}}
	switch n.Type {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded":
		done, ours, err := readCheckout(n.Data.Object)
		if ours {
			means.Checkout = &done
		}
		return means, err
	case "charge.refunded", "refund.updated", "refund.failed", "charge.dispute.created", "charge.dispute.closed":
		fact, invoice, matters, err := readRefund(n.Type, n.Data.Object)
		if matters {
			means.Refund, means.Refunded = &fact, invoice
		}
		return means, err
	case "invoice.paid", "invoice_payment.paid":
		fact, matters, err := readInvoice(n.Type, n.Data.Object)
		if matters {
			means.Invoice = &fact
		}
		return means, err
	}
	change, isSubscription := subscriptionChanges[n.Type]
	if !isSubscription {
		return means, nil
	}
	customer, fact, err := readSubscription(n.Data.Object, change)
	means.Customer, means.Subscription = customer, &fact
	return means, err
}

var subscriptionChanges = map[string]string{
	"customer.subscription.created": "created", "customer.subscription.updated": "updated", "customer.subscription.deleted": "deleted",
	"customer.subscription.paused": "paused", "customer.subscription.resumed": "resumed",
}

// readCheckout parses a checkout. ours reports whether it was created for one of our products and
// is completely paid.
func readCheckout(object jsontext.Value) (done store.CompletedCheckout, ours bool, err error) {
	var o struct {
		ID                string            `json:"id"`
		Mode              string            `json:"mode"`
		PaymentStatus     string            `json:"payment_status"`
		Customer          string            `json:"customer"`
		PaymentIntent     string            `json:"payment_intent"`
		Subscription      string            `json:"subscription"`
		ClientReferenceID string            `json:"client_reference_id"`
		CustomerEmail     string            `json:"customer_email"`
		AmountTotal       int64             `json:"amount_total"`
		Currency          string            `json:"currency"`
		Metadata          map[string]string `json:"metadata"`
		CustomerDetails   struct {
			Email string `json:"email"`
		} `json:"customer_details"`
	}
	if decode(object, &o) != nil {
		return done, false, errNotice
	}
	paid := o.PaymentStatus == "paid" || o.PaymentStatus == "no_payment_required"
	if !paid || o.Metadata["slug"] == "" || o.Mode != "payment" && o.Mode != "subscription" {
		return done, false, nil
	}
	done = store.CompletedCheckout{Session: o.ID, Customer: o.Customer, Payment: o.PaymentIntent, Product: o.Metadata["slug"],
		Reference: o.ClientReferenceID, Email: o.CustomerDetails.Email, AmountCents: o.AmountTotal, Currency: o.Currency}
	if done.Email == "" {
		done.Email = o.CustomerEmail
	}
	if done.Customer == "" {
		done.Customer = o.ID // the provider created no customer for this checkout
	}
	if o.Mode == "subscription" {
		done.Subscription = o.Subscription
	}
	good := providerID(o.ID) && providerID(done.Customer) && len(done.Product) <= maxSlug &&
		(o.PaymentIntent == "" || providerID(o.PaymentIntent)) && (o.Mode == "payment" || providerID(done.Subscription))
	if !good {
		return done, false, errNotice
	}
	return done, true, nil
}

// readRefund parses a change of a payment: a charge, a refund or a dispute. It ignores refunds
// that are pending or succeeded, because the charge contains the same information.
func readRefund(noticeType string, object jsontext.Value) (fact events.PurchaseRefunded, invoice string, matters bool, err error) {
	var o struct {
		ID             string `json:"id"`
		Invoice        string `json:"invoice"` // of a charge, in older versions of the object
		PaymentIntent  string `json:"payment_intent"`
		Refunded       bool   `json:"refunded"`
		AmountRefunded int64  `json:"amount_refunded"`
		Amount         int64  `json:"amount"`
		Status         string `json:"status"`
	}
	if decode(object, &o) != nil || !providerID(o.ID) || o.Invoice != "" && !providerID(o.Invoice) {
		return fact, "", false, errNotice
	}
	if o.PaymentIntent == "" { // the payment did not come from a checkout
		return fact, "", false, nil
	}
	fact = events.PurchaseRefunded{Payment: o.PaymentIntent, Cause: "refund", Object: o.ID, AmountCents: o.Amount}
	switch noticeType {
	case "charge.refunded":
		if fact.State, fact.AmountCents = "part", o.AmountRefunded; o.Refunded {
			fact.State = "full"
		}
	case "charge.dispute.created":
		fact.Cause, fact.State = "dispute", "open"
	case "charge.dispute.closed":
		fact.Cause, fact.State = "dispute", "lost"
		if o.Status == "won" || o.Status == "warning_closed" { // the money is ours again, or was never withdrawn
			fact.State = "won"
		}
	default:
		if o.Status != "failed" && o.Status != "canceled" {
			return fact, "", false, nil
		}
		fact.State = "failed"
	}
	if !providerID(o.PaymentIntent) {
		return fact, "", false, errNotice
	}
	return fact, o.Invoice, true, nil
}

// readInvoice parses a paid invoice of a subscription. invoice.paid names the payment only in
// older versions, and invoice_payment.paid does not name the subscription. The paid time ends with
// the last period in the invoice's lines, because the invoice's own period is the previous one.
func readInvoice(noticeType string, object jsontext.Value) (fact events.InvoicePaid, matters bool, err error) {
	type payment struct {
		PaymentIntent string `json:"payment_intent"`
	}
	var o struct {
		payment
		ID           string  `json:"id"`
		Invoice      string  `json:"invoice"`
		Payment      payment `json:"payment"`
		Customer     string  `json:"customer"`
		Subscription string  `json:"subscription"`
		Parent       struct {
			Details struct {
				Subscription string `json:"subscription"`
			} `json:"subscription_details"`
		} `json:"parent"`
		Lines struct {
			Data []struct {
				Period struct {
					End int64 `json:"end"`
				} `json:"period"`
			} `json:"data"`
		} `json:"lines"`
		Payments struct {
			Data []struct {
				Payment payment `json:"payment"`
			} `json:"data"`
		} `json:"payments"`
	}
	if decode(object, &o) != nil {
		return fact, false, errNotice
	}
	// Each member is in one place in older versions of the provider's API and in another in newer
	// ones.
	if noticeType == "invoice_payment.paid" {
		fact = events.InvoicePaid{Invoice: o.Invoice, Payment: o.Payment.PaymentIntent}
		matters = fact.Invoice != "" && fact.Payment != ""
	} else {
		fact = events.InvoicePaid{Invoice: o.ID, Payment: o.PaymentIntent, ProviderCustomer: o.Customer,
			Subscription: cmp.Or(o.Subscription, o.Parent.Details.Subscription)}
		for _, p := range o.Payments.Data {
			fact.Payment = cmp.Or(fact.Payment, p.Payment.PaymentIntent)
		}
		for _, line := range o.Lines.Data {
			fact.PeriodEnd = max(fact.PeriodEnd, line.Period.End)
		}
		matters = fact.Invoice != "" && fact.Subscription != "" && fact.ProviderCustomer != ""
	}
	for _, id := range []string{fact.Invoice, fact.Payment, fact.Subscription, fact.ProviderCustomer} {
		if matters && id != "" && !providerID(id) {
			return fact, false, errNotice
		}
	}
	return fact, matters, nil
}

// readSubscription parses a subscription of either version. Its period is in its first item or, in
// older versions, in the subscription itself.
func readSubscription(object jsontext.Value, change string) (customer string, fact events.SubscriptionUpdated, err error) {
	type period struct {
		Start int64 `json:"current_period_start"`
		End   int64 `json:"current_period_end"`
	}
	var o struct {
		period
		ID                string            `json:"id"`
		Customer          string            `json:"customer"`
		Status            string            `json:"status"`
		CancelAtPeriodEnd bool              `json:"cancel_at_period_end"`
		CancelAt          int64             `json:"cancel_at"`
		Metadata          map[string]string `json:"metadata"`
		Items             struct {
			Data []period `json:"data"`
		} `json:"items"`
		PauseCollection jsontext.Value `json:"pause_collection"`
	}
	if decode(object, &o) != nil || !providerID(o.ID) || !providerID(o.Customer) || o.Status == "" ||
		len(o.Status) > maxSlug || len(o.Metadata["slug"]) > maxSlug {
		return "", fact, errNotice
	}
	now := o.period
	if len(o.Items.Data) > 0 && o.Items.Data[0].End > 0 {
		now = o.Items.Data[0]
	}
	// While the collection of payments is paused, the provider still reports the subscription as
	// active and starts new periods that nobody pays.
	if o.PauseCollection.Kind() == '{' && (o.Status == "active" || o.Status == "trialing") {
		o.Status = "paused"
	}
	return o.Customer, events.SubscriptionUpdated{Subscription: o.ID, Product: o.Metadata["slug"], Status: o.Status, Change: change,
		PeriodStart: now.Start, PeriodEnd: now.End, Ends: o.CancelAtPeriodEnd || o.CancelAt > 0}, nil
}
