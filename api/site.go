package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/api/schema"

	"github.com/countersign/countersign/commands/accounts"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// kept holds what is made of the declarations when somebody asks first. x402 may
// come and go while the service runs, and so everything is there twice at most.
type kept struct {
	mu        sync.Mutex
	sites     map[bool]*site.Site
	documents map[string]document
}

// site is every page in the present state of the service.
func (s *Server) site() (*site.Site, error) {
	configured := s.takesPayments()
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if made := s.kept.sites[configured]; made != nil {
		return made, nil
	}
	facts, err := s.facts(configured)
	if err != nil {
		return nil, err
	}
	made, err := site.New(facts)
	if err != nil {
		return nil, err
	}
	if s.kept.sites == nil {
		s.kept.sites = map[bool]*site.Site{}
	}
	s.kept.sites[configured] = made
	return made, nil
}

// made is a document that is made once for each state of the service.
func (s *Server) made(name, media string, make func(*site.Site) ([]byte, error)) (document, error) {
	from, err := s.site()
	if err != nil {
		return document{}, err
	}
	name = fmt.Sprintf("%s %t", name, from.Facts.X402)
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if d, is := s.kept.documents[name]; is {
		return d, nil
	}
	body, err := make(from)
	if err != nil {
		return document{}, fmt.Errorf("make %s: %w", name, err)
	}
	if s.kept.documents == nil {
		s.kept.documents = map[string]document{}
	}
	d := newDocument(body, media)
	s.kept.documents[name] = d
	return d, nil
}

// facts is what pages are told.
func (s *Server) facts(configured bool) (site.Facts, error) {
	rulesetVersion, _ := actionrisk.Ruleset()
	f := site.Facts{Base: s.app.BaseURL, Contact: s.contact, Version: policy.Version, X402: configured, Checkout: s.checkout != nil,
		Cookie: s.sessions.Cookie(), FreeCallsPerMonth: accounts.FreeCallsPerMonth,
		Limits:         site.Limits{Calls: callsPerMinute, Strangers: strangersPerMinute, Pages: pagesPerMinute, Keys: keysPerMinute, KeysADay: keysPerDay, Verifies: verifiesPerMinute, Refunds: refundsPerMinute},
		RulesetVersion: rulesetVersion, RulesetDate: strings.ReplaceAll(rulesetVersion, ".", "-"),
		Rules: rulesShown(), Problems: problemsShown()}
	findings, err := findingsShown()
	if err != nil {
		return f, err
	}
	f.Findings = findings
	for _, op := range s.operations {
		if op.service == nil {
			continue
		}
		service, err := serviceShown(op)
		if err != nil {
			return f, err
		}
		f.Services = append(f.Services, service)
	}
	for _, p := range s.pricedProducts() {
		product := site.Product{Slug: p.Slug, Name: p.Name, Description: p.Description, PriceUSD: p.PriceUSD, URL: p.URL}
		if p.Interval != nil {
			product.Interval = *p.Interval
		}
		f.Products = append(f.Products, product)
	}
	for _, name := range accounts.AgentScopes {
		f.Scopes = append(f.Scopes, site.Scope{Name: name, Grants: scopeMeanings[name]})
	}
	for _, t := range s.tools() {
		f.Tools = append(f.Tools, site.Tool{Name: t.name, Title: t.title, Description: t.description})
	}
	return f, nil
}

// serviceGroup is the page a service stands on. Who comes for the gate must not
// meet a waterfall first.
func serviceGroup(name string) string {
	family, _, _ := strings.Cut(name, "/")
	switch family {
	case "action-safety", "command-risk", "review-triage", "mcp-risk":
		return site.GroupSafety
	case "portfolio-risk", "cashflow", "waterfall", "bond", "options", "dealanalyzer", "investment-evidence":
		return site.GroupFinance
	}
	return site.GroupPayments
}

func serviceShown(op *operation) (site.Service, error) {
	answer, err := op.exampleAnswer()
	if err != nil {
		return site.Service{}, err
	}
	shown := site.Service{Operation: op.id, Name: op.service.Name, Path: op.path, Title: op.service.Title, Summary: op.service.Summary,
		PriceUSD: usd(op.service.PriceCents), Group: serviceGroup(op.service.Name), Example: web.IndentJSON([]byte(op.example)),
		Answer: web.IndentJSON(answer), Signed: op.service.Signed, Input: membersShown(op.schema.Document)}
	return shown, nil
}

