// Package public has the pages that everybody may open: the first page with its box to try a
// command in, the pages made of Markdown with the forms that call a service, prices, search, the
// check of a record, and the state of the ledger.
package public

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
)

// Room is what the pages for everybody work with.
type Room struct {
	Ledger   *ledger.Ledger
	BaseURL  string
	Site     func() (*site.Site, error) // the pages made of Markdown
	Services Services
	Prices   Prices
	Checks   Checks
	Find     func(ctx context.Context, p organizations.Principal, question string) ([]web.Found, error) // looks through the records of an organization
}

// Services are the services that the pages show and call.
type Services struct {
	Groups  []Group
	Form    func(operation string) *Form         // nil: there is no such service
	Figures func(operation string) []plot.Figure // of the example; none where the example is better read
	Call    func(r *http.Request, operation, key, body string) Answer
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

// Answer is what the API answers to a call.
type Answer struct {
	Body   []byte // JSON
	Status int
	Header http.Header
}

// Prices are the price list, and how something on it is bought.
type Prices struct {
	List func() any                                                       // the data of the page
	Buy  func(ctx context.Context, slug, customer string) (string, error) // returns the address where it is paid
}

// Checks are what the server computes without a credential. Each network may ask for a limited number.
type Checks struct {
	MayTry  func(*http.Request) error                             // refuses another verdict on a command
	Examine func(*http.Request, []byte) (seal.Examination, error) // checks a record
}

// Pages is the table of pages.
func (r *Room) Pages() []web.Page {
	return []web.Page{
		web.Get("/", web.Open, r.showHome),
		web.Post("/", web.Open, r.postHome),
		web.Get("/pricing", web.Open, r.showPrices),
		web.Post("/pricing", web.Open, r.postBuy),
		web.Post("/tools/{operation}/try", web.Open, r.postService),
		web.Get("/search", web.Open, r.showSearch),
		web.Get("/ledger", web.Open, r.showLedger),
		web.Get("/verify", web.Open, r.showVerify),
		web.Post("/verify", web.Open, r.postVerify).UpTo(3 * maxRecord),
	}
}

// Bounds of the pages. A byte of a form may be written as three.
const (
	maxRecord   = 524_288 // bytes of a document to be verified
	maxQuestion = 200     // bytes of a question that are searched for
)
