// Package web is what people see: the pages with their handlers, the frame around
// them, the templates, the style sheet and scripts, and the letters.
//
// A request for a page takes one path (Handler, in pages.go): the session is loaded,
// a form is read, the page's function runs and returns a view, the session is kept,
// the view is written in its frame. A page asks commands and read models itself;
// what programs are answered with, too, it asks of the service around it (Service, in
// handler.go), so that a page and an answer never differ.
//
// A page is one file in templates. It defines "title", "content" and, where there
// is something to do, "actions" (beside the title) and "trail" (the way back). It
// is executed with a View: the frame, and the page's own data as .Data. The parts
// that pages share (badge, time, short id, notice, empty state, pager) are in
// templates/parts.html, one definition each.
//
// Nothing on a page needs a script. Scripts come from the service itself, as files
// in assets: a page's policy (see Headers) lets no other run.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/commands/organizations"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Frame is what stands around a page, whichever it is.
type Frame struct {
	Place       string  // the path of the place in the header that the page belongs to, such as "/reviews"
	Person      *Person // who is signed in; nil: nobody
	Here        string  // the address of the page, or of the page whose form was sent
	BaseURL     string  // of this service, without a slash at the end
	Description string  // one sentence for indexers; empty: the page is not for them
	Canonical   string  // absolute address; only of a page with a description
	Markdown    string  // path of the page's Markdown twin, if it has one
	Links       []Link  // at the foot
}

// Link is an address of this service with its name.
type Link struct{ Path, Name string }

// Person is who is signed in, as the header shows them.
type Person struct {
	Customer      string // id
	Email         string
	Organizations []Organization
	OrgID         string // the chosen organization's; empty: none is chosen
	Reviews       int    // decisions that wait for this person's verdict
	MoreReviews   bool   // there may be more than were counted
}

// Organization is one a person may act for.
type Organization struct{ ID, Name, Plan, Role string }

// SeesMembers says whether the role may read the organization's members, tokens and
// webhooks.
func (o Organization) SeesMembers() bool {
	return organizations.RoleMay(o.Role, organizations.RightMembers)
}

// Manages says whether the role may change them.
func (o Organization) Manages() bool { return organizations.RoleMay(o.Role, organizations.RightManage) }

// SeesGuards says whether the role may read what the guards of coding agents reported.
func (o Organization) SeesGuards() bool {
	return organizations.RoleMay(o.Role, organizations.RightExport)
}

// OwnOnly says whether the reader sees only the decisions they caused.
func (f Frame) OwnOnly() bool {
	return f.Person != nil && f.Person.Chosen() != nil && organizations.Principal{Role: f.Person.Chosen().Role}.OwnOnly()
}

// SeesMembers says whether the header leads to members and keys: not those whose role
// may not read them.
func (p *Person) SeesMembers() bool { return p.Chosen() == nil || p.Chosen().SeesMembers() }

// Manages says whether the person may issue tokens.
func (p *Person) Manages() bool { return p.Chosen() != nil && p.Chosen().Manages() }

// Chosen is the organization the person acts for, nil before one is chosen.
func (p *Person) Chosen() *Organization {
	for i := range p.Organizations {
		if p.Organizations[i].ID == p.OrgID {
			return &p.Organizations[i]
		}
	}
	return nil
}

// Again is where to sign in again, to come back to this page of this organization.
func (f Frame) Again() string {
	orgID := ""
	if f.Person != nil {
		orgID = f.Person.OrgID
	}
	return "/sign-in?next=" + url.QueryEscape(inOrganization(f.Here, orgID))
}

// View is what a template is executed with.
type View struct {
	Frame
	Data any
}

// Pages writes pages.
type Pages struct {
	clock func() time.Time
	mu    sync.Mutex
	own   map[string]*template.Template // pages that were asked for, by file name, with the clock
}

// New reads the templates. The clock says how long ago something was.
func New(clock func() time.Time) (*Pages, error) {
	_, err := templates()
	return &Pages{clock: clock, own: map[string]*template.Template{}}, err
}

// templates are all pages, by file name, read once in a process. They are copied
// and never executed: a template that was executed cannot be copied.
var templates = sync.OnceValues(func() (map[string]*template.Template, error) {
	frame, err := template.New("frame").Funcs(functions(time.Now)).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		name := path.Base(file)
		if name == "layout.html" || name == "parts.html" {
			continue
		}
		page, err := frame.Clone()
		if err == nil {
			page, err = page.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, err
		}
		pages[name] = page
	}
	return pages, nil
})

// page is a template with the clock of these pages.
func (p *Pages) page(name string) (*template.Template, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own, known := p.own[name]; known {
		return own, nil
	}
	all, err := templates()
	if err != nil {
		return nil, err
	}
	page, known := all[name]
	if !known {
		return nil, fmt.Errorf("there is no page %s", name)
	}
	own, err := page.Clone()
	if err != nil {
		return nil, err
	}
	p.own[name] = own.Funcs(functions(p.clock))
	return p.own[name], nil
}

// Render executes a page, named by its file.
func (p *Pages) Render(name string, v View) ([]byte, error) {
	page, err := p.page(name)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := page.ExecuteTemplate(&body, "layout", v); err != nil {
		return nil, err
	}
	return withForms(body.Bytes(), v.Frame), nil
}

// contentPolicy is the pages' Content-Security-Policy: everything from here,
// nothing inline, no frame, and forms that end at the payment provider's pages.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self' https://checkout.stripe.com https://billing.stripe.com"

// Headers sets what protects a page: nothing is loaded from elsewhere, nobody
// frames it, no address of it is told to others. It is never kept by a cache.
func Headers(h http.Header, baseURL string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(baseURL, "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Trusted is HTML of ours, made from Markdown in which no HTML passes.
type Trusted = template.HTML
