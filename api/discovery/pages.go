package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/tools"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// kept caches documents that were generated at the first request. It contains each at most twice,
// with and without x402, because a facilitator may become available or unavailable while the
// service runs.
type kept struct {
	mu        sync.Mutex
	sites     map[bool]*site.Site
	documents map[string]op.Document
}

// Pages generates the content pages and the documents made from them.
type Pages struct {
	Prices  *services.Prices
	Table   *op.Table
	Tools   *tools.Tools
	Contact string // e-mail address
	Cookie  string // name of the session cookie

	kept kept
}

func (s *Pages) base() string { return s.Prices.Shop.Store.BaseURL }

// Rule returns the page of a rule as Markdown.
func (s *Pages) Rule(id string) (markdown string, known bool, err error) {
	from, err := s.Site()
	if err != nil {
		return "", false, err
	}
	p, known := from.Page("/rules/" + id)
	if !known {
		return "", false, nil
	}
	return p.Markdown, true, nil
}

// Site returns all pages for the current state of the service.
func (s *Pages) Site() (*site.Site, error) {
	configured := payments.Taken(s.Prices.Shop.Store.Settler)
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

// made returns a document. The function make generates it once for each state of the service.
func (s *Pages) made(name, media string, make func(*site.Site) ([]byte, error)) (op.Document, error) {
	from, err := s.Site()
	if err != nil {
		return op.Document{}, err
	}
	name = fmt.Sprintf("%s %t", name, from.Facts.X402)
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if d, is := s.kept.documents[name]; is {
		return d, nil
	}
	body, err := make(from)
	if err != nil {
		return op.Document{}, fmt.Errorf("make %s: %w", name, err)
	}
	if s.kept.documents == nil {
		s.kept.documents = map[string]op.Document{}
	}
	d := op.NewDocument(body, media)
	s.kept.documents[name] = d
	return d, nil
}

// facts returns the facts that pages show.
func (s *Pages) facts(configured bool) (site.Facts, error) {
	rulesetVersion, _ := actionrisk.Ruleset()
	f := site.Facts{Base: s.base(), Contact: s.Contact, Version: policy.Version, X402: configured, Checkout: s.Prices.Shop.Provider != nil,
		Cookie: s.Cookie, FreeCallsPerMonth: accounts.FreeCallsPerMonth,
		Limits: site.Limits{Calls: op.CallsPerMinute, Strangers: op.StrangersPerMinute, Pages: op.PagesPerMinute, Keys: op.KeysPerMinute, KeysADay: op.KeysPerDay, Verifies: op.VerifiesPerMinute, Refunds: op.RefundsPerMinute,
			ActionBody: policy.ActionBody, ServiceBody: policy.ServiceBody, PolicyBody: op.LimitPolicy, VerifyBody: op.LimitVerify,
			RefundBody: op.LimitRefund, GuardLogBody: op.LimitGuardLog, OtherBody: op.LimitOther},
		RulesetVersion: rulesetVersion, RulesetDate: strings.ReplaceAll(rulesetVersion, ".", "-"),
		Rules: rulesShown(), Problems: contract.Problems()}
	findings, err := Findings()
	if err != nil {
		return f, err
	}
	f.Findings = findings
	for _, o := range s.Table.Services() {
		service, err := serviceShown(o)
		if err != nil {
			return f, err
		}
		f.Services = append(f.Services, service)
	}
	for _, p := range s.Prices.Products() {
		product := site.Product{Slug: p.Slug, Name: p.Name, Description: p.Description, PriceUSD: p.PriceUSD, URL: p.URL}
		if p.Interval != nil {
			product.Interval = *p.Interval
		}
		f.Products = append(f.Products, product)
	}
	for _, name := range accounts.AgentScopes {
		f.Scopes = append(f.Scopes, site.Scope{Name: name, Grants: contract.ScopeMeanings[name]})
	}
	for _, t := range s.Tools.All() {
		f.Tools = append(f.Tools, site.Tool{Name: t.Name, Title: t.Title, Description: t.Description})
	}
	return f, nil
}

func serviceShown(o *op.Operation) (site.Service, error) {
	answer, err := o.ExampleAnswer()
	if err != nil {
		return site.Service{}, err
	}
	shown := site.Service{Operation: o.ID, Name: o.Service.Name, Path: o.Path, Title: o.Service.Title, Summary: o.Service.Summary,
		PriceUSD: op.USD(o.Service.PriceCents), Group: o.Service.Group, Example: words.IndentJSON([]byte(o.Example)),
		Answer: words.IndentJSON(answer), Signed: o.Service.Signed, Input: membersShown(o.Schema.Document)}
	return shown, nil
}

// membersShown lists the top-level members of a request, with the required ones first.
func membersShown(schema map[string]any) (list []site.Member) {
	properties, _ := schema["properties"].(op.Object)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(op.Object)
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

// allowedShown describes the allowed values of a member, and its default.
func allowedShown(property op.Object) (text string) {
	value := property
	if branches, _ := property["anyOf"].([]any); len(branches) > 0 {
		value, _ = branches[0].(op.Object)
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

// typeShown returns the type of a member in a few words.
func typeShown(s op.Object) string {
	if values, is := s["enum"].([]any); is {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = fmt.Sprint(v)
		}
		return "one of " + strings.Join(words, ", ")
	}
	if name, is := s["type"].(string); is {
		if items, has := s["items"].(op.Object); has {
			return "array of " + typeShown(items)
		}
		return name
	}
	alternatives, _ := s["anyOf"].([]any)
	var words []string
	for _, a := range alternatives {
		if alternative, is := a.(op.Object); is && alternative["type"] != "null" {
			words = append(words, typeShown(alternative))
		}
	}
	if len(words) == 0 {
		return "any"
	}
	return strings.Join(words, " or ")
}

// rulesShown returns the data of the pages of all rules that are not retired. It evaluates their
// examples.
var rulesShown = sync.OnceValue(func() (list []site.Rule) {
	for _, summary := range actionrisk.Summaries() {
		if record, _ := actionrisk.RecordOf(summary.ID); !summary.Retired {
			family, _, _ := strings.Cut(summary.ID, ".")
			list = append(list, site.Rule{Record: record, Family: family})
		}
	}
	return list
})
