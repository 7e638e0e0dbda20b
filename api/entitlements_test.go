package api

import (
	"net/http"
	"testing"
	"time"
)

// TestEntitlementsByAgents checks that an agent with the scope sees the entitlements of the
// customer who claimed it. An agent for support sees those of any customer.
func TestEntitlementsByAgents(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	cookie := n.signIn("ada@example.com")
	ada, err := n.app.CustomerByEmail(t.Context(), "Ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.app.GrantEntitlement(t.Context(), ada, "verification-kit", time.Time{}, "a gift"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.app.RevokeEntitlement(t.Context(), ada, "team", "abuse"); err != nil {
		t.Fatal(err)
	}
	c := n.register()
	bearer := func(scopes string) []string { return []string{"Authorization", "Bearer " + n.token(c, scopes)} }
	ask := func(path string, headers ...string) answer { return n.send(http.MethodGet, path, "", headers...) }
	const kit = "/api/entitlements/verification-kit"
	n.refused(ask(kit, bearer("catalog:read")...), 403, "insufficient_scope", "")
	n.wants(n.claim("Cookie", cookie, "Authorization", "Bearer "+n.token(c, "")), 200)
	live := ask(kit, bearer("entitlements:read")...)
	n.wants(live, 200)
	if want := `{"product":"verification-kit","source":"operator","status":"active","validUntil":null}`; string(live.body) != want || live.header.Get("Access-Control-Allow-Origin") != "" || live.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %v", live, live.header)
	}
	n.refused(ask("/api/entitlements/team", bearer("entitlements:read")...), 403, "revoked", "")
	n.refused(ask("/api/entitlements/business", bearer("entitlements:read")...), 403, "none", "")
	// The scope permits reading but not downloads, because downloads are limited and belong to the
	// customer.
	n.refused(n.send(http.MethodPost, kit+"/downloads", "", bearer("entitlements:read billing:manage")...), 403, "forbidden", "")
	n.wants(n.send(http.MethodPost, kit+"/downloads", "", "Cookie", cookie), 201)
	n.refused(n.send(http.MethodPost, "/api/billing-portal", "", bearer("billing:manage")...), 503, "checkout_not_configured", "")

	const support = "/api/support/entitlements"
	n.refused(ask(support+"?email=ada@example.com", bearer("entitlements:read")...), 403, "insufficient_scope", "")
	n.app.SupportClients = []string{c.id}
	as := bearer("support:read")
	for _, who := range []string{"?email=ada@example.com", "?email=ADA@example.com", "?customer=" + ada} {
		a := ask(support+who, as...)
		n.wants(a, 200)
		want := `{"customerId":"` + ada + `","entitlements":[{"product":"team","source":"operator","status":"revoked","validUntil":null},` +
			`{"product":"verification-kit","source":"operator","status":"active","validUntil":null}]}`
		if string(a.body) != want {
			t.Errorf("%s: %s", who, a.body)
		}
	}
	n.unchanged(func() {
		for _, c := range []struct {
			query  string
			status int
			code   string
		}{
			{"", 400, "missing_field"},
			{"?customer=" + ada + "&email=ada@example.com", 400, "missing_field"},
			{"?customer=" + ada + "&customer=" + ada, 400, "missing_field"},
			{"?email=not-an-address", 400, "invalid_email"},
			{"?email=nobody@example.com", 404, "not_found"},
			{"?customer=cus_01JD3Z8W5T0000000000000009", 404, "not_found"},
			{"?customer=" + canary, 404, "not_found"},
		} {
			n.refused(ask(support+c.query, as...), c.status, c.code, "-")
		}
	})
}
