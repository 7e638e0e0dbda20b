package api_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/policy/canon"
)

// TestAPolicyIsMadeOnThePages drafts a policy from a template in the form, and checks the
// warnings, the difference, and the decisions that would have changed. Then another member
// activates it.
func TestAPolicyIsMadeOnThePages(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.decide(t, decisionBody("k1", weather))
	dev, admin, auditor := c.people["developer"], c.people["admin"], c.people["auditor"]
	dev.want(dev.get("/policies"), 200, "Start from x402")
	dev.want(dev.get("/policies/new?template=strict"), 200, "1 of 1 would change</strong>, compared with version ")
	auditor.want(auditor.get("/policies/new"), 403, "missing")
	const custom = `{"policyId":"default","custom":1}`
	written := dev.form("/policies/new", url.Values{"do": {"check"}, "policy": {custom}, "was": {custom}, "f_maxUsdPerTransaction": {"2.50"},
		"f_allowedHosts": {"api.weather.example\r\n*.example.org"}, "f_allowedMcpTools": {"none"}, "f_requireHttps": {"true"}})
	for _, part := range []string{`&#34;maxUsdPerTransaction&#34;: 2.50`, `&#34;*.example.org&#34;`, `&#34;allowedMcpTools&#34;: []`, `&#34;requireHttps&#34;: true`} {
		if !strings.Contains(written.body, part) {
			t.Errorf("the form does not write %s", part)
		}
	}
	dev.want(written, 200, "This is not a valid policy yet: policy: unknown field")
	dev.want(dev.form("/policies/new", url.Values{"do": {"draft"}, "policy": {custom}}), 400, "This is not a valid policy yet: policy: unknown field")
	got := dev.form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","maxUsdPerTransaction":0.1,"allowedHosts":["api.weather.example"]}`}})
	draft := got.header.Get("Location")
	if got.status != 303 || !strings.HasPrefix(draft, "/policies/drafts/evt_") {
		t.Fatalf("%d to %s: %s", got.status, draft, got.body)
	}
	dev.want(dev.get(draft), 200, "An owner or admin must activate this draft.")
	dev.want(dev.get(draft), 200, "The version that the draft becomes has another hash")
	dev.want(dev.form(draft, url.Values{"reason": {"mine"}}), 403, "missing role")
	admin.want(admin.get(draft), 200, "A purchase may cost at most 0.10 US dollars.")
	if got := admin.form(draft, url.Values{"reason": {"ticket 4711"}}); got.header.Get("Location") != "/policies/2" {
		t.Errorf("%d to %s: %s", got.status, got.header.Get("Location"), got.body)
	}
	version := auditor.get("/policies/2")
	for _, part := range []string{"ticket 4711", "admin@acme.example", "developer@acme.example", "Only these hosts may be paid: api.weather.example.", "<ins>", "so it differs from the hash of the draft"} {
		auditor.want(version, 200, part)
	}
	day := s.clock.Now().UTC().Format("2006-01-02")
	auditor.want(auditor.get("/policies?on="+day), 200, `<a href="/policies/2">version 2</a> was active`)
	auditor.want(auditor.get("/policies?on=2020-01-01"), 200, "no version was active")
	auditor.want(auditor.get("/policies/99"), 404, "not found")
	admin.want(admin.form("/policies/freeze", url.Values{"reason": {"incident"}}), 400, "tick the box")
	if got := admin.form("/policies/freeze", url.Values{"reason": {"incident"}, "sure": {"yes"}}); got.header.Get("Location") != "/policies/3" {
		t.Errorf("freeze: %d %s", got.status, got.body)
	}
	admin.want(admin.get("/policies/3"), 200, "No host is allowed, so nothing may be paid.")
	admin.want(admin.get("/overview"), 200, "Policy version 3")

	// After an emergency stop, members can draft from the previous version.
	dev.want(dev.get("/policies/new"), 200, "&#34;allowedHosts&#34;: []")
	dev.want(dev.get("/policies"), 200, `<a href="/policies/new?from=2">Start a draft from version 2</a>`)
	auditor.want(auditor.get("/policies"), 200, "Everything is stopped until another version is activated.")
	dev.want(dev.get("/policies/2"), 200, `href="/policies/new?from=2"`)
	if page := auditor.get("/policies/2"); strings.Contains(page.body, "/policies/new") {
		t.Error("an auditor is led to the editor")
	}
	e := &editor{browser: dev}
	e.open(dev.get("/policies/new?from=2"))
	e.text(`{"policyId":"default","maxUsdPerTransaction":0.1,"allowedHosts":["api.weather.example"]}`)
	e.field("allowedHosts", "api.weather.example")
	e.fields.Set("do", "draft")
	admin.form(dev.form("/policies/new", e.fields).header.Get("Location"), url.Values{"reason": {"it goes on"}})
	if page := dev.get("/policies"); strings.Contains(page.body, "Everything is stopped") {
		t.Error("what goes on is called stopped")
	}
	admin.want(admin.get("/policies/4"), 200, "Only these hosts may be paid: api.weather.example.")
	dev.want(dev.get("/policies/new?from=99"), 404, "from must be the number of a version of the policy")
	dev.want(dev.get("/policies/new?from="), 303, "")
	clean(t, s)
}

