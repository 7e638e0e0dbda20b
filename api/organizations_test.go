package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// routes lists for each route which roles may call it, and the answer to a request that changes
// nothing. Every other role gets 403.
var routes = []struct {
	method, path, who string
	status            int
}{
	{"POST", "/api/assurance/decisions", "owner admin developer assurance:decide", 400},
	{"GET", "/api/assurance/decisions", "owner admin developer auditor assurance:read", 200},
	{"POST", "/api/assurance/receipts", "owner admin developer assurance:receipt", 400},
	{"GET", "/api/assurance/history", "owner admin developer auditor assurance:read", 200},
	{"GET", "/api/assurance/decisions/asd_01JD3Z8W5T0000000000000000", "owner admin developer auditor assurance:read", 404},
	{"GET", "/api/assurance/decisions/asd_01JD3Z8W5T0000000000000000/standing", "owner admin developer auditor assurance:read", 404},
	{"GET", "/api/assurance/receipts/asr_01JD3Z8W5T0000000000000000", "owner admin developer auditor assurance:read", 404},
	{"POST", "/api/assurance/decisions/asd_01JD3Z8W5T0000000000000000/approval", "owner admin", 400},
	{"GET", "/api/assurance/decisions/asd_01JD3Z8W5T0000000000000000/approval", "owner admin developer auditor assurance:read", 404},
	{"GET", "/api/assurance/organization", "owner admin developer auditor assurance:read policy:draft", 200},
	{"PATCH", "/api/assurance/organization", "owner admin", 400},
	{"GET", "/api/assurance/members", "owner admin auditor", 200},
	{"POST", "/api/assurance/members", "owner admin", 400},
	{"DELETE", "/api/assurance/members/cus_01JD3Z8W5T0000000000000000", "owner admin", 404},
	{"GET", "/api/assurance/tokens", "owner admin auditor", 200},
	{"POST", "/api/assurance/tokens", "owner admin", 400},
	{"DELETE", "/api/assurance/tokens/000000000000", "owner admin", 404},
	{"POST", "/api/assurance/exports", "owner admin auditor export:read", 400},
	{"POST", "/api/assurance/evidence-packs", "owner admin auditor export:read", 400},
	{"GET", "/api/assurance/exports/exp_01JD3Z8W5T0000000000000000", "owner admin auditor export:read", 404},
	{"GET", "/api/assurance/events/9007199254740991", "owner admin auditor export:read", 404},
	{"GET", "/api/assurance/webhooks", "owner admin auditor", 200},
	{"POST", "/api/assurance/webhooks", "owner admin", 400},
	{"DELETE", "/api/assurance/webhooks/whk_01JD3Z8W5T0000000000000000", "owner admin", 404},
	{"POST", "/api/assurance/webhooks/whk_01JD3Z8W5T0000000000000000/rotate", "owner admin", 404},
	{"GET", "/api/assurance/webhooks/whk_01JD3Z8W5T0000000000000000/deliveries", "owner admin auditor", 404},
	{"POST", "/api/assurance/webhooks/whk_01JD3Z8W5T0000000000000000/deliveries", "owner admin", 400},
	{"POST", "/api/assurance/guard-logs", "owner admin developer assurance:decide", 400},
	{"GET", "/api/assurance/guard-logs", "owner admin auditor export:read", 200},
	{"GET", "/api/assurance/policies", "owner admin developer auditor assurance:read policy:draft", 200},
	{"POST", "/api/assurance/policies", "owner admin developer policy:draft", 400},
	{"GET", "/api/assurance/policies/evt_01JD3Z8W5T0000000000000000/preview", "owner admin developer policy:draft", 404},
	{"POST", "/api/assurance/policies/evt_01JD3Z8W5T0000000000000000/activate", "owner admin", 400},
	{"POST", "/api/assurance/policies/freeze", "owner admin", 400},
}

// TestEveryRouteIsInTheTable checks that every operation has an access check and is in the table
// above.
func TestEveryRouteIsInTheTable(t *testing.T) {
	t.Parallel()
	all, faults := api.AssuranceRoutes()
	for _, fault := range faults {
		t.Error(fault)
	}
	covered := map[string]bool{}
	for _, route := range routes {
		found := false
		for name := range all {
			method, path, _ := strings.Cut(name, " ")
			pattern := "^" + regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "[^/]+") + "$"
			if method == route.method && regexp.MustCompile(pattern).MatchString(route.path) {
				covered[name], found = true, true
			}
		}
		if !found {
			t.Errorf("%s %s is no operation", route.method, route.path)
		}
	}
	for name, anySession := range all {
		if !covered[name] && !anySession {
			t.Errorf("%s is not in the table of roles: add a row to routes in api/organizations_test.go", name)
		}
	}
}

