package api

import (
	"slices"

	"github.com/countersign/countersign/policy"
)

// The pages that a price list, a 429 and a checkout point to. What they say comes
// from the same declarations as the documents for programs.

// pricingPage is what everything costs.
type pricingPage struct {
	pricing
	Products []pricedProduct
	Checkout bool // card checkout is there
	X402     bool // calls can be paid over x402 now
}

// pricedGroup is services that people look for together.
type pricedGroup struct {
	Name     string
	Services []listedService
}

// listedService is a service with its price in words.
type listedService struct {
	policy.Service
	Path, PriceUSD string
}

// pricedGroups are all services by their groups, in the order of the table.
func pricedGroups() (groups []pricedGroup) {
	for _, service := range Services() {
		name := serviceGroup(service.Name)
		i := slices.IndexFunc(groups, func(g pricedGroup) bool { return g.Name == name })
		if i < 0 {
			i, groups = len(groups), append(groups, pricedGroup{Name: name})
		}
		groups[i].Services = append(groups[i].Services, listedService{service, servicePath(service), usd(service.PriceCents)})
	}
	return groups
}

// pricedProduct is a product with its price in words.
type pricedProduct struct {
	productSummary
	PriceUSD string
}

func showPrices(s *Server, _ *visit) (view, error) {
	return view{template: "pricing.html", data: pricingPage{s.pricing(), s.pricedProducts(), s.checkout != nil, s.takesPayments()}}, nil
}

func (s *Server) pricedProducts() (list []pricedProduct) {
	for _, p := range s.summaries() {
		list = append(list, pricedProduct{p, usd(int(p.PriceCents))})
	}
	return list
}

// postBuy begins a card checkout. Whoever is signed in buys for their account.
func postBuy(s *Server, v *visit) (view, error) {
	customer := ""
	if v.session != nil {
		customer = v.session.customer
	}
	to, err := s.beginCheckout(v.request.Context(), v.form.Get("slug"), customer)
	return view{location: to}, err
}
