package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/countersign/countersign/api"
)

// acmeAndBeta returns two organizations that ada owns. ada is signed in and has not chosen one.
func acmeAndBeta(t *testing.T, s *site) (acme *tenant, beta string, ada *browser) {
	t.Helper()
	acme = newTenant(t, s, "team", "ada@example.com")
	second, err := s.app.CreateOrganization(t.Context(), "operator", "Beta", "team", "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return acme, second.OrgID, s.signedIn(t, "ada@example.com")
}

// actFor chooses an organization with the form on the account page.
func (b *browser) actFor(orgID, next string) string {
	b.t.Helper()
	got := b.form("/account/organization", url.Values{"orgId": {orgID}, "next": {next}})
	if got.status != http.StatusSeeOther {
		b.t.Fatalf("choose: %d %s", got.status, got.body)
	}
	return got.header.Get("Location")
}

// TestAFormActsForTheOrganizationThatItsPageShows checks that a form is refused if another tab has
// chosen another organization since its page was opened.
func TestAFormActsForTheOrganizationThatItsPageShows(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	acme, beta, ada := acmeAndBeta(t, s)
	ada.actFor(acme.orgID, "")
	ada.want(ada.get("/members"), 200, `<input type="hidden" name="org" value="`+acme.orgID+`">`)
	ada.actFor(beta, "") // in another tab
	for path, fields := range map[string]url.Values{
		"/members":           {"email": {"stranger@example.com"}, "role": {"admin"}},
		"/members/remove":    {"memberId": {"cus_x"}, "reason": {"no longer needed"}},
		"/members/arguments": {"arguments": {"off"}},
		"/keys":              {"name": {"x"}, "scope": {"assurance:read"}},
		"/keys/revoke":       {"tokenId": {"x"}, "reason": {"no longer needed"}},
		"/webhooks":          {"url": {"https://siem.example.com/in"}, "topic": {"reviews"}},
		"/policies/new":      {"policy": {activePolicy}, "do": {"draft"}},
		"/policies/freeze":   {"reason": {"no longer needed"}, "sure": {"yes"}},
		"/decisions/bundle":  {},
		"/reviews/asd_x":     {"verdict": {"approved"}, "reason": {"no longer needed"}},
	} {
		fields.Set("org", acme.orgID)
		got := ada.form(path, fields)
		ada.want(got, 409, "The page belongs to Acme, but you now act for Beta.")
		ada.want(got, 409, "Nothing was done and nothing recorded.")
		ada.want(got, 409, "Act for Acme")
		if fields.Has("reason") {
			ada.want(got, 409, "no longer needed</textarea>")
		}
		fields.Set("org", "")
		ada.want(ada.form(path, fields), 400, "org must be the organization that the page shows")
		fields.Set("org", "org_01JD3Z8W5T0000000000000000")
		ada.want(ada.form(path, fields), 409, "an organization of which you are not a member")
	}
	for _, place := range []string{"/members", "/keys", "/policies", "/webhooks"} {
		if got := ada.get(place); strings.Contains(got.body, "stranger@") || strings.Contains(got.body, "frozen") || strings.Contains(got.body, "<code>https://siem.example") {
			t.Errorf("%s of Beta was changed: %s", place, got.body)
		}
	}
	if to := ada.actFor(acme.orgID, "/members"); to != "/members" {
		t.Errorf("the offer leads to %s", to)
	}
	ada.want(ada.form("/members", url.Values{"email": {"bob@example.com"}, "role": {"auditor"}, "org": {acme.orgID}}), 303, "")
	clean(t, s)
}

var postForm = regexp.MustCompile(`(?s)<form [^>]*method="post".*?</form>`)

var ofPerson = regexp.MustCompile(`<input type="hidden" name="as" value="(cus_[0-9A-Z]+)">`)

// TestAFormActsForThePersonWhosePageItIs checks that a form does not act for a person who has
// signed in since then in another tab of the same browser, even if both are members of the same
// organization.
func TestAFormActsForThePersonWhosePageItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	owner, admin := c.people["owner"], c.people["admin"]
	opened := owner.get("/members")
	found := ofPerson.FindStringSubmatch(opened.body)
	if found == nil {
		t.Fatalf("the page does not say whose it is: %s", opened.body)
	}
	fields := url.Values{"email": {"stranger@example.com"}, "role": {"auditor"}, "as": found[1:]}
	admin.want(admin.form("/members", fields), 409, "another person has signed in with this browser since the page was opened")
	if text := owner.get("/members").body; strings.Contains(text, "stranger@") {
		t.Error("somebody was added")
	}
	owner.want(owner.form("/members", fields), 303, "")
	clean(t, s)
}