// door sends a request to a route with some credentials. A POST or PATCH has a body that is
// refused, so that the request changes nothing.
func (b *browser) door(method, path string, header ...string) answer {
	b.t.Helper()
	body := ""
	if method == http.MethodPost || method == http.MethodPatch {
		body = `{"nothing":true}`
	}
	return b.do(method, path, "application/json", body, header...)
}

// crew is an organization with a member in every role, and a token for every scope.
type crew struct {
	*tenant
	people map[string]*browser
	tokens map[string]string
}

func newCrew(t *testing.T, s *site, plan, name string) *crew {
	t.Helper()
	c := &crew{tenant: newTenant(t, s, plan, "owner@"+name), people: map[string]*browser{}, tokens: map[string]string{}}
	for _, role := range organizations.Roles {
		if role != organizations.RoleOwner {
			if _, err := s.app.AddMember(t.Context(), c.now(t), role+"@"+name, role); err != nil {
				t.Fatal(err)
			}
		}
		c.people[role] = s.browser(t)
		c.people[role].signIn(role + "@" + name)
	}
	for _, scope := range organizations.Scopes {
		issued, err := s.app.IssueToken(t.Context(), c.now(t), organizations.TokenOrder{Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[scope] = issued.Token
	}
	return c
}

// now returns the principal of the operator in the current state of the organization.
func (c *crew) now(t *testing.T) organizations.Principal {
	t.Helper()
	p, err := c.site.app.Operator(t.Context(), c.orgID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// each calls every route with every credential, and compares the answer with the result of want.
func (c *crew) each(t *testing.T, want func(who string, allowed bool, inside int) (status int, message string)) {
	t.Helper()
	for _, route := range routes {
		ask := func(who string, got answer) {
			t.Helper()
			allowed := strings.Contains(" "+route.who+" ", " "+who+" ")
			status, message := want(who, allowed, route.status)
			if got.status != status || message != "" && got.body != `{"error":"`+message+`"}` {
				t.Errorf("%s %s as %s: %d %s, want %d %s", route.method, route.path, who, got.status, got.body, status, message)
			}
			if got.status >= 400 && !strings.HasPrefix(got.body, `{"error":"`) {
				t.Errorf("%s %s as %s: body %s", route.method, route.path, who, got.body)
			}
		}
		for role, b := range c.people {
			ask(role, b.door(route.method, route.path))
		}
		nobody := c.site.browser(t)
		for scope, token := range c.tokens {
			ask(scope, nobody.door(route.method, route.path, "Authorization", "Bearer "+token))
		}
	}
}

func TestEveryRoleAtEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.each(t, func(_ string, allowed bool, inside int) (int, string) {
		if allowed {
			return inside, ""
		}
		return 403, ""
	})
	stranger, without := s.browser(t), s.browser(t)
	stranger.signIn("nobody@else.example")
	key, err := s.app.IssueFreeKey(t.Context(), "ada@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	revoked := c.tokens[organizations.ScopeDraft]
	if err := s.app.RevokeToken(t.Context(), c.now(t), revoked[5:17], "test"); err != nil {
		t.Fatal(err)
	}
	for _, route := range routes {
		for name, try := range map[string]struct {
			b       *browser
			header  []string
			status  int
			message string
		}{
			"nobody":                       {without, nil, 401, "authentication required"},
			"a token in the query":         {without, []string{"X-Nothing", "1"}, 401, "authentication required"},
			"a member of none":             {stranger, nil, 403, "organization credential required"},
			"an API key":                   {without, []string{"X-API-Key", key.APIKey}, 403, "organization credential required"},
			"an API key as bearer":         {without, []string{"Authorization", "Bearer " + key.APIKey}, 403, "organization credential required"},
			"a token as API key":           {without, []string{"X-API-Key", c.token}, 401, "invalid or expired token: send the header Authorization once, as Bearer, a space and a token"},
			"rubbish":                      {without, []string{"Authorization", "Bearer x"}, 401, organizations.ErrToken.Error()},
			"basic":                        {without, []string{"Authorization", "Basic YTpi"}, 401, "invalid or expired token: send the header Authorization once, as Bearer, a space and a token"},
			"a revoked token":              {without, []string{"Authorization", "Bearer " + revoked}, 401, organizations.ErrToken.Error()},
			"two headers":                  {without, []string{"Authorization", "Bearer " + c.token, "Authorization", "Bearer " + c.token}, 401, "invalid or expired token: send the header Authorization once, as Bearer, a space and a token"},
			"a bad token beside a session": {c.people["owner"], []string{"Authorization", "Bearer x"}, 401, organizations.ErrToken.Error()},
		} {
			path := route.path
			if strings.HasSuffix(name, "query") {
				path += "?token=" + c.token + "&access_token=" + c.token
			}
			got := try.b.door(route.method, path, try.header...)
			if got.status != try.status || got.body != `{"error":"`+try.message+`"}` {
				t.Errorf("%s %s with %s: %d %s, want %d %s", route.method, route.path, name, got.status, got.body, try.status, try.message)
			}
			if challenge := got.header.Get("WWW-Authenticate"); got.status == 401 && !strings.HasPrefix(challenge, "Bearer") ||
				got.status == 401 && strings.Contains(challenge, "error=") == (name == "nobody" || strings.HasSuffix(name, "query")) {
				t.Errorf("%s with %s: challenge %q", route.path, name, challenge)
			}
		}
		if route.method != http.MethodGet {
			got := c.people["owner"].door(route.method, route.path, "Origin", "https://evil.example")
			if got.status != 403 || got.body != `{"error":"cross-origin request refused"}` {
				t.Errorf("%s %s from another origin: %d %s", route.method, route.path, got.status, got.body)
			}
		}
	}
	clean(t, s)
}

// TestStaleSignIn checks that more than ten minutes after the sign-in, the operations that change
// rights and policies are refused, and all others work.
func TestStaleSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	s.clock.Add(10*time.Minute + time.Second)
	for _, route := range routes {
		want, message := route.status, ""
		if strings.HasSuffix(route.path, "/activate") || strings.HasSuffix(route.path, "/freeze") || route.method == http.MethodPatch || route.method != http.MethodGet && (strings.Contains(route.path, "/members") || strings.Contains(route.path, "/tokens") || strings.Contains(route.path, "/webhooks")) {
			want, message = 403, "sign in again to do this"
		}
		got := owner.door(route.method, route.path)
		if got.status != want || message != "" && !strings.Contains(got.body, message) {
			t.Errorf("%s %s: %d %s, want %d", route.method, route.path, got.status, got.body, want)
		}
	}
	owner.signIn("owner@acme.example")
	owner.want(owner.door("POST", "/api/assurance/tokens"), 400, "")
}

// TestPlanAtEveryRoute checks that a suspended organization has no access, and that one without an
// active plan can read its evidence for 90 days.
func TestPlanAtEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	change := func(to organizations.OrganizationChange) {
		t.Helper()
		to.Reason = "test"
		if _, err := s.app.UpdateOrganization(t.Context(), "operator", c.orgID, to); err != nil {
			t.Fatal(err)
		}
	}
	shut := func(message string) {
		t.Helper()
		c.each(t, func(_ string, allowed bool, inside int) (int, string) {
			if allowed {
				return 403, message
			}
			return 403, ""
		})
	}
	change(organizations.OrganizationChange{State: "suspended"})
	shut("organization is suspended")
	open := func(route string) bool {
		for _, part := range []string{"/history", "/events/", "/decisions/asd_01JD3Z8W5T0000000000000000", "/receipts/asr", "/organization", "/policies", "/guard-logs"} {
			if (strings.Contains(route, part) || strings.HasSuffix(route, "/decisions")) && !strings.Contains(route, "/evt_") {
				return true
			}
		}
		return false
	}
	change(organizations.OrganizationChange{State: "lapsed"})
	for _, route := range routes {
		got := c.people["owner"].door(route.method, route.path)
		// Evidence can still be read, and operations that reduce access still work.
		if route.method == http.MethodGet && open(route.path) || strings.HasPrefix(route.path, "/api/assurance/exports") || route.path == "/api/assurance/evidence-packs" {
			if got.status != route.status {
				t.Errorf("lapsed, %s: %d %s, want %d", route.path, got.status, got.body, route.status)
			}
		} else if got.status != 403 || got.body != `{"error":"organization plan required"}` {
			t.Errorf("lapsed, %s %s: %d %s, want 403 with organization plan required: declare a right that a lapsed plan has not, or let open name a GET that reads evidence", route.method, route.path, got.status, got.body)
		}
	}
	change(organizations.OrganizationChange{State: "lapsed"}) // again, so that the 90 days start now
	if _, err := s.app.UpdateOrganization(t.Context(), "operator", c.orgID, organizations.OrganizationChange{
		State: "lapsed", PlanEnded: s.clock.Now().Add(-91 * 24 * time.Hour), Reason: "long ago"}); err != nil {
		t.Fatal(err)
	}
	shut("organization plan required")
	change(organizations.OrganizationChange{State: "active"})
	c.people["owner"].want(c.people["owner"].get("/api/assurance/history"), 200, "items")
}

// TestMembersAndTokensOverTheAPI checks that an owner can add, change and remove a member, and
// issue, rotate and revoke a token, that each change takes effect at once, and that invalid bodies
// are refused.
func TestMembersAndTokensOverTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "business", "ada@acme.example")
	ada, bob := s.browser(t), s.browser(t)
	ada.signIn("ada@acme.example")
	ada.want(ada.get("/api/assurance/organization"), 200, `"orgId":"`+n.orgID+`"`)
	got := ada.post("/api/assurance/members", `{"email":"bob@acme.example","role":"developer"}`)
	ada.want(got, 201, `"role":"developer"`)
	var member struct{ MemberID string }
	if err := json.Unmarshal([]byte(got.body), &member, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	bob.signIn("bob@acme.example")
	bob.want(bob.get("/api/assurance/members"), 403, `{"error":"missing role owner or admin or auditor"}`)
	before := bob.cookie()
	ada.want(ada.post("/api/assurance/members", `{"email":"bob@acme.example","role":"admin"}`), 201, `"role":"admin"`)
	bob.want(bob.get("/api/assurance/members"), 200, "bob@acme.example")
	if after := bob.cookie(); after == before || after == "" {
		t.Error("another role kept the session's token")
	}
	thief := s.browser(t)
	thief.want(thief.get("/api/assurance/members", "Cookie", "countersign_session="+before), 401, "authentication required")

	issued := ada.post("/api/assurance/tokens", `{"scopes":["assurance:read"],"name":"ci","expiresInDays":1}`)
	ada.want(issued, 201, `"state":"active"`)
	var token struct {
		Token   string `json:"token"`
		TokenID string `json:"tokenId"`
	}
	if err := json.Unmarshal([]byte(issued.body), &token); err != nil {
		t.Fatal(err)
	}
	program := s.browser(t)
	bearer := []string{"Authorization", "Bearer " + token.Token}
	program.want(program.get("/api/assurance/history", bearer...), 200, "items")
	if list := ada.get("/api/assurance/tokens"); strings.Contains(list.body, token.Token) || !strings.Contains(list.body, token.TokenID) {
		t.Errorf("tokens: %s", list.body)
	}
	ada.want(ada.post("/api/assurance/tokens", `{"rotates":"`+token.TokenID+`"}`), 201, "svco_")
	program.want(program.get("/api/assurance/history", bearer...), 200, "items")
	ada.want(ada.do(http.MethodDelete, "/api/assurance/tokens/"+token.TokenID, "", ""), 200, "revoked")
	program.want(program.get("/api/assurance/history", bearer...), 401, "invalid or expired token")
	ada.want(ada.do(http.MethodDelete, "/api/assurance/members/"+member.MemberID, "", ""), 200, "removed")
	bob.want(bob.get("/api/assurance/history"), 403, "organization credential required")
	for _, bad := range []struct{ path, body, text string }{
		{"/api/assurance/members", `{"email":"x@y.example"}`, "role is required"},
		{"/api/assurance/members", `{"email":"x@y.example","role":"root"}`, "role must be one of "},
		{"/api/assurance/members", `{"email":"x@y.example","role":"admin","orgId":"org_1"}`, "unknown"},
		{"/api/assurance/tokens", `{"scopes":["root"]}`, "scopes"},
		{"/api/assurance/tokens", `{"expiresInDays":366}`, "expiresInDays must be an integer from 1 to 365"},
		{"/api/assurance/tokens", `{"secret":"mine"}`, "unknown"},
		{"/api/assurance/tokens", `{"scopes":null}`, "scopes must be an array"},
		{"/api/assurance/tokens", `{"scopes":["assurance:read"],"addresses":null}`, "addresses must be an array"},
		{"/api/assurance/tokens", `{"scopes":["assurance:read"],"addresses":[]}`, "addresses must have at least 1 items"},
		{"/api/assurance/webhooks", `{"url":"https://siem.example.com/","topics":null}`, "topics must be an array"},
		{"/api/assurance/exports", `{"agent":null}`, "agent must be a string"},
		{"/api/assurance/tokens", `{"scopes":["assurance:read"],"scopes":["export:read"]}`, "duplicate member"},
	} {
		ada.want(ada.post(bad.path, bad.body), 400, bad.text)
	}
	// The log must contain no secret and no e-mail address.
	if text := s.logs.String(); strings.Contains(text, token.Token[18:61]) || strings.Contains(text, "acme.example") {
		t.Error("the log holds a secret or an address")
	}
	clean(t, s)
}

// TestPolicyOverTheAPI drafts a policy as one member, who cannot activate it, activates it as
// another, and reads it as a third.
func TestPolicyOverTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner, admin, dev := c.people["owner"], c.people["admin"], c.people["developer"]
	drafted := admin.post("/api/assurance/policies", `{"policyId":"default","maxUsdPerTransaction":0.5,"requireHttps":true}`)
	admin.want(drafted, 201, `"lint":[{`)
	var draft struct {
		DraftID string `json:"draftId"`
	}
	if err := json.Unmarshal([]byte(drafted.body), &draft); err != nil {
		t.Fatal(err)
	}
	activate := "/api/assurance/policies/" + draft.DraftID + "/activate"
	admin.want(admin.post(activate, `{"reason":"mine"}`), 403, `{"error":"another admin must activate your own draft"}`)
	dev.want(dev.post(activate, `{"reason":"x"}`), 403, "missing role owner or admin")
	owner.want(owner.post(activate, `{}`), 400, "reason is required")
	owner.want(owner.get("/api/assurance/policies/"+draft.DraftID+"/preview"), 200, `"flips":[]`)
	owner.want(owner.post(activate, `{"reason":"reviewed"}`), 201, `"version":2`)
	owner.want(owner.post(activate, `{"reason":"again"}`), 409, `{"error":"policy draft was already activated"}`)
	list := dev.get("/api/assurance/policies")
	dev.want(list, 200, `"selfActivated":false`)
	if !strings.HasPrefix(list.body, `{"activations":[`) || !strings.Contains(list.body, `"active":{"activatedAt"`) {
		t.Errorf("policies: %s", list.body)
	}
	dev.want(dev.post("/api/assurance/policies", `{"policyId":"default","version":2}`), 400, `{"error":"`)
	dev.want(dev.post("/api/assurance/policies", `{"policyId":"default","allowedHosts":null}`), 400, `{"error":"policy.allowedHosts must be an array"}`)
	dev.want(dev.do("POST", "/api/assurance/policies", "text/plain", `{"policyId":"default"}`), 400, "ontent")
	dev.want(dev.post("/api/assurance/policies", `{"policyId":"default","allowedHosts":["`+strings.Repeat("a", 262_144)+`"]}`), 413, `{"error":"`)
	clean(t, s)
}

