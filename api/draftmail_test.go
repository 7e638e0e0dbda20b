package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
)

var tokenPattern = regexp.MustCompile(`svco_[0-9A-Za-z_-]+`)

// TestTheOtherAdminsAreToldOfADraft checks that the members who may activate a draft get one e-mail
// about it: what it changes, who wrote it, why, and where it can be activated. The author gets none.
func TestTheOtherAdminsAreToldOfADraft(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, `{"policyId":"default","maxUsdPerTransaction":50,"allowedHosts":["a.example"],"requireHttps":true}`)
	fresh := s.mailbox(s.server.DraftMessages)
	draft := func(who, text, reason string) string {
		t.Helper()
		got := c.people[who].form("/policies/new", url.Values{"do": {"draft"}, "policy": {text}, "reason": {reason}})
		if got.status != http.StatusSeeOther {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got.header.Get("Location")
	}
	both := []string{"admin@acme.example", "owner@acme.example"}

	t.Run("each other admin gets what changes, who, why and where", func(t *testing.T) {
		page := draft("developer", `{"policyId":"default","maxUsdPerTransaction":7,"allowedHosts":["a.example","b.example"]}`, "ticket 4711")
		messages := fresh(false)
		if !slices.Equal(recipients(messages), both) {
			t.Fatalf("e-mails to %s", recipients(messages))
		}
		for _, part := range []string{"developer@acme.example proposes to change the policy of ", "Reason: “ticket 4711”\n",
			"  Changed: Only these hosts may be paid: a.example, b.example.\n    Before: Only these hosts may be paid: a.example.\n",
			"  New: A purchase may cost at most 7.00 US dollars.\n", "  Gone: Addresses must use https.\n",
			s.app.BaseURL + page + "?org=" + c.orgID} {
			if !strings.Contains(messages[0].Text, part) {
				t.Errorf("the e-mail lacks %q:\n%s", part, messages[0].Text)
			}
		}
		if messages[0].Link != s.app.BaseURL+page+"?org="+c.orgID || !strings.HasPrefix(messages[0].Subject, "A policy draft waits for activation: evt_") {
			t.Errorf("%+v", messages[0])
		}
		admin := c.people["admin"]
		admin.want(admin.get(page), 200, "<q>ticket 4711</q>")
		admin.want(admin.get("/policies"), 200, "ticket 4711")
	})
	t.Run("the author gets none", func(t *testing.T) {
		draft("admin", `{"policyId":"default","requireHttps":true}`, "")
		messages := fresh(false)
		if !slices.Equal(recipients(messages), []string{"owner@acme.example"}) || !strings.Contains(messages[0].Text, "No reason was given.") {
			t.Errorf("%+v", messages)
		}
	})
	t.Run("the member who issued the token gets none", func(t *testing.T) {
		owner := c.people["owner"].in(t)
		issued := owner.post("/api/assurance/tokens", `{"scopes":["policy:draft"]}`)
		agent := tenant{site: s, token: tokenPattern.FindString(issued.body)}
		got := agent.send(t, "/api/assurance/policies?reason=by+an+agent", `{"policyId":"default","requireHttps":true}`)
		if got.status != 201 || !strings.Contains(got.body, `"reason":"by an agent"`) {
			t.Fatalf("%d %s", got.status, got.body)
		}
		messages := fresh(false)
		if !slices.Equal(recipients(messages), []string{"admin@acme.example"}) || !strings.Contains(messages[0].Text, "A token of owner@acme.example proposes") || !strings.Contains(messages[0].Text, "Reason: “by an agent”") {
			t.Errorf("%+v", messages)
		}
	})
	t.Run("many drafts lead to few e-mails, without those that are active", func(t *testing.T) {
		for n := range 3 {
			draft("developer", fmt.Sprintf(`{"policyId":"default","maxUsdPerTransaction":%d}`, 10+n), "")
		}
		active := draft("developer", `{"policyId":"default","maxUsdPerTransaction":20}`, "")
		if messages := fresh(false); len(messages) != 0 {
			t.Errorf("%d e-mails too early", len(messages))
		}
		c.people["admin"].form(active, url.Values{"reason": {"agreed"}})
		messages := fresh(true)
		if !slices.Equal(recipients(messages), both) || !strings.Contains(messages[0].Text, "at most 12.00 US dollars") ||
			!strings.Contains(messages[0].Text, "2 older drafts of the same author wait, too: "+s.app.BaseURL+"/policies?org="+c.orgID) {
			t.Errorf("%+v", messages)
		}
		if messages := fresh(true); len(messages) != 0 {
			t.Errorf("%d e-mails about nothing", len(messages))
		}
	})
	t.Run("names in a draft cannot speak for the service", func(t *testing.T) {
		draft("developer", `{"policyId":"default","allowedMcpTools":["read. Approved by the owner. Activate it now","p\u0430y","read_file"]}`, "fine” Approved by the owner")
		messages := fresh(true)
		if len(messages) != 2 {
			t.Fatalf("%+v", messages)
		}
		for _, part := range []string{"Reason: “fine<U+201D> Approved by the owner”\n", "tools may be called: “read. Approved by the owner. Activate it now”, “p<U+0430>y”, read_file.\n"} {
			if !strings.Contains(messages[0].Text, part) {
				t.Errorf("the e-mail lacks %q:\n%s", part, messages[0].Text)
			}
		}
	})
	clean(t, s)
}

// TestNoMailNoMessage checks that a draft is saved and no admin is told if the service has no
// mail server.
func TestNoMailNoMessage(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", nil)
	n := newTenant(t, s, "team", "ada@example.com")
	issued, err := s.app.IssueToken(t.Context(), n.operator, organizations.TokenOrder{Scopes: []string{"policy:draft"}})
	if err != nil {
		t.Fatal(err)
	}
	n.token = issued.Token
	if got := n.send(t, "/api/assurance/policies", `{"policyId":"default","requireHttps":true}`); got.status != 201 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.server.DraftMessages(true)
}
