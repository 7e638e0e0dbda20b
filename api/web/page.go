package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// Page is one route of the pages: a page to open, or an address that accepts a form. Access is
// checked before Run. If Access declares a right, Run finds the member in Visit.Principal.
type Page struct {
	Method, Path string
	Access       credential.Access // Open, SignedIn or credential.WithRight
	Run          func(*Visit) (View, error)
	Limit        int64 // largest form in bytes; 0 means maxForm
}

// Get declares a page that is opened with GET.
func Get(path string, access credential.Access, run func(*Visit) (View, error)) Page {
	return Page{Method: http.MethodGet, Path: path, Access: access, Run: run}
}

// Post declares an address that accepts a form.
func Post(path string, access credential.Access, run func(*Visit) (View, error)) Page {
	return Page{Method: http.MethodPost, Path: path, Access: access, Run: run}
}

// UpTo sets the largest size of the page's form in bytes. A page whose form fits into the
// default does not need it.
func (p Page) UpTo(bytes int64) Page {
	p.Limit = bytes
	return p
}

// Access of pages that require no right.
var (
	Open     = credential.Access{} // for everybody
	SignedIn = credential.Access{Kind: credential.Person}
)

// Visit is one request to a page.
type Visit struct {
	Request *http.Request
	Session *credential.Session // nil if the visitor is not signed in
	Form    url.Values          // nil for a GET
	Vars    map[string]string   // variables of the path

	// Principal is the member who acts. It is set only for a page that declares a right.
	Principal organizations.Principal

	handler   *Handler
	requestID string
}

// View is the answer of a page: a template with its data, a redirect, or a file.
type View struct {
	Template string
	Data     any
	Location string // redirect with 303 See Other
	Done     string // sentence about what a form changed, which the page at Location shows once
	Status   int    // 0 means 200
	Header   http.Header
	Cookie   *http.Cookie
	File     *File // file that the browser saves
	Public   bool  // the page is the same for every visitor who is not signed in
}

// File is a file that the browser saves.
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

// Handler serves the pages.
type Handler struct {
	Config
	templates *Templates
	links     []Link      // links in the footer of every page
	places    *mux.Router // routes that can be opened with GET
	rights    map[string]organizations.Right
	streams   *streams
}

// NewHandler returns the handler of the pages. It fails if a page declares a kind of access that
// only API operations can have.
func NewHandler(c Config) (*Handler, error) {
	templates, err := NewTemplates(c.Commands.Clock)
	s := &Handler{Config: c, templates: templates, links: footLinks(c.Pages), places: mux.NewRouter(), rights: map[string]organizations.Right{},
		streams: &streams{ended: make(chan struct{}), person: map[string]int{}}}
	for _, p := range c.Pages {
		_, isRight := organizations.Grants[p.Access.Right]
		if p.Access != Open && p.Access != SignedIn && (p.Access.Kind != credential.Member || !isRight) {
			return nil, fmt.Errorf("%s %s: a page must be public, for signed-in customers, or for members with a permission", p.Method, p.Path)
		}
		if p.Method == http.MethodGet {
			s.places.Path(p.Path)
			s.rights[p.Path] = p.Access.Right
		}
	}
	return s, err
}

// Route is a page with its HTTP handler.
type Route struct {
	Page
	Handler http.Handler
}

// Routes returns the routes of all pages.
func (s *Handler) Routes() (list []Route) {
	for _, p := range s.Pages {
		list = append(list, Route{p, s.serve(p)})
	}
	return list
}

// serve returns the HTTP handler of a page.
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
		return View{}, policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused: open the page at "+s.Commands.BaseURL+" and send the form from there")
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
		for _, values := range v.Form {
			if slices.ContainsFunc(values, func(text string) bool { return !query.IsText(text) }) {
				return View{}, policy.Refuse(CodeInvalid, "", "every text of the form must be UTF-8 without NUL")
			}
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

// show writes the view: it redirects, sends a file, or renders the template in its frame.
func (s *Handler) show(w http.ResponseWriter, v *Visit, shows View) {
	h := w.Header()
	Headers(h, s.Commands.BaseURL)
	if shows.Cookie != nil {
		http.SetCookie(w, shows.Cookie)
	}
	if shows.Location != "" {
		if shows.Done != "" {
			// If the note cannot be encrypted, it is omitted: the change is done and the page
			// shows it.
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
			body = s.Compress(h, v.Request.Header.Get("Accept-Encoding"), body)
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

// withoutEmpty returns the address without its empty parameters, which come from empty form
// fields. It returns "" if no parameter is empty.
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

// Chip is a link that filters a list. Current reports whether the filter is active.
type Chip struct {
	Name, Href string
	Current    bool
}

// Address returns the address of a page with parameters.
func Address(page string, q url.Values) string {
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}
