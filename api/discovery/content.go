package discovery

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/web/public"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// Content serves the pages that are written in Markdown.
type Content struct {
	Pages   *Pages
	Web     *web.Handler
	Room    *public.Room // fills the pages with data
	Answers *request.Answers
}

// ServeHTTP answers with a page written in Markdown: as HTML, or as Markdown if the path ends in .md
// or the request prefers it. It answers 404 for unknown paths.
func (s *Content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := s.Pages.Site()
	if err != nil {
		s.Answers.Fail(w, r, false, err)
		return
	}
	at, asMarkdown := strings.CutSuffix(r.URL.Path, ".md")
	if asMarkdown && at == "/index" {
		at = "/"
	}
	p, found := from.Page(at)
	switch {
	case !found:
		s.Answers.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		s.Answers.Fail(w, r, false, policy.Refuse(op.CodeMethod, "", "method not allowed"))
	default:
		request.SetRoute(w, "/"+p.Type)
		s.showPage(w, r, p, asMarkdown || op.PrefersMarkdown(r))
	}
}

// showPage writes a page as HTML or as Markdown.
func (s *Content) showPage(w http.ResponseWriter, r *http.Request, p *site.Page, asMarkdown bool) {
	if asMarkdown {
		s.showMarkdown(w, r, p)
		return
	}
	linkHome(w.Header(), p.Path)
	view, err := s.Room.Content(p)
	if err != nil {
		s.Answers.Fail(w, r, false, err)
		return
	}
	s.Web.Show(w, r, view)
}

// showMarkdown writes the Markdown of a page.
func (s *Content) showMarkdown(w http.ResponseWriter, r *http.Request, p *site.Page) {
	d, err := s.Pages.made("the Markdown of "+p.Path, "text/markdown; charset=utf-8", func(from *site.Site) ([]byte, error) {
		now, found := from.Page(p.Path)
		if !found { // x402 was switched on or off a moment ago, and the page exists in one state only
			return nil, ground.ErrNotFound
		}
		return []byte(now.Markdown), nil
	})
	if err != nil {
		s.Answers.Fail(w, r, false, err)
		return
	}
	answer := d.Answer(&op.Call{Request: r})
	w.Header().Add("Vary", "Accept")
	linkHome(w.Header(), p.Path)
	s.Answers.Reply(w, r, &op.Operation{Success: http.StatusOK}, answer)
}

// Twin answers with Markdown if the page at this path has a Markdown version and the request
// prefers it. It returns false if it has not answered.
func (s *Content) Twin(w http.ResponseWriter, r *http.Request) bool {
	from, err := s.Pages.Site()
	if err != nil {
		return false // the HTML page may still work
	}
	p, has := from.Page(r.URL.Path)
	if !has {
		return false
	}
	w.Header().Add("Vary", "Accept")
	if op.PrefersMarkdown(r) {
		s.showMarkdown(w, r, p)
		return true
	}
	linkHome(w.Header(), p.Path)
	return false
}

// linkHome adds links to the discovery documents to the home page's headers.
func linkHome(h http.Header, path string) {
	if path != "/" {
		return
	}
	for _, l := range []struct{ path, rel, media string }{
		{op.CatalogPath, "api-catalog", ""}, {contract.OpenAPI.Path, "service-desc", ""}, {"/docs", "service-doc", ""}, {op.LLMSPath, "describedby", ""},
		{site.EverythingNew, "alternate", feedMedia}, {serverCardPath, "mcp-server-card", ""},
	} {
		value := "<" + l.path + `>; rel="` + l.rel + `"`
		if l.media != "" {
			value += `; type="` + l.media + `"`
		}
		h.Add("Link", value)
	}
}