// TestFreezeOverTheAPI checks that one admin can stop everything, and that two members are
// required to continue.
func TestFreezeOverTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	if got := c.decide(t, decisionBody("k1", weather)).decision(t).Record.Decision; got != "allow" {
		t.Fatalf("before: %s", got)
	}
	admin, owner, dev := c.people["admin"], c.people["owner"], c.people["developer"]
	const freeze = "/api/assurance/policies/freeze"
	dev.want(dev.post(freeze, `{"reason":"x"}`), 403, "missing role owner or admin")
	admin.want(admin.post(freeze, `{}`), 400, "reason is required")
	frozen := admin.post(freeze, `{"reason":"incident 17"}`)
	admin.want(frozen, 201, `"allowedHosts":[]`)
	admin.want(frozen, 201, `"allowedMcpServers":[]`)
	admin.want(frozen, 201, `"reason":"incident 17","selfActivated":true`)
	if got := c.decide(t, decisionBody("k2", weather)).decision(t).Record.Decision; got != "deny" {
		t.Errorf("frozen: %s", got)
	}
	drafted := admin.post("/api/assurance/policies", `{"policyId":"default","requireHttps":true}`)
	var draft struct {
		DraftID string `json:"draftId"`
	}
	if err := json.Unmarshal([]byte(drafted.body), &draft); err != nil {
		t.Fatal(err)
	}
	thaw := "/api/assurance/policies/" + draft.DraftID + "/activate"
	admin.want(admin.post(thaw, `{"reason":"over"}`), 403, "another admin must activate your own draft")
	owner.want(owner.post(thaw, `{"reason":"over"}`), 201, `"version":3`)
	if got := c.decide(t, decisionBody("k3", weather)).decision(t).Record.Decision; got != "allow" {
		t.Errorf("after: %s", got)
	}
	clean(t, s)
}

