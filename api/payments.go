package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// takesPayments says whether x402 is configured now.
func (s *Server) takesPayments() bool { return s.app.Settler != nil && s.app.Settler.Configured() }

// paymentMode is "off", "dev" or "facilitator".
func (s *Server) paymentMode() string {
	if s.app.Settler == nil {
		return payments.ModeOff
	}
	return s.app.Settler.Mode()
}

var errNotConfigured = policy.Refuse(ground.CodeNotConfigured, "", "x402 not configured")

// servePayment reads the payment of a call, if it brings one, and holds it against
// the terms of the call; one that is known already is held against itself.
func (s *Server) servePayment(c *op.Call) (present bool, err error) {
	var sent *x402.Payment
	switch values := c.Request.Header[x402.HeaderSignature]; {
	case c.Tool != nil:
		if c.Tool.Payment == nil {
			return false, nil
		}
		sent, err = x402.Read(c.Tool.Payment)
	case len(values) == 0:
		return false, nil
	case len(values) > 1:
		err = &payments.PaymentRefused{Reason: x402.ReasonPayload}
	default:
		sent, err = x402.Decode(values[0])
	}
	if !s.takesPayments() {
		return true, errNotConfigured
	}
	if err != nil {
		return true, err
	}
	known, err := s.app.KnownPayment(c.Request.Context(), sent.Payment)
	if err == nil && !known {
		contracts := s.paymentMode() == payments.ModeFacilitator // there is a chain that judges their signatures
		err = sent.Verify(s.terms.Offer(c.Sale.Cents), s.resource(c).URL, s.app.Clock(), contracts)
	}
	c.Means, c.Payment = credential.ByPayment, sent.Payment
	return true, err
}

// resource names what a call buys. Its address is ours, never the Host header's.
func (s *Server) resource(c *op.Call) x402.Resource {
	r := x402.Resource{URL: s.app.BaseURL + c.Request.URL.Path, Description: c.Sale.Description, MimeType: "application/json"}
	if c.Tool != nil {
		r.URL = "mcp://tool/" + c.Op.ID
	}
	return r
}

// demand is the answer 402: what to pay, and what became of a payment that was
// claimed and then refused.
type demand struct {
	required x402.PaymentRequired
	response *x402.SettleResponse
}

// Error is the reason.
func (d *demand) Error() string { return d.required.Error }

// reply is the 402: header and body are the same object, since many agents read
// the body first. Extensions that do not fit into the head are in the body alone.
func (d *demand) reply() op.Reply {
	h := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}
	room := x402.MaxChallenge
	if d.response != nil {
		response := d.response.Header()
		h.Set(x402.HeaderResponse, response)
		room -= len(x402.HeaderResponse+": \r\n") + len(response)
	}
	h.Set(x402.HeaderRequired, d.required.HeaderWithin(room))
	return op.Reply{Status: http.StatusPaymentRequired, Header: h, Body: d.required.JSON()}
}

// pending is the answer 503 to a payment whose end is not known: a 402 would make
// the buyer sign and pay again.
type pending struct {
	paymentID string
	response  x402.SettleResponse
	until     time.Time // it can settle; zero where that is not known
	cause     error     // for the log; may be nil
}

// Error says so.
func (p *pending) Error() string { return x402.ReasonPending }

// asDemand makes the refusals of payments answers to a call.
func (s *Server) asDemand(c *op.Call, err error) error {
	var refused *payments.PaymentRefused
	var required *payments.PaymentRequired
	var open *payments.SettlementPending
	failed := x402.SettleResponse{Network: c.Payment.Network, Payer: c.Payment.Payer}
	switch {
	case errors.As(err, &open):
		failed.ErrorReason, failed.Transaction = x402.ReasonPending, open.Transaction
		return &pending{open.PaymentID, failed, open.Until, open.Cause}
	case errors.As(err, &refused):
		d := &demand{required: s.demanded(c).WithError(refused.Reason)}
		if refused.Settled {
			failed.ErrorReason = refused.Reason
			d.response = &failed
		}
		return d
	case !errors.As(err, &required):
		return err
	case !s.takesPayments():
		return errNotConfigured
	}
	d := &demand{required: s.demanded(c)}
	if len(c.Request.Header[x402.HeaderV1]) > 0 && c.Means == credential.Nothing {
		d.required = d.required.WithError(x402.VersionIsRequired)
	}
	return d
}

// demanded is what a call costs. That of a service over HTTP, which tells indexers
// how to call it, was made at the start.
func (s *Server) demanded(c *op.Call) x402.PaymentRequired {
	if made, ok := s.demands[c.Op.ID]; ok && c.Tool == nil {
		return made
	}
	return s.terms.Challenge(s.resource(c), c.Sale.Cents, nil)
}

