// Package checkout says what the service needs of a provider of card payments: an address to pay
// at, an address where subscriptions are managed, the present state of a subscription, and the
// notices of what happened. It depends on no particular provider; api/stripe is one.
package checkout

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
)

// Provider takes payments by card.
type Provider interface {
	// Begin makes a checkout and returns the address where the buyer pays.
	Begin(context.Context, Order) (url string, err error)
	// Portal returns an address where a customer of the provider manages subscriptions.
	Portal(ctx context.Context, customer, returnURL string) (url string, err error)
	// Subscription reads the present state of a subscription, and the provider's id of its
	// customer.
	Subscription(ctx context.Context, id string) (customer string, now events.SubscriptionUpdated, err error)
	// Notice reads a notice after it has checked that the provider sent it recently.
	Notice(body []byte, header http.Header) (Notice, error)
}

// Order is an order of one product by one buyer.
type Order struct {
	Product               store.Product
	CustomerID            string // cus_…, ours, of a signed-in buyer
	ProviderCustomer      string // the provider's id of that buyer; empty if it has none
	Email                 string // the buyer's address without a CustomerID; may be empty
	SuccessURL, CancelURL string
}

// Notice is what the provider says that happened: to a checkout, a refund, an invoice or a
// subscription. All of these are nil if it means nothing to the service.
type Notice struct {
	Event        store.ProviderEvent
	Checkout     *store.CompletedCheckout // paid, and for a product of ours
	Refund       *events.PurchaseRefunded
	Refunded     string // the invoice that the payment of Refund paid; empty if the notice does not name it
	Invoice      *events.InvoicePaid
	Subscription *events.SubscriptionUpdated
	Customer     string // the provider's id of the subscription's customer
}
