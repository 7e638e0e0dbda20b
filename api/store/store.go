// Package store sells products over HTTP and gives access to purchases: the catalogue, card
// checkout and the provider's notices, purchases over x402, download links, entitlements, the
// billing portal, and refunds of answers that cannot be reproduced. The rules are in
// commands/store.
package store

import (
	"log/slog"
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy/canon"
)

// Shop sells products and gives access to them.
type Shop struct {
	Store    *store.Store
	Payments *payments.Payments
	Provider checkout.Provider // nil means that card checkout is answered with 503
	Rates    *op.Rates
	Log      *slog.Logger
}

// Operations lists the operations for buyers.
func (s *Shop) Operations() []*op.Operation {
	return []*op.Operation{purchaseProduct.Selling(s.sellProduct).Does(s.purchaseProduct), probePurchase.Selling(s.sellProduct).Does(s.probePurchase),
		getCheckout.Does(s.getCheckout), createCheckout.Does(s.createCheckout), ListProducts.Does(s.listProducts),
		getBillingPortal.Does(s.getBillingPortal), openBillingPortal.Does(s.openBillingPortal),
		getEntitlement.Does(s.getEntitlement), createDownload.Does(s.createDownload), supportEntitlements.Does(s.supportEntitlements)}
}

// ProductList is the answer with the products for sale.
type ProductList struct {
	Products []ProductSummary `json:"products"`
}

// ProductSummary is one product with the ways to pay for it.
type ProductSummary struct {
	Slug        string       `json:"slug"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Kind        string       `json:"kind" jsonschema:"enum=one_time,enum=subscription"`
	PriceCents  int64        `json:"priceCents"`
	Currency    string       `json:"currency" jsonschema:"enum=USD"`
	Interval    *string      `json:"interval" jsonschema:"nullable"`
	URL         string       `json:"url" jsonschema:"format=uri"`
	Checkout    bool         `json:"checkout" jsonschema_description:"true if the product can be bought by card now, with POST /api/checkout."`
	X402        *productX402 `json:"x402" jsonschema:"nullable" jsonschema_description:"How to buy the product over x402; null if that is not possible now. By default, x402 clients pay at most $1 per payment."`
	Deliverable string       `json:"deliverable"`
}

// productX402 is the address and the price of a product over x402.
type productX402 struct {
	URL     string `json:"url" jsonschema:"format=uri"`
	Amount  string `json:"amount"`
	Network string `json:"network"`
	Note    string `json:"note,omitempty"`
}

// aboveCap is the note on prices that x402 clients refuse by default.
const (
	defaultCapCents = 100
	aboveCap        = "the price is above $1, the default limit of x402 clients for one payment: raise the limit of your client"
)

// ListProducts is the operation that returns the catalogue.
var ListProducts = &op.Operation{
	ID: "list_products", Method: http.MethodGet, Path: "/api/catalog",
	Summary: "The products, with description, price and the ways to buy.",
	Output:  reflect.TypeFor[ProductList](), CORS: true,
}

func (s *Shop) listProducts(c *op.Call) (op.Reply, error) {
	d, err := s.catalogue()
	if err != nil {
		return op.Reply{}, err
	}
	return d.Answer(c), nil
}

// Summaries lists the products for the catalogue.
func (s *Shop) Summaries() []ProductSummary {
	list := []ProductSummary{}
	for _, p := range s.Store.Products {
		sum := ProductSummary{Slug: p.Slug, Name: p.Name, Description: p.Description, Kind: p.Kind, PriceCents: p.PriceCents,
			Currency: "USD", URL: s.Store.BaseURL + "/pricing#" + p.Slug, Checkout: s.Provider != nil, Deliverable: p.Deliverable}
		if p.Kind == store.Subscription {
			month := "month"
			sum.Interval = &month
		}
		if p.Kind == store.OneTime && payments.Taken(s.Store.Settler) {
			terms := s.Payments.Terms.Offer(int(p.PriceCents))
			sum.X402 = &productX402{URL: s.Store.BaseURL + "/api/purchase/" + p.Slug, Amount: terms.Amount, Network: terms.Network}
			if p.PriceCents > defaultCapCents {
				sum.X402.Note = aboveCap
			}
		}
		list = append(list, sum)
	}
	return list
}

// catalogue returns the document with the products.
func (s *Shop) catalogue() (op.Document, error) {
	body, err := canon.Marshal(ProductList{s.Summaries()})
	return op.NewDocument(body, "application/json"), err
}
