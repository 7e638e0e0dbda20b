// Package public contains the pages that are open to everybody: the home page, the pages made of
// Markdown, the forms that call a service, prices, search, the verification of a record, and the
// state of the ledger.
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

// Room contains the dependencies of the public pages.
type Room struct {
	Ledger   *ledger.Ledger
	BaseURL  string
	Site     func() (*site.Site, error) // returns the pages written in Markdown
	Services Services
	Prices   Prices
	Checks   Checks
	Find     func(ctx context.Context, p organizations.Principal, question string) ([]web.Found, error) // searches the records of an organization
}

// Services gives the pages the list of services, and calls a service.
type Services struct {
	Groups  []Group
	Form    func(operation string) *Form         // returns nil if there is no such service
	Figures func(operation string) []plot.Figure // charts of the service's example; none if numbers are easier to read
	Call    func(r *http.Request, operation, key, body string) Answer
}

// Group is a set of related services.
type Group struct {
	Name, About string
	Services    []ListedService
}

// ListedService is a service with its path and price.
type ListedService struct {
	policy.Service
	Path, PriceUSD string
}

// Form is the form that calls a service with the text in it.
type Form struct{ Operation, Example, PriceUSD string }

// Answer is the API's answer to a call.
type Answer struct {
	Body   []byte // JSON text
	Status int
	Header http.Header
}

// Prices gives the pages the price list, and starts a purchase.
type Prices struct {
	List func() any                                                       // returns the data of the page
	Buy  func(ctx context.Context, slug, customer string) (string, error) // returns the address of the checkout page
}

// Checks holds computations that need no credential. The server limits their number per network.
type Checks struct {
	MayTry  func(*http.Request) error                             // refuses if the caller has tried too many commands
	Examine func(*http.Request, []byte) (seal.Examination, error) // verifies a record
}

// Pages returns the table of the public pages.
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

// Limits of the pages. Form encoding may triple a byte.
const (
	maxRecord   = 524_288 // bytes of a record
	maxQuestion = 200     // bytes of a question; the rest is ignored
)