// TestEveryFormCarriesItsOrganization checks that each form of each page contains the
// organization, the person and the address of its page.
func TestEveryFormCarriesItsOrganization(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	who, places := pagesOf(t, s)
	who.want(who.get("/overview"), 200, "") // chooses the only organization
	orgID := who.actsFor()
	operator, err := s.app.Operator(t.Context(), orgID)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := s.app.DraftPolicy(t.Context(), operator, []byte(toolPolicy), "") // drafted by another member, so that the owner may activate it
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]bool{}
	for _, place := range append(places, "/policies/drafts/"+draft.DraftID, "/tools/action_safety_quick_gate") {
		page := who.get(place)
		if strings.Contains(page.body, "formaction") || strings.Count(page.body, `method="post"`) != len(postForm.FindAllString(page.body, -1)) {
			t.Errorf("%s has a form that is none", place)
		}
		for _, form := range postForm.FindAllString(page.body, -1) {
			if action := regexp.MustCompile(`action="([^"#]*)`).FindStringSubmatch(form); action != nil {
				actions[regexp.MustCompile(`(asd|whk|evt)_[0-9A-Z]+`).ReplaceAllString(action[1], "ID")] = true
			}
			if !strings.Contains(form, `<input type="hidden" name="org" value="`+orgID+`">`) || !strings.Contains(form, `<input type="hidden" name="at" value="/`) || !ofPerson.MatchString(form) {
				t.Errorf("a form of %s does not say whose it is, of which organization, and where: %s", place, form)
			}
		}
	}
	for _, action := range []string{"/", "/account/keys", "/account/organization", "/decisions/bundle", "/keys", "/keys/revoke", "/members", "/members/arguments",
		"/members/remove", "/policies/drafts/ID", "/policies/freeze", "/policies/new", "/reviews/ID", "/sign-out", "/webhooks", "/webhooks/ID/remove", "/webhooks/ID/rotate"} {
		if !actions[action] {
			t.Errorf("no page had a form for %s", action)
		}
	}
	if text := s.browser(t).get("/").body; strings.Contains(text, `name="org"`) || strings.Contains(text, `name="at"`) {
		t.Error("a stranger's page has an organization")
	}
}

