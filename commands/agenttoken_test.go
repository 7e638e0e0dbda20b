package commands_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// tokenKey signs access tokens. The key that signs records in openApp is a different one.
var tokenKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))

// openTokens returns a node as openApp does, with a key for access tokens.
func openTokens(t *testing.T, db *ledgertest.DB, c *ledgertest.Clock) *commands.App {
	t.Helper()
	a := openApp(t, db, c)
	a.TokenKeys = []ed25519.PrivateKey{tokenKey}
	return a
}

func newAgent(t testing.TB, a *commands.App) (accounts.RegisteredAgent, accounts.Client) {
	t.Helper()
	registered, err := a.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "buyer"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := a.AuthenticateClient(t.Context(), registered.ClientID, registered.Secret)
	if err != nil || client.ID() != registered.ClientID {
		t.Fatalf("%s authenticates as %s, %v", registered.ClientID, client.ID(), err)
	}
	return registered, client
}

func newAccessToken(t testing.TB, a *commands.App, c accounts.Client, scope string) string {
	t.Helper()
	token, err := a.IssueAccessToken(c, scope, "")
	if err != nil {
		t.Fatal(err)
	}
	return token.Text
}

// tokenOf registers an agent and returns it with a token that has all scopes of a new agent.
func tokenOf(t testing.TB, a *commands.App) (string, accounts.Agent) {
	t.Helper()
	_, client := newAgent(t, a)
	token := newAccessToken(t, a, client, "")
	agent, err := a.AuthenticateAgent(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return token, agent
}

func TestAccessTokenHasTheMembersOfRFC9068(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openTokens(t, ledgertest.New(t), c)
	_, client := newAgent(t, a)
	token := newAccessToken(t, a, client, "")
	claims := jwt.MapClaims{}
	parsed, err := jwt.NewParser(jwt.WithTimeFunc(c.Now)).ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return tokenKey.Public(), nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": accounts.TokenKeyID(tokenKey)}, parsed.Header); diff != "" {
		t.Error(diff)
	}
	jti, _ := claims["jti"].(string)
	want := jwt.MapClaims{"iss": a.BaseURL, "aud": []any{a.BaseURL}, "sub": client.ID(), "client_id": client.ID(), "jti": jti,
		"iat": float64(c.Now().Unix()), "exp": float64(c.Now().Unix() + 3600), "scope": "catalog:read checkout:create"}
	if diff := cmp.Diff(want, claims); diff != "" || !strings.HasPrefix(jti, "atk_") {
		t.Error(diff)
	}
}

// forge makes a token from any header and claims, signed with any method and key.
func forge(t *testing.T, method jwt.SigningMethod, key any, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAccessTokenThatIsNotOursIsOneAnswer(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openTokens(t, ledgertest.New(t), c)
	registered, client := newAgent(t, a)
	good := newAccessToken(t, a, client, "")
	public := tokenKey.Public().(ed25519.PublicKey)
	record := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) // the key that signs records in openApp
	header := map[string]any{"typ": "at+jwt", "kid": accounts.TokenKeyID(tokenKey)}
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		m := jwt.MapClaims{"iss": a.BaseURL, "aud": a.BaseURL, "sub": registered.ClientID, "client_id": registered.ClientID, "jti": "atk_1",
			"iat": c.Now().Unix(), "exp": c.Now().Unix() + 60, "scope": "catalog:read"}
		if change != nil {
			change(m)
		}
		return m
	}
	with := func(name string, value any) jwt.MapClaims {
		return claims(func(m jwt.MapClaims) {
			if m[name] = value; value == nil {
				delete(m, name)
			}
		})
	}
	typed := func(typ any) map[string]any { return map[string]any{"typ": typ, "kid": header["kid"]} }
	critical := func(names any) map[string]any {
		return map[string]any{"typ": "at+jwt", "kid": header["kid"], "crit": names, "exp2": true}
	}
	if _, err := a.AuthenticateAgent(t.Context(), forge(t, jwt.SigningMethodEdDSA, tokenKey, header, claims(nil))); err != nil {
		t.Fatalf("the control is refused: %v", err)
	}
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty":                     "",
		"not a token":               "x.y.z",
		"no signature":              parts[0] + "." + parts[1] + ".",
		"two parts":                 parts[0] + "." + parts[1],
		"white space":               good + " ",
		"padding":                   good + "=",
		"longer than allowed":       forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("more", strings.Repeat("a", 5000))),
		"alg none":                  forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, header, claims(nil)),
		"HS256 over the public key": forge(t, jwt.SigningMethodHS256, []byte(public), header, claims(nil)),
		"HS256 over its base64url":  forge(t, jwt.SigningMethodHS256, []byte(base64.RawURLEncoding.EncodeToString(public)), header, claims(nil)),
		"another key under our kid": forge(t, jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, 32)), header, claims(nil)),
		"a record key":              forge(t, jwt.SigningMethodEdDSA, record, map[string]any{"typ": "at+jwt", "kid": a.Signer.KeyID()}, claims(nil)),
		"unknown kid":               forge(t, jwt.SigningMethodEdDSA, tokenKey, map[string]any{"typ": "at+jwt", "kid": "0000000000000000"}, claims(nil)),
		"no kid":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, map[string]any{"typ": "at+jwt"}, claims(nil)),
		"typ JWT":                   forge(t, jwt.SigningMethodEdDSA, tokenKey, typed("JWT"), claims(nil)),
		"no typ":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, typed(nil), claims(nil)),
		"an unknown crit":           forge(t, jwt.SigningMethodEdDSA, tokenKey, critical([]string{"exp2"}), claims(nil)),
		"a crit that names a claim": forge(t, jwt.SigningMethodEdDSA, tokenKey, critical([]string{"exp"}), claims(nil)),
		"an empty crit":             forge(t, jwt.SigningMethodEdDSA, tokenKey, critical([]string{}), claims(nil)),
		"a crit of another type":    forge(t, jwt.SigningMethodEdDSA, tokenKey, critical("exp2"), claims(nil)),
		"wrong iss":                 forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("iss", "https://evil.example")),
		"no iss":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("iss", nil)),
		"wrong aud":                 forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("aud", a.BaseURL+"/mcp")),
		"no aud":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("aud", nil)),
		"expired":                   forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("exp", c.Now().Unix())),
		"no exp":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("exp", nil)),
		"no jti":                    forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("jti", nil)),
		"sub is another":            forge(t, jwt.SigningMethodEdDSA, tokenKey, header, with("sub", "agt_01KAAAAAAAAAAAAAAAAAAAAAAA")),
		"unknown client": forge(t, jwt.SigningMethodEdDSA, tokenKey, header, claims(func(m jwt.MapClaims) {
			m["sub"], m["client_id"] = "agt_01KAAAAAAAAAAAAAAAAAAAAAAA", "agt_01KAAAAAAAAAAAAAAAAAAAAAAA"
		})),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.AuthenticateAgent(t.Context(), token)
			wantRefusal(t, err, "unauthorized", accounts.ErrToken.Error())
		})
	}
	c.Add(time.Hour)
	_, err := a.AuthenticateAgent(t.Context(), good)
	wantRefusal(t, err, "unauthorized", accounts.ErrToken.Error())
}

