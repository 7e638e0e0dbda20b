package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
)

// client is a registered agent.
type client struct{ id, secret string }

func (n *node) register() client {
	n.t.Helper()
	a := n.post("/api/auth/register", "", `{"client_name":"buyer"}`)
	n.wants(a, http.StatusCreated)
	m := a.members(n.t)
	return client{fmt.Sprint(m["client_id"]), fmt.Sprint(m["client_secret"])}
}

// form sends a form to an OAuth endpoint. The body contains the client's credentials.
func (n *node) form(path string, c client, fields url.Values, headers ...string) answer {
	n.t.Helper()
	sent := url.Values{}
	maps.Copy(sent, fields)
	if c != (client{}) {
		sent.Set("client_id", c.id)
		sent.Set("client_secret", c.secret)
	}
	return n.send(http.MethodPost, path, sent.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// token requests an access token.
func (n *node) token(c client, scope string) string {
	n.t.Helper()
	a := n.form("/api/auth/token", c, url.Values{"grant_type": {"client_credentials"}, "scope": {scope}})
	n.wants(a, http.StatusOK)
	return fmt.Sprint(a.members(n.t)["access_token"])
}

// signIn signs in and returns the Cookie header of the session.
func (n *node) signIn(email string) string {
	n.t.Helper()
	link, err := n.app.RequestSignIn(n.t.Context(), email, "")
	if err != nil {
		n.t.Fatal(err)
	}
	a := n.form("/sign-in/confirm", client{}, url.Values{"token": {link.Token}})
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if a.status != http.StatusSeeOther || cookie == "" {
		n.t.Fatalf("sign in: %v", a)
	}
	return cookie
}

func (n *node) claim(headers ...string) answer {
	n.t.Helper()
	return n.send(http.MethodPost, "/api/auth/claim", "", headers...)
}

// oauthRefused fails the test unless the body is an OAuth error without other members.
func (n *node) oauthRefused(a answer, status int, code string) {
	n.t.Helper()
	n.wants(a, status)
	m := a.members(n.t)
	if text, _ := m["error_description"].(string); len(m) != 2 || m["error"] != code || text == "" || len(text) > 200 {
		n.t.Errorf("got %v, want %s", a, code)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		n.t.Errorf("Cache-Control %q", got)
	}
	if got, want := a.header.Get("WWW-Authenticate"), `Basic realm="countersign"`; (got == want) != (status == 401) {
		n.t.Errorf("%d with WWW-Authenticate %q", status, got)
	}
	n.discreet(a)
}

func TestRegisterAnswersAsRFC7591(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	o := described{"post", "/api/auth/register", d.at("paths", "/api/auth/register", "post").(map[string]any)}
	a := n.post(o.path, "", `{"client_name":"Ada's <buyer>","redirect_uris":["http://localhost/cb"],"grant_types":["authorization_code"],`+
		`"response_types":["code"],"token_endpoint_auth_method":"none","software_id":"x","software_version":"1","scope":"support:read","client_name#fr":"y","anything":{"a":[1]}}`)
	n.wants(a, http.StatusCreated)
	d.valid(t, o, a)
	m := a.members(t)
	want := map[string]any{"client_id": m["client_id"], "client_secret": m["client_secret"], "client_id_issued_at": float64(n.clock.Now().Unix()),
		"client_secret_expires_at": 0.0, "client_name": "Ada's <buyer>", "identity_type": "anonymous", "grant_types": []any{"client_credentials"},
		"redirect_uris": []any{"http://localhost/cb"}, "software_id": "x", "software_version": "1",
		"response_types": []any{}, "token_endpoint_auth_method": "client_secret_basic", "scope": "catalog:read checkout:create"}
	if diff := cmp.Diff(want, m); diff != "" || !strings.HasPrefix(fmt.Sprint(m["client_id"]), "agt_") {
		t.Error(diff)
	}
	if bytes.ContainsAny(a.body, "<>&") || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s, %v", a.body, a.header)
	}
	a = n.post(o.path, "", `{"client_name":"b","token_endpoint_auth_method":"client_secret_post"}`)
	if m := a.members(t); m["token_endpoint_auth_method"] != "client_secret_post" {
		t.Errorf("%v", a)
	}
	n.unchanged(func() {
		for name, body := range map[string]string{
			"nothing":              ``,
			"no JSON":              `client_name=buyer`,
			"no object":            `["client_name"]`,
			"no client_name":       `{}`,
			"empty client_name":    `{"client_name":""}`,
			"name in another case": `{"Client_Name":"b"}`,
			"name too long":        `{"client_name":"` + strings.Repeat("a", 201) + `"}`,
			"name of two lines":    `{"client_name":"a\nb"}`,
			"name not to be seen":  `{"client_name":"a\u202eb"}`,
			"name of white space":  `{"client_name":" a"}`,
			"duplicate":            `{"client_name":"a","client_name":"b"}`,
			"duplicate of another": `{"client_name":"a","x":1,"x":2}`,
			"bad type":             `{"client_name":"a","redirect_uris":"http://localhost"}`,
			"bad type of a number": `{"client_name":7}`,
			"identity":             `{"client_name":"a","identity_type":"admin"}`,
			"address alone":        `{"client_name":"a","email":"ada@example.com"}`,
			"address":              `{"client_name":"a","identity_type":"verified_email","email":"` + canary + `"}`,
			"two lines":            `{"client_name":"a","identity_type":"verified_email","email":"a@example.com\r\nBcc: b@example.com"}`,
		} {
			a := n.post(o.path, "", body)
			if n.oauthRefused(a, 400, "invalid_client_metadata"); t.Failed() {
				t.Fatalf("%s: %v", name, a)
			}
			d.valid(t, o, a)
		}
		n.oauthRefused(n.send(http.MethodPost, o.path, "client_name=a", "Content-Type", "application/x-www-form-urlencoded"), 400, "invalid_client_metadata")
	})
	n.oauthRefused(n.post(o.path, "", `{"client_name":"`+strings.Repeat("a", 20_000)+`"}`), 413, "invalid_client_metadata")
}

func basic(c client) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.id)+":"+url.QueryEscape(c.secret)))
}

