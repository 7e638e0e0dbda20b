package store

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
)

// portalTerms explains who can open the billing portal.
type portalTerms struct {
	Message      string `json:"message"`
	RequiresAuth bool   `json:"requiresAuth"`
	Scope        string `json:"scope"`
}

var getBillingPortal = &op.Operation{
	ID: "get_billing_portal", Method: http.MethodGet, Path: "/api/billing-portal",
	Summary: "How to open the billing portal.",
	Output:  reflect.TypeFor[portalTerms](),
}

func (*Shop) getBillingPortal(_ *op.Call) (op.Reply, error) {
	return op.Reply{Value: portalTerms{
		"POST opens the billing portal of the signed-in customer, or of the customer who claimed the agent. An e-mail address is not accepted.",
		true, accounts.ScopeBilling}}, nil
}

var openBillingPortal = &op.Operation{
	ID: "open_billing_portal", Method: http.MethodPost, Path: "/api/billing-portal",
	Summary: "Return the address where the customer manages subscriptions. The session or token determines the customer.",
	Access:  credential.WithScope(accounts.ScopeBilling), Input: reflect.TypeFor[struct{}](), Optional: true, Output: reflect.TypeFor[address](),
	Example: `{}`, Errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Shop) openBillingPortal(c *op.Call) (op.Reply, error) {
	url, err := s.BillingPortal(c.Request.Context(), c.Customer)
	return op.Reply{Value: address{url}}, err
}

// BillingPortal returns the address where a customer manages subscriptions.
func (s *Shop) BillingPortal(ctx context.Context, customer string) (string, error) {
	if s.Provider == nil {
		return "", errNoCheckout
	}
	s.Resync(ctx, customer)
	provider, err := s.Store.ProviderCustomer(ctx, customer)
	if err != nil {
		return "", err
	}
	url, err := s.Provider.Portal(ctx, provider, s.Store.BaseURL+"/account")
	return url, s.providerError(ctx, err)
}

// Resync reads a customer's subscriptions from the provider if their paid period has ended and no
// notice has arrived, because a notice may be lost. It reports whether it read anything. If the
// provider does not answer, nothing changes, and a later call tries again.
func (s *Shop) Resync(ctx context.Context, customer string) (learnt bool) {
	if s.Provider == nil || customer == "" {
		return false
	}
	stale, err := s.Store.StaleSubscriptions(ctx, customer)
	for _, id := range stale {
		now := s.Store.Clock()
		if err != nil || !s.Rates.Allow(op.ToResync, id) {
			break
		}
		from := store.ProviderEvent{ID: fmt.Sprintf("read_%s_%d", id, now.Unix()), At: now.Unix()}
		var provider string
		var fact events.SubscriptionUpdated
		if provider, fact, err = s.Provider.Subscription(ctx, id); err == nil {
			err = s.Store.RecordSubscription(ctx, from, provider, fact)
			learnt = true
		}
	}
	if err != nil {
		s.Log.Warn("ask the checkout provider", "requestId", request.RequestID(ctx), "error", err)
	}
	return learnt
}
