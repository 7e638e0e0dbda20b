package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/api/mail"

	"github.com/gorilla/mux"
	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
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

// Server answers HTTP requests.
type Server struct {
	app         *commands.App
	projections *projections.Projections
	log         *slog.Logger
	proxies     []netip.Prefix
	contact     string
	rates       *op.Rates
	sessions    *credential.Sessions
	credentials credential.Reader
	mail        mail.Sender
	reviews     *mail.Reviews
	web         *web.Handler
	assets      []web.Asset
	checkout    checkout.Provider
	proofs      []string // of ownership
	loopback    bool     // the listener is
	durability  string   // as in Config; so is the next
	noHeads     bool
	metrics     *metrics
	tracer      trace.Tracer
	operations  []*op.Operation
	openAPI     func() (op.Document, error) // made when it is first asked for; so is the next
	openAPIFull func() (op.Document, error)
	terms       x402.Terms
	demands     map[string]x402.PaymentRequired // the 402 of each service, by operation
	manifests   map[bool]op.Document            // of x402, by whether it is configured
	kept        kept                            // pages and the documents made of them
	prices      op.Document
	figures     sync.Map // []plot.Figure by operation
	deliveries  *deliveries
	doors       map[string]*mcp.Door // by path
	seats       chan struct{}        // one per request that is worked for
	bodies      *bodies
	draining    atomic.Bool // owned by whoever stops the server: readiness fails first
}

// New builds a server and everything that follows from the operations table. It
// fails if a declaration does not hold together.
func New(c Config) (*Server, error) {
	s := &Server{
		app: c.App, projections: c.Projections, log: c.Log, proxies: c.TrustedProxies, contact: cmp.Or(c.Contact, NoContact),
		rates: op.NewRates(c.RateLimit, c.App.Clock), metrics: newMetrics(c.App.Ledger, c.Projections),
		mail: c.Mail, terms: c.Terms, checkout: c.Checkout,
		seats: make(chan struct{}, op.MaxInFlight), bodies: newBodies(),
	}
	s.operations = s.table()
	if c.Traces == nil {
		c.Traces = noop.NewTracerProvider()
	}
	s.tracer = c.Traces.Tracer(ledger.TracerName)
	for _, o := range s.operations {
		if o.Input == nil {
			continue
		}
		var err error
		if o.Schema, err = schema.New(o.Input); err != nil {
			return nil, err
		}
		o.Schema.Rules = conditionsOf(o)
	}
	s.proofs = c.Proofs
	s.loopback, s.durability, s.noHeads = c.Loopback, c.Durability, c.NoCheckpoints
	s.metrics.checkpointKey(s.noHeads)
	s.terms.FreeKey = &x402.FreeKey{Issue: c.App.BaseURL + issueFreeKey.Path, Header: "X-API-Key", Credit: introductoryText}
	s.reviews = mail.NewReviews(c.App.Decisions, c.Projections, c.Mail, c.Log)
	var err error
	if s.assets, err = web.Assets(); err != nil {
		return nil, err
	}
	if s.sessions, err = credential.NewSessions(c.App.Ledger.Pool(), c.App.BaseURL, c.App.Clock); err != nil {
		return nil, err
	}
	s.credentials = credential.Reader{App: s.app, Projections: s.projections, Sessions: s.sessions, Address: s.clientAddress, Saw: noteCaller}
	if s.web, err = web.NewHandler(web.Config{App: s.app, Projections: s.projections, Credentials: s.credentials, Log: s.log, Outbox: c.Outbox,
		Service: s.forPages()}); err != nil {
		return nil, err
	}
	if err = errors.Join(s.makeDemands(), s.makeManifests()); err != nil {
		return nil, err
	}
	s.deliveries = newDeliveries(s.app, s.projections, s.log, s.metrics)
	s.openAPI = sync.OnceValues(func() (op.Document, error) { return newOpenAPI(s, forAgents) })
	s.openAPIFull = sync.OnceValues(func() (op.Document, error) { return newOpenAPI(s, forAll) })
	s.doors, err = newDoors(s, c)
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
		router.Handle(path, routed(path, handler)).Methods(methods...)
	}
	preflights := map[string][]string{}
	for _, o := range s.operations {
		add(o.Path, s.handle(o), o.Method)
		if o.AnyOrigin() {
			preflights[o.Path] = append(preflights[o.Path], o.Method)
		}
	}
	for path, methods := range preflights {
		add(path, preflight(methods), http.MethodOptions)
	}
	for _, p := range s.web.Routes() {
		add(p.Path, s.asPage(p.Handler), p.Method)
	}
	s.ledgerRoutes(func(path string, handler http.Handler, methods ...string) { add(path, s.asPage(handler), methods...) })
	add(authorizePath, s.asPage(http.HandlerFunc(s.authorize)), http.MethodGet)
	add("/api/downloads/{token}", s.asPage(http.HandlerFunc(s.download)), http.MethodGet, http.MethodPost)
	add("/api/webhooks/stripe", http.HandlerFunc(s.webhook), http.MethodPost)
	for _, a := range s.assets {
		add(a.Path, s.asPage(a), http.MethodGet)
	}
	add("/healthz", http.HandlerFunc(s.healthz), http.MethodGet)
	add("/readyz", http.HandlerFunc(s.readyz), http.MethodGet)
	for at, door := range s.doors {
		router.Handle(at, routed(at, s.asResource(at, door))) // every method: it says itself which it takes
	}
	router.NotFoundHandler = s.asPage(http.HandlerFunc(s.showContent))
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
		err := policy.Refuse(op.CodeMethod, "", "method not allowed")
		if forPeople(r) {
			s.web.ShowError(w, r, err)
			return
		}
		s.fail(w, r, bareErrors(r), err)
	})
	return s.around(router)
}

