package services

import (
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/site"
	apistore "github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/api/web/public"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Pricing is the answer with the price of every service.
type Pricing struct {
	Version           string          `json:"version"`
	Services          []PricedService `json:"services"`
	FreeCallsPerMonth int             `json:"freeCallsPerMonth"`
	Introductory      Introductory    `json:"introductoryCredit"`
	Pass              *pricedPass     `json:"pass" jsonschema:"nullable"`
}

// Introductory describes the free credit for the first verified agents.
type Introductory struct {
	CreditCents int    `json:"creditCents"`
	Agents      int    `json:"agents" jsonschema_description:"Number of verified agents that get the credit, at most one for each mailbox."`
	Text        string `json:"text"`
	How         string `json:"how" jsonschema:"format=uri"`
}

// IntroductoryText describes the introductory credit in one sentence. It is in the answer with the
// prices, in every 402 and on the pages.
var IntroductoryText = fmt.Sprintf("The first $%d of calls is free for the first %d verified agents. "+
	"An agent is verified by a link in an e-mail, or by its owner's claim. One mailbox verifies only one of these agents.",
	accounts.AgentCreditCents/100, accounts.CreditedCustomers)

// NewIntroductory returns the description of the introductory credit, with the address where an
// agent begins.
func NewIntroductory(base string) Introductory {
	return Introductory{accounts.AgentCreditCents, accounts.CreditedCustomers, IntroductoryText, base + op.AuthPath}
}

// PricedService is the price of one service.
type PricedService struct {
	OperationID string `json:"operationId"`
	Path        string `json:"path"`
	MCPTool     string `json:"mcpTool"` // empty for a service that is hidden from agents
	PriceCents  int    `json:"priceCents"`
	PriceUSD    string `json:"priceUsd"`
	PassCredits int    `json:"passCredits"`
}

// pricedPass is the subscription that adds credit every month.
type pricedPass struct {
	Product     string `json:"product"`
	URL         string `json:"url" jsonschema:"format=uri"`
	PriceCents  int64  `json:"priceCents"`
	PriceUSD    string `json:"priceUsd"`
	CreditCents int64  `json:"creditCents"`
}

// ShowPricing is the operation that returns the prices.
var ShowPricing = &op.Operation{
	ID: "get_pricing", Method: http.MethodGet, Path: "/api/pricing",
	Summary: "What every service costs, the free calls of a key and the monthly pass.",
	Output:  reflect.TypeFor[Pricing](),
}

// Prices serves all prices, to programs and for the pricing page.
type Prices struct {
	Shop *apistore.Shop

	document func() (op.Document, error) // generates the document at the first request
}

// NewPrices returns the prices of the services and of a shop's products.
func NewPrices(shop *apistore.Shop) *Prices {
	s := &Prices{Shop: shop}
	s.document = sync.OnceValues(func() (op.Document, error) {
		body, err := canon.Marshal(s.pricing())
		return op.NewDocument(body, "application/json"), err
	})
	return s
}

// Operations lists the operation that returns the prices.
func (s *Prices) Operations() []*op.Operation { return []*op.Operation{ShowPricing.Does(s.show)} }

func (s *Prices) show(c *op.Call) (op.Reply, error) {
	d, err := s.document()
	return d.Answer(c), err
}

func (s *Prices) pricing() Pricing {
	p := Pricing{Version: policy.Version, Services: []PricedService{}, FreeCallsPerMonth: accounts.FreeCallsPerMonth, Introductory: NewIntroductory(s.Shop.Store.BaseURL)}
	for _, service := range List() {
		priced := PricedService{OperationID: service.Operation, Path: op.ServicePath(service),
			PriceCents: service.PriceCents, PriceUSD: op.USD(service.PriceCents), PassCredits: service.PriceCents}
		if !service.Unlisted {
			priced.MCPTool = service.Operation
		}
		p.Services = append(p.Services, priced)
	}
	for _, product := range s.Shop.Store.Products {
		if product.Kind == store.Subscription && product.CreditCents > 0 {
			p.Pass = &pricedPass{Product: product.Slug, URL: s.Shop.Store.BaseURL + "/pricing#" + product.Slug, PriceCents: product.PriceCents,
				PriceUSD: op.USD(int(product.PriceCents)), CreditCents: product.CreditCents}
			break
		}
	}
	return p
}

// pricingPage is the data of the pricing page. It is generated from the same declarations as the
// answer to programs.
type pricingPage struct {
	Pricing
	Products []pricedProduct
	Checkout bool // card checkout is configured
	X402     bool // x402 payments are accepted at the moment
	Groups   []public.Group
}

// PricedGroups returns all services in their groups.
func PricedGroups() []public.Group {
	of := map[string]*public.Group{
		site.GroupSafety:   {Name: "Safety", About: "Decide whether an action may run: commands, Git, SQL, infrastructure, tools and wallets."},
		site.GroupPayments: {Name: "Payments and evidence", About: "Check whether a purchase is within a policy, and whether a proof supports its claim."},
		site.GroupFinance:  {Name: "Finance", About: "Exact figures by fixed formulas."},
	}
	for _, service := range List() {
		group := of[service.Group]
		group.Services = append(group.Services, public.ListedService{Service: service, Path: op.ServicePath(service), PriceUSD: op.USD(service.PriceCents)})
	}
	return []public.Group{*of[site.GroupSafety], *of[site.GroupPayments], *of[site.GroupFinance]}
}

// pricedProduct is a product with its formatted price.
type pricedProduct struct {
	apistore.ProductSummary
	PriceUSD string
}

// Page returns the data of the pricing page.
func (s *Prices) Page() any {
	return pricingPage{s.pricing(), s.Products(), s.Shop.Provider != nil, payments.Taken(s.Shop.Store.Settler), PricedGroups()}
}

// Products lists the products with their formatted prices.
func (s *Prices) Products() (list []pricedProduct) {
	for _, p := range s.Shop.Summaries() {
		list = append(list, pricedProduct{p, op.USD(int(p.PriceCents))})
	}
	return list
}
