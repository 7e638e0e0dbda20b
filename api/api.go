// Package api serves countersign over HTTP. It only connects its subpackages: New gives each the
// dependencies it needs, the table contains the operations of all of them in the order of the
// documents, and Handler routes to them. The health checks are the only answers of this package
// itself.
//
// In reading order: op defines how an operation is declared, request runs every call, and then
// there is one subpackage for each subject, named as in commands. An operation is declared in the
// package of its subject. Its route, the validation of its input, its part of the OpenAPI
// documents and its metrics are derived from the declaration.
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

	"github.com/gorilla/mux"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/api/accounts"
	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/organizations"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/api/tools"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/web/public"
	"github.com/countersign/countersign/api/webhooks"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// NoContact is the contact address of a service that only its own machine can reach. The address
// does not exist.
const NoContact = "operator@countersign.invalid"

// Config configures a server.
type Config struct {
	App            *commands.App
	Projections    *projections.Projections
	Log            *slog.Logger
	RateLimit      bool                 // may be false only on a loopback listener
	TrustedProxies []netip.Prefix       // proxies whose X-Forwarded-For header is trusted
	Contact        string               // e-mail address of the operator, for the OpenAPI document
	Mail           mail.Sender          // nil means that sign-in is answered with 503
	Outbox         *mail.Outbox         // shown on the page /outbox; nil means no such page
	Durability     string               // "provider" means that the database provider makes commits durable, not fsync; /readyz reports it
	NoCheckpoints  bool                 // no key signs checkpoints, so a restore of the database to an earlier state is not detected
	Loopback       bool                 // the listener has a loopback address, so /mcp accepts every loopback name
	MCPOrigins     []string             // other web origins whose pages may use /mcp
	Terms          x402.Terms           // terms of payment, if App has a Settler
	Checkout       checkout.Provider    // nil means that card checkout is answered with 503
	Proofs         []string             // proofs of ownership, for indexers of paid services
	Traces         trace.TracerProvider // nil means no traces
}

// Server answers HTTP requests. It connects the subpackages, gives each its dependencies, and
// collects their operations in one table.
type Server struct {
	app         *commands.App
	projections *projections.Projections
	table       op.Table
	entry       *request.Entry
	path        *request.Path
	doors       map[string]http.Handler // MCP endpoints, by path
	web         *web.Handler
	public      *public.Room
	assets      []web.Asset
	reviews     *mail.Reviews
	drafts      *mail.Drafts
	figures     sync.Map // caches []plot.Figure by operation

	services      *services.Services
	prices        *services.Prices
	shop          *store.Shop
	refunds       *store.Refunds
	keys          *accounts.Keys
	mail          *accounts.Mail
	signIn        *accounts.SignIn
	oauth         *accounts.OAuth
	organizations *organizations.Organizations
	decisions     *decisions.Decisions
	policies      *decisions.Policies
	exports       *evidence.Exports
	proofs        *evidence.Proofs
	verifier      *evidence.Verifier
	publicKeys    *evidence.PublicKeys
	webhooks      *webhooks.Webhooks
	deliveries    *webhooks.Deliveries
	tools         *tools.Tools
	contract      *contract.Contract
	manifests     *discovery.Manifests
	discovery     *discovery.Discovery
	content       *discovery.Content

	durability string      // as in Config
	noHeads    bool        // NoCheckpoints of Config
	draining   atomic.Bool // set by Drain: readiness fails before the server stops
}

