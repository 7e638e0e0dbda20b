package public

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// contentView is a page of the site as its template shows it.
type contentView struct {
	Page    *site.Page
	HTML    web.Trusted
	Form    *Form
	Figures []figure // of the example of a service
	Answer  string   // what the service says to what was written; empty before
	Search  string   // what its search looks through: "rules" or "docs"; empty: it has none
}

// figure is a picture with what is to be seen in it.
type figure struct {
	SVG     web.Trusted
	Caption string
}

// Content shows a page made of Markdown. The page of a service has a form.
func (r *Room) Content(p *site.Page) (web.View, error) {
	shown, err := r.contentShown(p)
	return web.View{Template: "content.html", Data: shown, Public: true}, err
}

func (r *Room) contentShown(p *site.Page) (contentView, error) {
	html, err := p.HTML()
	shown := contentView{Page: p, HTML: web.Trusted(html)}
	switch p.Type {
	case "rules", "commands":
		shown.Search = "rules"
	case "docs", "guides", "errors", "faq", "compare", "explore", "tools":
		shown.Search = "docs"
	}
	if operation, is := strings.CutPrefix(p.Path, "/tools/"); is {
		shown.Form = r.Services.Form(operation)
		for _, f := range r.Services.Figures(operation) {
			shown.Figures = append(shown.Figures, figure{web.Trusted(f.SVG), f.Caption})
		}
	}
	return shown, err
}

// postService calls a service with what was written, paid with the key that was
// given, along the path of every call.
func (r *Room) postService(v *web.Visit) (web.View, error) {
	from, err := r.Site()
	if err != nil {
		return web.View{}, err
	}
	operation := v.Vars["operation"]
	p, found := from.Page("/tools/" + operation)
	form := r.Services.Form(operation)
	if form == nil || !found {
		return web.View{}, policy.Refuse(ground.CodeNotFound, "", "not found")
	}
	shown, err := r.contentShown(p)
	if err != nil {
		return web.View{}, err
	}
	form.Example = v.Form.Get("body")
	answer := r.Services.Call(v.Request, operation, strings.TrimSpace(v.Form.Get("key")), form.Example)
	shown.Form, shown.Answer = form, words.IndentJSON(answer.Body)
	return web.View{Template: "content.html", Data: shown, Status: answer.Status, Header: http.Header{"Retry-After": answer.Header["Retry-After"]}}, nil
}

func (r *Room) showPrices(_ *web.Visit) (web.View, error) {
	return web.View{Template: "pricing.html", Data: r.Prices.List()}, nil
}

// postBuy begins a card checkout. Whoever is signed in buys for their account.
func (r *Room) postBuy(v *web.Visit) (web.View, error) {
	customer := ""
	if v.Session != nil {
		customer = v.Session.Customer
	}
	to, err := r.Prices.Buy(v.Request.Context(), v.Form.Get("slug"), customer)
	return web.View{Location: to}, err
}

// searchPage is what was looked for, and where it stands.
type searchPage struct {
	Question, Kind string
	Pages          []*site.Page
	More           bool
}

// showSearch looks through the pages of the site.
func (r *Room) showSearch(v *web.Visit) (web.View, error) {
	from, err := r.Site()
	if err != nil {
		return web.View{}, err
	}
	q := v.Request.URL.Query()
	page := searchPage{Question: strings.TrimSpace(q.Get("q")), Kind: q.Get("in")}
	if len(page.Question) > maxQuestion {
		page.Question = strings.ToValidUTF8(page.Question[:maxQuestion], "")
	}
	if page.Kind != "rules" {
		page.Kind = ""
	}
	page.Pages, page.More = from.Search(page.Question, page.Kind)
	return web.View{Template: "search.html", Data: page}, nil
}
