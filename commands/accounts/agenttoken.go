package accounts

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// The scopes that an agent's access token can have.
const (
	ScopeCatalog      = "catalog:read"
	ScopeCheckout     = "checkout:create"
	ScopeBilling      = "billing:manage"
	ScopeEntitlements = "entitlements:read"
	ScopeSupport      = "support:read"
)

// AgentScopes lists all scopes of access tokens.
var AgentScopes = []string{ScopeCatalog, ScopeCheckout, ScopeBilling, ScopeEntitlements, ScopeSupport}

// scopesOf returns the scopes that an agent may have in its current state.
func (a *Accounts) scopesOf(g AgentState) []string {
	scopes := []string{ScopeCatalog, ScopeCheckout}
	if g.customer != "" {
		scopes = append(scopes, ScopeBilling, ScopeEntitlements)
	}
	if slices.Contains(a.SupportClients, g.id) {
		scopes = append(scopes, ScopeSupport)
	}
	return scopes
}

// Error codes of RFC 6749 (invalid_scope) and RFC 6750 (insufficient_scope).
const (
	CodeInvalidScope      = "invalid_scope"
	CodeInsufficientScope = "insufficient_scope"
)

// An access token is a JWT of RFC 9068: its typ is at+jwt, it is signed with EdDSA, and its kid is
// formed as for every signing key. The token is not stored; the stream agent/<client id> shows
// whether it was revoked.
const (
	tokenType  = "at+jwt"
	tokenIDs   = "atk_" // prefix of the jti claim
	tokenLives = time.Hour
)

type accessClaims struct {
	jwt.RegisteredClaims
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
}

// AccessToken is a newly issued token.
type AccessToken struct {
	Text      string
	Scope     string
	ExpiresIn time.Duration
}

// IssueAccessToken issues a token to a client. The token gets those of the requested scopes that
// the agent may have, or all scopes that the agent may have if none is requested. If the agent may
// have none of the requested scopes, the request is refused. The token is valid for one resource
// (RFC 8707), or for the whole service if resource is empty.
func (a *Accounts) IssueAccessToken(c Client, scope, resource string) (AccessToken, error) {
	granted := a.scopesOf(c.agent)
	if scope != "" {
		asked := strings.Fields(scope)
		granted = slices.DeleteFunc(granted, func(s string) bool { return !slices.Contains(asked, s) })
	}
	if len(granted) == 0 {
		return AccessToken{}, policy.Refuse(CodeInvalidScope, "/scope", "scope must contain a scope that this client may have")
	}
	if len(a.TokenKeys) == 0 {
		return AccessToken{}, policy.Refuse(ground.CodeUnavailable, "", "access tokens are not configured")
	}
	now := a.Now().Truncate(time.Second)
	claims := accessClaims{ClientID: c.agent.id, Scope: strings.Join(granted, " "), RegisteredClaims: jwt.RegisteredClaims{
		Issuer: a.BaseURL, Audience: jwt.ClaimStrings{cmp.Or(resource, a.BaseURL)}, Subject: c.agent.id, ID: a.NewID(tokenIDs),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLives))}}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["typ"], token.Header["kid"] = tokenType, TokenKeyID(a.TokenKeys[0])
	text, err := token.SignedString(a.TokenKeys[0])
	return AccessToken{Text: text, Scope: claims.Scope, ExpiresIn: tokenLives}, err
}

// TokenKeyID returns the kid (key id) of a key that signs access tokens.
func TokenKeyID(key ed25519.PrivateKey) string {
	return seal.KeyID(key.Public().(ed25519.PublicKey))
}

// Agent is an agent that was authenticated by its access token.
type Agent struct {
	ClientID   string   // agt_…
	Scopes     []string // scopes of the token, without those that the agent has lost since the token was issued
	CustomerID string   // id (cus_…) of the customer who claimed the agent; empty if it is not claimed

	Agent  AgentState
	claims accessClaims
}

// May returns nil if the agent has a scope. Otherwise it returns a refusal that names the scope.
func (g Agent) May(scope string) error {
	if slices.Contains(g.Scopes, scope) {
		return nil
	}
	return policy.Refuse(CodeInsufficientScope, "", "missing scope "+scope)
}

// AuthenticateAgent returns the agent of an access token. It returns the refusal CodeUnauthorized,
// always with the same text, if the token is malformed, of another server, expired, revoked, or
// issued for a resource that is not in resources. A token for the whole service is valid for every
// resource. The agent may be revoked after this check, so each append for it has the agent's
// stream as a precondition.
func (a *Accounts) AuthenticateAgent(ctx context.Context, token string, resources ...string) (Agent, error) {
	return a.AgentBehind(ctx, token, jwt.WithAudience(append(resources, a.BaseURL)...))
}

