package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/ledger/events"
)

// portalTerms says who can open the billing portal.
type portalTerms struct {
	Message      string `json:"message"`
	RequiresAuth bool   `json:"requiresAuth"`
	Scope        string `json:"scope"`
}

var getBillingPortal = &operation{
	id: "get_billing_portal", method: http.MethodGet, path: "/api/billing-portal",
	summary: "Who can open the billing portal.",
	output:  reflect.TypeFor[portalTerms](),
}

func (*Server) getBillingPortal(_ *call) (reply, error) {
	return reply{value: portalTerms{
		"POST opens the billing portal of the signed-in customer, or of the customer who claimed the agent. An e-mail address is not accepted.",
		true, accounts.ScopeBilling}}, nil
}

var openBillingPortal = &operation{
	id: "open_billing_portal", method: http.MethodPost, path: "/api/billing-portal",
	summary: "The address where the customer manages subscriptions. Who the customer is follows from session or token alone.",
	access:  credential.WithScope(accounts.ScopeBilling), input: reflect.TypeFor[struct{}](), optional: true, output: reflect.TypeFor[address](),
	example: `{}`, errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Server) openBillingPortal(c *call) (reply, error) {
	url, err := s.billingPortal(c.request.Context(), c.Customer)
	return reply{value: address{url}}, err
}

// billingPortal is where a customer of ours manages subscriptions.
func (s *Server) billingPortal(ctx context.Context, customer string) (string, error) {
	if s.checkout == nil {
		return "", errNoCheckout
	}
	s.resync(ctx, customer)
	provider, err := s.app.ProviderCustomer(ctx, customer)
	if err != nil {
		return "", err
	}
	url, err := s.checkout.Portal(ctx, provider, s.app.BaseURL+"/account")
	return url, s.providerError(ctx, err)
}

// resync asks the provider about subscriptions whose paid period is over without
// any news of it: a notice may have been lost. What cannot be learnt stays as it
// is, and is asked again a little later. It says whether anything was learnt.
func (s *Server) resync(ctx context.Context, customer string) (learnt bool) {
	if s.checkout == nil || customer == "" {
		return false
	}
	stale, err := s.app.StaleSubscriptions(ctx, customer)
	for _, id := range stale {
		now := s.app.Clock()
		if err != nil || !s.rates.allow(toResync, id) {
			break
		}
		from := store.ProviderEvent{ID: fmt.Sprintf("read_%s_%d", id, now.Unix()), At: now.Unix()}
		var provider string
		var fact events.SubscriptionUpdated
		if provider, fact, err = s.checkout.Subscription(ctx, id); err == nil {
			err = s.app.RecordSubscription(ctx, from, provider, fact)
			learnt = true
		}
	}
	if err != nil {
		s.log.Warn("ask the checkout provider", "requestId", requestID(ctx), "error", err)
	}
	return learnt
}