// TestRenameOverTheAPI checks that members can change the name, but not the plan.
func TestRenameOverTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	admin := c.people["admin"]
	rename := func(body string) answer {
		return admin.do(http.MethodPatch, "/api/assurance/organization", "application/json", body)
	}
	admin.want(rename(`{"name":"Acme Two","reason":"merger"}`), 200, `"name":"Acme Two"`)
	admin.want(admin.get("/api/assurance/organization"), 200, `"name":"Acme Two"`)
	admin.want(rename(`{"name":"Acme Two"}`), 400, "reason is required")
	admin.want(rename(`{"name":"","reason":"x"}`), 400, "name")
	admin.want(rename(`{"name":" a","reason":"x"}`), 400, "name")
	admin.want(rename(`{"name":"Acme","reason":"x","plan":"business"}`), 400, "unknown")
	clean(t, s)
}

// TestSessionOfTwoOrganizations checks that a person in two organizations must choose one.
func TestSessionOfTwoOrganizations(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	one, two := newTenant(t, s, "team", "ada@example.com"), newTenant(t, s, "team", "ada@example.com")
	foreign := newTenant(t, s, "team", "eve@example.com")
	b := s.browser(t)
	b.signIn("ada@example.com")
	b.want(b.get("/api/assurance/history"), 403, `{"error":"choose an organization first"}`)
	for _, bad := range []string{foreign.orgID, "org_01JD3Z8W5T0000000000000000", "service", "x"} {
		b.want(b.post("/api/assurance/organization", fmt.Sprintf(`{"orgId":%q}`, bad)), 403, `{"error":"organization credential required"}`)
		b.want(b.form("/account/organization", url.Values{"orgId": {bad}}), 403, "organization credential required")
	}
	for _, n := range []*tenant{one, two, one} {
		b.want(b.post("/api/assurance/organization", fmt.Sprintf(`{"orgId":%q}`, n.orgID)), 200, n.orgID)
		b.want(b.get("/api/assurance/organization"), 200, n.orgID)
	}
	if got := b.form("/account/organization", url.Values{"orgId": {two.orgID}}); got.status != http.StatusSeeOther {
		t.Errorf("choose on the page: %d", got.status)
	}
	b.want(b.get("/api/assurance/organization"), 200, two.orgID)
	b.want(b.get("/account"), 200, "<strong>you act for it</strong>")
	// The person leaves the chosen organization, so the other one is chosen.
	p, err := s.app.Operator(t.Context(), two.orgID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.AddMember(t.Context(), p, "bob@example.com", "owner"); err != nil {
		t.Fatal(err)
	}
	if p, err = s.app.Operator(t.Context(), two.orgID); err != nil {
		t.Fatal(err)
	}
	ada, err := s.app.EnsureCustomer(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.app.RemoveMember(t.Context(), p, ada, ""); err != nil {
		t.Fatal(err)
	}
	b.want(b.get("/api/assurance/organization"), 200, one.orgID)
}

// TestReviewPage checks that a member other than the one who requested the decision sees the exact
// action, and can give a verdict once.
func TestReviewPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	asked := c.decide(t, decisionBody("k1", strings.Replace(weather, `"network":"base",`, "", 1)))
	id := asked.decision(t).Record.DecisionID
	admin, dev := c.people["admin"], c.people["developer"]
	admin.want(admin.get("/reviews"), 200, id)
	page := admin.get("/reviews/" + id)
	admin.want(page, 200, "https://api.weather.example/v1/forecast?city=Oslo")
	admin.want(page, 200, "x402.network.missing")
	dev.want(dev.get("/reviews"), 200, "No decision of yours waits for a review.")
	dev.want(dev.get("/reviews/"+id), 404, "not found")
	auditor := c.people["auditor"]
	auditor.want(auditor.get("/reviews/"+id), 200, "Only an owner or admin can approve or reject it.")
	auditor.want(auditor.form("/reviews/"+id, url.Values{"verdict": {"approved"}, "reason": {"x"}}), 403, "missing role owner or admin")
	verdict := url.Values{"verdict": {"approved"}, "reason": {"<b>checked</b>"}}
	dev.want(dev.form("/reviews/"+id, verdict), 403, "missing role owner or admin")
	admin.want(admin.form("/reviews/"+id, url.Values{"verdict": {"maybe"}, "reason": {"x"}}), 400, "verdict")
	admin.want(admin.form("/reviews/"+id, verdict, "Origin", "https://evil.example"), 403, "cross-origin request refused")
	if got := admin.form("/reviews/"+id, verdict); got.status != http.StatusSeeOther || got.header.Get("Location") != "/reviews?resolved="+id {
		t.Fatalf("approve: %d %s", got.status, got.body)
	}
	done := admin.get("/reviews/" + id)
	admin.want(done, 200, "&lt;b&gt;checked&lt;/b&gt;")
	if strings.Contains(done.body, `name="verdict"`) || strings.Contains(done.body, "<b>checked") {
		t.Error("a resolved decision can be resolved again, or markup came through")
	}
	admin.want(admin.get("/reviews"), 200, "No decision waits for a review.")
	owner := c.people["owner"]
	owner.want(owner.form("/reviews/"+id, url.Values{"verdict": {"rejected"}, "reason": {"no"}}), 409, "already resolved")
	other := newCrew(t, s, "business", "other.example")
	other.people["owner"].want(other.people["owner"].get("/reviews/"+id), 404, "not found")
	other.people["owner"].want(other.people["owner"].form("/reviews/"+id, verdict), 404, "not found")
	anybody := s.browser(t)
	if got := anybody.get("/reviews/" + id); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/sign-in?next=") {
		t.Errorf("without a session: %d", got.status)
	}
	clean(t, s)
}

