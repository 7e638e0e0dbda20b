package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// notice is what the checkout provider sends when something happened. It is read
// by small structs of ours: the provider has several versions of its objects
// about, and both shapes of what moved are read.
type notice struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"`
	Data    struct {
		Object jsontext.Value `json:"object"`
	} `json:"data"`
}

// providerID is an id of the provider's, as far as we care.
var providerID = regexp.MustCompile(`^[A-Za-z0-9_]{1,128}$`)

var errNotice = policy.Refuse(codeInvalidBody, "", "the notice is not one that can be read")

// webhook takes the provider's notices. Answers: 400 for what is not a good
// notice of theirs, 503 for one that could not be recorded, so that it is sent
// again, and 200 for all others.
func (s *Server) webhook(w http.ResponseWriter, r *http.Request) {
	err := s.readWebhook(w, r)
	if err != nil {
		s.fail(w, r, false, err)
		return
	}
	s.reply(w, r, &operation{success: http.StatusOK}, reply{value: map[string]bool{"received": true}})
}

func (s *Server) readWebhook(w http.ResponseWriter, r *http.Request) error {
	if s.checkout == nil {
		return errNoCheckout
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limitWebhook))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return policy.Refuse(codeTooLarge, "", "request body is larger than "+strconv.Itoa(limitWebhook)+" bytes")
	case err != nil:
		return unreadBecause(err)
	}
	if err := s.checkout.Signed(body, r.Header); err != nil {
		return err
	}
	var n notice
	if err := canon.Check(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, &n); err != nil || !providerID.MatchString(n.ID) || n.Type == "" || n.Created <= 0 || n.Data.Object.Kind() != '{' {
		return errNotice
	}
	return s.recordNotice(r, n)
}

// recordNotice tells the ledger what a notice says. Types that say nothing to us are
// taken and forgotten.
func (s *Server) recordNotice(r *http.Request, n notice) error {
	from := commands.ProviderEvent{ID: n.ID, At: n.Created}
	// What is begun is finished, whatever becomes of the connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), handlerTimeout)
	defer cancel()
	switch n.Type {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded":
		done, ours, err := readCheckout(n.Data.Object)
		if err != nil || !ours {
			return err
		}
		if product, known := s.app.Product(done.Product); known && !pays(done, product.PriceCents) {
			s.log.Error("a checkout paid something else than its product costs, and nothing was given for it: refund it or grant the entitlement",
				"requestId", requestID(r.Context()), "product", done.Product, "amountCents", done.AmountCents)
			return nil // sending it again would not change it
		}
		return s.app.FulfilCheckout(ctx, from, done)
	case "charge.refunded", "refund.updated", "refund.failed", "charge.dispute.created", "charge.dispute.closed":
		fact, matters, err := readRefund(n.Type, n.Data.Object)
		if err != nil || !matters {
			return err
		}
		return s.app.RecordRefund(ctx, from, fact)
	}
	change, isSubscription := subscriptionChanges[n.Type]
	if !isSubscription {
		return nil
	}
	customer, fact, err := readSubscription(n.Data.Object, change)
	if err != nil {
		return err
	}
	return s.app.RecordSubscription(ctx, from, customer, fact)
}

// pays says whether a checkout paid what its product costs. Tax may come on top.
func pays(done commands.CompletedCheckout, cents int64) bool {
	return done.AmountCents >= cents && (done.Currency == "" || done.Currency == "usd")
}

var subscriptionChanges = map[string]string{
	"customer.subscription.created": "created", "customer.subscription.updated": "updated", "customer.subscription.deleted": "deleted",
	"customer.subscription.paused": "paused", "customer.subscription.resumed": "resumed",
}

// readCheckout reads a checkout; it is ours if it was made for a product and
// nothing is left to be paid.
func readCheckout(object jsontext.Value) (done commands.CompletedCheckout, ours bool, err error) {
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
	if json.Unmarshal(object, &o) != nil {
		return done, false, errNotice
	}
	paid := o.PaymentStatus == "paid" || o.PaymentStatus == "no_payment_required"
	if !paid || o.Metadata["slug"] == "" || o.Mode != "payment" && o.Mode != "subscription" {
		return done, false, nil
	}
	done = commands.CompletedCheckout{Session: o.ID, Customer: o.Customer, Payment: o.PaymentIntent, Product: o.Metadata["slug"],
		Reference: o.ClientReferenceID, Email: o.CustomerDetails.Email, AmountCents: o.AmountTotal, Currency: o.Currency}
	if done.Email == "" {
		done.Email = o.CustomerEmail
	}
	if done.Customer == "" {
		done.Customer = o.ID // a checkout of somebody the provider keeps no customer of
	}
	if o.Mode == "subscription" {
		done.Subscription = o.Subscription
	}
	good := providerID.MatchString(o.ID) && providerID.MatchString(done.Customer) && len(done.Product) <= maxSlug &&
		(o.PaymentIntent == "" || providerID.MatchString(o.PaymentIntent)) && (o.Mode == "payment" || providerID.MatchString(done.Subscription))
	if !good {
		return done, false, errNotice
	}
	return done, true, nil
}

// readRefund reads what became of a payment: a charge, a refund or a dispute. A
// refund under way or done says nothing that the charge does not say.
func readRefund(noticeType string, object jsontext.Value) (fact events.PurchaseRefunded, matters bool, err error) {
	var o struct {
		ID             string `json:"id"`
		PaymentIntent  string `json:"payment_intent"`
		Refunded       bool   `json:"refunded"`
		AmountRefunded int64  `json:"amount_refunded"`
		Amount         int64  `json:"amount"`
		Status         string `json:"status"`
	}
	if json.Unmarshal(object, &o) != nil || !providerID.MatchString(o.ID) {
		return fact, false, errNotice
	}
	if o.PaymentIntent == "" { // not made by a checkout
		return fact, false, nil
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
		if o.Status == "won" || o.Status == "warning_closed" { // the money is ours again, or was never taken
			fact.State = "won"
		}
	default:
		if o.Status != "failed" && o.Status != "canceled" {
			return fact, false, nil
		}
		fact.State = "failed"
	}
	if !providerID.MatchString(o.PaymentIntent) {
		return fact, false, errNotice
	}
	return fact, true, nil
}

// readSubscription reads a subscription in either shape: its period stands in its
// first item, or in older versions in itself.
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
	}
	if json.Unmarshal(object, &o) != nil || !providerID.MatchString(o.ID) || !providerID.MatchString(o.Customer) || o.Status == "" ||
		len(o.Status) > maxSlug || len(o.Metadata["slug"]) > maxSlug {
		return "", fact, errNotice
	}
	now := o.period
	if len(o.Items.Data) > 0 && o.Items.Data[0].End > 0 {
		now = o.Items.Data[0]
	}
	return o.Customer, events.SubscriptionUpdated{Subscription: o.ID, Product: o.Metadata["slug"], Status: o.Status, Change: change,
		PeriodStart: now.Start, PeriodEnd: now.End, Ends: o.CancelAtPeriodEnd || o.CancelAt > 0}, nil
}
