package api

import (
	"github.com/countersign/countersign/api/site"
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
	Groups   []pricedGroup
}

// pricedGroup is services that people look for together.
type pricedGroup struct {
	Name, About string
	Services    []listedService
}

// listedService is a service with its price in words.
type listedService struct {
	policy.Service
	Path, PriceUSD string
}

// pricedGroups are all services in their groups (serviceGroup).
func pricedGroups() []pricedGroup {
	of := map[string]*pricedGroup{
		site.GroupSafety:   {Name: "Safety", About: "May this action run? Commands, Git, SQL, infrastructure, tools and wallets."},
		site.GroupPayments: {Name: "Payments and evidence", About: "Is this purchase within a policy, and does this proof say what it is said to say?"},
		site.GroupFinance:  {Name: "Finance", About: "Exact figures by fixed formulas."},
	}
	for _, service := range Services() {
		group := of[serviceGroup(service.Name)]
		group.Services = append(group.Services, listedService{service, servicePath(service), usd(service.PriceCents)})
	}
	return []pricedGroup{*of[site.GroupSafety], *of[site.GroupPayments], *of[site.GroupFinance]}
}

// pricedProduct is a product with its price in words.
type pricedProduct struct {
	productSummary
	PriceUSD string
}

func showPrices(s *Server, _ *visit) (view, error) {
	return view{template: "pricing.html", data: pricingPage{s.pricing(), s.pricedProducts(), s.checkout != nil, s.takesPayments(), pricedGroups()}}, nil
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
		customer = v.session.Customer
	}
	to, err := s.beginCheckout(v.request.Context(), v.form.Get("slug"), customer)
	return view{location: to}, err
}
