package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
)

// TestWalkTryACommand tries a command like a new visitor.
func TestWalkTryACommand(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	w := s.openWindow(t)
	w.open("/")
	w.shoot("home")
	w.fill("command", "sudo bash -c 'git push --force origin main'")
	w.press("Get the verdict")
	w.see("critical risk")
	w.see("Safer:")
	w.shoot("home-verdict")
	w.fits("/")
}

// TestWalkReviews goes from a decision that requires a review to its approval, to a receipt that
// contradicts another decision, and to the lists of both.
func TestWalkReviews(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	for _, key := range []string{"k1", "k2"} {
		c.decide(t, toolBody(key, "agent-7", "write", "critical")).decision(t)
	}
	denied := c.decide(t, toolBody("k3", "agent-8", "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	c.decide(t, decisionBody("k4", weather)).decision(t)
	w := s.openWindow(t)
	w.as(c.people["admin"])
	w.open("/reviews")
	w.shoot("reviews")
	w.press("call “write” of “files”")
	w.see("Your verdict")
	w.shoot("review")
	w.fill("reason", "the archive may go")
	w.press("Approve")
	w.see("You approved it:")
	w.fill("reason", "not twice")
	w.press("Reject")
	w.see("No decision waits for a review.")
	w.open("/decisions")
	w.shoot("decisions")
	w.press("Violations")
	w.see("call “drop” of “files”")
	w.press("call “drop” of “files”")
	w.see("What happened")
	w.shoot("decision")
	for _, path := range []string{"/reviews", "/decisions", "/decisions/" + denied.Record.DecisionID, "/reviews/" + denied.Record.DecisionID} {
		w.fits(path)
	}
}

// TestWalkPolicies goes from a template, with a preview and a change in the form, to a draft. It
// also checks that the pages fit a phone.
func TestWalkPolicies(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	c.decide(t, decisionBody("k1", weather))
	w := s.openWindow(t)
	w.as(c.people["owner"])
	w.open("/policies")
	w.press("Start from strict")
	w.see("1 of 1 would change, compared with")
	w.do(chromedp.SendKeys("#policy", " ,", chromedp.ByQuery)) // the check runs while the person types
	w.see("This is not a valid policy yet")
	w.open("/policies/new?template=strict")
	w.shoot("policy-editor")
	w.do(chromedp.SendKeys(`[name="f_blockedHosts"]`, "evil.example", chromedp.ByQuery),
		chromedp.SetValue(`[name="f_maxUsdPerTransaction"]`, "6", chromedp.ByQuery),
		chromedp.SendKeys(`[name="f_maxUsdPerTransaction"]`, "1\r", chromedp.ByQuery)) // and press the Enter key
	w.see("The form changed these parts of the JSON: Largest amount of one payment; Hosts that may never be paid.")
	w.see("A purchase may cost at most 61.00 US dollars.")
	w.shoot("policy-editor-written")
	w.press("Save as a draft")
	w.see("What this draft changes")
	w.open("/policies")
	w.shoot("policies")
	places := []string{"/overview", "/policies", "/policies/1", "/policies/new", "/members", "/keys", "/account", "/ledger", "/verify", "/pricing", "/", "/sign-in"}
	for _, path := range places {
		w.fits(path)
	}
	for _, path := range []string{"/overview", "/members", "/keys", "/account", "/ledger", "/pricing", "/sign-in"} {
		w.open(path)
		w.shoot(strings.Trim(path, "/"))
	}
}

// TestWalkLongNames checks on several widths that a name without a space does not get wider than
// the space for it, including the menu of organizations.
func TestWalkLongNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	long := strings.Repeat("Longname", 23)
	if _, err := s.app.UpdateOrganization(t.Context(), "operator", c.orgID, organizations.OrganizationChange{Name: long, Reason: "renamed"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.AddMember(t.Context(), c.now(t), strings.Repeat("a", 64)+"@"+strings.Repeat(strings.Repeat("b", 59)+".", 3)+"example", "auditor"); err != nil {
		t.Fatal(err)
	}
	c.activate(t, toolPolicy)
	c.decide(t, toolBody("k1", long+"2", "write", "critical")).decision(t)
	denied := c.decide(t, toolBody("k2", long, "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	w := s.openWindow(t)
	w.as(c.people["owner"])
	for _, width := range []int{360, 375, 641, 768, 1280} {
		w.do(chromedp.EmulateViewport(int64(width), 900))
		for _, path := range []string{"/overview", "/reviews", "/decisions", "/decisions/" + denied.Record.DecisionID, "/policies", "/members", "/keys", "/account", "/guard"} {
			w.open(path)
			w.within(path, width)
			for i, menu := range []string{"organizations", "account"} {
				w.do(chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("header .menu").forEach((menu, i) => { menu.open = i === %d })`, i), nil))
				w.within("the menu of the "+menu+" on "+path, width)
			}
		}
	}
	for _, path := range []string{"reviews", "decisions", "members", "account"} {
		w.open("/" + path)
		w.shoot("long-" + path)
	}
	w.do(chromedp.Click(`header .organization summary`, chromedp.ByQuery))
	w.shoot("long-menu")
}

// TestWalkPolicyFormFollowsTheText checks that an unchanged form follows the text, that a text
// that is not JSON does not change the form, and that checking such a text is not an error.
func TestWalkPolicyFormFollowsTheText(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	w := s.openWindow(t)
	failures := w.failures()
	w.as(c.people["developer"])
	w.open("/policies/new")
	hosts := func() (shown string) {
		w.do(chromedp.Value(`[name="f_allowedHosts"]`, &shown, chromedp.ByQuery))
		return shown
	}
	write := func(text string) {
		w.do(chromedp.SetValue("#policy", text, chromedp.ByQuery), chromedp.SendKeys("#policy", " ", chromedp.ByQuery))
	}
	write(`{"policyId":"default","allowedHosts":["a.example"]}`)
	w.see("Only these hosts may be paid: a.example.")
	if shown := hosts(); shown != "a.example" {
		t.Errorf("the form says %q", shown)
	}
	write(`{"policyId":"default" "allowedHosts":["b.example"]}`)
	w.see("This is not a valid policy yet")
	if shown := hosts(); shown != "a.example" {
		t.Errorf("of a text that is no JSON the form says %q", shown)
	}
	w.do(chromedp.SendKeys(`[name="f_maxUsdPerTransaction"]`, "7", chromedp.ByQuery))
	write(`{"policyId":"default","allowedHosts":["c.example"]}`)
	w.see("Only these hosts may be paid: c.example.")
	w.press("Check")
	w.see("The form changed these parts of the JSON: Largest amount of one payment.")
	w.see("Only these hosts may be paid: c.example.")
	if shown := hosts(); shown != "c.example" {
		t.Errorf("after writing the form says %q", shown)
	}
	for _, said := range failures() {
		t.Errorf("the browser's console says: %s", said)
	}
}
