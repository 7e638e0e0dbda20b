package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// Page is one address for people, as the table of its room declares it. Its access is checked before
// it runs. A page that declares a right finds in Visit.Principal who acts.
type Page struct {
	Method, Path string
	Access       credential.Access // Open, SignedIn, or credential.WithRight
	Run          func(*Visit) (View, error)
	Limit        int64 // bytes of its form; 0: maxForm
}

// Get declares a page that is shown.
func Get(path string, access credential.Access, run func(*Visit) (View, error)) Page {
	return Page{Method: http.MethodGet, Path: path, Access: access, Run: run}
}

// Post declares where a form is sent.
func Post(path string, access credential.Access, run func(*Visit) (View, error)) Page {
	return Page{Method: http.MethodPost, Path: path, Access: access, Run: run}
}

// UpTo sets the largest size of the page's form in bytes. A page whose form fits into the
// default does not need it.
func (p Page) UpTo(bytes int64) Page {
	p.Limit = bytes
	return p
}

// Access to pages that need no right.
var (
	Open     = credential.Access{} // everybody
	SignedIn = credential.Access{Kind: credential.Person}
)

// Visit is one request for a page.
type Visit struct {
	Request *http.Request
	Session *credential.Session // nil without one
	Form    url.Values          // nil for a GET
	Vars    map[string]string   // of the path

	// Principal is who acts for the organization. It is set only for a page that declares a right.
	Principal organizations.Principal

	handler   *Handler
	requestID string
}

// View is what a page shows: a template with its data, another address, or a file.
type View struct {
	Template string
	Data     any
	Location string // answered with 303 See Other
	Done     string // what a form changed, as a sentence; the page at Location shows it once
	Status   int    // 0: 200
	Header   http.Header
	Cookie   *http.Cookie
	File     *File // for the browser to save
	Public   bool  // the page is the same for everybody who is not signed in
}

// File is a file that a browser saves.
type File struct {
	Name, Media string
	Content     []byte
}

func (f *File) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.Media)
	h.Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
	h.Set("Content-Length", strconv.Itoa(len(f.Content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.Content)
	}
}

// Handler answers requests for pages.
type Handler struct {
	Config
	templates *Templates
	links     []Link      // at the foot of every page
	places    *mux.Router // addresses that can be opened, as opposed to those of forms
	rights    map[string]organizations.Right
}

// NewHandler makes the handler of pages. It fails if a page declares an access that only operations
// can have.
func NewHandler(c Config) (*Handler, error) {
	templates, err := NewTemplates(c.Commands.Clock)
	s := &Handler{Config: c, templates: templates, links: footLinks(c.Pages), places: mux.NewRouter(), rights: map[string]organizations.Right{}}
	for _, p := range c.Pages {
		_, isRight := organizations.Grants[p.Access.Right]
		if p.Access != Open && p.Access != SignedIn && (p.Access.Kind != credential.Member || !isRight) {
			return nil, fmt.Errorf("%s %s: a page is open, or for who is signed in, or for members with a right", p.Method, p.Path)
		}
		if p.Method == http.MethodGet {
			s.places.Path(p.Path)
			s.rights[p.Path] = p.Access.Right
		}
	}
	return s, err
}

// Route is the route of a page.
type Route struct {
	Page
	Handler http.Handler
}

// Routes lists the routes of all pages.
func (s *Handler) Routes() (list []Route) {
	for _, p := range s.Pages {
		list = append(list, Route{p, s.serve(p)})
	}
	return list
}

// serve answers requests for a page.
func (s *Handler) serve(p Page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), pageTimeout)
		defer cancel()
		if p.Method == http.MethodGet && s.Twin(w, r) {
			return
		}
		v := s.visit(w, r.WithContext(ctx))
		v.Vars = mux.Vars(r)
		shows, err := s.run(w, v, p)
		if kept := s.Credentials.Sessions.Keep(w, v.Session); err == nil {
			err = kept
		}
		if err != nil {
			shows = s.pageError(v, err)
		}
		s.show(w, v, shows)
	}
}

// visit returns the visit of a request, without its session.
func (s *Handler) visit(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{Request: r, handler: s, requestID: w.Header().Get("X-Request-Id")}
}

// run loads the session, reads the form, checks the access and runs the page.
func (s *Handler) run(w http.ResponseWriter, v *Visit, p Page) (View, error) {
	if !s.Credentials.Sessions.SameOrigin(v.Request) {
		return View{}, policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused")
	}
	var err error
	if v.Session, err = s.Credentials.Sessions.Load(v.Request); err != nil {
		return View{}, err
	}
	if p.Method == http.MethodPost {
		if err := s.MaySend(v.Request, v.Session); err != nil {
			return View{}, err
		}
		if v.Form, err = ReadForm(w, v.Request, cmp.Or(p.Limit, maxForm)); err != nil {
			return View{}, err
		}
		if as := v.Form.Get(formPerson); as != "" && v.Session != nil && as != v.Session.Customer {
			return View{}, errAnotherPerson
		}
	}
	if shorter := withoutEmpty(v.Request.URL); p.Method == http.MethodGet && shorter != "" {
		return View{Location: shorter}, nil
	}
	instead, err := s.enter(v, p.Access)
	if err != nil {
		return View{}, err
	}
	if instead != nil {
		return *instead, nil
	}
	return p.Run(v)
}

// show writes a page in its frame.
func (s *Handler) show(w http.ResponseWriter, v *Visit, shows View) {
	h := w.Header()
	Headers(h, s.Commands.BaseURL)
	if shows.Cookie != nil {
		http.SetCookie(w, shows.Cookie)
	}
	if shows.Location != "" {
		if shows.Done != "" {
			// Without the cookie the change is made all the same, and the page shows it.
			if note, err := v.sealed(doneCookie, pathOf(shows.Location), shows.Done); err == nil {
				http.SetCookie(w, note)
			}
		}
		h.Set("Location", shows.Location)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if shows.File != nil {
		shows.File.send(w, v.Request)
		return
	}
	frame := s.frame(v)
	done, removes := v.opened(doneCookie, v.Request.URL.Path)
	if frame.Done = done; removes != nil {
		http.SetCookie(w, removes)
	}
	body, err := s.templates.Render(shows.Template, Framed{Frame: frame, Data: shows.Data})
	if err != nil {
		s.Fail(w, v.Request, err)
		return
	}
	maps.Copy(h, shows.Header)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if shows.Public {
		h.Add("Vary", "Accept, Cookie")
		if v.Session == nil {
			h.Set("Cache-Control", "public, max-age=300")
		}
	}
	w.WriteHeader(cmp.Or(shows.Status, http.StatusOK))
	if v.Request.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// pathOf returns the path of an address of this service.
func pathOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	path, _, _ = strings.Cut(path, "#")
	return path
}

// withoutEmpty returns an address without its empty parameters, which are the fields of a form that
// were left empty. It returns an empty text if there are none.
func withoutEmpty(u *url.URL) string {
	q, empty := u.Query(), false
	for name, values := range q {
		if len(values) == 1 && values[0] == "" {
			q.Del(name)
			empty = true
		}
	}
	if !empty {
		return ""
	}
	return Address(u.EscapedPath(), q)
}

// Chip is a link that limits a list. Current says that the list is limited by it.
type Chip struct {
	Name, Href string
	Current    bool
}

// Address returns the address of a page of this service with parameters.
func Address(page string, q url.Values) string {
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}
