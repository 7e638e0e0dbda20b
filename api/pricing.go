package api

import (
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
)

// The pages that a price list, a 429 and a checkout point to. What they say comes
// from the same declarations as the documents for programs.

// pricingPage is what everything costs.
type pricingPage struct {
	pricing
	Products []pricedProduct
	Checkout bool // card checkout is there
	X402     bool // calls can be paid over x402 now
	Groups   []web.Group
}

// pricedGroups are all services in their groups.
func pricedGroups() []web.Group {
	of := map[string]*web.Group{
		site.GroupSafety:   {Name: "Safety", About: "May this action run? Commands, Git, SQL, infrastructure, tools and wallets."},
		site.GroupPayments: {Name: "Payments and evidence", About: "Is this purchase within a policy, and does this proof say what it is said to say?"},
		site.GroupFinance:  {Name: "Finance", About: "Exact figures by fixed formulas."},
	}
	for _, service := range Services() {
		group := of[service.Group]
		group.Services = append(group.Services, web.ListedService{Service: service, Path: servicePath(service), PriceUSD: usd(service.PriceCents)})
	}
	return []web.Group{*of[site.GroupSafety], *of[site.GroupPayments], *of[site.GroupFinance]}
}

// pricedProduct is a product with its price in words.
type pricedProduct struct {
	productSummary
	PriceUSD string
}

// priceList is the data of the page of prices.
func (s *Server) priceList() any {
	return pricingPage{s.pricing(), s.pricedProducts(), s.checkout != nil, s.takesPayments(), pricedGroups()}
}

func (s *Server) pricedProducts() (list []pricedProduct) {
	for _, p := range s.summaries() {
		list = append(list, pricedProduct{p, usd(int(p.PriceCents))})
	}
	return list
}