// membersShown are the members at the top of a request, the required ones first.
func membersShown(schema map[string]any) (list []site.Member) {
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(object)
		meaning, _ := property["description"].(string)
		meaning = strings.TrimSpace(meaning + " " + allowedShown(property))
		list = append(list, site.Member{Name: name, Type: typeShown(property), Meaning: meaning, Required: slices.Contains(required, any(name))})
	}
	slices.SortStableFunc(list, func(a, b site.Member) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return list
}

// allowedShown says which values a member may have, and which it has if it is left out.
func allowedShown(property object) (text string) {
	value := property
	if branches, _ := property["anyOf"].([]any); len(branches) > 0 {
		value, _ = branches[0].(object)
	}
	allowed := strings.TrimPrefix(schema.Numbers(value, false), "must be ")
	length := func(keyword string) int {
		n, _ := value[keyword].(float64)
		return int(n)
	}
	least, most := length("minItems"), length("maxItems")
	switch {
	case allowed != "a number":
		text = strings.ToUpper(allowed[:1]) + allowed[1:] + "."
	case most > 0:
		text = fmt.Sprintf("%d to %d items.", least, most)
	case value["maxLength"] != nil:
		text = fmt.Sprintf("%d to %d characters.", length("minLength"), length("maxLength"))
	}
	if value["default"] == nil {
		value = property
	}
	if otherwise, has := value["default"]; has {
		text += fmt.Sprintf(" Default %v.", otherwise)
	}
	return strings.TrimSpace(text)
}

// typeShown is the type of a member in a word or two.
func typeShown(s object) string {
	if values, is := s["enum"].([]any); is {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = fmt.Sprint(v)
		}
		return "one of " + strings.Join(words, ", ")
	}
	if name, is := s["type"].(string); is {
		if items, has := s["items"].(object); has {
			return "array of " + typeShown(items)
		}
		return name
	}
	alternatives, _ := s["anyOf"].([]any)
	var words []string
	for _, a := range alternatives {
		if alternative, is := a.(object); is && alternative["type"] != "null" {
			words = append(words, typeShown(alternative))
		}
	}
	if len(words) == 0 {
		return "any"
	}
	return strings.Join(words, " or ")
}

// rulesShown is the pages of the rules that may still be raised, their examples
// judged now.
var rulesShown = sync.OnceValue(func() (list []site.Rule) {
	for _, summary := range actionrisk.Summaries() {
		if record, _ := actionrisk.RecordOf(summary.ID); !summary.Retired {
			family, _, _ := strings.Cut(summary.ID, ".")
			list = append(list, site.Rule{Record: record, Family: family})
		}
	}
	return list
})

// showContent answers with a page made of Markdown: as HTML, or as Markdown under
// its own address or for who asks for it. Other paths are not found.
func (s *Server) showContent(w http.ResponseWriter, r *http.Request) {
	from, err := s.site()
	if err != nil {
		s.fail(w, r, false, err)
		return
	}
	at, asMarkdown := strings.CutSuffix(r.URL.Path, ".md")
	if asMarkdown && at == "/index" {
		at = "/"
	}
	p, found := from.Page(at)
	switch {
	case !found:
		s.notFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		s.fail(w, r, false, policy.Refuse(codeMethod, "", "method not allowed"))
	default:
		if rec, ok := w.(*recorder); ok {
			rec.route = "/" + p.Type
		}
		s.showPage(w, r, p, asMarkdown || prefersMarkdown(r))
	}
}

// showPage writes a page of the site in one of its two forms.
func (s *Server) showPage(w http.ResponseWriter, r *http.Request, p *site.Page, asMarkdown bool) {
	if asMarkdown {
		s.showMarkdown(w, r, p)
		return
	}
	s.linkHome(w.Header(), p.Path)
	s.web.ShowContent(w, r, p)
}

// showMarkdown writes the Markdown twin of a page.
func (s *Server) showMarkdown(w http.ResponseWriter, r *http.Request, p *site.Page) {
	d := newDocument([]byte(p.Markdown), "text/markdown; charset=utf-8")
	answer := d.answer(&call{request: r})
	w.Header().Add("Vary", "Accept")
	s.linkHome(w.Header(), p.Path)
	s.reply(w, r, &operation{success: http.StatusOK}, answer)
}

// twin answers with the Markdown twin of a page that is made otherwise, if it has
// one and the request would rather have it.
func (s *Server) twin(w http.ResponseWriter, r *http.Request) bool {
	from, err := s.site()
	if err != nil {
		return false // the page itself may still be shown
	}
	p, has := from.Page(r.URL.Path)
	if !has {
		return false
	}
	w.Header().Add("Vary", "Accept")
	if prefersMarkdown(r) {
		s.showMarkdown(w, r, p)
		return true
	}
	s.linkHome(w.Header(), p.Path)
	return false
}
