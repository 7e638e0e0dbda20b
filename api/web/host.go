package web

import (
	"log/slog"
	"net/http"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/projections"
)

// Config is what the frame works with, and the pages that it serves.
type Config struct {
	Commands    *store.Store // with the clock, the base URL and the e-mail addresses of customers
	Projections *projections.Projections
	Credentials credential.Reader
	Log         *slog.Logger
	Host
	Pages []Page
}

// Host is what the frame asks of the server around it.
type Host struct {
	Site    func() (*site.Site, error)                                           // the pages made of Markdown
	MaySend func(*http.Request, *credential.Session) error                       // refuses a form of a caller who sends too many
	Twin    func(http.ResponseWriter, *http.Request) bool                        // answers with the Markdown of a page, if the request prefers it
	Problem func(http.Header, *http.Request, error) (status int, message string) // status, headers and sentence of an error
	Fail    func(http.ResponseWriter, *http.Request, error)                      // answers with an error for which there is no page
}

// ShowError writes an error as a page, in the frame of the person who is signed in.
func (s *Handler) ShowError(w http.ResponseWriter, r *http.Request, err error) {
	v := s.inSession(w, r)
	s.show(w, v, s.pageError(v, err))
}

// Show writes a view that is not in the table of pages, in the frame of the person who is signed in.
func (s *Handler) Show(w http.ResponseWriter, r *http.Request, view View) {
	s.show(w, s.inSession(w, r), view)
}

// inSession returns the visit of a request with its session. If the session cannot be read the visit
// has none.
func (s *Handler) inSession(w http.ResponseWriter, r *http.Request) *Visit {
	v := s.visit(w, r)
	if session, err := s.Credentials.Sessions.Load(r); err == nil {
		v.Session = session
	}
	return v
}