// routed notes the route for log and metrics.
func routed(path string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rec, ok := w.(*recorder); ok {
			rec.route = path
		}
		handler.ServeHTTP(w, r)
	})
}

// notFound answers browsers with a page where people look for one, and everybody
// else with JSON: scanners take a page for an unknown document as the document.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	err := policy.Refuse(op.CodeNotFound, "", "not found")
	if forPeople(r) {
		s.web.ShowError(w, r, err)
		return
	}
	s.fail(w, r, bareErrors(r), err)
}

// forPeople says whether a request that reached no operation and no page is a
// browser's for a page.
func forPeople(r *http.Request) bool {
	at := r.URL.Path
	return !strings.HasPrefix(at, "/api") && !strings.HasPrefix(at, "/.well-known") && path.Ext(at) == "" && plainPath(r.URL.EscapedPath()) &&
		op.Weight(strings.Join(r.Header.Values("Accept"), ","), "text/html") != 0
}

// bareErrors says whether a request that reached no operation is for a part of
// the service whose errors are exactly {error}.
func bareErrors(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/assurance/") || strings.HasPrefix(r.URL.Path, "/api/agent-workflows/action-safety/status")
}

type contextKey int

const recorderKey contextKey = 0

func requestID(ctx context.Context) string {
	if rec, ok := ctx.Value(recorderKey).(*recorder); ok {
		return rec.id
	}
	return ""
}

// noteCaller puts who calls on the request's line of the log: who read evidence is
// to be seen by those who run the service.
func noteCaller(ctx context.Context, tenant, actor string) {
	if rec, ok := ctx.Value(recorderKey).(*recorder); ok {
		rec.caller.Store(&caller{tenant, actor})
	}
}

// caller is who was found to be calling, by public ids. tenant is empty unless they
// act for an organization.
type caller struct{ tenant, actor string }

// recorder notes route, caller and status for log and metrics, and when the work
// for a request is over.
type recorder struct {
	http.ResponseWriter
	id     string                 // of the request
	caller atomic.Pointer[caller] // nil: nobody with a credential; a tool call may still run when the request ends
	route  string
	status int
	seat   seat
	body   *body // nil for a request without one
}

// WriteHeader notes the status on its way. However slowly the answer is read from
// here on, it keeps no seat.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.over()
	}
	r.ResponseWriter.WriteHeader(status)
}

// over ends what a request holds beside its connection.
func (r *recorder) over() {
	r.seat.leave()
	if r.body != nil {
		r.body.answered()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// around is what every request passes, matched or not: id, bounds, one recover,
// one log line, the metrics.
func (s *Server) around(router *mux.Router) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := "req_" + ulid.MustNew(ulid.Timestamp(start), rand.Reader).String()
		rec := &recorder{ResponseWriter: w, id: id, route: "unmatched", seat: seat{seats: s.seats}}
		defer rec.over()
		h := rec.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		s.tellCheckpoint(h)
		ctx, span := s.beginTrace(r)
		r = r.WithContext(context.WithValue(ctx, recorderKey, rec))
		defer func() {
			if p := recover(); p != nil {
				s.metrics.panics.Inc()
				s.fail(rec, r, bareErrors(r), fmt.Errorf("panic: %v", p))
			}
			s.metrics.observe(rec.route, rec.status, time.Since(start))
			line := []any{"requestId", id, "method", methodForLog(r.Method), "route", rec.route, "status", rec.status,
				"durationMs", float64(time.Since(start).Microseconds()) / 1000}
			if who := rec.caller.Load(); who != nil {
				line = append(line, "tenant", who.tenant, "actor", who.actor)
			}
			if span.IsRecording() {
				line = append(line, "traceId", span.SpanContext().TraceID().String())
			}
			s.log.Info("request", line...)
			endTrace(span, methodForLog(r.Method), rec)
		}()
		if r.URL.IsAbs() || r.URL.Host != "" {
			if !s.isOwnAddress(r.URL) { // a request to a proxy: we are none
				h.Set("Connection", "close")
				s.fail(rec, r, false, policy.Refuse(op.CodeInvalidBody, "", "the request target must be a path, or an address of this service"))
				return
			}
			r.URL.Scheme, r.URL.Host, r.URL.User = "", "", nil
		}
		if !plainPath(r.URL.EscapedPath()) {
			s.notFound(rec, r)
			return
		}
		if !rec.seat.take() && !isHealth(r.URL.Path) {
			s.fail(rec, r, bareErrors(r), errNoSeat)
			return
		}
		if r.Body != http.NoBody {
			rec.body = &body{ReadCloser: r.Body, all: s.bodies, seat: &rec.seat,
				control: http.NewResponseController(w), address: s.network(r)}
			r.Body = rec.body
			defer s.bodies.forget(rec.body)
		}
		router.ServeHTTP(rec, r)
	})
}

