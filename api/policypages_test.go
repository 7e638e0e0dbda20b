package api_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
)

// TestAPolicyIsMadeOnThePages: from a template, as a form, with its warnings, its
// difference and what it would have changed; then put in force by somebody else.
func TestAPolicyIsMadeOnThePages(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.decide(t, decisionBody("k1", weather))
	dev, admin, auditor := c.people["developer"], c.people["admin"], c.people["auditor"]
	dev.want(dev.get("/policies"), 200, "Start from x402")
	dev.want(dev.get("/policies/new?template=strict"), 200, "1 of 1 would change.")
	auditor.want(auditor.get("/policies/new"), 403, "missing")
	written := dev.form("/policies/new", url.Values{"do": {"form"}, "policy": {`{"policyId":"default","custom":1}`}, "f_maxUsdPerTransaction": {"2.50"},
		"f_allowedHosts": {"api.weather.example\r\n*.example.org"}, "f_allowedMcpTools": {"none"}, "f_requireHttps": {"true"}})
	for _, part := range []string{`&#34;maxUsdPerTransaction&#34;: 2.50`, `&#34;*.example.org&#34;`, `&#34;allowedMcpTools&#34;: []`, `&#34;requireHttps&#34;: true`} {
		if !strings.Contains(written.body, part) {
			t.Errorf("the form does not write %s", part)
		}
	}
	dev.want(written, 400, "Not a policy yet: policy: unknown field")
	got := dev.form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","maxUsdPerTransaction":0.1,"allowedHosts":["api.weather.example"]}`}})
	draft := got.header.Get("Location")
	if got.status != 303 || !strings.HasPrefix(draft, "/policies/drafts/evt_") {
		t.Fatalf("%d to %s: %s", got.status, draft, got.body)
	}
	dev.want(dev.get(draft), 200, "An owner or admin puts it in force.")
	dev.want(dev.form(draft, url.Values{"reason": {"mine"}}), 403, "missing role")
	admin.want(admin.get(draft), 200, "A purchase may cost at most 0.10 US dollars.")
	if got := admin.form(draft, url.Values{"reason": {"ticket 4711"}}); got.header.Get("Location") != "/policies/2" {
		t.Errorf("%d to %s: %s", got.status, got.header.Get("Location"), got.body)
	}
	version := auditor.get("/policies/2")
	for _, part := range []string{"ticket 4711", "admin@acme.example", "developer@acme.example", "Only these hosts may be paid: api.weather.example.", "<ins>"} {
		auditor.want(version, 200, part)
	}
	day := s.clock.Now().UTC().Format("2006-01-02")
	auditor.want(auditor.get("/policies?on="+day), 200, `<a href="/policies/2">version 2</a> was in force`)
	auditor.want(auditor.get("/policies?on=2020-01-01"), 200, "none was in force")
	auditor.want(auditor.get("/policies/99"), 404, "not found")
	admin.want(admin.form("/policies/freeze", url.Values{"reason": {"incident"}}), 400, "tick the box")
	if got := admin.form("/policies/freeze", url.Values{"reason": {"incident"}, "sure": {"yes"}}); got.header.Get("Location") != "/policies/3" {
		t.Errorf("freeze: %d %s", got.status, got.body)
	}
	admin.want(admin.get("/policies/3"), 200, "No host is allowed, so nothing may be paid.")
	admin.want(admin.get("/overview"), 200, "Policy version 3")
	clean(t, s)
}
