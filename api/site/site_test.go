package site

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
)

// facts returns the facts of a service with one service, rule, product and problem.
func facts() Facts {
	return Facts{Base: "https://ledger.example", Contact: "operator@example.com", Version: "1.0.0", X402: true, FreeCallsPerMonth: 250, RulesetVersion: "2026.11.15", RulesetDate: "2026-11-15",
		Services: []Service{{Operation: "action_safety_quick_gate", Name: "action-safety/quick", Path: "/api/agent-services/action-safety/quick", Title: "Quick gate",
			Summary: "Risk of one action.", PriceUSD: "0.01", Group: GroupSafety, Example: `{"command":"ls"}`, Answer: `{}`, Input: []Member{{Name: "command", Type: "string", Required: true}}}},
		Rules: []Rule{{Family: "git", Record: actionrisk.Record{
			Summary: actionrisk.Summary{ID: "git.push.mirror", Level: "critical", Category: "destructive", Title: "Deletes | what is not here"},
			Catches: "deletes", Why: "it deletes, so a person decides", Reversible: "hard",
			Raised: []actionrisk.Judged{{Action: actionrisk.Action{Command: "git push --mirror `x` | tee"}, Risk: "critical", RuleIDs: []string{"git.push.mirror"}}}}}},
		Problems: []Problem{{Code: "not_found", Status: 404, Cause: "Nothing is here.", Charged: "no", Retry: "no", Send: "Something else."}},
		Products: []Product{{Slug: "kit", Name: "Kit", Description: "A kit.", PriceUSD: "19.00", URL: "https://ledger.example/pricing#kit"}},
	}
}

