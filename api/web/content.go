package web

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/policy"
)

// contentView is a page of the site as its template shows it.
type contentView struct {
	Page    *site.Page
	HTML    Trusted
	Form    *Form
	Figures []figure // of the example of a service
	Answer  string   // what the service says to what was written; empty before
	Search  string   // what its search looks through: "rules" or "docs"; empty: it has none
}

// figure is a picture with what is to be seen in it.
type figure struct {
	SVG     Trusted
	Caption string
}

// ShowContent writes a page of the site. That of a service has a form.
func (s *Handler) ShowContent(w http.ResponseWriter, r *http.Request, p *site.Page) {
	v := &visit{request: r}
	var err error
	if v.session, err = s.sessions.Load(r); err != nil {
		v.session = nil // the page is for everybody
	}
	shown, err := s.contentShown(p)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.show(w, v, view{template: "content.html", data: shown, public: true})
}

func (s *Handler) contentShown(p *site.Page) (contentView, error) {
	html, err := p.HTML()
	shown := contentView{Page: p, HTML: Trusted(html)}
	switch p.Type {
	case "rules", "commands":
		shown.Search = "rules"
	case "docs", "guides", "errors", "faq", "compare", "explore", "tools":
		shown.Search = "docs"
	}
	if operation, is := strings.CutPrefix(p.Path, "/tools/"); is {
		shown.Form = s.Form(operation)
		for _, f := range s.Figures(operation) {
			shown.Figures = append(shown.Figures, figure{Trusted(f.SVG), f.Caption})
		}
	}
	return shown, err
}

// postService calls a service with what was written, paid with the key that was
// given, along the path of every call.
func postService(s *Handler, v *visit) (view, error) {
	from, err := s.Site()
	if err != nil {
		return view{}, err
	}
	operation := v.vars["operation"]
	p, found := from.Page("/tools/" + operation)
	form := s.Form(operation)
	if form == nil || !found {
		return view{}, policy.Refuse(codeNotFound, "", "not found")
	}
	shown, err := s.contentShown(p)
	if err != nil {
		return view{}, err
	}
	form.Example = v.form.Get("body")
	answer := s.Call(v.request, operation, strings.TrimSpace(v.form.Get("key")), form.Example)
	shown.Form, shown.Answer = form, words.IndentJSON(answer.Body)
	return view{template: "content.html", data: shown, status: answer.Status, header: http.Header{"Retry-After": answer.Header["Retry-After"]}}, nil
}

func showPrices(s *Handler, _ *visit) (view, error) {
	return view{template: "pricing.html", data: s.Prices()}, nil
}

// postBuy begins a card checkout. Whoever is signed in buys for their account.
func postBuy(s *Handler, v *visit) (view, error) {
	customer := ""
	if v.session != nil {
		customer = v.session.Customer
	}
	to, err := s.BeginBuying(v.request.Context(), v.form.Get("slug"), customer)
	return view{location: to}, err
}

// maxQuestion is how many octets of a question are searched for.
const maxQuestion = 200

// searchPage is what was looked for, and where it stands.
type searchPage struct {
	Question, Kind string
	Pages          []*site.Page
	More           bool
}

// showSearch looks through the pages of the site.
func showSearch(s *Handler, v *visit) (view, error) {
	from, err := s.Site()
	if err != nil {
		return view{}, err
	}
	q := v.request.URL.Query()
	page := searchPage{Question: strings.TrimSpace(q.Get("q")), Kind: q.Get("in")}
	if len(page.Question) > maxQuestion {
		page.Question = strings.ToValidUTF8(page.Question[:maxQuestion], "")
	}
	if page.Kind != "rules" {
		page.Kind = ""
	}
	page.Pages, page.More = from.Search(page.Question, page.Kind)
	return view{template: "search.html", data: page}, nil
}
