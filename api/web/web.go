// Package web is the frame of the pages, which people see: it declares what a page is, takes each
// request for one along one path (Handler.serve), and writes the page in its frame. The pages
// themselves are in its rooms: public (for everybody), account, org and review. A room is a type
// with what its pages work with; its table Pages declares address and access of each page.
//
// On the path of a request the session is loaded, a form is read, the page's access is checked,
// the page runs and returns a View, the session is kept, and the view is written. Pages ask
// commands and read models. What they share with the API is in package query, and what only the
// server can answer they are given as functions, so that a page and an answer never differ.
//
// The template of a page is a file in templates. It defines "title", "content" and, where there
// is something to do, "actions" (next to the title) and "trail" (the way back). It is executed
// with Framed: the frame, and the page's own data as .Data. The parts that pages share (badge,
// time, short id, notice, empty state, pager) are in templates/parts.html.
//
// No page needs a script. Scripts come from the service itself, as files in assets: a page's
// policy (see Headers) lets no other run.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Framed holds the data that a template is executed with.
type Framed struct {
	Frame
	Data any
}

// Templates writes pages.
type Templates struct {
	clock func() time.Time
	mu    sync.Mutex                    // guards own
	own   map[string]*template.Template // templates that were asked for, by file name, with the clock
}

// NewTemplates reads the templates. They say by the clock how long ago something was.
func NewTemplates(clock func() time.Time) (*Templates, error) {
	_, err := templates()
	return &Templates{clock: clock, own: map[string]*template.Template{}}, err
}

// frameFiles are the templates that every page uses.
var frameFiles = []string{"templates/layout.html", "templates/parts.html", "templates/figures.html"}

// templates returns the templates of all pages by file name. They are read once in a process,
// copied, and never executed, because a template that was executed cannot be copied.
var templates = sync.OnceValues(func() (map[string]*template.Template, error) {
	frame, err := template.New("frame").Funcs(functions(time.Now)).ParseFS(templateFiles, frameFiles...)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		if slices.Contains(frameFiles, file) {
			continue
		}
		page, err := frame.Clone()
		if err == nil {
			page, err = page.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, err
		}
		pages[path.Base(file)] = page
	}
	return pages, nil
})

// page returns the template of the file with this name. Its functions that show times read
// the clock of p.
func (p *Templates) page(name string) (*template.Template, error) {
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

// Render executes the template in a file.
func (p *Templates) Render(name string, v Framed) ([]byte, error) {
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

// contentPolicy is the Content-Security-Policy of pages: everything comes from here, nothing is
// inline, no frame, and forms may lead to the payment provider.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self' https://checkout.stripe.com https://billing.stripe.com"

// VerifierPolicy is the policy of the page that verifies records: its script may also compile the
// verifier, which is WebAssembly.
var VerifierPolicy = strings.Replace(contentPolicy, "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)

// Headers sets the headers that protect a page: nothing is loaded from elsewhere, no page frames
// it, its address is not sent to other sites, and no cache keeps it.
func Headers(h http.Header, baseURL string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(baseURL, "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Trusted is HTML that we made: from Markdown in which HTML is escaped, or pictures that we drew.
type Trusted = template.HTML