// makeDemands makes the 402 of every service.
func (s *Server) makeDemands() error {
	s.demands = map[string]x402.PaymentRequired{}
	if s.app.Settler == nil {
		return nil
	}
	for _, o := range s.operations {
		if o.Service == nil {
			continue
		}
		answer, err := exampleAnswer(o)
		if err != nil {
			return err
		}
		output, err := answerSchema(o)
		if err != nil {
			return err
		}
		example, err := canon.Canonical([]byte(o.Example))
		if err != nil {
			return err
		}
		resource := s.sold(o.Path, o.Service.Summary, o.Service.Group)
		s.demands[o.ID] = s.terms.Challenge(resource, o.Service.PriceCents, &x402.Discovery{
			Example: jsontext.Value(example), Answer: answer, Input: o.Schema.Document, Output: output})
	}
	return nil
}

// sold is what an index shows of an address that takes payments.
func (s *Server) sold(path, description string, tags ...string) x402.Resource {
	return x402.Resource{URL: s.app.BaseURL + path, Description: description, MimeType: "application/json",
		ServiceName: serviceName, Tags: tags, IconURL: s.app.BaseURL + iconPath}
}

// paid is the header of an answer that was paid for.
func paid(r payments.Receipt) http.Header {
	response := x402.SettleResponse{Success: true, Payer: r.Payer, Transaction: r.Transaction, Network: r.Network, Amount: r.Amount}
	h := http.Header{"Cache-Control": {"private, no-store"}, x402.HeaderResponse: {response.Header()}}
	if r.Extensions != "" {
		h.Set(x402.HeaderExtensions, r.Extensions)
	}
	return h
}

// preflight answers a browser that asks before such a call.
func preflight(methods []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", op.AllowedHeaders)
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	}
}

// offered is one line of the manifest.
type offered struct {
	Resource x402.Resource       `json:"resource"`
	Type     string              `json:"type" jsonschema:"enum=http"`
	Method   string              `json:"method"`
	Accepts  []x402.Requirements `json:"accepts"`
	Input    map[string]any      `json:"input,omitempty"`
	Updated  string              `json:"lastUpdated" jsonschema:"format=date-time" jsonschema_description:"The date of the newest entry of the changelog."`
}

// manifest tells indexers what can be paid for, and how.
type manifest struct {
	Configured   bool      `json:"configured"`
	Version      int       `json:"version"`
	X402Version  int       `json:"x402Version"`
	Resources    []string  `json:"resources"`
	Items        []offered `json:"items"`
	Network      string    `json:"network,omitempty"`
	Asset        string    `json:"asset,omitempty"`
	AssetSymbol  string    `json:"assetSymbol,omitempty"`
	PayTo        string    `json:"payTo,omitempty"`
	Settlement   string    `json:"settlement,omitempty" jsonschema:"enum=dev,enum=facilitator"`
	Instructions string    `json:"instructions"`

	Introductory introductory `json:"introductoryCredit"`
}

func manifestAt(id, path string) *op.Operation {
	return &op.Operation{
		ID: id, Method: http.MethodGet, Path: path,
		Summary: "What can be paid for over x402, and on what terms. Disabled unless configured is true.",
		Output:  reflect.TypeFor[manifest](),
	}
}

var (
	x402Manifest     = manifestAt("get_x402_manifest", "/.well-known/x402")
	x402ManifestJSON = manifestAt("get_x402_manifest_json", "/.well-known/x402.json")
)

func (s *Server) showManifest(c *op.Call) (op.Reply, error) {
	return s.manifests[s.takesPayments()].Answer(c), nil
}

// makeManifests makes both, since a facilitator may come and go, and the prices.
func (s *Server) makeManifests() error {
	s.manifests = map[bool]op.Document{}
	for _, configured := range []bool{false, s.app.Settler != nil} {
		body, err := canon.Marshal(s.manifest(configured))
		if err != nil {
			return err
		}
		s.manifests[configured] = op.NewDocument(body, "application/json")
	}
	body, err := canon.Marshal(s.pricing())
	s.prices = op.NewDocument(body, "application/json")
	return err
}

func (s *Server) manifest(configured bool) manifest {
	m := manifest{Version: 1, X402Version: x402.Version, Resources: []string{}, Items: []offered{},
		Introductory: s.introductory(), Instructions: "Payments are off: use an API key in X-API-Key (POST " + s.app.BaseURL + "/api/keys/free issues one)."}
	if !configured {
		return m
	}
	m.Configured, m.Settlement = true, s.app.Settler.Mode()
	m.Network, m.Asset, m.AssetSymbol, m.PayTo = s.terms.Network, s.terms.Asset, s.terms.Symbol(), s.terms.PayTo
	m.Instructions = "Send the request. Sign one of the offers of its 402 answer and send the same request again with PAYMENT-SIGNATURE. " +
		"On a time-out or 503 send the same PAYMENT-SIGNATURE again; do not sign a new payment."
	if m.Settlement == payments.ModeDev {
		m.Instructions = "Development: signatures are checked and no money moves. " + m.Instructions
	}
	for _, o := range s.operations {
		if o.Service == nil {
			continue
		}
		d := s.demands[o.ID]
		m.add(offered{Resource: d.Resource, Type: "http", Method: o.Method, Accepts: d.Accepts, Input: o.Schema.Document})
	}
	for _, p := range s.app.Products {
		if p.Kind != store.OneTime {
			continue
		}
		m.add(offered{Type: "http", Method: http.MethodPost, Accepts: []x402.Requirements{s.terms.Offer(int(p.PriceCents))},
			Resource: s.sold("/api/purchase/"+p.Slug, p.Description, "download")})
	}
	return m
}