// TestAnAddressOfAnOrganizationLeadsThere checks an address that names an organization. For a
// member who has chosen no organization, the address chooses this one. A member who has chosen
// another one is asked whether to change it. Other people must not find out that the organization
// exists.
func TestAnAddressOfAnOrganizationLeadsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	acme, beta, ada := acmeAndBeta(t, s)
	id := acme.decide(t, decisionBody("k1", strings.Replace(weather, `"network":"base",`, "", 1))).decision(t).Record.DecisionID
	s.server.ReviewMessages(false)
	message := s.outbox.Messages()[0]
	for _, l := range s.outbox.Messages() {
		if strings.Contains(l.Subject, "waits for your review") {
			message = l
		}
	}
	if !strings.Contains(message.Text, "of Acme") || strings.Contains(strings.ReplaceAll(message.Text, message.Link, ""), acme.orgID) {
		t.Errorf("the e-mail names the organization by its id: %s", message.Text)
	}
	link, ours := strings.CutPrefix(message.Link, s.app.BaseURL)
	if want := "/reviews/" + id + "?org=" + acme.orgID; !ours || link != want {
		t.Fatalf("the e-mail links to %s, want %s", message.Link, want)
	}

	// Without a session, the visitor must sign in first.
	stranger := s.browser(t)
	if got := stranger.get(link).header.Get("Location"); got != "/sign-in?next="+url.QueryEscape(link) {
		t.Errorf("to %s", got)
	}
	// No organization is chosen yet.
	ada.want(ada.get(link), 200, "Your verdict")
	ada.want(ada.get("/reviews/"+id), 200, "Your verdict")
	// Another organization is chosen.
	ada.actFor(beta, "")
	offer := ada.get(link)
	ada.want(offer, 200, "This page belongs to Acme, but you now act for Beta.")
	ada.want(offer, 200, `<input type="hidden" name="next" value="`+link+`">`)
	if to := ada.actFor(acme.orgID, link); to != link {
		t.Errorf("the offer leads to %s", to)
	}
	ada.want(ada.get(link), 200, "Your verdict")
	// For an address without an organization, the answer lists the organizations that may have the
	// page.
	ada.actFor(beta, "")
	ada.want(ada.get("/reviews/"+id), 404, "Act for Acme")

	// After a new sign-in, an address without an organization first asks for one and then
	// continues.
	ada.signIn("ada@example.com")
	got := ada.get("/reviews/" + id)
	if want := "/account?next=" + url.QueryEscape("/reviews/"+id); got.status != 303 || got.header.Get("Location") != want {
		t.Errorf("%d to %s, want %s", got.status, got.header.Get("Location"), want)
	}
	asked := ada.get(got.header.Get("Location"))
	ada.want(asked, 200, "Choose the organization for which you act.")
	chosen := ada.form("/account/organization", url.Values{"orgId": {acme.orgID}, "at": {got.header.Get("Location")}})
	if chosen.header.Get("Location") != "/reviews/"+id {
		t.Errorf("the choice leads to %s", chosen.header.Get("Location"))
	}

	eve := s.signedIn(t, "eve@example.com")
	if _, err := s.app.CreateOrganization(t.Context(), "operator", "Eve's", "team", "eve@example.com"); err != nil {
		t.Fatal(err)
	}
	if got := eve.get(link); got.status != 404 || strings.Contains(got.body, "Acme") {
		t.Errorf("to a stranger: %d %s", got.status, got.body)
	}
	clean(t, s)
}

// TestWalkTwoTabs checks that a form of one tab does not act for the organization that another tab
// has chosen, and that the visitor gets back to the same page.
func TestWalkTwoTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	acme, beta, ada := acmeAndBeta(t, s)
	ada.actFor(acme.orgID, "")
	w := s.openWindow(t)
	w.as(ada)
	w.open("/members")
	ada.actFor(beta, "") // in the other tab
	w.fill("email", "stranger@example.com")
	w.press("Add")
	w.see("The page belongs to Acme, but you now act for Beta.")
	w.shoot("other-organization")
	w.press("Act for Acme")
	w.see("What reviewers see of tool calls")
	if text := ada.get("/members").body; strings.Contains(text, "stranger@") {
		t.Error("somebody was added")
	}
	ada.actFor(beta, "")
	w.open("/reviews?org=" + acme.orgID)
	w.see("This page belongs to Acme, but you now act for Beta.")
	w.fits("/reviews?org=" + acme.orgID)
	w.press("Act for Acme")
	w.see("No decision waits for a review.")
	w.open("/reviews/asd_x")
	w.see("Act for Beta")
	w.shoot("not-there")
	w.open("/policies/freeze")
	w.see("This address accepts only a form")
	w.shoot("only-a-form")
	s.clock.Add(11 * time.Minute)
	w.open("/policies")
	w.press("Freeze:")
	w.fill("reason", "an incident at night")
	w.do(chromedp.Click(`main [name="sure"]`, chromedp.ByQuery))
	w.shoot("freeze-needs-sign-in")
	w.do(chromedp.Click(`form[action="/policies/freeze"] button`, chromedp.ByQuery))
	w.see("Nothing was done and nothing recorded.")
	w.shoot("sign-in-again")
	w.fits("/policies")
	w.open("/members")
	ada.form("/sign-out", nil)
	w.fill("email", "bob@example.com")
	w.press("Add")
	w.see("You are not signed in any more")
	w.shoot("signed-out")
	ada.signIn("ada@example.com")
	w.as(ada)
	w.open("/reviews")
	w.see("Choose the organization for which you act.")
	w.shoot("choose")
	clean(t, s)
}