// AgentBehind returns the agent of an access token, for whichever resource the token was issued.
// options add further checks of the token.
func (a *Accounts) AgentBehind(ctx context.Context, token string, options ...jwt.ParserOption) (Agent, error) {
	claims, err := a.readAccessToken(token, options...)
	if err != nil {
		return Agent{}, ErrToken
	}
	g, err := a.agentOf(ctx, claims.ClientID)
	if err != nil {
		return Agent{}, ground.Refusal(err)
	}
	if g.id == "" || g.revoked || g.ended[claims.ID] {
		return Agent{}, ErrToken
	}
	allowed := a.scopesOf(g)
	scopes := slices.DeleteFunc(strings.Fields(claims.Scope), func(s string) bool { return !slices.Contains(allowed, s) })
	return Agent{ClientID: g.id, Scopes: scopes, CustomerID: g.customer, Agent: g, claims: claims}, nil
}

// readAccessToken makes all checks that need the token alone and not the ledger. It accepts one
// signing method, and looks up kid only among the keys of access tokens. So it refuses a token
// with the method "none", with a MAC over a public key, or signed with another key of this
// service.
func (a *Accounts) readAccessToken(text string, options ...jwt.ParserOption) (accessClaims, error) {
	if len(text) > maxAccessToken {
		return accessClaims{}, jwt.ErrTokenMalformed
	}
	parser := jwt.NewParser(append(options, jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(a.BaseURL), jwt.WithExpirationRequired(), jwt.WithTimeFunc(a.Clock))...)
	var claims accessClaims
	_, err := parser.ParseWithClaims(text, &claims, func(t *jwt.Token) (any, error) {
		// RFC 7515 section 4.1.11: a token must be refused if it lists a header as critical that
		// the verifier does not understand. This program understands none of them.
		if _, critical := t.Header["crit"]; critical || t.Header["typ"] != tokenType {
			return nil, jwt.ErrTokenUnverifiable
		}
		for _, key := range a.TokenKeys {
			if t.Header["kid"] == TokenKeyID(key) {
				return key.Public(), nil
			}
		}
		return nil, jwt.ErrTokenUnverifiable
	})
	if err == nil && (len(claims.Audience) != 1 || claims.ClientID == "" || claims.Subject != claims.ClientID || claims.ID == "") {
		err = jwt.ErrTokenInvalidClaims
	}
	return claims, err
}

// Introspection is the answer of RFC 7662 about a token. The zero value says that the text is not
// a valid token of this server.
type Introspection struct {
	Active              bool
	Agent               Agent
	TokenID, Audience   string
	IssuedAt, ExpiresAt time.Time
}

// Introspect returns the state, the agent and the times of a token.
func (a *Accounts) Introspect(ctx context.Context, token string) (Introspection, error) {
	g, err := a.AgentBehind(ctx, token)
	if errors.Is(err, ErrToken) {
		return Introspection{}, nil
	}
	if err != nil {
		return Introspection{}, err
	}
	return Introspection{true, g, g.claims.ID, strings.Join(g.claims.Audience, " "), g.claims.IssuedAt.Time, g.claims.ExpiresAt.Time}, nil
}

// RevokeAccessToken revokes a token of the client. If the text is not a valid token of this
// client, it does nothing and returns nil, so that the caller learns nothing about the token.
func (a *Accounts) RevokeAccessToken(ctx context.Context, c Client, token string) error {
	_, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		g, err := a.AgentBehind(ctx, token)
		switch {
		case errors.Is(err, ErrToken):
			return struct{}{}, nil
		case err != nil:
			return struct{}{}, err
		case g.ClientID != c.agent.id:
			return struct{}{}, nil
		}
		return struct{}{}, a.endToken(ctx, g)
	})
	return err
}

func (a *Accounts) endToken(ctx context.Context, g Agent) error {
	_, err := a.appendAgent(ctx, g.Agent, g.ClientID, ledger.Hash{}, nil, fact{events.TypeAccessTokenRevoked, events.AccessTokenRevoked{
		ClientID: g.ClientID, TokenID: g.claims.ID, ExpiresAt: canon.Stamp(g.claims.ExpiresAt.Time), Reason: "revoked"}})
	return err
}

// CurrentAgent reads the agent's state again. It is called after an event was added to the agent's
// stream.
func (a *Accounts) CurrentAgent(ctx context.Context, g Agent) (Agent, error) {
	now, err := a.agentOf(ctx, g.ClientID)
	if err == nil && (now.revoked || now.ended[g.claims.ID]) {
		err = ErrToken
	}
	g.Agent, g.CustomerID = now, now.customer
	return g, err
}

// Payer returns the id whose funds pay for the agent's calls: the customer who claimed the agent,
// or the agent itself if it is not claimed.
func (g Agent) Payer() string {
	if g.CustomerID != "" {
		return g.CustomerID
	}
	return g.ClientID
}

// ErrToken refuses an access token that is invalid, expired or revoked.
var ErrToken = policy.Refuse(ground.CodeUnauthorized, "", "invalid or expired token: request a new access token with POST /api/auth/token")