// New returns a server with everything that is derived from the table of operations. It returns an
// error if the declarations are inconsistent.
func New(c Config) (*Server, error) {
	app := c.App
	s := &Server{app: app, projections: c.Projections, durability: c.Durability, noHeads: c.NoCheckpoints,
		reviews: mail.NewReviews(app.Decisions, c.Projections, c.Mail, c.Log), drafts: mail.NewDrafts(app.Decisions, c.Mail, c.Log)}
	sessions, err := credential.NewSessions(app.Ledger.Pool(), app.BaseURL, app.Clock)
	if err != nil {
		return nil, err
	}
	if s.assets, err = web.Assets(); err != nil {
		return nil, err
	}
	contact := cmp.Or(c.Contact, NoContact)
	c.Terms.FreeKey = &x402.FreeKey{Issue: app.BaseURL + accounts.IssueFreeKey.Path, Header: "X-API-Key", Credit: services.IntroductoryText}

	// Steps that every call takes.
	callers := &request.Callers{Rates: op.NewRates(c.RateLimit, app.Clock), Proxies: c.TrustedProxies}
	answers := &request.Answers{Log: c.Log, Commands: app.Services, Page: func(w http.ResponseWriter, r *http.Request, err error) { s.web.ShowError(w, r, err) }}
	paying := &payments.Payments{Commands: app.Payments, Terms: c.Terms}
	credentials := &credential.Reader{Organizations: app.Organizations, Projections: c.Projections, Sessions: sessions, Address: callers.Address, Saw: request.NoteCaller}
	telemetry := request.NewTelemetry(app.Ledger, c.Projections, c.Traces)
	telemetry.CheckpointKey(c.NoCheckpoints)
	s.path = &request.Path{Commands: app.Services, Payments: paying, Credentials: credentials, Callers: callers, Answers: answers, Telemetry: telemetry}
	s.proofs = &evidence.Proofs{Ledger: app.Ledger, Answers: answers}
	s.entry = request.NewEntry(s.path, s.proofs.Mark, c.Loopback)

	// Subpackages whose functions the pages call, and the pages.
	s.shop = &store.Shop{Store: app.Store, Payments: paying, Provider: c.Checkout, Rates: callers.Rates, Log: c.Log}
	s.prices = services.NewPrices(s.shop)
	s.mail = &accounts.Mail{Accounts: app.Accounts, Mailer: c.Mail, Callers: callers, Log: c.Log}
	s.exports = &evidence.Exports{Commands: app.Evidence, Projections: c.Projections}
	s.verifier = &evidence.Verifier{Ground: app.Ground, Proofs: s.proofs, Callers: callers}
	s.tools = &tools.Tools{Path: s.path, Table: &s.table}
	pages := &discovery.Pages{Prices: s.prices, Table: &s.table, Tools: s.tools, Contact: contact, Cookie: sessions.Cookie()}
	s.tools.Rule = pages.Rule
	if err = s.newPages(pages, c.Outbox); err != nil {
		return nil, err
	}

	// The other subpackages.
	s.services = &services.Services{Commands: app.Services, Shop: s.shop, Telemetry: telemetry, Projections: c.Projections}
	s.refunds = &store.Refunds{Store: app.Store, Callers: callers, Table: &s.table}
	s.keys = &accounts.Keys{Commands: app.Services, Shop: s.shop, Callers: callers}
	s.signIn = &accounts.SignIn{Credentials: credentials, Mail: s.mail}
	s.oauth = &accounts.OAuth{Accounts: app.Accounts, Mail: s.mail, Callers: callers, Answers: answers}
	s.organizations = &organizations.Organizations{Commands: app.Organizations, Projections: c.Projections}
	s.decisions = &decisions.Decisions{Commands: app.Decisions, Projections: c.Projections, Reviews: s.reviews, Telemetry: telemetry}
	s.policies = &decisions.Policies{Commands: app.Decisions, Drafts: s.drafts}
	s.publicKeys = &evidence.PublicKeys{Accounts: app.Accounts}
	s.webhooks = &webhooks.Webhooks{Commands: app.Webhooks, Projections: c.Projections}
	s.deliveries = webhooks.NewDeliveries(app.Webhooks, c.Projections, telemetry, c.Log)
	s.contract = contract.New(contract.Contract{Table: &s.table, BaseURL: app.BaseURL, Contact: contact, Cookie: sessions.Cookie(), Proofs: c.Proofs, X402: app.Settler != nil})
	s.manifests = discovery.NewManifests(paying, app.Store, &s.table)
	s.discovery = &discovery.Discovery{Pages: pages}
	s.content = &discovery.Content{Pages: pages, Web: s.web, Room: s.public, Answers: answers}

	// Complete the table, and create what is derived from all operations: the schemas of the bodies,
	// the 402 answers and the MCP endpoints.
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

// Handler returns the handler of the public listener.
func (s *Server) Handler() http.Handler {
	router := mux.NewRouter().SkipClean(true).UseEncodedPath()
	allowed := map[string][]string{}
	var order []string // order of the paths: the first that matches is used
	add := func(path string, handler http.Handler, methods ...string) {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		if allowed[path] == nil {
			order = append(order, path)
		}
		allowed[path] = append(allowed[path], methods...)
		router.Handle(path, request.Routed(path, handler)).Methods(methods...)
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
	add(web.LivePath, s.path.AsPage(http.HandlerFunc(s.web.Live)), http.MethodGet)
	for _, p := range s.web.Routes() {
		add(p.Path, s.path.AsPage(p.Handler), p.Method)
	}
	s.proofs.Routes(func(path string, handler http.Handler, methods ...string) {
		add(path, s.path.AsPage(handler), methods...)
	})
	add(accounts.AuthorizePath, s.path.AsPage(http.HandlerFunc(s.oauth.Authorize)), http.MethodGet)
	add("/api/downloads/{token}", s.path.AsPage(&store.Downloads{Store: s.app.Store, Sessions: s.path.Credentials.Sessions, Web: s.web, Answers: s.path.Answers, Callers: s.path.Callers}), http.MethodGet, http.MethodPost)
	add("/api/webhooks/stripe", &store.Notices{Shop: s.shop, Answers: s.path.Answers}, http.MethodPost)
	for _, a := range s.assets {
		add(a.Path, s.path.AsPage(a), http.MethodGet)
	}
	add("/healthz", http.HandlerFunc(s.healthz), http.MethodGet)
	add("/readyz", http.HandlerFunc(s.readyz), http.MethodGet)
	for at, door := range s.doors {
		router.Handle(at, request.Routed(at, door)) // accepts every method, because the MCP endpoint itself refuses the wrong ones
	}
	router.NotFoundHandler = s.path.AsPage(s.content)
	paths := sync.OnceValue(func() *mux.Router { // built at the first use: wrong methods are rare, and compiling the patterns would slow down the start
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
			if preflights[at] != nil { // the preflight allowed the page to send the request, so the page may read the answer
				op.Expose(w.Header())
			}
		}
		s.path.Answers.Missed(w, r, policy.Refuse(op.CodeMethod, "", "method not allowed"))
	})
	return s.entry.Around(router)
}

// preflight answers the request with which a browser asks whether a page may call an operation.
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

// Internal returns the handler of the second listener: metrics and profiles, for operators only.
func (s *Server) Internal() http.Handler { return s.path.Telemetry.Internal() }

// Settled counts an attempt to settle a payment, by the resulting state.
func (s *Server) Settled(state string, took time.Duration) { s.path.Telemetry.Settled(state, took) }

// Irreproducible counts a settled call whose output differs when it is computed again.
func (s *Server) Irreproducible() { s.path.Telemetry.Irreproducible() }

// Deliver sends messages to webhooks until ctx ends, and then waits for the messages that are
// being sent.
func (s *Server) Deliver(ctx context.Context) { s.deliveries.Run(ctx) }

// Drain makes readiness fail, so that a load balancer stops sending requests. It ends the
// streams of open pages.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.web.EndStreams()
}

// Service returns the service that an operation sells. It returns false if the operation sells
// none.
func (s *Server) Service(id string) (policy.Service, bool) {
	if o := s.table.Find(id); o != nil && o.Service != nil {
		return *o.Service, true
	}
	return policy.Service{}, false
}

// Close stops the e-mails to reviewers and admins. It waits until the e-mails in progress are sent,
// or ctx ends. It may be called twice.
func (s *Server) Close(ctx context.Context) {
	s.reviews.Close(ctx)
	s.drafts.Close(ctx)
}
