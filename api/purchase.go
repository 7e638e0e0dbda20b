package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/store"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// purchaseRequest is for the order's record.
type purchaseRequest struct {
	ClaimSecret string `json:"claimSecret,omitempty" jsonschema:"minLength=1,maxLength=100" jsonschema_description:"That of the first answer, when the payment is sent again for another link."`
	Email       string `json:"email,omitempty" jsonschema:"format=email,minLength=3,maxLength=254" jsonschema_description:"Whom the purchase belongs to: visible after signing in with it. It is stored sealed."`
}

// fulfilment is a product that was paid for.
type fulfilment struct {
	Status     string `json:"status" jsonschema:"enum=fulfilled"`
	Product    string `json:"product"`
	PurchaseID string `json:"purchaseId"`
	// Not in an answer to a payment sent again by who has not shown to be its buyer.
	ClaimSecret string `json:"claimSecret,omitempty" jsonschema_description:"Keep it: with it the same payment gives a new link later. The payment alone, which is on the chain for everybody to copy, does not."`
	downloadLink
}

var purchaseProduct = &operation{
	id: "purchase_product", method: http.MethodPost, path: "/api/purchase/{slug}",
	summary: "Buy a one-time product over x402: its price is in the 402 answer. Paid, the answer has a link that works once, for 15 minutes. On a time-out or 503 send the same payment again.",
	access:  credential.Access{Kind: credential.Payer},
	input:   reflect.TypeFor[purchaseRequest](), optional: true, output: reflect.TypeFor[fulfilment](),
	example: `{"email":"ada@example.com"}`, errors: []int{400, 401, 402, 404, 409, 413, 503},
}

func (s *Server) purchaseProduct(c *call) (reply, error) {
	var in purchaseRequest
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	return s.purchase(c, in.Email, in.ClaimSecret)
}

var probePurchase = &operation{
	id: "probe_purchase", method: http.MethodGet, path: "/api/purchase/{slug}",
	summary: "The price of a product as its 402 answer; with a payment the same as POST without a body.",
	access:  credential.Access{Kind: credential.Payer},
	output:  reflect.TypeFor[fulfilment](), errors: []int{400, 401, 402, 404, 409, 503},
}

func (s *Server) probePurchase(c *call) (reply, error) { return s.purchase(c, "", "") }

// sellProduct finds what a purchase is of.
func (s *Server) sellProduct(c *call) (sale, error) {
	product, known := s.app.Product(c.vars["slug"])
	switch {
	case !known:
		return sale{}, policy.Refuse(codeNoProduct, "", "product not found")
	case product.Kind != store.OneTime:
		return sale{}, policy.Refuse("subscription_product", "/slug", "slug: a subscription cannot be bought over x402, use the checkout")
	}
	return sale{int(product.PriceCents), product.Description}, nil
}

func (s *Server) purchase(c *call, email, claimSecret string) (reply, error) {
	product, _ := s.app.Product(c.vars["slug"])
	done, err := s.app.PurchaseProduct(c.request.Context(), store.Order{Product: product, Email: email, ClaimSecret: claimSecret,
		IdempotencyKey: c.idempotencyKey}, c.Payment)
	if err != nil {
		return reply{}, err
	}
	h := paid(done.Payment)
	h.Set("Cache-Control", "no-store")
	link := s.downloadLink(done.Link)
	if done.Link.Token == "" { // sent again by who has not shown to be the payer
		link.DownloadURL = s.payerPage(done.PurchaseID)
	}
	return reply{header: h, value: fulfilment{"fulfilled", done.Product, done.PurchaseID, done.ClaimSecret, link}}, nil
}
