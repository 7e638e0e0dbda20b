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

// contentView is the data of a page written in Markdown.
type contentView struct {
	Page    *site.Page
	HTML    web.Trusted
	Form    *Form
	Figures []figure // charts of the service's example
	Answer  string   // answer to the submitted form; empty before that
	Search  string   // scope of the search box: "rules" or "docs"; empty for no box
}

// figure is a chart with its caption.
type figure struct {
	SVG     web.Trusted
	Caption string
}

// Content returns the view of a page written in Markdown. The page of a service includes a form.
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

// postService calls a service with the body and the API key of the form. The call runs through the
// same code as a call of the API.
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

// postBuy starts a card checkout. If a person is signed in, their account is the buyer.
func (r *Room) postBuy(v *web.Visit) (web.View, error) {
	customer := ""
	if v.Session != nil {
		customer = v.Session.Customer
	}
	to, err := r.Prices.Buy(v.Request.Context(), v.Form.Get("slug"), customer)
	return web.View{Location: to}, err
}

// searchPage is the data of the search page.
type searchPage struct {
	Question, Kind string
	Member         bool        // the records of the person's organization were searched
	Found          []web.Found // results from these records
	Pages          []*site.Page
	More           bool
}

// showSearch searches the records of the chosen organization and the pages written in Markdown. If
// the question matches exactly one record, it redirects there.
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
	p, is := v.Member()
	if page.Member = is && page.Kind == ""; page.Member && page.Question != "" {
		if page.Found, err = r.Find(v.Request.Context(), p, page.Question); err != nil {
			return web.View{}, err
		}
		if named := exactly(page.Found); named != "" {
			return web.View{Location: named}, nil
		}
	}
	page.Pages, page.More = from.Search(page.Question, page.Kind)
	return web.View{Template: "search.html", Data: page}, nil
}

// exactly returns the address of the only exact match. It returns "" if there is none or more than
// one.
func exactly(found []web.Found) (href string) {
	for _, f := range found {
		if f.Exact && href != "" {
			return ""
		}
		if f.Exact {
			href = f.Href
		}
	}
	return href
}