// TestTokenIsAskedForInEachWay checks that forms and JSON, with Basic authorization or credentials
// in the body, all return a token.
func TestTokenIsAskedForInEachWay(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	o := described{"post", "/api/auth/token", d.at("paths", "/api/auth/token", "post").(map[string]any)}
	c := n.register()
	grant := url.Values{"grant_type": {"client_credentials"}}
	with := func(more ...string) url.Values {
		v := url.Values{"grant_type": {"client_credentials"}}
		for i := 0; i < len(more); i += 2 {
			v.Add(more[i], more[i+1])
		}
		return v
	}
	for name, a := range map[string]answer{
		"form":            n.form(o.path, c, with()),
		"form and Basic":  n.form(o.path, client{}, grant, "Authorization", basic(c)),
		"basic, id too":   n.form(o.path, client{}, with("client_id", c.id), "Authorization", basic(c)),
		"lower-case":      n.form(o.path, client{}, grant, "Authorization", strings.Replace(basic(c), "Basic", "basic", 1)),
		"JSON":            n.post(o.path, "", fmt.Sprintf(`{"grant_type":"client_credentials","client_id":%q,"client_secret":%q}`, c.id, c.secret)),
		"JSON and Basic":  n.post(o.path, "", `{"grant_type":"client_credentials"}`, "Authorization", basic(c)),
		"resource":        n.form(o.path, c, with("resource", n.url)),
		"resource of MCP": n.form(o.path, c, with("resource", n.url+"/mcp")),
		"resource, slash": n.form(o.path, c, with("resource", n.url+"/")),
		"every scope":     n.form(o.path, c, with("scope", strings.Join(accounts.AgentScopes, " "))),
		"other members":   n.form(o.path, c, with("audience", "x", "audience", "y")),
		"an empty member": n.form(o.path, c, with("scope", "")),
	} {
		n.wants(a, http.StatusOK)
		d.valid(t, o, a)
		m := a.members(t)
		want := map[string]any{"access_token": m["access_token"], "token_type": "Bearer", "expires_in": 3600.0, "scope": "catalog:read checkout:create"}
		if diff := cmp.Diff(want, m); diff != "" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" {
			t.Errorf("%s: %s %v", name, diff, a.header)
		}
		if _, err := n.app.AuthenticateAgent(t.Context(), fmt.Sprint(m["access_token"]), n.url+"/mcp"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenRefusesInTheWordsOfRFC6749(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	o := described{"post", "/api/auth/token", d.at("paths", "/api/auth/token", "post").(map[string]any)}
	c, other := n.register(), n.register()
	with := func(name string, values ...string) url.Values {
		return url.Values{"grant_type": {"client_credentials"}, name: values}
	}
	none := url.Values{"grant_type": {"client_credentials"}}
	for _, r := range []struct {
		name   string
		a      answer
		status int
		code   string
	}{
		{"no grant type", n.form(o.path, c, url.Values{}), 400, "invalid_request"},
		{"another grant", n.form(o.path, c, url.Values{"grant_type": {"password"}}), 400, "unsupported_grant_type"},
		{"grant in another case", n.form(o.path, c, url.Values{"grant_type": {"CLIENT_CREDENTIALS"}}), 400, "unsupported_grant_type"},
		{"a member twice", n.form(o.path, c, with("scope", "catalog:read", "catalog:read")), 400, "invalid_request"},
		{"scope", n.form(o.path, c, with("scope", "billing:manage support:read")), 400, "invalid_scope"},
		{"resource", n.form(o.path, c, with("resource", "https://"+canary+".example")), 400, "invalid_target"},
		{"no client", n.form(o.path, client{}, none), 401, "invalid_client"},
		{"unknown client", n.form(o.path, client{"agt_01KAAAAAAAAAAAAAAAAAAAAAAA", c.secret}, none), 401, "invalid_client"},
		{"another's secret", n.form(o.path, client{c.id, other.secret}, none), 401, "invalid_client"},
		{"Basic with another's", n.form(o.path, client{}, none, "Authorization", basic(client{c.id, other.secret})), 401, "invalid_client"},
		{"Basic of garbage", n.form(o.path, client{}, none, "Authorization", "Basic "+canary), 401, "invalid_client"},
		{"Basic without colon", n.form(o.path, client{}, none, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("x"))), 401, "invalid_client"},
		{"Basic, badly escaped", n.form(o.path, client{}, none, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.id+":%zz"))), 401, "invalid_client"},
		{"a bearer token", n.form(o.path, client{}, none, "Authorization", "Bearer "+n.token(c, "")), 401, "invalid_client"},
		{"two headers", n.form(o.path, client{}, none, "Authorization", basic(c), "Authorization", basic(c)), 401, "invalid_client"},
		{"both ways", n.form(o.path, c, none, "Authorization", basic(c)), 400, "invalid_request"},
		{"two ids", n.form(o.path, client{}, with("client_id", other.id), "Authorization", basic(c)), 400, "invalid_request"},
		{"in the query", n.send(http.MethodPost, o.path+"?"+url.Values{"client_id": {c.id}, "client_secret": {c.secret}}.Encode(), none.Encode(), "Content-Type", "application/x-www-form-urlencoded"), 401, "invalid_client"},
		{"no content type", n.send(http.MethodPost, o.path, none.Encode()), 400, "invalid_request"},
		{"JSON, duplicate", n.post(o.path, "", `{"grant_type":"client_credentials","grant_type":"client_credentials"}`), 400, "invalid_request"},
		{"JSON, number", n.post(o.path, "", `{"grant_type":7}`), 400, "invalid_request"},
		{"JSON, empty", n.post(o.path, "", ``), 400, "invalid_request"},
		{"bad UTF-8", n.send(http.MethodPost, o.path, "grant_type=%ff", "Content-Type", "application/x-www-form-urlencoded"), 400, "invalid_request"},
		{"bad escape", n.send(http.MethodPost, o.path, "grant_type=%zz", "Content-Type", "application/x-www-form-urlencoded"), 400, "invalid_request"},
		{"compressed", n.form(o.path, c, none, "Content-Encoding", "gzip"), 400, "invalid_request"},
		{"too large", n.form(o.path, c, with("x", strings.Repeat("a", 20_000))), 413, "invalid_request"},
	} {
		if n.oauthRefused(r.a, r.status, r.code); t.Failed() {
			t.Fatalf("%s: %v", r.name, r.a)
		}
		d.valid(t, o, r.a)
	}
	n.app.TokenKeys = nil
	a := n.form(o.path, c, url.Values{"grant_type": {"client_credentials"}})
	n.oauthRefused(a, 503, "temporarily_unavailable")
	d.valid(t, o, a)
	n.oauthRefused(n.get("/api/auth/authorize?response_type=code&client_id=x"), 400, "unsupported_response_type")
	page := n.send(http.MethodGet, "/api/auth/authorize?response_type=code&client_id="+canary, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if page.status != 400 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.body), "X-API-Key") || strings.Contains(string(page.body), canary) {
		t.Errorf("in a browser: %v", page)
	}
	if a := n.get(o.path); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("GET %s: %v", o.path, a)
	}
}