// TestRightsEndOnEveryNode checks that rights that end on one node end on the other one, too,
// although it caches member and token.
func TestRightsEndOnEveryNode(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	one, two := newSite(t, db), newSite(t, db)
	c := newCrew(t, one, "business", "acme.example")
	auditor := &browser{t, two, c.people["auditor"].http}
	program, bearer := two.browser(t), []string{"Authorization", "Bearer " + c.token}
	auditor.want(auditor.get("/api/assurance/policies"), 200, "active")
	program.want(program.get("/api/assurance/history", bearer...), 200, "items")
	drafter := []string{"Authorization", "Bearer " + c.tokens[organizations.ScopeDraft]}
	program.want(program.get("/api/assurance/policies", drafter...), 200, "active")
	if err := one.app.RevokeToken(t.Context(), c.now(t), c.tokens[organizations.ScopeDraft][5:17], "left"); err != nil {
		t.Fatal(err)
	}
	program.want(program.get("/api/assurance/policies", drafter...), 401, `{"error":"`+organizations.ErrToken.Error()+`"}`)
	auditor.want(auditor.get("/api/assurance/policies"), 200, "active")
	decision := program.post("/api/assurance/decisions", decisionBody("k1", weather), bearer...)
	program.want(decision, 201, "decisionId")
	member, err := one.app.EnsureCustomer(t.Context(), "auditor@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.app.RemoveMember(t.Context(), c.now(t), member, ""); err != nil {
		t.Fatal(err)
	}
	auditor.want(auditor.get("/api/assurance/policies"), 403, `{"error":"organization credential required"}`)
	if err := one.app.RevokeToken(t.Context(), c.now(t), c.token[5:17], "left"); err != nil {
		t.Fatal(err)
	}
	for _, got := range []answer{
		program.get("/api/assurance/history", bearer...),
		program.post("/api/assurance/decisions", decisionBody("k1", weather), bearer...), // a repeated request
		program.post("/api/assurance/decisions", decisionBody("k2", weather), bearer...),
	} {
		program.want(got, 401, `{"error":"`+organizations.ErrToken.Error()+`"}`)
	}
	clean(t, one)
}

