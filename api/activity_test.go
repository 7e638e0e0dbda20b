package api_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
)

// TestActivitySaysWhoDidWhat checks that one page lists who changed members, tokens and policies,
// with names, reasons and links, newest first, and that it has further pages.
func TestActivitySaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	owner.want(owner.follow(owner.form("/members", url.Values{"email": {"carl@acme.example"}, "role": {"auditor"}})), 200, "carl@acme.example")
	owner.follow(owner.form("/keys", url.Values{"name": {"ci"}, "scope": {"assurance:decide"}}))
	c.activate(t, toolPolicy)
	page := owner.get("/activity")
	for _, part := range []string{"<strong>owner@acme.example</strong>", "added the member", "carl@acme.example as auditor", "issued the token svco_", "activated version 2 of the policy", "Reason: <q>test</q>", `href="/policies/2"`, "<strong>The operator</strong>"} {
		owner.want(page, 200, part)
	}
	if strings.Index(page.body, "activated version 2") > strings.Index(page.body, "carl@acme.example as auditor") {
		t.Error("the oldest is first")
	}
	tokens := owner.get("/activity?kind=Tokens")
	if owner.want(tokens, 200, "issued the token"); strings.Contains(tokens.body, "added the member") {
		t.Error("the filter shows everything")
	}
	owner.want(owner.get("/activity?kind=x"), 400, "kind must be empty or one of the filters of this page")
	for range 26 {
		if _, err := s.app.IssueToken(t.Context(), c.now(t), organizations.TokenOrder{}); err != nil {
			t.Fatal(err)
		}
	}
	owner.want(owner.get("/activity"), 200, `rel="next"`)
	developer := c.people["developer"]
	developer.want(developer.get("/activity"), 403, "")
}