func made(t *testing.T) *Site {
	t.Helper()
	s, err := New(facts())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryPageIsMade checks that every page has a title, can be converted to HTML, and contains
// no template syntax and no empty heading.
func TestEveryPageIsMade(t *testing.T) {
	s := made(t)
	for _, p := range s.Pages {
		html, err := p.HTML()
		if err != nil || p.Title == "" || p.Description == "" || strings.Contains(html, "{{") || strings.Contains(html, "&lt;no value") || strings.Contains(html, "<th></th>") {
			t.Errorf("%s: %v %.200s", p.Path, err, html)
		}
		if !strings.HasPrefix(p.Markdown, "# "+p.Title+"\n") || !strings.Contains(p.Markdown[:min(len(p.Markdown), 400)], "/llms.txt") {
			t.Errorf("%s: does not begin with its title and the way to llms.txt", p.Path)
		}
	}
}

// TestNoHTMLPasses checks that HTML in the text of a rule or an example is not passed on.
func TestNoHTMLPasses(t *testing.T) {
	html, err := render("<script>alert(1)</script>\n\n[x](javascript:alert(1))\n\n`<b>`")
	if err != nil || strings.Contains(html, "<script") || strings.Contains(html, "javascript:") || strings.Contains(html, "<b>") {
		t.Errorf("%v: %s", err, html)
	}
}

// TestNoPageHasAStyleOfItsOwn checks that no page has an inline style, which the content policy
// would refuse. Columns of numbers are aligned by a class.
func TestNoPageHasAStyleOfItsOwn(t *testing.T) {
	for _, p := range made(t).Pages {
		if html, err := p.HTML(); err != nil || strings.Contains(html, " style=") {
			t.Errorf("%s has a style: %v", p.Path, err)
		}
	}
	html, err := render("|what|how often|\n|---|---:|\n|a|12|\n")
	if err != nil || !strings.Contains(html, `<th class="amount">how often</th>`) || !strings.Contains(html, `<td class="amount">12</td>`) || !strings.Contains(html, "<td>a</td>") {
		t.Errorf("%v: %s", err, html)
	}
}

// TestTheVersionHasAnEntry checks that the changelog has an entry for the version of the
// interface.
func TestTheVersionHasAnEntry(t *testing.T) {
	s := made(t)
	for _, p := range s.Changelog {
		if p.Version == s.Facts.Version {
			return
		}
	}
	t.Errorf("no entry of the changelog has version %s", s.Facts.Version)
}

func TestRobotsRepeatTheRulesForNamedCrawlers(t *testing.T) {
	groups := strings.Split(made(t).Robots(), "\n\n")
	if len(groups) != 3 {
		t.Fatalf("%d groups", len(groups))
	}
	for _, g := range groups[:2] {
		for _, line := range []string{"Content-Signal: ai-train=no, search=yes, ai-input=yes", "Allow: /", "Disallow: /api/downloads/", "Disallow: /api/webhooks/", "Disallow: /account"} {
			if !strings.Contains(g, line) {
				t.Errorf("%q lacks %s", g, line)
			}
		}
	}
	if !strings.Contains(groups[1], "User-agent: GPTBot") || groups[2] != "Sitemap: https://ledger.example/sitemap.xml\n" {
		t.Error(groups[1:])
	}
}

func TestSecurityTextChangesOnceADay(t *testing.T) {
	s := made(t)
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	if s.Security(day) != s.Security(day.Add(23*time.Hour+59*time.Minute)) || s.Security(day) == s.Security(day.Add(24*time.Hour)) {
		t.Error("it does not change with the day")
	}
	if !strings.Contains(s.Security(day), "Expires: 2027-05-21T00:00:00Z\n") {
		t.Error(s.Security(day))
	}
}

// TestFeedsHoldTheChangelog checks that both feeds contain the changelog, and that the entries of
// the RSS feed have their dates, newest first.
func TestFeedsHoldTheChangelog(t *testing.T) {
	s := made(t)
	rss, err := s.RSS()
	if err != nil {
		t.Fatal(err)
	}
	json, err := s.JSONFeed(ChangelogJSON, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, p := range s.Changelog {
		next := strings.Index(string(rss), "<link>https://ledger.example"+p.Path+"</link>")
		if next < at || next < 0 || !strings.Contains(string(json), `"https://ledger.example`+p.Path+`"`) {
			t.Errorf("%s is missing or out of order", p.Path)
		}
		at = next
		if !strings.Contains(string(rss), "<pubDate>"+p.Updated.Format(time.RFC1123Z)+"</pubDate>") {
			t.Errorf("no date of %s", p.Path)
		}
	}
	for _, part := range []string{`<atom:link href="https://ledger.example/changelog/feed.xml" rel="self"`, `<rss version="2.0"`} {
		if !strings.Contains(string(rss), part) {
			t.Errorf("RSS lacks %s", part)
		}
	}
	all, err := s.JSONFeed(EverythingNew, 1)
	if err != nil || !strings.Contains(string(all), `"feed_url":"https://ledger.example/feed.json"`) || !strings.Contains(string(all), "/guides/curl") {
		t.Errorf("%v %.300s", err, all)
	}
}

// TestLlmsHasItsForm checks that llms.txt follows llmstxt.org: one H1, a summary, prose, then
// sections of links.
func TestLlmsHasItsForm(t *testing.T) {
	text, err := made(t).Text("llms.txt")
	if err != nil || !strings.HasPrefix(text, "# Countersign\n\n> ") || strings.Count(text, "\n# ") != 0 || strings.Contains(text, "\n### ") {
		t.Fatalf("%v %.100s", err, text)
	}
	_, sections, _ := strings.Cut(text, "\n## ")
	for i, line := range strings.Split(sections, "\n") {
		if i > 0 && line != "" && !strings.HasPrefix(line, "- [") && !strings.HasPrefix(line, "## ") {
			t.Errorf("a section holds %q", line)
		}
	}
	for _, needed := range []string{"Before you act, send the command to the gate", "After any answer but 200, stop and ask", "never sign a new payment", "first $1 of calls is free", "$1 at once", ".md)"} {
		if !strings.Contains(text, needed) {
			t.Errorf("llms.txt does not say %q", needed)
		}
	}
}

func TestSkillsHaveTheirForm(t *testing.T) {
	skills, err := made(t).Skills()
	if err != nil || len(skills) != 3 {
		t.Fatal(len(skills), err)
	}
	for _, s := range skills {
		head := fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", s.Name, s.Description)
		if !strings.HasPrefix(string(s.Body), head) || strings.Contains(string(s.Body), "{{") || len(s.Description) > 1024 {
			t.Errorf("%s: %.200s", s.Name, s.Body)
		}
	}
}

func TestTwoBuildsAreTheSame(t *testing.T) {
	a, b := made(t), made(t)
	for i, p := range a.Pages {
		if b.Pages[i].Markdown != p.Markdown {
			t.Errorf("%s differs", p.Path)
		}
	}
}

// TestEveryAlertHasARunbook checks that every alert links to its section in the runbooks.
func TestEveryAlertHasARunbook(t *testing.T) {
	alerts, err := os.ReadFile("../../.deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := files.ReadFile("content/docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1)
	if len(names) < 15 {
		t.Fatalf("%d alerts", len(names))
	}
	for _, n := range names {
		if !strings.Contains(string(page), "\n## "+n[1]+"\n") {
			t.Errorf("%s has no section in docs/runbooks.md", n[1])
		}
		if !strings.Contains(string(alerts), "runbook: docs/runbooks#"+strings.ToLower(n[1])+"\n") {
			t.Errorf("%s does not name its runbook", n[1])
		}
	}
	if sections := strings.Count(string(page), "\n## "); sections != len(names) {
		t.Errorf("%d sections for %d alerts", sections, len(names))
	}
}
