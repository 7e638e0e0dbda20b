package api_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
)

// TestNoLinkOfTheConsoleIsRefused checks for every role that each link on each page that the role
// can reach works, and that members, tokens, webhooks, guards, activity and evidence are linked if
// and only if the role may open them.
func TestNoLinkOfTheConsoleIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	c.decide(t, toolBody("k1", "agent-7", "write", "critical")).decision(t)
	denied := c.decide(t, toolBody("k2", "agent-8", "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	c.people["developer"].form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","allowedMcpServers":[]}`}})
	documents := map[string]bool{} // opened before by another role: they are the same for all
	for _, role := range organizations.Roles {
		who := c.people[role]
		found, opened := who.crawl("/overview")
		for _, page := range s.server.Pages() {
			if may := organizations.RoleMay(role, page.Access.Right); slices.Contains([]string{"/members", "/keys", "/webhooks", "/guard", "/activity", "/evidence"}, page.Path) && page.Method == http.MethodGet && may != (found[page.Path] != "") {
				t.Errorf("%s: %s is linked: %t, may be opened: %t", role, page.Path, !may, may)
			}
		}
		for path, on := range found {
			status := opened[path]
			if status == 0 && !documents[path] {
				documents[path], status = true, who.get(path).status
			}
			if status >= 400 {
				t.Errorf("%s: %s, a link on %s, answers %d", role, path, on, status)
			}
		}
	}
}

var (
	hrefPattern    = regexp.MustCompile(`href="(/[^"#]*)`)
	consolePattern = regexp.MustCompile(`^/(overview|spend|agents|activity|evidence|reviews|decisions|policies|members|keys|ledger|guard|webhooks|account)\b`)
)

// crawl follows the links of the console, starting at a page. It returns each address with the
// first page that links to it, and the status of each page of the console. It leaves out lists
// with three or more filters, because there are thousands of combinations.
func (b *browser) crawl(from string) (found map[string]string, opened map[string]int) {
	b.t.Helper()
	found, opened = map[string]string{from: "the address line"}, map[string]int{}
	for open := []string{from}; len(open) > 0; open = open[1:] {
		got := b.get(open[0])
		opened[open[0]] = got.status
		for _, m := range hrefPattern.FindAllStringSubmatch(got.body, -1) {
			path := html.UnescapeString(m[1])
			if found[path] != "" || strings.Count(path, "&") > 1 {
				continue
			}
			found[path] = open[0]
			if consolePattern.MatchString(path) {
				open = append(open, path)
			}
		}
	}
	return found, opened
}

// TestADeveloperReadsThatItIsOnlyTheirs checks that each list tells a developer that it shows only
// the developer's own decisions, that an empty list does not claim that the organization has no
// decisions, and that no page shows a person's id instead of a name.
func TestADeveloperReadsThatItIsOnlyTheirs(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	c.decide(t, toolBody("k1", "agent-7", "write", "critical")).decision(t)
	foreign := c.decide(t, toolBody("k2", "agent-8", "write", "low")).decision(t).Record.DecisionID
	dev, admin := c.people["developer"], c.people["admin"]
	const only = "This page shows only decisions that you or your tokens requested."
	for path, says := range map[string]string{"/overview": "No decision of yours in 30 days.", "/reviews": "No decision of yours waits for a review.", "/decisions": "No decision of yours yet.",
		"/decisions?decision=deny": "No decision of yours matches."} {
		dev.want(dev.get(path), 200, only)
		dev.want(dev.get(path), 200, says)
		if got := admin.get(path); strings.Contains(got.body, only) || strings.Contains(got.body, "yours") {
			t.Errorf("an admin reads on %s that it is only theirs", path)
		}
	}
	dev.want(dev.get("/overview"), 200, "An owner or admin issues a token for the agent.")
	// The preview counts all decisions, but links only to the developer's own ones.
	stop := url.Values{"do": {"check"}, "policy": {`{"policyId":"default","allowedMcpServers":[]}`}}
	dev.want(dev.form("/policies/new", stop), 200, "would change</strong>, compared")
	dev.want(dev.form("/policies/new", stop), 200, ", not yours,")
	if got := dev.form("/policies/new", stop); strings.Contains(got.body, "/decisions/"+foreign) {
		t.Error("the preview leads a developer to what is not theirs")
	}
	admin.want(admin.form("/policies/new", stop), 200, `<a href="/decisions/`+foreign+`">`)

	draft := dev.form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","requireHttps":true}`}}).header.Get("Location")
	admin.form(draft, url.Values{"reason": {"ticket 4711"}})
	for _, path := range []string{"/policies", "/policies/3"} {
		got := dev.get(path)
		dev.want(got, 200, "by another member")
		if strings.Contains(ofPerson.ReplaceAllString(got.body, ""), "cus_") { // hidden fields of forms may contain the id
			t.Errorf("%s calls somebody by an id", path)
		}
	}
	dev.want(dev.get("/policies/3"), 200, "<dd>you</dd>")
	clean(t, s)
}
