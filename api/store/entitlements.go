package store

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
)

var getEntitlement = &op.Operation{
	ID: "get_entitlement", Method: http.MethodGet, Path: "/api/entitlements/{slug}",
	Summary: "Report whether the customer has access to a product: 200 if so, else 403 with the state as code.",
	Access:  credential.WithScope(accounts.ScopeEntitlements), Output: reflect.TypeFor[store.Entitlement](), Errors: []int{401, 403, 503},
}

func (s *Shop) getEntitlement(c *op.Call) (op.Reply, error) {
	ctx := c.Request.Context()
	s.Resync(ctx, c.Customer)
	e, err := s.Store.Entitlement(ctx, c.Customer, c.Vars["slug"])
	return op.Reply{Value: e}, err
}

// supportedCustomer is the answer with all current and former entitlements of a customer.
type supportedCustomer struct {
	CustomerID   string              `json:"customerId"`
	Entitlements []store.Entitlement `json:"entitlements"`
}

var supportEntitlements = &op.Operation{
	ID: "list_customer_entitlements", Method: http.MethodGet, Path: "/api/support/entitlements",
	Summary: "All entitlements of a customer with their states. Name the customer with ?customer=cus_… or ?email=…. For agents that the operator has approved.",
	Query: []op.Parameter{
		{Name: "customer", Description: "The customer's id. Send either customer or email.", Schema: op.Object{"type": "string", "pattern": "^cus_"}},
		{Name: "email", Description: "The customer's address. Send either customer or email.", Schema: op.Object{"type": "string", "format": "email"}},
	},
	Access: credential.WithScope(accounts.ScopeSupport), Output: reflect.TypeFor[supportedCustomer](), Errors: []int{400, 401, 403, 404, 503},
}

func (s *Shop) supportEntitlements(c *op.Call) (op.Reply, error) {
	ctx, query := c.Request.Context(), c.Request.URL.Query()
	customer, email := query.Get("customer"), query.Get("email")
	if (customer == "") == (email == "") || len(query["customer"])+len(query["email"]) > 1 {
		return op.Reply{}, policy.Refuse("missing_field", "", "exactly one of customer and email is required")
	}
	if email != "" {
		var err error
		if customer, err = s.Store.CustomerByEmail(ctx, email); err != nil {
			return op.Reply{}, err
		}
	}
	s.Resync(ctx, customer)
	list, err := s.Store.Entitlements(ctx, customer)
	return op.Reply{Value: supportedCustomer{customer, list}}, err
}