// isOwnAddress says whether an absolute request target (RFC 9112, section 3.2.2) is of
// this service, whatever its port: by the name in the base URL, or by a loopback name on
// a loopback listener.
func (s *Server) isOwnAddress(target *url.URL) bool {
	name := strings.ToLower(target.Hostname())
	return (target.Scheme == "http" || target.Scheme == "https") && (name == strings.ToLower(s.host()) || s.loopback && mcp.IsLoopback(name))
}

// isHealth says whether a path is one by which others find out how the service is:
// it is answered however much there is to do.
func isHealth(path string) bool {
	return path == health.Path || path == "/healthz" || path == "/readyz"
}

// methodForLog is the method if it is one of HTTP's; a caller may send any word.
func methodForLog(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// plainPath refuses what some reader would take for another path: empty and dot
// segments, encoded slashes and dots, NUL.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	lower := strings.ToLower(path)
	for _, encoded := range []string{"%2f", "%2e", "%5c", "%00"} {
		if strings.Contains(lower, encoded) {
			return false
		}
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && (i < len(segments)-1 || i > 0) {
			return false
		}
	}
	return true
}

// clientAddress is the network address a request comes from: the peer's, or what
// configured proxies say of it.
func (s *Server) clientAddress(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := peer.Addr().Unmap()
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && trusted(address); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = next.Unmap()
	}
	return address.String()
}

// HTTP wraps a handler with the time-outs and sizes of every listener.
func HTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: op.ReadHeaderTimeout, ReadTimeout: op.ReadTimeout,
		WriteTimeout: op.WriteTimeout, IdleTimeout: op.IdleTimeout, MaxHeaderBytes: op.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Bounded is a listener with a bound on its open connections.
func Bounded(l net.Listener) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, op.MaxConnections)}
}

type boundedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a connection and a free slot for it.
func (l *boundedListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: conn, release: func() { <-l.slots }}, nil
}

type boundedConn struct {
	net.Conn
	closed  atomic.Bool
	release func()
}

// goError is how net/http ends the status line of what it refuses itself, before
// any handler: a request that is none, headers that are too large.
const goError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write gives what net/http refuses itself the form and the headers of every other
// error of ours.
func (c *boundedConn) Write(p []byte) (int, error) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || !bytes.HasPrefix(line, []byte("HTTP/1.1 4")) || !bytes.HasPrefix(append([]byte("\r\n"), rest[:min(len(rest), len(goError))]...), []byte(goError)) {
		return c.Conn.Write(p)
	}
	body := `{"error":"the request is no valid HTTP request","code":"invalid_request"}`
	_, err := fmt.Fprintf(c.Conn, "%s\r\nCache-Control: no-store\r\nContent-Length: %d\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
		line, len(body), body)
	return len(p), err
}

// Close frees the slot, once.
func (c *boundedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.release()
	}
	return c.Conn.Close()
}

// Drain makes readiness fail, so that a balancer stops sending requests.
func (s *Server) Drain() { s.draining.Store(true) }

// Service is what an operation sells, if it is one that sells a service.
func (s *Server) Service(id string) (policy.Service, bool) {
	if o := s.operation(id); o != nil && o.Service != nil {
		return *o.Service, true
	}
	return policy.Service{}, false
}

// Close ends what goes on behind the answers: the pauses between letters to
// reviewers. It waits, until ctx ends, for those on their way. It may be called
// twice.
func (s *Server) Close(ctx context.Context) { s.reviews.Close(ctx) }