func TestRevokeAndIntrospect(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	at := func(path string) described {
		return described{"post", path, d.at("paths", path, "post").(map[string]any)}
	}
	revoke, introspect := at("/api/auth/revoke"), at("/api/auth/introspect")
	c, other := n.register(), n.register()
	token, kept := n.token(c, ""), n.token(c, "catalog:read")
	live := func(token string, want bool) {
		t.Helper()
		a := n.form(introspect.path, other, url.Values{"token": {token}, "token_type_hint": {"access_token"}})
		n.wants(a, 200)
		d.valid(t, introspect, a)
		if !want && string(a.body) != `{"active":false}` {
			t.Errorf("of a dead token: %s", a.body)
		}
		if m := a.members(t); want && (m["active"] != true || m["client_id"] != c.id || m["sub"] != c.id || m["token_type"] != "Bearer" ||
			m["iss"] != n.url || m["aud"] != n.url || m["exp"] != m["iat"].(float64)+3600 || !strings.Contains(fmt.Sprint(m["scope"]), "catalog:read") || m["jti"] == nil) {
			t.Errorf("of a live token: %s", a.body)
		}
	}
	live(token, true)
	for _, dead := range []string{"x", n.issueKey(), token + "x"} {
		live(dead, false)
	}
	end := func(c client, token string) {
		t.Helper()
		a := n.form(revoke.path, c, url.Values{"token": {token}})
		n.wants(a, 200)
		d.valid(t, revoke, a)
	}
	n.unchanged(func() {
		end(other, token)
		end(c, "nothing of ours")
	})
	live(token, true)
	end(c, token)
	end(c, token)
	live(token, false)
	live(kept, true)
	n.clock.Add(time.Hour)
	live(kept, false)
	for _, o := range []described{revoke, introspect} {
		n.oauthRefused(n.form(o.path, c, nil), 400, "invalid_request")
		n.oauthRefused(n.form(o.path, client{}, url.Values{"token": {kept}}), 401, "invalid_client")
		n.oauthRefused(n.form(o.path, client{c.id, other.secret}, url.Values{"token": {kept}}), 401, "invalid_client")
		n.oauthRefused(n.form(o.path, client{}, url.Values{"token": {kept}}, "Authorization", "Bearer "+kept), 401, "invalid_client")
	}
}

