package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/api/mail"

	"github.com/gorilla/mux"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// NoContact is the contact of a service that only its own machine can reach. The address
// does not exist.
const NoContact = "operator@countersign.invalid"

// Config is what a server is told.
type Config struct {
	App            *commands.App
	Projections    *projections.Projections
	Log            *slog.Logger
	RateLimit      bool                 // false only on a loopback listener
	TrustedProxies []netip.Prefix       // whose X-Forwarded-For counts
	Contact        string               // e-mail address in the OpenAPI document
	Mail           mail.Sender          // nil: sign-in answers 503
	Outbox         *mail.Outbox         // shown as a page, if there is one
	Durability     string               // "provider": the database service keeps commits durable, not fsync; /readyz says so
	NoCheckpoints  bool                 // there is no key for them: a database that is put back is not noticed
	Loopback       bool                 // the listener is: every loopback name of it is good at /mcp
	MCPOrigins     []string             // web origins that may use /mcp, beside the own one
	Terms          x402.Terms           // on which payments are taken, if App has a Settler
	Checkout       checkout.Provider    // nil: card checkout answers 503
	Proofs         []string             // of ownership, for indexers of paid services
	Traces         trace.TracerProvider // nil: nobody collects traces
}

// Server answers HTTP requests. It puts the rooms together: each has the few things that it
// needs, and their operations are one table.
type Server struct {
	app         *commands.App
	projections *projections.Projections
	table       op.Table
	entry       *Entry
	path        *Path
	doors       map[string]http.Handler // of MCP, by path
	web         *web.Handler
	assets      []web.Asset
	reviews     *mail.Reviews
	figures     sync.Map // []plot.Figure by operation

	services      *Services
	prices        *Prices
	shop          *Shop
	refunds       *Refunds
	keys          *Keys
	mail          *Mail
	signIn        *SignIn
	oauth         *OAuth
	organizations *Organizations
	decisions     *Decisions
	policies      *Policies
	exports       *Exports
	proofs        *Proofs
	verifier      *Verifier
	publicKeys    *PublicKeys
	webhooks      *Webhooks
	deliveries    *Deliveries
	tools         *Tools
	contract      *Contract
	manifests     *Manifests
	discovery     *Discovery
	content       *Content

	durability string      // as in Config
	noHeads    bool        // as NoCheckpoints in Config
	draining   atomic.Bool // owned by whoever stops the server: readiness fails first
}

// New builds a server and everything that follows from the operations table. It
// fails if a declaration does not hold together.
func New(c Config) (*Server, error) {
	app := c.App
	s := &Server{app: app, projections: c.Projections, durability: c.Durability, noHeads: c.NoCheckpoints,
		reviews: mail.NewReviews(app.Decisions, c.Projections, c.Mail, c.Log)}
	sessions, err := credential.NewSessions(app.Ledger.Pool(), app.BaseURL, app.Clock)
	if err != nil {
		return nil, err
	}
	if s.assets, err = web.Assets(); err != nil {
		return nil, err
	}
	contact := cmp.Or(c.Contact, NoContact)
	c.Terms.FreeKey = &x402.FreeKey{Issue: app.BaseURL + issueFreeKey.Path, Header: "X-API-Key", Credit: IntroductoryText}

	// What every call passes.
	callers := &Callers{Rates: op.NewRates(c.RateLimit, app.Clock), Proxies: c.TrustedProxies}
	answers := &Answers{Log: c.Log, Commands: app.Services, Page: func(w http.ResponseWriter, r *http.Request, err error) { s.web.ShowError(w, r, err) }}
	paying := &Payments{Commands: app.Payments, Terms: c.Terms}
	credentials := &credential.Reader{Organizations: app.Organizations, Projections: c.Projections, Sessions: sessions, Address: callers.Address, Saw: NoteCaller}
	telemetry := NewTelemetry(app.Ledger, c.Projections, c.Traces)
	telemetry.CheckpointKey(c.NoCheckpoints)
	s.path = &Path{Commands: app.Services, Payments: paying, Credentials: credentials, Callers: callers, Answers: answers, Telemetry: telemetry}
	s.proofs = &Proofs{Ledger: app.Ledger, Answers: answers}
	s.entry = NewEntry(s.path, s.proofs.Mark, c.Loopback)

	// What pages ask of.
	s.shop = &Shop{Store: app.Store, Payments: paying, Provider: c.Checkout, Rates: callers.Rates, Log: c.Log}
	s.prices = NewPrices(s.shop)
	s.mail = &Mail{Accounts: app.Accounts, Mailer: c.Mail, Callers: callers, Log: c.Log}
	s.exports = &Exports{Commands: app.Evidence, Projections: c.Projections}
	s.verifier = &Verifier{Ground: app.Ground, Proofs: s.proofs, Callers: callers}
	s.tools = &Tools{Path: s.path, Table: &s.table}
	pages := &Pages{Prices: s.prices, Table: &s.table, Tools: s.tools, Contact: contact, Cookie: sessions.Cookie()}
	s.tools.Rule = pages.Rule
	if s.web, err = web.NewHandler(web.Config{App: app, Projections: c.Projections, Credentials: *credentials, Log: c.Log, Outbox: c.Outbox,
		Service: s.forPages(pages)}); err != nil {
		return nil, err
	}

	// What answers operations.
	s.services = &Services{Commands: app.Services, Shop: s.shop, Telemetry: telemetry, Projections: c.Projections}
	s.refunds = &Refunds{Store: app.Store, Callers: callers, Table: &s.table}
	s.keys = &Keys{Commands: app.Services, Shop: s.shop, Callers: callers}
	s.signIn = &SignIn{Credentials: credentials, Mail: s.mail}
	s.oauth = &OAuth{Accounts: app.Accounts, Mail: s.mail, Callers: callers, Answers: answers}
	s.organizations = &Organizations{Commands: app.Organizations, Projections: c.Projections}
	s.decisions = &Decisions{Commands: app.Decisions, Projections: c.Projections, Reviews: s.reviews, Telemetry: telemetry}
	s.policies = &Policies{Commands: app.Decisions}
	s.publicKeys = &PublicKeys{Accounts: app.Accounts}
	s.webhooks = &Webhooks{Commands: app.Webhooks, Projections: c.Projections}
	s.deliveries = NewDeliveries(app.Webhooks, c.Projections, telemetry, c.Log)
	s.contract = NewContract(Contract{Table: &s.table, BaseURL: app.BaseURL, Contact: contact, Cookie: sessions.Cookie(), Proofs: c.Proofs, X402: app.Settler != nil})
	s.manifests = NewManifests(paying, app.Store, &s.table)
	s.discovery = &Discovery{Pages: pages}
	s.content = &Content{Pages: pages, Web: s.web, Answers: answers}

	s.table = s.operations()
	for _, o := range s.table {
		if o.Input == nil {
			continue
		}
		if o.Schema, err = schema.New(o.Input); err != nil {
			return nil, err
		}
		o.Schema.Rules = o.Conditions
	}
	if app.Settler != nil {
		if err = paying.Prepare(s.table.Services()); err != nil {
			return nil, err
		}
	}
	s.doors, err = s.tools.Open(c.Loopback, c.MCPOrigins)
	return s, err
}

