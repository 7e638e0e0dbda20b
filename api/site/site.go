// Package site contains the texts of the service for people and programs: pages written in
// Markdown, and the feeds, lists and files that are generated from them.
//
// A page is a file below content. Its path there, without ".md", is its address:
// content/guides/guard.md is /guides/guard. It begins with its metadata:
//
//	---
//	title: Guard a coding agent
//	description: One sentence.
//	updated: 2026-11-22
//	---
//
// The rest is a text/template of Markdown that is executed with Facts, so that no price, path or
// address is written twice. Files whose names begin with "_" are templates of many pages: one for
// each service, rule and error code. Entries of the changelog have their date in the name:
// content/changelog/2026-11-25-countersign-1.md.
//
// Everything here is a pure function of Facts and the files.
package site

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

//go:embed all:content
var files embed.FS

// Facts are the values that pages use. All of them come from the declarations of the service and
// from its configuration.
type Facts struct {
	Base              string // base URL of the service, without a slash at the end
	Contact           string // e-mail address of the operator
	Version           string // version of the interface
	X402              bool   // x402 payments are accepted at the moment
	Checkout          bool   // card checkout is configured
	Cookie            string // name of the session cookie
	FreeCallsPerMonth int
	Limits            Limits
	Services          []Service
	Products          []Product
	Scopes            []Scope // scopes of agents' tokens
	Rules             []Rule
	Findings          []Finding
	RulesetVersion    string // YYYY.MM.DD
	RulesetDate       string // the same date as YYYY-MM-DD
	Problems          []Problem
	Tools             []Tool // tools of the MCP endpoint, in its order
}

// Limits are the limits of requests that pages state.
type Limits struct {
	Calls, Strangers, Pages, Keys, KeysADay, Verifies, Refunds int // per minute, except KeysADay

	// Largest bodies in bytes.
	ActionBody, ServiceBody, PolicyBody, VerifyBody, RefundBody, GuardLogBody, OtherBody int
}

// AtMedium is the instruction for a verdict of medium risk. All texts use this wording.
const AtMedium = "stop: make the call in nextRecommendedCall, apply the controls that its answer lists, and only then run the action; if you cannot, ask a person"

// Medium returns AtMedium for templates.
func (Facts) Medium() string { return AtMedium }

// Service is one priced service.
type Service struct {
	Operation string // "options_price": operation id, name of the MCP tool, and name of the page
	Name      string // name, such as "options/price"
	Path      string // path, such as "/api/agent-services/options/price"
	Title     string
	Summary   string
	PriceUSD  string // price, such as "0.25"
	Group     string // one of Groups
	Example   string // example request, indented JSON
	Answer    string // answer to the example, indented JSON
	Input     []Member
	Signed    bool
}

// Member is one member of a request.
type Member struct {
	Name, Type, Meaning string
	Required            bool
}

// Groups of services, in the order of their pages below /explore.
const (
	GroupSafety   = policy.GroupSafety
	GroupPayments = policy.GroupPayments
	GroupFinance  = policy.GroupFinance
)

// Product is one product for sale.
type Product struct {
	Slug, Name, Description, PriceUSD, Interval, URL string
}

// Scope is a scope of an agent's token, with what it grants.
type Scope struct{ Name, Grants string }

// Tool is one tool of the MCP endpoint.
type Tool struct{ Name, Title, Description string }

// Rule is one rule of the action-safety services, with computed verdicts on its examples.
type Rule struct {
	actionrisk.Record
	Family string // first part of the id
}

// Finding describes one finding id of decisions or component services.
type Finding struct {
	ID string
	Of []FindingOf // one entry for each service that uses the id
}

// FindingOf describes a finding in one service, with a computed example.
type FindingOf struct {
	Of, Page               string    // title of the service, and path of its page
	Service                bool      // it is a priced service; otherwise decisions or policies
	Passed                 []Service // services that include the findings of this service
	Level                  string    // severity, or effects of the finding
	Catches, Why, Instead  string    // clauses, each without a full stop
	About, Request, Unseen string    // description and request of the example, or why there is none
	Finding                string
}

// Problem is one error code.
type Problem struct {
	Code    string
	Status  int
	Cause   string // what happened
	Charged string // whether anything was paid or recorded
	Retry   string // whether to retry the same request
	Send    string // what to send instead
}

// Types are the types of pages that the list of pages can be filtered by: the first parts of their
// paths.
var Types = []string{"commands", "guides", "faq", "tools", "compare", "explore"}

// Page is one page of the site.
type Page struct {
	Path        string // path, such as "/guides/guard"
	Title       string
	Description string
	Type        string // first part of the path
	Updated     time.Time
	Version     string // version of the interface that a changelog entry announces; otherwise empty
	Markdown    string // complete text, including the title

	this     any    // service, rule or other value for which the page was generated
	body     string // text without the title
	render   sync.Once
	html     string
	headings []Heading
	err      error

	searched index
}

// MarkdownPath returns the path of the Markdown version of the page.
func (p *Page) MarkdownPath() string {
	if p.Path == "/" {
		return "/index.md"
	}
	return p.Path + ".md"
}