// TestDatabaseAway checks that without a database every route answers 503 with the text of the
// contract, and works again afterwards.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	s := newSite(t, db)
	c := newCrew(t, s, "business", "acme.example")
	db.Away(t)
	nobody := s.browser(t)
	for _, route := range routes {
		for who, got := range map[string]answer{
			"owner": c.people["owner"].door(route.method, route.path),
			"token": nobody.door(route.method, route.path, "Authorization", "Bearer "+c.tokens[organizations.ScopeRead]),
		} {
			// Errors that need no database are allowed: a missing scope, an invalid body.
			away := `{"error":"temporarily unavailable; retry with the same idempotencyKey"}`
			if got.status != 503 && got.status != 403 && got.status != 400 || got.status == 503 && (got.header.Get("Retry-After") == "" || got.body != away) || strings.Contains(got.body, "SQLSTATE") {
				t.Errorf("%s %s as %s: %d %s", route.method, route.path, who, got.status, got.body)
			}
		}
	}
	nobody.want(nobody.post("/api/auth/sign-in", `{"email":"ada@example.com"}`), 503, `"error":"temporarily unavailable`)
	nobody.want(nobody.form("/sign-in/confirm", url.Values{"token": {strings.Repeat("A", 43)}}), 503, "temporarily unavailable")
	for path, body := range map[string]string{
		"/api/assurance/members": `{"email":"x@acme.example","role":"auditor"}`, "/api/assurance/tokens": `{}`,
		"/api/assurance/policies": `{"policyId":"default","requireHttps":true}`,
	} {
		nobody.want(c.people["owner"].post(path, body), 503, `{"error":"`)
	}
	db.Back(t)
	ledgertest.Until(t, "the database to be back", func() bool {
		got := c.people["owner"].post("/api/assurance/members", `{"email":"x@acme.example","role":"auditor"}`)
		if got.status != 201 && got.status != 503 {
			t.Fatalf("after the database is back: %d %s", got.status, got.body)
		}
		return got.status == 201
	})
	clean(t, s)
}

