package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
)

// Notices takes what the checkout provider says.
type Notices struct {
	Shop    *Shop
	Answers *request.Answers
}

// ServeHTTP takes the checkout provider's notices. It is no operation: its caller is
// known by a signature over the octets of the body, in the provider's own form, and
// nobody else is to call it. Answers: 400 for what is not a good notice of theirs,
// 503 for one that could not be recorded, so that it is sent again, and 200 for all
// others.
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
		return policy.Refuse(op.CodeTooLarge, "", "request body is larger than "+strconv.Itoa(op.LimitWebhook)+" bytes")
	case err != nil:
		return request.UnreadBecause(err)
	}
	notice, err := s.Shop.Provider.Notice(body, r.Header)
	if err != nil {
		return err
	}
	return s.record(r, notice)
}

// record tells the ledger what a notice says. What says nothing to us is taken
// and forgotten.
func (s *Notices) record(r *http.Request, n checkout.Notice) error {
	// What is begun is finished, whatever becomes of the connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), op.HandlerTimeout)
	defer cancel()
	switch {
	case n.Checkout != nil:
		if product, known := s.Shop.Store.Product(n.Checkout.Product); known && !pays(*n.Checkout, product.PriceCents) {
			s.Shop.Log.Error("a checkout paid something else than its product costs, and nothing was given for it: refund it or grant the entitlement",
				"requestId", request.RequestID(r.Context()), "product", n.Checkout.Product, "amountCents", n.Checkout.AmountCents)
			return nil // sending it again would not change it
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

// pays says whether a checkout paid what its product costs. Tax may come on top.
func pays(done store.CompletedCheckout, cents int64) bool {
	return done.AmountCents >= cents && (done.Currency == "" || done.Currency == "usd")
}