// HTML returns the text of the page as HTML, without title and frame. It is converted at the first
// call.
func (p *Page) HTML() (string, error) {
	p.render.Do(func() {
		p.html, p.err = render(p.body)
		p.headings = headingsOf(p.html)
	})
	return p.html, p.err
}

// Headings returns the headings of the second level. They are found at the first call of HTML.
func (p *Page) Headings() []Heading {
	_, _ = p.HTML() // the caller of HTML gets the error
	return p.headings
}

// Site contains every page, filled in for one state of the service.
type Site struct {
	Facts     Facts
	Pages     []*Page // sorted by path
	Changelog []*Page // newest first
	byPath    map[string]*Page
	texts     *template.Template            // templates that pages share
	read      map[string]*template.Template // parsed heads and bodies of files, by their text
}

// New returns the site with all pages filled in.
func New(facts Facts) (*Site, error) {
	s := &Site{Facts: facts, byPath: map[string]*Page{}, read: map[string]*template.Template{}}
	var err error
	if s.texts, err = readTexts(); err != nil {
		return nil, err
	}
	if err = s.addWritten(); err != nil {
		return nil, err
	}
	if err = s.addMade(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.Pages, func(a, b *Page) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(s.Changelog, func(a, b *Page) int { return strings.Compare(b.Path, a.Path) })
	return s, s.fillIn()
}

// Page returns the page at a path, and whether it exists.
func (s *Site) Page(at string) (*Page, bool) {
	p, found := s.byPath[at]
	return p, found
}

// Written reports whether the page at a path has its own file.
func Written(at string) bool {
	for _, name := range []string{"content" + at + ".md", "content" + at + "/index.md"} {
		if _, err := fs.Stat(files, name); err == nil {
			return true
		}
	}
	return false
}

// Policy returns the policy for the use of the content by crawlers.
func (s *Site) Policy() string { return ContentSignal }

// LastChange returns the date of the newest changelog entry.
var LastChange = sync.OnceValue(func() (newest time.Time) {
	entries, err := fs.Glob(files, "content/changelog/2*.md")
	if err != nil || len(entries) == 0 {
		return newest
	}
	slices.Sort(entries)
	newest, _ = time.Parse(dateForm, path.Base(entries[len(entries)-1])[:len(dateForm)])
	return newest
})

// Updated returns the date of the newest changelog entry.
func (s *Site) Updated() time.Time { return LastChange() }

// Under lists the pages of a type, sorted by path.
func (s *Site) Under(kind string) (list []*Page) {
	for _, p := range s.Pages {
		if p.Type == kind {
			list = append(list, p)
		}
	}
	return list
}

// ServicesOf lists the services of a group.
func (s *Site) ServicesOf(group string) (list []Service) {
	for _, service := range s.Facts.Services {
		if service.Group == group {
			list = append(list, service)
		}
	}
	return list
}

const dateForm = "2006-01-02"

// addWritten adds the pages that have their own file.
func (s *Site) addWritten() error {
	return fs.WalkDir(files, "content", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(name, "content/skills/") {
			return err
		}
		at := strings.TrimSuffix(strings.TrimPrefix(name, "content"), ".md")
		if at == authPage {
			return nil // auth.md is a document for agents, not a page
		}
		if at = strings.TrimSuffix(at, "index"); at != "/" {
			at = strings.TrimSuffix(at, "/")
		}
		return s.add(name, at, nil)
	})
}

const authPage = "/auth"

// addMade adds the pages that are generated from declarations.
func (s *Site) addMade() error {
	for _, service := range s.Facts.Services {
		if err := s.add("content/_service.md", "/tools/"+service.Operation, service); err != nil {
			return err
		}
	}
	for _, rule := range s.Facts.Rules {
		if err := s.add("content/_rule.md", "/rules/"+rule.ID, rule); err != nil {
			return err
		}
	}
	for _, finding := range s.Facts.Findings {
		if err := s.add("content/_finding.md", "/rules/"+finding.ID, finding); err != nil {
			return err
		}
	}
	for _, family := range Families(s.Facts.Rules) {
		if err := s.add("content/_family.md", "/commands/"+family.Name, family); err != nil {
			return err
		}
	}
	for _, problem := range s.Facts.Problems {
		if err := s.add("content/_error.md", "/errors/"+problem.Code, problem); err != nil {
			return err
		}
	}
	return nil
}

// Family is a group of rules whose ids have the same first part.
type Family struct {
	Name, Title string
	Rules       []Rule
}

// familyTitles lists the families that have a page.
var familyTitles = []struct{ name, title string }{
	{"shell", "Shell and files"}, {"git", "Git and code hosting"}, {"sql", "SQL"}, {"nosql", "Document and key-value stores"},
	{"orm", "Migrations of frameworks"}, {"infra", "Kubernetes, Terraform and containers"}, {"cloud", "Cloud accounts"},
	{"deploy", "Deployments and packages"}, {"secret", "Secrets"}, {"priv", "Privileges"}, {"rce", "Code from elsewhere"},
	{"http", "HTTP requests"}, {"mcp", "MCP tools"}, {"wallet", "Wallets and contracts"}, {"x402", "x402 payments"},
	{"obf", "Hidden commands"}, {"text", "Actions in words"}, {"parse", "What cannot be read"}, {"win", "Windows"}, {"gate", "The gate itself"},
}