// A scope in a token is valid only as long as the agent may have that scope.
func TestScopeOfATokenIsWhatTheAgentMayHave(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openTokens(t, ledgertest.New(t), c)
	_, client := newAgent(t, a)
	a.SupportClients = []string{client.ID()}
	token := newAccessToken(t, a, client, "")
	agent, err := a.AuthenticateAgent(t.Context(), token)
	if err != nil || agent.May("support:read") != nil || agent.May("catalog:read") != nil {
		t.Errorf("%v, %v", agent.Scopes, err)
	}
	wantRefusal(t, agent.May("billing:manage"), "insufficient_scope", "missing scope billing:manage")
	a.SupportClients = nil
	agent, err = a.AuthenticateAgent(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, agent.May("support:read"), "insufficient_scope", "missing scope support:read")
}

func TestAskedScopesAreGrantedAsFarAsTheyMayBe(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	_, client := newAgent(t, a)
	for asked, want := range map[string]string{
		"":                                      "catalog:read checkout:create",
		"checkout:create":                       "checkout:create",
		"checkout:create catalog:read":          "catalog:read checkout:create",
		"catalog:read catalog:read other":       "catalog:read",
		strings.Join(accounts.AgentScopes, " "): "catalog:read checkout:create",
	} {
		token, err := a.IssueAccessToken(client, asked, "")
		if err != nil || token.Scope != want || token.ExpiresIn != time.Hour {
			t.Errorf("asked %q: %q for %v, %v", asked, token.Scope, token.ExpiresIn, err)
		}
	}
	for _, asked := range []string{"support:read", "billing:manage entitlements:read", "other", "CATALOG:READ", " "} {
		_, err := a.IssueAccessToken(client, asked, "")
		wantRefusal(t, err, "invalid_scope", "scope must contain a scope that this client may have")
	}
	a.TokenKeys = nil
	_, err := a.IssueAccessToken(client, "", "")
	wantRefusal(t, err, "temporarily_unavailable", "access tokens are not configured")
}

// During a rotation, tokens signed with the older key are valid, and new tokens are signed with
// the newer key.
func TestTokenKeyRotates(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	_, client := newAgent(t, a)
	old := newAccessToken(t, a, client, "")
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{10}, 32))
	a.TokenKeys = []ed25519.PrivateKey{next, tokenKey}
	if _, err := a.AuthenticateAgent(t.Context(), old); err != nil {
		t.Errorf("a token of the older key: %v", err)
	}
	fresh := newAccessToken(t, a, client, "")
	a.TokenKeys = a.TokenKeys[:1]
	if _, err := a.AuthenticateAgent(t.Context(), fresh); err != nil {
		t.Errorf("a token of the newer key: %v", err)
	}
	_, err := a.AuthenticateAgent(t.Context(), old)
	wantRefusal(t, err, "unauthorized", accounts.ErrToken.Error())
}

