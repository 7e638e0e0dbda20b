// Package checkout says what the service needs of a provider where people pay by
// card: an address to pay at, an address to manage subscriptions at, what a
// subscription is now, and the notices of what happened. It knows no provider;
// api/stripe is one.
package checkout

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
)

// Provider is where people pay by card.
type Provider interface {
	// Begin makes a checkout and returns its address.
	Begin(context.Context, Order) (url string, err error)
	// Portal makes an address where the provider's customer manages subscriptions.
	Portal(ctx context.Context, customer, returnURL string) (url string, err error)
	// Subscription reads a subscription as it is now, and whose it is there.
	Subscription(ctx context.Context, id string) (customer string, now events.SubscriptionUpdated, err error)
	// Notice reads a notice, once it has checked that it is the provider's, and recent.
	Notice(body []byte, header http.Header) (Notice, error)
}

// Order is one product for one buyer.
type Order struct {
	Product               store.Product
	CustomerID            string // cus_…, ours, of a signed-in buyer
	ProviderCustomer      string // what the provider calls that buyer, if it knows them
	Email                 string // else the address, if there is one
	SuccessURL, CancelURL string
}

// Notice is what a provider tells of something that happened: one of a checkout, a
// refund, an invoice or a subscription; none of them if it means nothing to the service.
type Notice struct {
	Event        store.ProviderEvent
	Checkout     *store.CompletedCheckout // paid, and for a product of ours
	Refund       *events.PurchaseRefunded
	Refunded     string // the invoice that the payment of Refund paid; empty where that is not told
	Invoice      *events.InvoicePaid
	Subscription *events.SubscriptionUpdated
	Customer     string // of the subscription, as the provider calls it
}