// Handler is the public listener's.
func (s *Server) Handler() http.Handler {
	router := mux.NewRouter().SkipClean(true).UseEncodedPath()
	allowed := map[string][]string{}
	var order []string // of the paths: the first that matches counts
	add := func(path string, handler http.Handler, methods ...string) {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		if allowed[path] == nil {
			order = append(order, path)
		}
		allowed[path] = append(allowed[path], methods...)
		router.Handle(path, Routed(path, handler)).Methods(methods...)
	}
	preflights := map[string][]string{}
	for _, o := range s.table {
		add(o.Path, s.path.Handle(o), o.Method)
		if o.AnyOrigin() {
			preflights[o.Path] = append(preflights[o.Path], o.Method)
		}
	}
	for path, methods := range preflights {
		add(path, preflight(methods), http.MethodOptions)
	}
	for _, p := range s.web.Routes() {
		add(p.Path, s.path.AsPage(p.Handler), p.Method)
	}
	s.proofs.Routes(func(path string, handler http.Handler, methods ...string) {
		add(path, s.path.AsPage(handler), methods...)
	})
	add(AuthorizePath, s.path.AsPage(http.HandlerFunc(s.oauth.Authorize)), http.MethodGet)
	add("/api/downloads/{token}", s.path.AsPage(&Downloads{Store: s.app.Store, Sessions: s.path.Credentials.Sessions, Web: s.web, Answers: s.path.Answers, Callers: s.path.Callers}), http.MethodGet, http.MethodPost)
	add("/api/webhooks/stripe", &Notices{Shop: s.shop, Answers: s.path.Answers}, http.MethodPost)
	for _, a := range s.assets {
		add(a.Path, s.path.AsPage(a), http.MethodGet)
	}
	add("/healthz", http.HandlerFunc(s.healthz), http.MethodGet)
	add("/readyz", http.HandlerFunc(s.readyz), http.MethodGet)
	for at, door := range s.doors {
		router.Handle(at, Routed(at, door)) // every method: it says itself which it takes
	}
	router.NotFoundHandler = s.path.AsPage(s.content)
	paths := sync.OnceValue(func() *mux.Router { // few ask by a wrong method, and its patterns cost a start as much as the others
		paths := mux.NewRouter().UseEncodedPath()
		for _, path := range order {
			paths.Path(path).Name(path)
		}
		return paths
	})
	router.MethodNotAllowedHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var match mux.RouteMatch
		if paths().Match(r, &match) {
			at := match.Route.GetName()
			w.Header().Set("Allow", strings.Join(allowed[at], ", "))
			if preflights[at] != nil { // else a page could not read the answer that its preflight promised
				op.Expose(w.Header())
			}
		}
		s.path.Answers.Missed(w, r, policy.Refuse(op.CodeMethod, "", "method not allowed"))
	})
	return s.entry.Around(router)
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

// Internal is the second listener's: metrics and profiles, for operators only.
func (s *Server) Internal() http.Handler { return s.path.Telemetry.Internal() }

// Settled counts an attempt to settle a payment by the state afterwards.
func (s *Server) Settled(state string, took time.Duration) { s.path.Telemetry.Settled(state, took) }

// Irreproducible counts a settled call that gives another output now.
func (s *Server) Irreproducible() { s.path.Telemetry.Irreproducible() }

// Deliver sends messages to webhooks until ctx ends, and waits for those that are on their
// way.
func (s *Server) Deliver(ctx context.Context) { s.deliveries.Run(ctx) }

// Drain makes readiness fail, so that a balancer stops sending requests.
func (s *Server) Drain() { s.draining.Store(true) }

// Service is what an operation sells, if it is one that sells a service.
func (s *Server) Service(id string) (policy.Service, bool) {
	if o := s.table.Find(id); o != nil && o.Service != nil {
		return *o.Service, true
	}
	return policy.Service{}, false
}

// Close ends what goes on behind the answers: the pauses between letters to
// reviewers. It waits, until ctx ends, for those on their way. It may be called
// twice.
func (s *Server) Close(ctx context.Context) { s.reviews.Close(ctx) }
