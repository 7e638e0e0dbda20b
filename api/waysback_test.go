package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
)

// TestAFormWithoutASessionIsNotLost checks that a person who was signed out in the meantime sees
// what happened and what they wrote, and gets back to the page, with its filter.
func TestAFormWithoutASessionIsNotLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	got := b.form("/reviews/asd_x", url.Values{"org": {"org_x"}, "at": {"/reviews/asd_x"}, "verdict": {"approved"}, "reason": {"a long thought"}})
	for _, part := range []string{"nothing was done and nothing recorded", "a long thought</textarea>", `name="next" value="/reviews/asd_x?org=org_x"`} {
		b.want(got, 401, part)
	}
	for path, above := range map[string]string{"/members/remove": "/members", "/keys/revoke": "/keys", "/account/keys/revoke": "/account", "/policies/freeze": "/policies",
		"/webhooks/whk_x/again": "/webhooks/whk_x", "/decisions/bundle": "/decisions"} {
		b.want(b.form(path, url.Values{"org": {""}}), 401, `name="next" value="`+above+`"`)
		b.want(b.form(path, url.Values{"org": {""}, "at": {"https://evil.example/"}}), 401, `name="next" value="`+above+`"`)
	}
	if got := b.get("/decisions?agent=agent-7&conformance=none").header.Get("Location"); got != "/sign-in?next="+url.QueryEscape("/decisions?agent=agent-7&conformance=none") {
		t.Errorf("the filter is lost: %s", got)
	}
	secret := b.form("/tools/action_safety_quick_gate/try", url.Values{"key": {"svck_secret"}, "org": {""}})
	if strings.Contains(secret.body, "svck_secret") {
		t.Error("a key is shown again")
	}
}

// TestAnAddressOfAFormIsAPage checks that a GET of a form's address gives people a page with a
// link to continue, and programs JSON.
func TestAnAddressOfAFormIsAPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for path, above := range map[string]string{
		"/members/remove": "/members", "/members/arguments": "/members", "/keys/revoke": "/keys", "/account/keys": "/account", "/account/keys/revoke": "/account",
		"/account/agents/revoke": "/account", "/account/organization": "/account", "/account/download": "/account", "/account/billing": "/account", "/policies/freeze": "/policies",
		"/sign-out": "/", "/webhooks/whk_x/again": "/webhooks/whk_x", "/webhooks/whk_x/rotate": "/webhooks/whk_x", "/tools/action_safety_quick_gate/try": "/tools/action_safety_quick_gate", "/decisions/bundle": "/decisions",
	} {
		got := b.get(path, "Accept", "text/html")
		if got.status != 405 || got.header.Get("Allow") != "POST" || !strings.Contains(got.body, `<a class="button primary" href="`+above+`">`) {
			t.Errorf("%s: %d %v %s", path, got.status, got.header, got.body)
		}
		b.want(b.get(path), 405, `"code":"method_not_allowed"`)
	}
}

// TestAFormThatNeedsANewSignInSaysSo checks that a page states before a form is filled in that a
// new sign-in is needed, and keeps what was written if the form is sent nevertheless.
func TestAFormThatNeedsANewSignInSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	if text := owner.get("/policies").body; strings.Contains(text, "Sign in again") {
		t.Error("asked for a sign-in that is fresh")
	}
	s.clock.Add(11 * time.Minute)
	for _, place := range []string{"/policies", "/members", "/keys", "/webhooks"} {
		owner.want(owner.get(place), 200, `<a href="/sign-in?next=`+url.QueryEscape(place+"?org="+c.orgID)+`">Sign in again</a>`)
	}
	got := owner.form("/policies/freeze", url.Values{"sure": {"yes"}, "reason": {"an incident at night"}, "at": {"/policies"}})
	for _, part := range []string{"Nothing was done and nothing recorded.", "an incident at night</textarea>", "Sign in again", `href="/sign-in?next=` + url.QueryEscape("/policies?org="+c.orgID) + `"`, `href="/policies"`} {
		owner.want(got, 403, part)
	}
	clean(t, s)
}
