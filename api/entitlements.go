package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/policy"
)

var getEntitlement = &operation{
	id: "get_entitlement", method: http.MethodGet, path: "/api/entitlements/{slug}",
	summary: "Whether the customer has live access to a product: 200 only then, else 403 with the state as code.",
	access:  credential.WithScope(accounts.ScopeEntitlements), output: reflect.TypeFor[store.Entitlement](), errors: []int{401, 403, 503},
}

func (s *Server) getEntitlement(c *call) (reply, error) {
	ctx := c.request.Context()
	s.resync(ctx, c.Customer)
	e, err := s.app.Entitlement(ctx, c.Customer, c.vars["slug"])
	return reply{value: e}, err
}

// supportedCustomer is everything a customer has and had access to.
type supportedCustomer struct {
	CustomerID   string              `json:"customerId"`
	Entitlements []store.Entitlement `json:"entitlements"`
}

var supportEntitlements = &operation{
	id: "list_customer_entitlements", method: http.MethodGet, path: "/api/support/entitlements",
	summary: "All entitlements of a customer with their states, by ?customer=cus_… or ?email=…. For agents that the operator has approved.",
	query: []parameter{
		{"customer", "The customer's id; this or email.", object{"type": "string", "pattern": "^cus_"}},
		{"email", "The customer's address; this or customer.", object{"type": "string", "format": "email"}},
	},
	access: credential.WithScope(accounts.ScopeSupport), output: reflect.TypeFor[supportedCustomer](), errors: []int{400, 401, 403, 404, 503},
}

func (s *Server) supportEntitlements(c *call) (reply, error) {
	ctx, query := c.request.Context(), c.request.URL.Query()
	customer, email := query.Get("customer"), query.Get("email")
	if (customer == "") == (email == "") || len(query["customer"])+len(query["email"]) > 1 {
		return reply{}, policy.Refuse("missing_field", "", "exactly one of customer and email is required")
	}
	if email != "" {
		var err error
		if customer, err = s.app.CustomerByEmail(ctx, email); err != nil {
			return reply{}, err
		}
	}
	s.resync(ctx, customer)
	list, err := s.app.Entitlements(ctx, customer)
	return reply{value: supportedCustomer{customer, list}}, err
}
