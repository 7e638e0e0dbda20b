package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
)

// TestOneSearchBoxTakesAnything checks that one search finds everything that a text can name: an
// id, a shortened id, an agent, a host, a tool, a rule, a run, a hash or a member.
func TestOneSearchBoxTakesAnything(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	paid := c.decide(t, decisionBody("k1", weather)).decision(t)
	c.report(t, paid, "x402", "fulfilled")
	called := c.decide(t, toolBody("k2", "agent-8", "drop", "low")).decision(t)
	owner, developer := c.people["owner"], c.people["developer"]
	short := func(id string) string {
		prefix, rest, _ := strings.Cut(id, "_")
		if rest == "" {
			prefix, rest = "", id
		} else {
			prefix += "_"
		}
		return prefix + rest[:4] + "…" + rest[len(rest)-4:]
	}
	receipt := regexp.MustCompile(`asr_[0-9A-Z]{26}`).FindString(owner.get("/api/assurance/history").body)
	decision := "/decisions/" + paid.Record.DecisionID
	for question, to := range map[string]string{
		paid.Record.DecisionID:              decision,
		short(paid.Record.DecisionID):       decision,
		"  " + paid.Record.DecisionID + " ": decision,
		receipt:                             decision,
		short(receipt):                      decision,
		paid.Integrity.RecordHash:           decision,
		short(paid.Integrity.RecordHash):    decision,
		paid.Record.BindingHash:             decision,
		paid.Record.AssuranceActionHash:     decision,
		paid.Ledger.EventHash:               decision,
		called.Record.DecisionID:            "/decisions/" + called.Record.DecisionID,
		called.Record.Policy.PolicyHash:     "", // matches the policy and its decisions
		"agent-8":                           "/agents/sub_",
		"api.weather.example":               "/decisions?protocol=x402&target=api.weather.example",
		"files/drop":                        "/decisions?protocol=mcp&target=files%2Fdrop",
		"drop":                              "/decisions?protocol=mcp&target=files%2Fdrop",
		"mcp.tool.not_allowed":              "/decisions?rule=mcp.tool.not_allowed",
		paid.Record.Subject.RunID:           "/decisions?run=" + paid.Record.Subject.RunID,
		"auditor@acme.example":              "/members",
		"asd_01ARZ3NDEKTSV4RRFFQ69G5FAV":    "",
		strings.Repeat("0", 64):             "",
		"weather":                           "",
		"100% _like_ ' \" <b>":              "",
	} {
		got := owner.get("/search?q=" + url.QueryEscape(question))
		location := got.header.Get("Location")
		if to == "" && got.status != http.StatusOK || to != "" && (got.status != http.StatusSeeOther || !strings.HasPrefix(location, to)) {
			t.Errorf("%q: %d %s, want %s", question, got.status, location, to)
		}
		if to != "" {
			owner.want(owner.get(location), 200, "")
		}
	}
	owner.want(owner.get("/search?q=weather"), 200, `<a href="/decisions?protocol=x402&amp;target=api.weather.example"><span class="said"`)
	// A developer must not find records of others, and a visitor without a session none at all.
	for _, question := range []string{paid.Record.DecisionID, receipt, paid.Integrity.RecordHash, "agent-8", "api.weather.example", "auditor@acme.example"} {
		for name, who := range map[string]*browser{"the developer": developer, "nobody": s.browser(t)} {
			if got := who.get("/search?q=" + url.QueryEscape(question)); got.status != 200 || strings.Contains(got.body, `href="/decisions?protocol`) || strings.Contains(got.body, `href="/agents`) {
				t.Errorf("%s finds %q: %d", name, question, got.status)
			}
		}
	}
}