// TestAnActivatedDraft checks that the address of an activated draft leads to its version, and
// that a member who activates it too late sees who was first and does not lose the reason that
// they wrote.
func TestAnActivatedDraft(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	dev, admin, owner := c.people["developer"], c.people["admin"], c.people["owner"]
	got := dev.form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","requireHttps":true}`}})
	draft := got.header.Get("Location")
	refused := admin.form(draft, url.Values{"reason": {strings.Repeat("long ", 300)}})
	admin.want(refused, 400, "The draft was not activated: reason must")
	admin.want(refused, 400, `value="long long`)
	s.clock.Add(11 * time.Minute)
	late := admin.form(draft, url.Values{"reason": {"written for ten minutes"}})
	admin.want(late, 403, "The draft was not activated: sign in again to do this. Nothing was recorded.")
	admin.want(late, 403, "written for ten minutes")
	admin.want(late, 403, `/sign-in?next=/policies/drafts/`)
	admin.signIn("admin@acme.example")
	owner.signIn("owner@acme.example")
	if got := admin.form(draft, url.Values{"reason": {"ticket 4711"}}); got.header.Get("Location") != "/policies/2" {
		t.Fatalf("%d to %s: %s", got.status, got.header.Get("Location"), got.body)
	}
	for _, who := range []*browser{dev, admin, owner, c.people["auditor"]} {
		if got := who.get(draft); got.status != 303 || got.header.Get("Location") != "/policies/2" {
			t.Errorf("the draft's address: %d to %s", got.status, got.header.Get("Location"))
		}
	}
	second := owner.form(draft, url.Values{"reason": {"what I had to say"}})
	for _, part := range []string{"Policy version 2", "This draft had already been activated by admin@acme.example,", "Nothing was recorded for your attempt.", "what I had to say", "ticket 4711"} {
		owner.want(second, 409, part)
	}
	owner.want(owner.get("/policies/drafts/evt_01JD3Z8W5T0000000000000000"), 404, "not found")
	owner.want(owner.form("/policies/drafts/evt_01JD3Z8W5T0000000000000000", url.Values{"reason": {"x"}}), 404, "policy draft not found")
	clean(t, s)
}

// editor is the form of the policy editor, as a browser would send it.
type editor struct {
	*browser
	page   answer
	fields url.Values
}

var (
	areaPattern  = regexp.MustCompile(`<textarea (?:id="policy" )?name="([^"]+)"[^>]*>([^<]*)</textarea>`)
	inputPattern = regexp.MustCompile(`<input (?:type="(hidden|checkbox)" )?name="(was|f_[A-Za-z]+)" value="([^"]*)"( checked)?`)
)

// open reads the values of the fields on a page.
func (e *editor) open(page answer) {
	e.t.Helper()
	e.page, e.fields = page, url.Values{}
	for _, m := range areaPattern.FindAllStringSubmatch(page.body, -1) {
		e.fields.Set(m[1], html.UnescapeString(m[2]))
	}
	for _, m := range inputPattern.FindAllStringSubmatch(page.body, -1) {
		if m[1] != "checkbox" || m[4] != "" {
			e.fields.Set(m[2], html.UnescapeString(m[3]))
		}
	}
	if len(e.fields) < 10 {
		e.t.Fatalf("this is no editor: %d %s", page.status, page.body)
	}
}

// press sends the form with a button, with the line breaks that browsers send.
func (e *editor) press(do string, want int) {
	e.t.Helper()
	sent := url.Values{"do": {do}}
	for name := range e.fields {
		sent.Set(name, strings.ReplaceAll(e.fields.Get(name), "\n", "\r\n"))
	}
	got := e.form("/policies/new", sent)
	if got.status != want {
		e.t.Errorf("%s: %d, want %d: %s", do, got.status, want, got.body)
	}
	e.open(got)
}

// text checks that the text has this JSON value, in any spelling.
func (e *editor) text(want string) {
	e.t.Helper()
	have, err := canon.Canonical([]byte(e.fields.Get("policy")))
	wanted, err2 := canon.Canonical([]byte(want))
	if err != nil || err2 != nil || string(have) != string(wanted) {
		e.t.Errorf("the text is %s (%v), want %s (%v)", have, err, wanted, err2)
	}
}

// field checks the value of a field of the form.
func (e *editor) field(name, want string) {
	e.t.Helper()
	if have := e.fields.Get("f_" + name); have != want {
		e.t.Errorf("the form's %s is %q, want %q", name, have, want)
	}
}

