package api

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/commands"
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

// serviceGroup is services that people look for together.
type serviceGroup struct {
	Name, About string
	Services    []listedService
}

// listedService is a service with its price in words.
type listedService struct {
	policy.Service
	Path, PriceUSD string
}

// groupOf is the group of a service by the first part of its name; what is not
// listed stands last, among more.
var groupOf = map[string]string{
	"action-safety": "Safety", "command-risk": "Safety", "review-triage": "Safety", "mcp-risk": "Safety", "wallet-screen": "Safety",
	"payment-policy": "Assurance", "spend-assurance": "Assurance", "assurance": "Assurance",
	"evidence": "Evidence", "x402-provenance": "Evidence", "investment-evidence": "Evidence", "email-check": "Evidence",
	"portfolio-risk": "Finance", "cashflow": "Finance", "waterfall": "Finance", "bond": "Finance", "options": "Finance", "dealanalyzer": "Finance",
}

// serviceGroups are all services in their groups.
func serviceGroups() []serviceGroup {
	groups := []serviceGroup{
		{Name: "Safety", About: "May this action run? Commands, Git, SQL, infrastructure, tools and wallets."},
		{Name: "Assurance", About: "Is this purchase or tool call within a policy, and was it what was agreed?"},
		{Name: "Evidence", About: "Does this proof say what it is said to say?"},
		{Name: "Finance", About: "Exact figures by fixed formulas."},
		{Name: "More"},
	}
	for _, service := range Services() {
		first, _, _ := strings.Cut(service.Name, "/")
		i := slices.IndexFunc(groups, func(g serviceGroup) bool { return g.Name == groupOf[first] })
		if i < 0 {
			i = len(groups) - 1
		}
		groups[i].Services = append(groups[i].Services, listedService{service, servicePath(service), usd(service.PriceCents)})
	}
	return slices.DeleteFunc(groups, func(g serviceGroup) bool { return len(g.Services) == 0 })
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

// plainPage is a page that is the same for everybody.
func plainPage(template string) func(*Server, *visit) (view, error) {
	return func(s *Server, _ *visit) (view, error) {
		return view{template: template, data: plainData{s.contact, commands.FreeCallsPerMonth}}, nil
	}
}

// plainData is what such a page needs to know.
type plainData struct {
	Contact           string
	FreeCallsPerMonth int
}
