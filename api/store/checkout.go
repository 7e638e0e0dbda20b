package store

import (
	"context"
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

var errNoCheckout = policy.Refuse(op.CodeNoCheckout, "", "checkout provider not configured")

// errCheckout is the error for every failure of the provider.
var errCheckout = policy.Refuse(op.CodeCheckoutFailed, "", "checkout provider unavailable")

// legalURLs are the addresses of the policies to which a buyer agrees.
type legalURLs struct {
	Terms   string `json:"terms" jsonschema:"format=uri"`
	Privacy string `json:"privacy" jsonschema:"format=uri"`
	Refunds string `json:"refunds" jsonschema:"format=uri"`
}

type checkoutTerms struct {
	Policies legalURLs `json:"policies"`
	Message  string    `json:"message"`
}

var getCheckout = &op.Operation{
	ID: "get_checkout", Method: http.MethodGet, Path: "/api/checkout",
	CORS:    true,
	Summary: "The terms of a purchase, and how to buy.",
	Output:  reflect.TypeFor[checkoutTerms](),
}

func (s *Shop) getCheckout(c *op.Call) (op.Reply, error) {
	base := s.Store.BaseURL
	return op.Reply{Value: checkoutTerms{legalURLs{base + "/terms", base + "/privacy", base + "/refunds"}, s.howToBuy()}}, nil
}

// howToBuy describes the configured ways to buy.
func (s *Shop) howToBuy() string {
	text := "Products: GET /api/catalog."
	if s.Provider != nil {
		text += " By card: POST /api/checkout returns the address of the provider's payment page."
	} else {
		text += " Card payments are not configured here."
	}
	if payments.Taken(s.Store.Settler) {
		text += " One-time products over x402: POST /api/purchase/{slug}."
	}
	return text
}

type checkoutRequest struct {
	Slug string `json:"slug" jsonschema:"minLength=1,maxLength=64,pattern=^[a-z0-9]+(-[a-z0-9]+)*$" jsonschema_description:"Slug of a product in GET /api/catalog."`
}

// address is an answer with an address that the buyer must open.
type address struct {
	URL string `json:"url" jsonschema:"format=uri"`
}

var createCheckout = &op.Operation{
	Creates: true, ID: "create_checkout", Method: http.MethodPost, Path: "/api/checkout",
	CORS:    true,
	Summary: "Start a card checkout and return its address. No credential is needed: the purchase belongs to the signed-in customer, or else to the e-mail address that is entered at the checkout.",
	Access:  credential.Access{Kind: credential.AnyCustomer, Scope: accounts.ScopeCheckout},
	Input:   reflect.TypeFor[checkoutRequest](), Output: reflect.TypeFor[address](),
	Example: `{"slug":"verification-kit"}`, Errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Shop) createCheckout(c *op.Call) (op.Reply, error) {
	var in checkoutRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	url, err := s.BeginCheckout(c.Request.Context(), in.Slug, c.Customer)
	return op.Reply{Value: address{url}}, err
}

// BeginCheckout starts a card checkout and returns its address. If customer is empty, the purchase
// will belong to the e-mail address that the buyer enters at the provider.
func (s *Shop) BeginCheckout(ctx context.Context, slug, customer string) (string, error) {
	product, known := s.Store.Product(slug)
	switch {
	case !known:
		return "", policy.Refuse(op.CodeNoProduct, "/slug", "slug: product not found")
	case s.Provider == nil:
		return "", errNoCheckout
	}
	order := checkout.Order{Product: product, CustomerID: customer,
		SuccessURL: s.Store.BaseURL + "/account", CancelURL: s.Store.BaseURL + "/pricing"}
	if customer != "" {
		var err error
		if order.ProviderCustomer, order.Email, err = s.Store.CheckoutIdentity(ctx, customer); err != nil {
			return "", err
		}
	}
	url, err := s.Provider.Begin(ctx, order)
	return url, s.providerError(ctx, err)
}

// providerError logs an error of the provider, and returns the error for callers.
func (s *Shop) providerError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s.Log.Warn("checkout provider", "requestId", request.RequestID(ctx), "error", err)
	return errCheckout
}
