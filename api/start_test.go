package api_test

import (
	"encoding/json"
	"html"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
)

// TestFirstRunInTheBrowser checks that a person gets from an empty service to a decision on a page
// with at most 12 clicks, and that the sample agent runs only in a terminal, with the command as
// the page shows it.
func TestFirstRunInTheBrowser(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"mcp", "x402", "strict"} {
		s := newSite(t, api.Databases.New(t))
		b := s.browser(t)
		clicks := 6 // sign in, send the link, open the outbox with its code, open the link, confirm
		b.signIn("ada@example.com")
		click := func(says, at string, fields url.Values) answer {
			t.Helper()
			clicks++
			if fields == nil {
				return b.get(at)
			}
			got := b.follow(b.form(at, fields))
			b.want(got, 200, says)
			return got
		}
		if got := b.get("/overview"); got.header.Get("Location") != "/start" {
			t.Errorf("overview without an organization: %d %s", got.status, got.header.Get("Location"))
		}
		b.want(click("", "/start", nil), 200, "This service runs for you alone")
		click("as its owner", "/start", url.Values{"name": {"Ada's agents"}})
		click("Policy version 1", "/start/policy", url.Values{"template": {template}})
		page := click("This is the new token", "/start/token", url.Values{"sure": {"yes"}})
		command := html.UnescapeString(regexp.MustCompile(`(?s)<pre data-copy-block>(.*?)</pre>`).FindStringSubmatch(page.body)[1])
		parts := regexp.MustCompile(`^curl -sS (\S+) -H 'Authorization: Bearer (svco_[\w-]+)' -H 'Content-Type: application/json' -d '([^']*)'$`).FindStringSubmatch(command)
		if parts == nil || parts[1] != s.app.BaseURL+"/api/assurance/decisions" {
			t.Fatalf("the command is %q", command)
		}
		if got := b.get("/start"); strings.Contains(got.body, parts[2]) {
			t.Error("the token is shown twice")
		}
		answer := s.browser(t).post("/api/assurance/decisions", parts[3], "Authorization", "Bearer "+parts[2])
		var d decided
		if err := json.Unmarshal([]byte(answer.body), &d); err != nil || answer.status != 201 {
			t.Fatalf("%s: %d %s", template, answer.status, answer.body)
		}
		if want := map[string]string{"mcp": "allow", "x402": "allow", "strict": "deny"}[template]; d.Record.Decision != want {
			t.Errorf("%s: the sample agent gets %s, want %s", template, d.Record.Decision, want)
		}
		page = click("", "/start", nil)
		b.want(page, 200, `href="/decisions/`+d.Record.DecisionID+`"`)
		b.want(click("", "/decisions/"+d.Record.DecisionID, nil), 200, d.Record.DecisionID)
		if clicks > 12 {
			t.Errorf("%d clicks", clicks)
		}
		t.Logf("console: first run: %d clicks", clicks)
	}
}

// TestAnOrganizationBeginsWithASubscription checks that no person can create an organization on
// the pages of a public service, and that the page explains how one is created.
func TestAnOrganizationBeginsWithASubscription(t *testing.T) {
	t.Parallel()
	outbox := mail.NewOutbox(slog.New(slog.DiscardHandler))
	s := newSiteWith(t, api.Databases.New(t), "", outbox, func(c *api.Config) { c.Outbox = nil })
	b := s.browser(t)
	b.signIn("ada@example.com")
	page := b.get("/start")
	b.want(page, 200, "To create an organization, buy the Team or Business plan.")
	if strings.Contains(page.body, `action="/start"`) {
		t.Error("the page has the form")
	}
	b.want(b.form("/start", url.Values{"name": {"Mine"}}), 403, "an organization is created by a subscription to the Team or Business plan")
}
