// Package web serves the pages of the service. It declares the type of a page, handles each
// request for a page in one place (Handler.serve), and writes the page inside a frame. The pages
// themselves are in its subpackages: public (for everybody), account, org and review. Each has a
// type Room, which holds the dependencies of its pages. Room.Pages declares the path and the
// access of each page.
//
// A request is handled in these steps: load the session, read the form, check the access, run the
// page, which returns a View, save the session, write the view. Pages use commands and read
// models. They share the package query with the API, and get functions from the server for the
// rest, so that a page and an answer of the API never differ.
//
// The template of a page is a file in templates. It defines "title" and "content", and may define
// "actions" (next to the title) and "trail" (links to the pages above). It is executed with
// Framed: the frame, and the page's own data as .Data. Shared parts (badge, time, short id,
// notice, empty state, pager) are in templates/parts.html.
//
// Every page works without scripts. The Content-Security-Policy (see Headers) allows only scripts
// that the service itself serves from assets.
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

// Framed is the data with which a template is executed.
type Framed struct {
	Frame
	Data any
}

// Templates renders pages.
type Templates struct {
	clock func() time.Time
	mu    sync.Mutex                    // protects own
	own   map[string]*template.Template // templates in use, by file name, with this clock
}

// NewTemplates parses the templates. The clock serves to show how long ago something was.
func NewTemplates(clock func() time.Time) (*Templates, error) {
	_, err := templates()
	return &Templates{clock: clock, own: map[string]*template.Template{}}, err
}

// frameFiles are the template files that every page includes.
var frameFiles = []string{"templates/layout.html", "templates/parts.html", "templates/figures.html"}

// templates returns the templates of all pages by file name. They are parsed once per process.
// They are never executed, because an executed template cannot be cloned.
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
		return nil, fmt.Errorf("the page %s does not exist", name)
	}
	own, err := page.Clone()
	if err != nil {
		return nil, err
	}
	p.own[name] = own.Funcs(functions(p.clock))
	return p.own[name], nil
}

// Render executes the template of a file and adds the hidden fields to its forms.
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

// contentPolicy is the Content-Security-Policy of pages. Everything comes from this service,
// inline scripts and styles are forbidden, no site may frame a page, and forms may be sent only to
// this service or redirected to the payment provider.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self' https://checkout.stripe.com https://billing.stripe.com"

// VerifierPolicy is the Content-Security-Policy of the verify page, whose script may compile the
// verifier (WebAssembly).
var VerifierPolicy = strings.Replace(contentPolicy, "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)

// Headers sets the security headers of a page: nothing is loaded from other sites, no site frames
// the page, its address is not sent to other sites, and no cache stores it.
func Headers(h http.Header, baseURL string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(baseURL, "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Trusted is HTML that this service produced: from Markdown with HTML escaped, or a chart that it
// drew.
type Trusted = template.HTML