// TestListsArePagedAlike checks that the pages of a list contain every item once and end, and that
// an invalid cursor is refused instead of answered with the first page.
func TestListsArePagedAlike(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	for i := range 3 {
		owner.want(owner.post("/api/assurance/policies", fmt.Sprintf(`{"policyId":"default","maxUsdPerTransaction":%d}`, i)), 201, "draftId")
		owner.want(owner.post("/api/account/keys", ``), 201, "apiKey")
	}
	for path, want := range map[string]int{"/api/assurance/members": 4, "/api/assurance/tokens": 6, "/api/assurance/policies": 5, "/api/account/keys": 3} {
		ids := regexp.MustCompile(`"(?:memberId|tokenId|keyId|draftId|version)":"?([a-zA-Z0-9_]+)`)
		if path == "/api/assurance/tokens" {
			ids = regexp.MustCompile(`"tokenId":"([a-z0-9]+)`)
		}
		if path == "/api/assurance/policies" {
			ids = regexp.MustCompile(`"(?:draftedAt|activatedSequence)":([^,]+)`)
		}
		whole := map[string]bool{}
		cursor, pages := "", 0
		for ; pages < 10; pages++ {
			got := owner.get(path + "?limit=2&cursor=" + cursor)
			var page struct{ NextCursor *string }
			if err := json.Unmarshal([]byte(got.body), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.status != 200 {
				t.Fatalf("%s: %d %s %v", path, got.status, got.body, err)
			}
			_, rest, _ := strings.Cut(got.body, `"drafts"`) // the active policy is on every page
			items := got.body
			if strings.HasSuffix(path, "policies") {
				activations, _, _ := strings.Cut(got.body, `"active":`)
				items = activations + rest
			}
			for _, match := range ids.FindAllString(items, -1) {
				whole[fmt.Sprint(match, len(whole))] = true
			}
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if len(whole) != want || pages != (want-1)/2 {
			t.Errorf("%s: %d items on %d pages, want %d: %v", path, len(whole), pages+1, want, whole)
		}
		if got := owner.get(path + "?cursor=rubbish"); got.status != 400 || !strings.Contains(got.body, "cursor is not the nextCursor of a page") {
			t.Errorf("%s with a wrong cursor: %d %s", path, got.status, got.body)
		}
		if got := owner.get(path + "?role=owner"); !strings.Contains(got.body, `"warnings":["role is not a parameter`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}

// TestIdempotencyKeyIsNotIgnored checks that operations that create something at each call refuse
// an Idempotency-Key.
func TestIdempotencyKeyIsNotIgnored(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	for path, body := range map[string]string{
		"/api/keys/free": `{"email":"x@example.com"}`, "/api/account/keys": ``, "/api/auth/register": `{"client_name":"x"}`,
		"/api/checkout": `{"slug":"team"}`, "/api/assurance/tokens": `{}`, "/api/assurance/policies": `{"policyId":"default"}`,
	} {
		got := c.people["owner"].post(path, body, "Idempotency-Key", "k")
		if got.status != 400 || !strings.Contains(got.body, "this operation does not support Idempotency-Key") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