// Families groups rules by the first part of their ids, in the order of the pages.
func Families(rules []Rule) (list []Family) {
	for _, t := range familyTitles {
		f := Family{Name: t.name, Title: t.title}
		for _, r := range rules {
			if r.Family == t.name {
				f.Rules = append(f.Rules, r)
			}
		}
		if f.Rules != nil {
			list = append(list, f)
		}
	}
	return list
}

// subject is the data of a page's template.
type subject struct {
	Facts
	Site *Site
	Page *Page
	This any // service, rule, finding, family or problem of a generated page
}

// add adds a page with its metadata. The text is filled in later, when the metadata of all pages
// are known.
func (s *Site) add(file, at string, this any) error {
	text, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	head, _, err := cutHead(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	p := &Page{Path: at}
	p.Type, _, _ = strings.Cut(strings.TrimPrefix(at, "/"), "/")
	in := subject{Facts: s.Facts, Site: s, Page: p, This: this}
	filled, err := s.execute(head, in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := p.read(filled); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	p.Markdown = file // name of the file, until fillIn replaces it by the text
	if kind, name, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/"); kind == "changelog" && name != "" {
		if p.Updated, err = time.Parse(dateForm, name[:min(len(name), len(dateForm))]); err != nil {
			return fmt.Errorf("%s: the name of the file must begin with a date: %w", file, err)
		}
		s.Changelog = append(s.Changelog, p)
	}
	if p.Title == "" || p.Description == "" || p.Updated.IsZero() {
		return fmt.Errorf("%s: title, description and updated are required", file)
	}
	if s.byPath[at] != nil {
		return fmt.Errorf("%s: there is a page %s already", file, at)
	}
	s.byPath[at] = p
	s.Pages = append(s.Pages, p)
	p.this = this
	return nil
}

// read parses the metadata at the top of a file.
func (p *Page) read(head string) error {
	for line := range strings.Lines(head) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case name == "":
		case !found:
			return fmt.Errorf("the head of the page has a line without a colon")
		case name == "title":
			p.Title = value
		case name == "description":
			p.Description = value
		case name == "version":
			p.Version = value
		case name == "updated":
			var err error
			if p.Updated, err = time.Parse(dateForm, value); err != nil {
				return fmt.Errorf("updated: %w", err)
			}
		default:
			return fmt.Errorf("the head of the page has an unknown member")
		}
	}
	return nil
}

// cutHead splits a file into its metadata and its text.
func cutHead(text string) (head, body string, err error) {
	rest, found := strings.CutPrefix(text, "---\n")
	head, body, ended := strings.Cut(rest, "\n---\n")
	if !found || !ended {
		return "", "", fmt.Errorf("the page must begin with a head between two lines of ---")
	}
	return head, strings.TrimLeft(body, "\n"), nil
}

// fillIn generates the text of every page.
func (s *Site) fillIn() error {
	for _, p := range s.Pages {
		text, err := files.ReadFile(p.Markdown)
		if err != nil {
			return err
		}
		_, body, err := cutHead(string(text))
		if err == nil {
			body, err = s.execute(body, subject{Facts: s.Facts, Site: s, Page: p, This: p.this})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Markdown, err)
		}
		p.body = strings.TrimSpace(body) + "\n"
		p.Markdown = "# " + p.Title + "\n\n> For models: [llms.txt](" + s.Facts.Base + "/llms.txt) lists all pages and services.\n\n" + p.body
	}
	return nil
}

// execute executes a template. It parses each text only once, even if many pages use it.
func (s *Site) execute(text string, in any) (string, error) {
	t := s.read[text]
	if t == nil {
		own, err := s.texts.Clone()
		if err == nil {
			t, err = own.New("").Parse(text)
		}
		if err != nil {
			return "", err
		}
		s.read[text] = t
	}
	var out bytes.Buffer
	err := t.Execute(&out, in)
	return out.String(), err
}

// readTexts parses the templates that pages share: content/_parts.md.
func readTexts() (*template.Template, error) {
	return template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"join":     strings.Join,
		"cell":     cell,
		"code":     codeCell,
		"sentence": sentence,
		"families": Families,
		"dict":     func(name string, list []Service) map[string]any { return map[string]any{"Name": name, "List": list} },
	}).ParseFS(files, "content/_parts.md")
}

// codeCell formats a command as code in a table cell.
func codeCell(text string) string {
	mark := "`"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return mark + cell(text) + mark
}

// sentence makes a sentence of a clause: it capitalizes the first letter and adds a full stop.
func sentence(clause string) string {
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + clause[size:] + "."
}

// escapeCell is built only once, because its table has an entry for every byte value.
var escapeCell = strings.NewReplacer("|", `\|`, "\n", " ")

// cell escapes a text for a table cell.
func cell(text string) string {
	return escapeCell.Replace(text)
}