// TestClaimNeedsSessionAndToken checks that claiming an agent requires both the customer's session
// and the agent's token. Tokens that were issued before keep their scopes.
func TestClaimNeedsSessionAndToken(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	o := described{"post", "/api/auth/claim", d.at("paths", "/api/auth/claim", "post").(map[string]any)}
	c := n.register()
	before := n.token(c, "")
	ada, eve := n.signIn("ada@example.com"), n.signIn("eve@example.com")
	bearer := []string{"Authorization", "Bearer " + before}
	metadata := `Bearer realm="countersign", resource_metadata="` + n.url + `/.well-known/oauth-protected-resource"`
	n.unchanged(func() {
		for name, r := range map[string]struct {
			headers   []string
			status    int
			challenge string
		}{
			"nothing":           {nil, 401, metadata},
			"session alone":     {[]string{"Cookie", ada}, 401, metadata},
			"token alone":       {bearer, 401, metadata},
			"bad token":         {[]string{"Cookie", ada, "Authorization", "Bearer " + before + "x"}, 401, metadata + `, error="invalid_token"`},
			"bad session":       {append([]string{"Cookie", ada[:len(ada)-1] + "_"}, bearer...), 401, metadata},
			"an API key":        {[]string{"Cookie", ada, "X-API-Key", "svck_" + strings.Repeat("0", 63)}, 401, metadata + `, error="invalid_token"`},
			"the header twice":  {append([]string{"Cookie", ada, "Authorization", "Bearer " + before}, bearer...), 401, metadata + `, error="invalid_token"`},
			"from another site": {append([]string{"Cookie", ada, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, bearer...), 403, ""},
		} {
			a := n.claim(r.headers...)
			n.wants(a, r.status)
			d.valid(t, o, a)
			if got := a.header.Get("WWW-Authenticate"); got != r.challenge {
				t.Errorf("%s: WWW-Authenticate %s", name, got)
			}
		}
	})
	for range 2 {
		a := n.claim(append([]string{"Cookie", ada}, bearer...)...)
		n.wants(a, 200)
		d.valid(t, o, a)
		if want := `{"clientId":"` + c.id + `","next":"request a new token","scopes":["catalog:read","checkout:create","billing:manage","entitlements:read"],"status":"claimed"}`; string(a.body) != want {
			t.Errorf("%s", a.body)
		}
	}
	n.refused(n.claim(append([]string{"Cookie", eve}, bearer...)...), 409, "already_claimed", "")
	all := strings.Join(accounts.AgentScopes, " ")
	scopes := func(token string) string {
		t.Helper()
		agent, err := n.app.AuthenticateAgent(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(agent.Scopes, " ")
	}
	if got := scopes(before); got != "catalog:read checkout:create" {
		t.Errorf("a token from before the claim has %s", got)
	}
	if got := scopes(n.token(c, all)); got != "catalog:read checkout:create billing:manage entitlements:read" {
		t.Errorf("a token from after the claim has %s", got)
	}
	n.app.SupportClients = []string{c.id}
	if got := scopes(n.token(c, "support:read catalog:read")); got != "catalog:read support:read" {
		t.Errorf("an approved client's token has %s", got)
	}
}

// customerOperations lists the operations that require a scope.
func customerOperations() []*op.Operation {
	return slices.DeleteFunc(operations(), func(o *op.Operation) bool { return o.Access.Scope == "" })
}

// TestScopeByEndpoint checks that each scope permits exactly its endpoints. Other valid
// credentials are refused as insufficient, and invalid ones with 401.
func TestScopeByEndpoint(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	c := n.register()
	n.wants(n.claim("Cookie", n.signIn("ada@example.com"), "Authorization", "Bearer "+n.token(c, "")), 200)
	n.app.SupportClients = []string{c.id}
	key, cookie := n.issueKey(), n.signIn("ada@example.com")
	got := map[string]string{}
	for _, o := range customerOperations() {
		got[o.ID] = o.Access.Scope
	}
	want := map[string]string{"create_checkout": "checkout:create", "open_billing_portal": "billing:manage",
		"get_entitlement": "entitlements:read", "list_customer_entitlements": "support:read"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range customerOperations() {
		path, body := pathOf(o), o.Example
		call := func(headers ...string) answer {
			return n.send(o.Method, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
		}
		ask := credential.Challenge(n.url, "", "", o.Access.Scope)
		a := call("Cookie", cookie)
		if refused := a.header.Get("WWW-Authenticate") != ""; refused != (o.Access.Scope == "support:read") {
			t.Errorf("%s with a session: %v", o.ID, a)
		}
		foreign := call("Cookie", cookie, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
		if changes := o.Method != http.MethodGet && o.Access.Kind != credential.AnyCustomer; changes != (foreign.status == 403 && strings.Contains(string(foreign.body), "cross-origin")) {
			t.Errorf("%s from another site: %v", o.ID, foreign)
		}
		for _, scope := range accounts.AgentScopes {
			// A cookie is ignored if a header contains a credential.
			a := call("Authorization", "Bearer "+n.token(c, scope), "Cookie", cookie)
			got := a.header.Get("WWW-Authenticate")
			if want := credential.Challenge(n.url, "", "insufficient_scope", o.Access.Scope); scope != o.Access.Scope && (a.status != 403 || got != want) {
				t.Errorf("%s with %s: %v %s", o.ID, scope, a, got)
			}
			if scope == o.Access.Scope && (a.status == 401 || got != "") {
				t.Errorf("%s with %s: %v %s", o.ID, scope, a, got)
			}
		}
		bad := credential.Challenge(n.url, "", "invalid_token", o.Access.Scope)
		for name, r := range map[string]struct {
			a         answer
			challenge string
		}{
			"nothing":        {call(), ask},
			"a bad token":    {call("Authorization", "Bearer a.b.c"), bad},
			"Basic":          {call("Authorization", basic(c)), bad},
			"a header twice": {call("Authorization", "Bearer "+n.token(c, ""), "Authorization", "Bearer "+n.token(c, "")), bad},
		} {
			if o.Access.Kind == credential.AnyCustomer && name == "nothing" {
				if r.a.status == 401 || r.a.status == 403 {
					t.Errorf("%s with %s: %v", o.ID, name, r.a)
				}
			} else if got := r.a.header.Get("WWW-Authenticate"); r.a.status != 401 || got != r.challenge {
				t.Errorf("%s with %s: %v %s", o.ID, name, r.a, got)
			}
		}
		if a := call("X-API-Key", key); o.Access.Kind != credential.AnyCustomer && (a.status != 403 || a.header.Get("WWW-Authenticate") != credential.Challenge(n.url, "", "insufficient_scope", o.Access.Scope)) {
			t.Errorf("%s with an API key: %v", o.ID, a)
		}
	}
}

// pathOf returns the operation's path with a value for each variable.
func pathOf(o *op.Operation) string {
	path := o.Path
	for _, name := range o.PathParameters() {
		path = strings.ReplaceAll(path, "{"+name+"}", "monthly-pass")
	}
	return path
}

// TestAccessTokensOfOthersAreRefusedEverywhere checks that access tokens that this service did not
// sign get 401, and that an organization's endpoints distinguish valid tokens from invalid ones.
func TestAccessTokensOfOthersAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	c := n.register()
	good := n.token(c, "")
	claims := jwt.MapClaims{"iss": n.url, "aud": n.url, "sub": c.id, "client_id": c.id, "jti": "atk_1", "iat": n.clock.Now().Unix(), "exp": n.clock.Now().Unix() + 60, "scope": "catalog:read"}
	sign := func(method jwt.SigningMethod, key any) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["typ"], token.Header["kid"] = "at+jwt", accounts.TokenKeyID(testTokenKey)
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, token := range map[string]string{
		"none":         sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"HS256":        sign(jwt.SigningMethodHS256, []byte(testTokenKey.Public().(ed25519.PublicKey))),
		"a record key": sign(jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(testSeed)),
		"cut":          good[:len(good)-2],
	} {
		for _, path := range []string{quickPath, "/api/assurance/decisions", "/api/auth/claim", "/api/keys/free/status"} {
			method := http.MethodPost
			if strings.HasSuffix(path, "status") {
				method = http.MethodGet
			}
			a := n.send(method, path, `{"command":"ls"}`, "Content-Type", "application/json", "Authorization", "Bearer "+token)
			got := a.header.Get("WWW-Authenticate")
			if n.wants(a, 401); !strings.HasPrefix(got, credential.Challenge(n.url, "", "invalid_token", "")) {
				t.Errorf("%s at %s: %s", name, path, got)
			}
		}
	}
	a := n.send(http.MethodPost, "/api/assurance/decisions", `{}`, "Content-Type", "application/json", "Authorization", "Bearer "+good)
	n.bare(a, 403, "organization credential required")
	if got, want := a.header.Get("WWW-Authenticate"), credential.Challenge(n.url, "", "insufficient_scope", "assurance:decide"); got != want {
		t.Errorf("%s", got)
	}
	if a := n.send(http.MethodPost, "/api/assurance/decisions", `{}`, "Content-Type", "application/json"); a.header.Get("WWW-Authenticate") != credential.Challenge(n.url, "", "", "assurance:decide") {
		t.Errorf("%v", a.header)
	}
}

func TestMetadataDocuments(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	read := func(path string) map[string]any {
		t.Helper()
		a := n.get(path)
		n.wants(a, 200)
		if a.header.Get("ETag") == "" || a.header.Get("Cache-Control") != "public, max-age=300" || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %v", path, a.header)
		}
		if head := n.send(http.MethodHead, path, ""); head.status != 200 || len(head.body) != 0 {
			t.Errorf("HEAD %s: %v", path, head)
		}
		if again := n.send(http.MethodGet, path, "", "If-None-Match", a.header.Get("ETag")); again.status != 304 {
			t.Errorf("%s again: %v", path, again)
		}
		return a.members(t)
	}
	methods := []any{"client_secret_basic", "client_secret_post"}
	scopes := []any{"catalog:read", "checkout:create", "billing:manage", "entitlements:read", "support:read"}
	want := map[string]any{
		"issuer": n.url, "authorization_endpoint": n.url + "/api/auth/authorize", "token_endpoint": n.url + "/api/auth/token",
		"registration_endpoint": n.url + "/api/auth/register", "revocation_endpoint": n.url + "/api/auth/revoke",
		"introspection_endpoint": n.url + "/api/auth/introspect", "jwks_uri": n.url + "/.well-known/jwks.json", "scopes_supported": scopes,
		"response_types_supported": []any{}, "grant_types_supported": []any{"client_credentials"}, "token_endpoint_auth_methods_supported": methods,
		"revocation_endpoint_auth_methods_supported": methods, "introspection_endpoint_auth_methods_supported": methods, "service_documentation": n.url + "/auth.md",
		"agent_auth": map[string]any{"skill": n.url + "/auth.md", "register_uri": n.url + "/api/auth/register", "claim_uri": n.url + "/api/auth/claim",
			"revocation_uri": n.url + "/api/auth/revoke", "identity_types_supported": []any{"anonymous", "verified_email"}},
	}
	if diff := cmp.Diff(want, read("/.well-known/oauth-authorization-server")); diff != "" {
		t.Error(diff)
	}
	want["subject_types_supported"], want["id_token_signing_alg_values_supported"] = []any{"public"}, []any{"EdDSA"}
	if diff := cmp.Diff(want, read("/.well-known/openid-configuration")); diff != "" {
		t.Error(diff)
	}
	resource := map[string]any{"resource": n.url, "authorization_servers": []any{n.url}, "scopes_supported": scopes, "bearer_methods_supported": []any{"header"},
		"jwks_uri": n.url + "/.well-known/jwks.json", "resource_name": "Countersign", "resource_documentation": n.url + "/auth.md",
		"resource_policy_uri": n.url + "/privacy", "resource_tos_uri": n.url + "/terms"}
	if diff := cmp.Diff(resource, read("/.well-known/oauth-protected-resource")); diff != "" {
		t.Error(diff)
	}
	resource["scopes_supported"] = []any{"catalog:read", "checkout:create"}
	for _, d := range op.MCPPaths { // RFC 9728, section 3.3: the resource must be the address that the client uses
		resource["resource"] = n.url + d
		if diff := cmp.Diff(resource, read("/.well-known/oauth-protected-resource"+d)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestATokenForEachAddress checks that a token can be requested for the service or for one of its
// MCP endpoints. That address is its audience, and other addresses refuse it. A token for the
// service is valid at all of them.
func TestATokenForEachAddress(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	c := n.register()
	ask := func(resource string) answer {
		return n.form("/api/auth/token", c, url.Values{"grant_type": {"client_credentials"}, "resource": {resource}})
	}
	for _, d := range op.MCPPaths {
		a := ask(n.url + d)
		n.wants(a, http.StatusOK)
		token, _ := a.members(t)["access_token"].(string)
		n.wants(n.send(http.MethodPost, d, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Content-Type", "application/json", "Authorization", "Bearer "+token), http.StatusOK)
		for _, other := range op.MCPPaths {
			if other == d {
				continue
			}
			a := n.send(http.MethodPost, other, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Content-Type", "application/json", "Authorization", "Bearer "+token)
			if n.wants(a, 401); !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s at %s: %v", d, other, a.header)
			}
		}
		n.wants(n.send(http.MethodPost, quickPath, lsBody, "Content-Type", "application/json", "Authorization", "Bearer "+token), 401)
		if seen := n.form("/api/auth/introspect", c, url.Values{"token": {token}}).members(t); seen["active"] != true || seen["aud"] != n.url+d {
			t.Errorf("%s: %v", d, seen)
		}
	}
	for resource, audience := range map[string]string{n.url: n.url, n.url + "/": n.url, n.url + "/mcp/": n.url + "/mcp", "HTTP" + n.url[4:]: n.url, "HTTP" + n.url[4:] + "/mcp": n.url + "/mcp", "": n.url} {
		a := ask(resource)
		n.wants(a, http.StatusOK)
		token, _ := a.members(t)["access_token"].(string)
		if seen := n.form("/api/auth/introspect", c, url.Values{"token": {token}}).members(t); seen["aud"] != audience {
			t.Errorf("%s: %v", resource, seen)
		}
		if audience == n.url {
			n.wants(n.send(http.MethodPost, "/mcp/safety", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Content-Type", "application/json", "Authorization", "Bearer "+token), http.StatusOK)
		}
		n.form("/api/auth/revoke", c, url.Values{"token": {token}})
		if seen := n.form("/api/auth/introspect", c, url.Values{"token": {token}}).members(t); seen["active"] != false {
			t.Errorf("%s after revocation: %v", resource, seen)
		}
	}
	for _, resource := range []string{n.url + "/other", n.url + "/mcp/other", n.url + "/mcpx", n.url + ".evil.example", "https://evil.example", n.url + "//"} {
		n.oauthRefused(ask(resource), http.StatusBadRequest, "invalid_target")
	}
}

func TestJWKSHoldsTheKeysOfTokens(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.get("/.well-known/jwks.json")
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	a.decode(t, &set)
	seen, places := map[any]any{}, map[string]bool{}
	for _, k := range set.Keys { // a key that signs records is listed once for each partition
		place := fmt.Sprint(k["kid"], k["svc_partition"])
		if k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["use"] != "sig" || k["alg"] != "EdDSA" || k["d"] != nil || places[place] {
			t.Errorf("%v", k)
		}
		places[place] = true
		_, placed := k["svc_from_position"]
		if seen[k["kid"]] = k["svc_purpose"]; placed != (k["svc_purpose"] == "record") {
			t.Errorf("%v", k)
		}
	}
	want := map[any]any{n.app.Signer.KeyID(): "record", accounts.TokenKeyID(testTokenKey): "access_token"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestRegistrationsAndClaimsAreLimited(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true})
	c := n.register()
	token := n.token(c, "")
	for range op.KeysPerMinute - 1 {
		n.register()
	}
	a := n.post("/api/auth/register", "", `{"client_name":"buyer"}`)
	if n.oauthRefused(a, 429, "temporarily_unavailable"); a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
	for range op.KeysPerMinute {
		n.wants(n.claim(), 401)
	}
	n.refused(n.claim(), 429, "rate_limited", "")
	for range op.KeysPerMinute {
		n.wants(n.form("/api/auth/revoke", c, url.Values{"token": {"x"}}), 200)
	}
	n.oauthRefused(n.form("/api/auth/revoke", c, url.Values{"token": {token}}), 429, "temporarily_unavailable")
	if _, err := n.app.AuthenticateAgent(t.Context(), token); err != nil {
		t.Errorf("a refused revocation took effect: %v", err)
	}
}

// TestAgentPaysWithItsCredit checks that an agent pays with its token as long as it has free
// credit, and can read what is left. Without credit it is told to pay by x402, which is not
// configured here.
func TestAgentPaysWithItsCredit(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	c := n.register()
	bearer := []string{"Content-Type", "application/json", "Authorization", "Bearer " + n.token(c, "")}
	status := described{"get", "/api/keys/free/status", d.at("paths", "/api/keys/free/status", "get").(map[string]any)}
	left := func(want any) {
		t.Helper()
		a := n.send(http.MethodGet, status.path, "", bearer[2:]...)
		n.wants(a, 200)
		d.valid(t, status, a)
		m := a.members(t)
		credits, _ := m["credits"].(map[string]any)
		if m["plan"] != "agent" || credits["remainingCents"] != want || credits["periodEndsAt"] != nil {
			t.Errorf("%s", a.body)
		}
	}
	run := func() answer { return n.send(http.MethodPost, runPath, `{"command":"ls"}`, bearer...) }
	left(nil)
	n.unchanged(func() { n.refused(run(), 503, "x402_not_configured", "") })
	n.wants(n.claim("Cookie", n.signIn("ada@example.com"), "Authorization", bearer[3]), 200)
	left(100.0)
	for i := range 4 {
		n.wants(run(), 200)
		left(float64(75 - 25*i))
	}
	n.unchanged(func() { n.refused(run(), 503, "x402_not_configured", "") })
	left(0.0)
	n.wants(n.form("/api/auth/revoke", c, url.Values{"token": {strings.TrimPrefix(bearer[3], "Bearer ")}}), 200)
	n.refused(run(), 401, "unauthorized", "")
	n.refused(n.send(http.MethodGet, status.path, "", bearer[2:]...), 401, "unauthorized", "")
}

// TestDatabaseAwayFromTheOAuthEndpoints checks that without a database nothing is registered,
// granted or claimed: the answer is 503. The same request works afterwards.
func TestDatabaseAwayFromTheOAuthEndpoints(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	c := n.register()
	token, cookie := n.token(c, ""), n.signIn("ada@example.com")
	claim := func() answer { return n.claim("Cookie", cookie, "Authorization", "Bearer "+token) }
	n.db.Away(t)
	n.oauthRefused(n.post("/api/auth/register", "", `{"client_name":"b"}`), 503, "temporarily_unavailable")
	n.oauthRefused(n.form("/api/auth/token", c, url.Values{"grant_type": {"client_credentials"}}), 503, "temporarily_unavailable")
	n.oauthRefused(n.form("/api/auth/introspect", c, url.Values{"token": {token}}), 503, "temporarily_unavailable")
	n.oauthRefused(n.form("/api/auth/revoke", c, url.Values{"token": {token}}), 503, "temporarily_unavailable")
	n.refused(claim(), 503, "-", "")
	n.db.Back(t)
	a := claim()
	for range 10 { // the pool may still contain connections from before the outage
		if a.status == 503 {
			a = claim()
		}
	}
	n.wants(a, 200)
	if got := n.token(c, "billing:manage"); got == "" {
		t.Error("no token after the claim")
	}
}

// TestRequestsOfAuthMDWork checks that each request in auth.md works as written. Words in capitals
// are replaced by values from earlier answers.
func TestRequestsOfAuthMDWork(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.get("/auth.md")
	if a.status != 200 || a.header.Get("Content-Type") != "text/markdown; charset=utf-8" || !strings.HasPrefix(string(a.body), "# auth.md\n") || !strings.Contains(string(a.body), n.url+"/sign-in") {
		t.Fatalf("%v %v", a, a.header)
	}
	for i, step := range []string{"Discover", "Register", "Claim", "Exchange", "Use", "Revoke"} {
		if !strings.Contains(string(a.body), fmt.Sprintf("\n## %d. %s\n", i+1, step)) {
			t.Errorf("step %d is not %s", i+1, step)
		}
	}
	for _, scope := range accounts.AgentScopes {
		if !strings.Contains(string(a.body), "| `"+scope+"` | "+contract.ScopeMeanings[scope]+" |\n") {
			t.Errorf("%s is not explained", scope)
		}
	}
	blocks := strings.Split(string(a.body), "```http\n")[1:]
	if len(blocks) != 7 {
		t.Fatalf("%d requests", len(blocks))
	}
	blocks[3], blocks[4] = blocks[4], blocks[3] // a claim needs a token, which step 3 returns
	values := []string{"SESSION", n.signIn("ada@example.com")}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "\n```")
		text = strings.NewReplacer(values...).Replace(text)
		head, body, _ := strings.Cut(text, "\n\n")
		lines := strings.Split(head, "\n")
		method, path, _ := strings.Cut(lines[0], " ")
		var headers []string
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			headers = append(headers, name, value)
		}
		a := n.send(method, path, body, headers...)
		if a.status != 200 && a.status != 201 {
			t.Fatalf("%s: %v", lines[0], a)
		}
		m := a.members(t)
		for member, placeholder := range map[string]string{"client_id": "CLIENT_ID", "client_secret": "CLIENT_SECRET", "access_token": "ACCESS_TOKEN"} {
			if value, has := m[member].(string); has {
				values = append(values, placeholder, value)
			}
		}
	}
}