// TestTheFormLosesNothing checks that only the fields that were changed in the form are written
// into the text, and that a value that cannot be written stays in its field.
func TestTheFormLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	const start = `{"policyId":"default","maxUsdPerTransaction":50,"allowedHosts":["a.example","b.example"],"requireHttps":true}`
	c.activate(t, start)
	opened := func() *editor {
		e := &editor{browser: c.people["developer"]}
		e.open(e.get("/policies/new"))
		e.text(start)
		return e
	}

	t.Run("a field that was not changed", func(t *testing.T) {
		e := opened()
		e.fields.Set("policy", `{"policyId":"default","maxUsdPerTransaction":50,"allowedHosts":["a.example"],"blockedHosts":["evil.example"],"requireHttps":false}`)
		e.fields.Set("f_maxUsdPerTransaction", "61")
		e.press("check", 200) // the Enter key in a field presses this button
		e.text(`{"policyId":"default","maxUsdPerTransaction":61,"allowedHosts":["a.example"],"blockedHosts":["evil.example"],"requireHttps":false}`)
		e.field("maxUsdPerTransaction", "61")
		e.field("blockedHosts", "evil.example")
		e.field("allowedHosts", "a.example")
		e.field("requireHttps", "")
		e.want(e.page, 200, "The form changed these parts of the JSON: Largest amount of one payment.")
		e.fields.Set("f_blockedHosts", "")
		e.fields.Set("f_allowedMcpTools", "none")
		e.press("check", 200)
		e.text(`{"policyId":"default","maxUsdPerTransaction":61,"allowedHosts":["a.example"],"allowedMcpTools":[],"requireHttps":false}`)
	})
	t.Run("nothing was changed", func(t *testing.T) {
		e := opened()
		const mine = "{ \"policyId\":\"default\",\n\n \"allowedHosts\": [ ] }"
		e.fields.Set("policy", mine)
		e.press("check", 200)
		if e.fields.Get("policy") != mine {
			t.Errorf("the text was rewritten: %s", e.fields.Get("policy"))
		}
		e.field("allowedHosts", "none")
		e.field("maxUsdPerTransaction", "")
	})
	t.Run("a text that is no JSON", func(t *testing.T) {
		for _, broken := range []string{"{\n  \"policyId\": \"default\"\n  \"blockedHosts\": [\"evil.example\"]\n}", "null", `["a"]`} {
			e := opened()
			e.fields.Set("policy", broken)
			e.press("check", 200)
			e.want(e.page, 200, "This is not a valid policy yet")
			e.field("allowedHosts", "a.example\nb.example")
			e.fields.Set("f_maxUsdPerTransaction", "61")
			for _, do := range []string{"check", "draft"} {
				e.press(do, 400)
				e.want(e.page, 400, "the text is not a JSON object: fix it; the form keeps your changes")
				if e.fields.Get("policy") != broken {
					t.Errorf("the text became %s", e.fields.Get("policy"))
				}
				e.field("maxUsdPerTransaction", "61")
			}
			e.fields.Set("policy", `{"policyId":"default","maxUsdPerTransaction":50,"blockedHosts":["evil.example"]}`)
			e.press("check", 200)
			e.text(`{"policyId":"default","maxUsdPerTransaction":61,"blockedHosts":["evil.example"]}`)
		}
	})
	t.Run("an amount that is no number", func(t *testing.T) {
		e := opened()
		e.fields.Set("policy", strings.Replace(start, `"b.example"`, `"c.example"`, 1))
		e.fields.Set("f_maxUsdPerTransaction", "five")
		e.fields.Set("f_blockedHosts", "evil.example")
		e.press("check", 400)
		e.want(e.page, 400, "Largest amount of one payment: this must be a number, such as 2.50")
		e.text(strings.Replace(start, `"b.example"`, `"c.example"`, 1))
		e.field("maxUsdPerTransaction", "five")
		e.field("blockedHosts", "evil.example")
		e.field("allowedHosts", "a.example\nc.example")
		e.press("draft", 400)
		e.field("maxUsdPerTransaction", "five")
		e.fields.Set("f_maxUsdPerTransaction", "5")
		e.press("check", 200)
		e.text(`{"policyId":"default","maxUsdPerTransaction":5,"allowedHosts":["a.example","c.example"],"blockedHosts":["evil.example"],"requireHttps":true}`)
	})
	t.Run("a member that was changed in both", func(t *testing.T) {
		e := opened()
		e.fields.Set("policy", strings.Replace(start, `"b.example"`, `"c.example"`, 1))
		e.fields.Set("f_allowedHosts", "a.example")
		e.press("draft", 400)
		e.want(e.page, 400, "allowedHosts was changed both in the JSON and in the form")
		e.text(strings.Replace(start, `"b.example"`, `"c.example"`, 1))
		e.field("allowedHosts", "a.example")
		e.press("check", 200)
		e.text(strings.Replace(start, `,"b.example"`, ``, 1))
	})
	t.Run("a draft that is refused", func(t *testing.T) {
		e := opened()
		e.fields.Set("policy", `{"policyId":"another"}`)
		e.press("draft", 400)
		e.want(e.page, 400, "That did not work: policyId must be the one of this organization&#39;s policy.")
		e.text(`{"policyId":"another"}`)
	})
	t.Run("a draft", func(t *testing.T) {
		e := opened()
		e.fields.Set("f_maxUsdPerTransaction", "7")
		e.fields.Set("do", "draft")
		kept := e.form("/policies/new", e.fields)
		e.want(e.get(kept.header.Get("Location")), 200, "A purchase may cost at most 7.00 US dollars.")
	})
	clean(t, s)
}
