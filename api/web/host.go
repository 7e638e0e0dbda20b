package web

import (
	"log/slog"
	"net/http"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/projections"
)

// Config contains the dependencies of the handler and the pages that it serves.
type Config struct {
	Commands    *store.Store // gives the clock, the base URL and the e-mail addresses of customers
	Projections *projections.Projections
	Credentials credential.Reader
	Log         *slog.Logger
	Host
	Pages []Page
}

// Host contains the functions of the server that the handler calls.
type Host struct {
	Site     func() (*site.Site, error)                                           // returns the pages written in Markdown
	MaySend  func(*http.Request, *credential.Session) error                       // refuses a form if the caller sends too many
	Twin     func(http.ResponseWriter, *http.Request) bool                        // answers with Markdown if the page has it and the request prefers it, and reports whether it did
	Problem  func(http.Header, *http.Request, error) (status int, message string) // returns the status and the sentence of an error, and sets its headers
	Compress func(h http.Header, accept string, body []byte) []byte               // returns a public page in an encoding that the request accepts, and sets the headers for it
	Fail     func(http.ResponseWriter, *http.Request, error)                      // answers with an error when no page can be shown
}

// ShowError writes an error as a page, in the frame of the signed-in person.
func (s *Handler) ShowError(w http.ResponseWriter, r *http.Request, err error) {
	v := s.inSession(w, r)
	s.show(w, v, s.pageError(v, err))
}

// Show writes a view that is not in the table of pages, in the frame of the signed-in person.
func (s *Handler) Show(w http.ResponseWriter, r *http.Request, view View) {
	s.show(w, s.inSession(w, r), view)
}

// inSession returns the visit of a request with its session, or without one if it cannot be read.
func (s *Handler) inSession(w http.ResponseWriter, r *http.Request) *Visit {
	v := s.visit(w, r)
	if session, err := s.Credentials.Sessions.Load(r); err == nil {
		v.Session = session
	}
	return v
}
