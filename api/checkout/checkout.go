// Package checkout defines what the service needs of a provider of card payments: an address to
// pay at, an address to manage subscriptions, the current state of a subscription, and the
// provider's notices. It depends on no provider; api/stripe implements it for Stripe.
package checkout

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
)

// Provider takes payments by card.
type Provider interface {
	// Begin creates a checkout and returns the address where the buyer pays.
	Begin(context.Context, Order) (url string, err error)
	// Portal returns the address where the provider's customer manages subscriptions. The page
	// leads back to returnURL.
	Portal(ctx context.Context, customer, returnURL string) (url string, err error)
	// Subscription reads the current state of a subscription, and the provider's id of its
	// customer.
	Subscription(ctx context.Context, id string) (customer string, now events.SubscriptionUpdated, err error)
	// Notice verifies that the provider sent a notice recently, and parses it.
	Notice(body []byte, header http.Header) (Notice, error)
}

// Order is a buyer's order of one product.
type Order struct {
	Product               store.Product
	CustomerID            string // our id (cus_…) of a signed-in buyer; otherwise empty
	ProviderCustomer      string // provider's id of this buyer; empty if the provider has none
	Email                 string // e-mail address of a buyer without CustomerID; may be empty
	SuccessURL, CancelURL string
}

// Notice is a message of the provider about a checkout, a refund, an invoice or a subscription. If
// the message does not concern the service, it has only the Event.
type Notice struct {
	Event        store.ProviderEvent
	Checkout     *store.CompletedCheckout // set only if it is paid and the product is ours
	Refund       *events.PurchaseRefunded
	Refunded     string // provider's id of the invoice that was refunded; empty if the notice does not name it
	Invoice      *events.InvoicePaid
	Subscription *events.SubscriptionUpdated
	Customer     string // provider's id of the customer of Subscription
}
