package store

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// purchaseRequest is the body of a purchase. All members are optional.
type purchaseRequest struct {
	ClaimSecret string `json:"claimSecret,omitempty" jsonschema:"minLength=1,maxLength=100" jsonschema_description:"The claimSecret of the first answer, to get another link with the same payment."`
	Email       string `json:"email,omitempty" jsonschema:"format=email,minLength=3,maxLength=254" jsonschema_description:"E-mail address of the buyer, who sees the purchase after signing in with it. It is stored encrypted."`
}

// fulfilment is the answer with a paid product.
type fulfilment struct {
	Status     string `json:"status" jsonschema:"enum=fulfilled"`
	Product    string `json:"product"`
	PurchaseID string `json:"purchaseId"`
	// Empty if the payment was sent again, and the caller has not proved to be the buyer.
	ClaimSecret string `json:"claimSecret,omitempty" jsonschema_description:"Keep it: the same payment with this secret returns a new link later. The payment alone does not, because everybody can copy it from the chain."`
	downloadLink
}

var purchaseProduct = &op.Operation{
	ID: "purchase_product", Method: http.MethodPost, Path: "/api/purchase/{slug}",
	Summary: "Buy a one-time product over x402. The 402 answer has its price; the answer to a payment has a link that works once, for 15 minutes. After a time-out or 503 send the same payment again.",
	Access:  credential.Access{Kind: credential.Payer},
	Input:   reflect.TypeFor[purchaseRequest](), Optional: true, Output: reflect.TypeFor[fulfilment](),
	Example: `{"email":"ada@example.com"}`, Errors: []int{400, 401, 402, 404, 409, 413, 503},
}

func (s *Shop) purchaseProduct(c *op.Call) (op.Reply, error) {
	var in purchaseRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	return s.purchase(c, in.Email, in.ClaimSecret)
}

var probePurchase = &op.Operation{
	ID: "probe_purchase", Method: http.MethodGet, Path: "/api/purchase/{slug}",
	Summary: "Return the price of a product in a 402 answer. With a payment, GET does the same as POST without a body.",
	Access:  credential.Access{Kind: credential.Payer},
	Output:  reflect.TypeFor[fulfilment](), Errors: []int{400, 401, 402, 404, 409, 503},
}

func (s *Shop) probePurchase(c *op.Call) (op.Reply, error) { return s.purchase(c, "", "") }

// sellProduct returns the product that a call buys, and its price.
func (s *Shop) sellProduct(c *op.Call) (op.Sale, error) {
	product, known := s.Store.Product(c.Vars["slug"])
	switch {
	case !known:
		return op.Sale{}, policy.Refuse(op.CodeNoProduct, "", "product not found")
	case product.Kind != store.OneTime:
		return op.Sale{}, policy.Refuse("subscription_product", "/slug", "slug: a subscription cannot be bought over x402, use the checkout")
	}
	return op.Sale{Cents: int(product.PriceCents), Description: product.Description}, nil
}

func (s *Shop) purchase(c *op.Call, email, claimSecret string) (op.Reply, error) {
	product, _ := s.Store.Product(c.Vars["slug"])
	done, err := s.Store.PurchaseProduct(c.Request.Context(), store.Order{Product: product, Email: email, ClaimSecret: claimSecret,
		IdempotencyKey: c.IdempotencyKey}, c.Payment)
	if err != nil {
		return op.Reply{}, err
	}
	h := payments.Paid(done.Payment)
	h.Set("Cache-Control", "no-store")
	link := s.DownloadLink(done.Link)
	if done.Link.Token == "" { // the payment was sent again, and the caller has not proved to be the payer
		link.DownloadURL = payerPage(s.Store.BaseURL, done.PurchaseID)
	}
	return op.Reply{Header: h, Value: fulfilment{"fulfilled", done.Product, done.PurchaseID, done.ClaimSecret, link}}, nil
}