// A revocation takes effect immediately on another node, even if that node has cached the agent.
func TestRevokedTokenIsDeadOnEveryNode(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a, b := openTokens(t, db, c), openTokens(t, db, c)
	defer clean(t, a)
	registered, client := newAgent(t, a)
	first, second := newAccessToken(t, a, client, ""), newAccessToken(t, a, client, "")
	good := func(token string, want bool) {
		t.Helper()
		for _, node := range []*commands.App{a, b} {
			if _, err := node.AuthenticateAgent(t.Context(), token); (err == nil) != want {
				t.Errorf("a token is good: %v, %v", !want, err)
			}
		}
	}
	good(first, true)
	_, stranger := newAgent(t, a)
	before := len(everything(t, a))
	if err := a.RevokeAccessToken(t.Context(), stranger, first); err != nil {
		t.Fatal(err)
	}
	if err := a.RevokeAccessToken(t.Context(), client, "no token"); err != nil {
		t.Fatal(err)
	}
	good(first, true)
	for range 2 {
		if err := a.RevokeAccessToken(t.Context(), client, first); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(everything(t, a)) - before; n != 1 {
		t.Errorf("%d events", n)
	}
	good(first, false)
	good(second, true)
	for range 2 {
		if err := b.RevokeAgent(t.Context(), registered.ClientID, "leaked"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(everything(t, a)) - before; n != 2 {
		t.Errorf("%d events", n)
	}
	good(second, false)
	_, err := a.AuthenticateClient(t.Context(), registered.ClientID, registered.Secret)
	wantRefusal(t, err, "invalid_client", "client authentication failed")
	wantRefusal(t, a.RevokeAgent(t.Context(), "agt_01KAAAAAAAAAAAAAAAAAAAAAAA", "r"), "not_found", "agent not found")
}

func TestIntrospectTellsOfLiveTokensOnly(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openTokens(t, ledgertest.New(t), c)
	token, agent := tokenOf(t, a)
	got, err := a.Introspect(t.Context(), token)
	if err != nil || !got.Active || got.Agent.ClientID != agent.ClientID || got.TokenID == "" || got.ExpiresAt.Sub(got.IssuedAt) != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	c.Add(time.Hour)
	for _, dead := range []string{token, "", "svck_x", token[1:]} {
		if got, err := a.Introspect(t.Context(), dead); err != nil || got.Active || got.TokenID != "" {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestClientSecretsAreComparedAsAWhole(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	one, _ := newAgent(t, a)
	other, _ := newAgent(t, a)
	for name, pair := range map[string][2]string{
		"another's secret": {one.ClientID, other.Secret},
		"unknown id":       {"agt_01KAAAAAAAAAAAAAAAAAAAAAAA", one.Secret},
		"no secret":        {one.ClientID, ""},
		"no id":            {"", one.Secret},
		"wrong check":      {one.ClientID, one.Secret[:62] + "AAAAAA"},
		"another prefix":   {one.ClientID, "svck_" + one.Secret[5:]},
		"lower case id":    {strings.ToLower(one.ClientID), one.Secret},
		"a path as id":     {"agt_../x", one.Secret},
	} {
		_, err := a.AuthenticateClient(t.Context(), pair[0], pair[1])
		if wantRefusal(t, err, "invalid_client", "client authentication failed"); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestRegisteredAgentIsSealedAndItsSecretNowhere(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	before := heads(t, a)
	r, err := a.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "Ada's buyer", IdentityType: "verified_email", Email: "Ada@Example.com"})
	if err != nil || r.Address != "ada@example.com" {
		t.Fatalf("%+v, %v", r, err)
	}
	added := since(t, a, before)
	if len(added) != 1 || added[0].Stream != "agent/"+r.ClientID || added[0].Tenant != a.Ledger.Service(r.ClientID) {
		t.Fatalf("%+v", added)
	}
	for _, hidden := range []string{r.Secret[18:61], "Ada", "ada@", "buyer"} {
		if strings.Contains(string(added[0].Payload), hidden) {
			t.Errorf("agent.registered shows %s", hidden)
		}
	}
	for field, order := range map[string]accounts.AgentOrder{
		"/client_name":   {Name: ""},
		"/identity_type": {Name: "n", IdentityType: "admin"},
		"/email":         {Name: "n", IdentityType: "verified_email", Email: "no address"},
	} {
		if _, err := a.RegisterAgent(t.Context(), order); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(field, "/")) {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err = a.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "n", Email: "ada@example.com"})
	wantRefusal(t, err, "inconsistent_input", "email is allowed only with identity_type verified_email")
}
