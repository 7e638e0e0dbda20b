package store

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/store"
)

// Notices handles notices of the checkout provider.
type Notices struct {
	Shop    *Shop
	Answers *request.Answers
}

// ServeHTTP handles a notice. This is not an operation: only the provider calls it, and
// authenticates by a signature over the body, in its own format. The answer is 400 if the notice
// is malformed or not signed by the provider, 503 if it could not be recorded, so that the
// provider sends it again, and 200 otherwise.
func (s *Notices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.read(w, r)
	if err != nil {
		s.Answers.Fail(w, r, false, err)
		return
	}
	s.Answers.Reply(w, r, &op.Operation{Success: http.StatusOK}, op.Reply{Value: map[string]bool{"received": true}})
}

func (s *Notices) read(w http.ResponseWriter, r *http.Request) error {
	if s.Shop.Provider == nil {
		return errNoCheckout
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.LimitWebhook))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return request.TooLarge(op.LimitWebhook)
	case err != nil:
		return request.UnreadBecause(err)
	}
	notice, err := s.Shop.Provider.Notice(body, r.Header)
	if err != nil {
		return err
	}
	return s.record(r, notice)
}

// record appends the events of a notice. It ignores notices of other kinds.
func (s *Notices) record(r *http.Request, n checkout.Notice) error {
	// Finish an append that has begun, even if the provider disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), op.HandlerTimeout)
	defer cancel()
	switch {
	case n.Checkout != nil:
		if product, known := s.Shop.Store.Product(n.Checkout.Product); known && !pays(*n.Checkout, product.PriceCents) {
			s.Shop.Log.Error("the amount paid in a checkout differs from the price of the product, so no access was granted: refund the payment or grant the entitlement",
				"requestId", request.RequestID(r.Context()), "product", n.Checkout.Product, "amountCents", n.Checkout.AmountCents)
			return nil // no error, because repeating the notice would change nothing
		}
		return s.Shop.Store.FulfilCheckout(ctx, n.Event, *n.Checkout)
	case n.Refund != nil:
		return s.Shop.Store.RecordRefund(ctx, n.Event, *n.Refund, n.Refunded)
	case n.Invoice != nil:
		return s.Shop.Store.RecordInvoice(ctx, n.Event, *n.Invoice)
	case n.Subscription != nil:
		return s.Shop.Store.RecordSubscription(ctx, n.Event, n.Customer, *n.Subscription)
	}
	return nil
}

// pays reports whether a checkout paid at least the price of its product. It may be more because
// of tax.
func pays(done store.CompletedCheckout, cents int64) bool {
	return done.AmountCents >= cents && (done.Currency == "" || done.Currency == "usd")
}
