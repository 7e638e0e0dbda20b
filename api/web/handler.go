package web

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Config is what a handler of pages works with.
type Config struct {
	App         *commands.App
	Projections *projections.Projections
	Credentials credential.Reader
	Log         *slog.Logger
	Outbox      *mail.Outbox // nil: there is no such page
	Service
}

// Service is what pages ask of the service around them, beside commands and read
// models: it is the same that programs are answered with.
type Service struct {
	Site          func() (*site.Site, error)
	Groups        []Group                                                          // of all services
	Prices        func() any                                                       // the data of the price list
	CardCheckout  bool                                                             // there is a provider where cards pay
	BeginBuying   func(ctx context.Context, slug, customer string) (string, error) // returns the address where it is paid
	SendLink      func(r *http.Request, email, next string) error
	BillingPortal func(ctx context.Context, customer string) (string, error)
	Resync        func(ctx context.Context, customer string) bool
	DownloadURL   func(store.DownloadLink) string
	Examine       func(*http.Request, []byte) (seal.Examination, error) // a record that somebody was handed
	Form          func(operation string) *Form                          // of a service; nil: there is no such service
	Figures       func(operation string) []plot.Figure                  // of a service's example; none where it is better read
	Call          func(r *http.Request, operation, key, body string) Answer
	Approved      func(decisions.Recorded)                       // counts a person's verdict
	MayTry        func(*http.Request) error                      // refuses a verdict to a network that asks for too many
	MaySend       func(*http.Request, *credential.Session) error // refuses a form of somebody who sends too many
	MayEnterCode  func() bool
	Export        func(context.Context, organizations.Principal, bundle.Filters) (path string, err error) // makes a signed bundle
	Twin          func(http.ResponseWriter, *http.Request) bool                                           // answers with the Markdown of a page, if that is wanted
	Problem       func(http.Header, *http.Request, error) (status int, message string)
	Fail          func(http.ResponseWriter, *http.Request, error) // for what no page can be made of
	RequestID     func(context.Context) string
}

// Group is services that people look for together.
type Group struct {
	Name, About string
	Services    []ListedService
}

// ListedService is a service with its price in words.
type ListedService struct {
	policy.Service
	Path, PriceUSD string
}

// Form is a form that calls a service with what is written in it.
type Form struct{ Operation, Example, PriceUSD string }

// Answer is what a program would have been answered with.
type Answer struct {
	Body   []byte // JSON
	Status int
	Header http.Header
}

// Handler answers requests for pages.
type Handler struct {
	Service
	app         *commands.App
	projections *projections.Projections
	credentials credential.Reader
	sessions    *credential.Sessions
	log         *slog.Logger
	outbox      *mail.Outbox
	templates   *Pages
	links       []Link      // at the foot of every page
	places      *mux.Router // what can be looked at
}

// NewHandler makes the pages of a service.
func NewHandler(c Config) (*Handler, error) {
	templates, err := New(c.App.Clock)
	s := &Handler{Service: c.Service, app: c.App, projections: c.Projections, credentials: c.Credentials, sessions: c.Credentials.Sessions,
		log: c.Log, outbox: c.Outbox, templates: templates}
	s.links = footLinks(s.pages())
	s.places = mux.NewRouter()
	for _, p := range s.pages() {
		if p.method == http.MethodGet {
			s.places.Path(p.path)
		}
	}
	return s, err
}

// Route is one address for people.
type Route struct {
	Method, Path string
	Access       credential.Access
	Handler      http.Handler
}

// Routes lists them.
func (s *Handler) Routes() (list []Route) {
	for _, p := range s.pages() {
		list = append(list, Route{p.method, p.path, p.access, s.serve(p)})
	}
	return list
}

// ShowError writes an error as a page, in the frame of whoever is signed in.
func (s *Handler) ShowError(w http.ResponseWriter, r *http.Request, err error) {
	v := &visit{request: r}
	if session, unread := s.sessions.Load(r); unread == nil {
		v.session = session
	}
	s.show(w, v, s.pageError(v, err))
}

// Purchase is a purchase that only its payer can claim, as its page shows it.
type Purchase struct {
	ID         string
	Product    store.Product
	Refundable bool
	Refund     *payments.Refund // nil: none was requested
}

// ShowPurchase writes the page of a purchase that only its payer can claim.
func (s *Handler) ShowPurchase(w http.ResponseWriter, r *http.Request, p Purchase) {
	s.show(w, &visit{request: r}, view{template: "purchase.html", data: p})
}

// ShowDownload writes the page with the button that gets a file.
func (s *Handler) ShowDownload(w http.ResponseWriter, r *http.Request, p store.Product) {
	s.show(w, &visit{request: r}, view{template: "download.html", data: p})
}

// queries are the queries about decisions that pages share with the API.
func (s *Handler) queries() query.Decisions {
	return query.Decisions{Commands: s.app.Decisions, Projections: s.projections}
}

// deliveries are the queries about messages to webhooks that pages share with the API.
func (s *Handler) deliveries() query.Deliveries {
	return query.Deliveries{Commands: s.app.Webhooks, Projections: s.projections}
}