func (m *manifest) add(o offered) {
	o.Updated = site.LastChange().Format("2006-01-02T15:04:05.000Z")
	m.Resources, m.Items = append(m.Resources, o.Resource.URL), append(m.Items, o)
}

// pricing is what every service costs.
type pricing struct {
	Version           string          `json:"version"`
	Services          []pricedService `json:"services"`
	FreeCallsPerMonth int             `json:"freeCallsPerMonth"`
	Introductory      introductory    `json:"introductoryCredit"`
	Pass              *pricedPass     `json:"pass" jsonschema:"nullable"`
}

// introductory is what is free for whoever comes first.
type introductory struct {
	CreditCents int    `json:"creditCents"`
	Agents      int    `json:"agents" jsonschema_description:"Number of verified agents that get it, at most one for each mailbox."`
	Text        string `json:"text"`
	How         string `json:"how" jsonschema:"format=uri"`
}

// introductoryText says it in one sentence, here, in every 402 and on the pages.
var introductoryText = fmt.Sprintf("The first $%d of calls is free for the first %d verified agents: "+
	"an agent is verified by a mailbox or by its owner's claim, and one mailbox verifies at most one of the hundred.",
	accounts.AgentCreditCents/100, accounts.CreditedCustomers)

func (s *Server) introductory() introductory {
	return introductory{accounts.AgentCreditCents, accounts.CreditedCustomers,
		introductoryText,
		s.app.BaseURL + authPath}
}

type pricedService struct {
	OperationID string `json:"operationId"`
	Path        string `json:"path"`
	MCPTool     string `json:"mcpTool"` // empty for a service that agents are not shown
	PriceCents  int    `json:"priceCents"`
	PriceUSD    string `json:"priceUsd"`
	PassCredits int    `json:"passCredits"`
}

// pricedPass is the product that adds credit to a customer's calls every month.
type pricedPass struct {
	Product     string `json:"product"`
	URL         string `json:"url" jsonschema:"format=uri"`
	PriceCents  int64  `json:"priceCents"`
	PriceUSD    string `json:"priceUsd"`
	CreditCents int64  `json:"creditCents"`
}

var showPricing = &op.Operation{
	ID: "get_pricing", Method: http.MethodGet, Path: "/api/pricing",
	Summary: "What every service costs, the free calls of a key and the monthly pass.",
	Output:  reflect.TypeFor[pricing](),
}

func (s *Server) showPricing(c *op.Call) (op.Reply, error) {
	return s.prices.Answer(c), nil
}

func (s *Server) pricing() pricing {
	p := pricing{Version: policy.Version, Services: []pricedService{}, FreeCallsPerMonth: accounts.FreeCallsPerMonth, Introductory: s.introductory()}
	for _, o := range s.operations {
		if o.Service == nil {
			continue
		}
		priced := pricedService{OperationID: o.ID, Path: o.Path, PriceCents: o.Service.PriceCents, PriceUSD: usd(o.Service.PriceCents), PassCredits: o.Service.PriceCents}
		if !o.Service.Unlisted {
			priced.MCPTool = o.ID
		}
		p.Services = append(p.Services, priced)
	}
	for _, product := range s.app.Products {
		if product.Kind == store.Subscription && product.CreditCents > 0 {
			p.Pass = &pricedPass{Product: product.Slug, URL: s.app.BaseURL + "/pricing#" + product.Slug, PriceCents: product.PriceCents,
				PriceUSD: usd(int(product.PriceCents)), CreditCents: product.CreditCents}
			break
		}
	}
	return p
}

// facilitatorProblem says why the facilitator was not found to settle our payments;
// empty if it was, or nobody is asked.
func (s *Server) facilitatorProblem() string {
	if f, asks := s.app.Settler.(interface{ Problem() string }); asks {
		return f.Problem()
	}
	return ""
}

// openPayments counts the payments whose end is not known.
func (s *Server) openPayments(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	summary, err := s.projections.PaymentSummary(ctx)
	if err != nil {
		return 0 // the database is down, as other checks show
	}
	return summary.Claimed + summary.Unknown
}
