package public

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/ground"
)

// contentView is the data of a page written in Markdown.
type contentView struct {
	Page    *site.Page
	HTML    web.Trusted
	Form    *Form
	Figures []figure // charts of the service's example
	Answer  string   // answer to the submitted form; empty before that
	Search  string   // scope of the search box: "rules" or "docs"; empty for no box

	Headings []site.Heading // headings of the second level, if there are enough for a list
	Shelves  []shelf        // pages of the documentation, for its pages
}

// shelf is a group of pages of the documentation.
type shelf struct {
	Title string
	Pages []*site.Page
}

// minHeadings is the number of headings from which a page has a list of them.
const minHeadings = 4

// shelves returns the pages of the documentation: first the page of each shelf that leads to the
// others, then the others in the order of their titles.
func (r *Room) shelves() ([]shelf, error) {
	from, err := r.Site()
	if err != nil {
		return nil, err
	}
	list := []shelf{{"Documentation", from.Under("docs")}, {"Guides", from.Under("guides")}}
	for _, s := range list {
		slices.SortFunc(s.Pages, func(a, b *site.Page) int {
			return cmp.Or(strings.Count(a.Path, "/")-strings.Count(b.Path, "/"), strings.Compare(a.Title, b.Title))
		})
	}
	return list, nil
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
	text, err := p.HTML()
	if err != nil {
		return contentView{}, err
	}
	shown := contentView{Page: p, HTML: web.Trusted(text)}
	if headings := p.Headings(); len(headings) >= minHeadings {
		shown.Headings = headings
	}
	if p.Type == "docs" || p.Type == "guides" {
		if shown.Shelves, err = r.shelves(); err != nil {
			return contentView{}, err
		}
	}
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
	return shown, nil
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
		return web.View{}, ground.ErrNotFound
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
	page.Question = page.Question[:min(len(page.Question), maxQuestion)]
	page.Question = strings.ToValidUTF8(strings.ReplaceAll(page.Question, "\x00", ""), "")
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
