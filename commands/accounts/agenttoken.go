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

// Scopes of an agent's access token.
const (
	ScopeCatalog      = "catalog:read"
	ScopeCheckout     = "checkout:create"
	ScopeBilling      = "billing:manage"
	ScopeEntitlements = "entitlements:read"
	ScopeSupport      = "support:read"
)

// AgentScopes lists every scope of an access token.
var AgentScopes = []string{ScopeCatalog, ScopeCheckout, ScopeBilling, ScopeEntitlements, ScopeSupport}

// scopesOf returns the scopes that new tokens of an agent may carry now.
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

// Codes of refusals, as RFC 6749, RFC 8707 and RFC 6750 name them.
const (
	CodeInvalidScope      = "invalid_scope"
	CodeInsufficientScope = "insufficient_scope"
)

// An access token is a JWT as in RFC 9068: typ at+jwt, EdDSA, kid as of any signing key. It is
// not stored; the stream agent/<client id> shows whether it is still valid.
const (
	tokenType  = "at+jwt"
	tokenIDs   = "atk_" // prefix of jti
	tokenLives = time.Hour
)

type accessClaims struct {
	jwt.RegisteredClaims
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
}

// AccessToken is a token that was just issued.
type AccessToken struct {
	Text      string
	Scope     string
	ExpiresIn time.Duration
}

// IssueAccessToken issues a token for a client. It has those of the requested scopes that the
// agent may have, or all of those if none is requested. A request for all existing scopes is
// not refused: the client gets those that it may have. The token is valid at one resource (RFC
// 8707), or at the whole service if none is named.
func (a *Accounts) IssueAccessToken(c Client, scope, resource string) (AccessToken, error) {
	granted := a.scopesOf(c.agent)
	if scope != "" {
		asked := strings.Fields(scope)
		granted = slices.DeleteFunc(granted, func(s string) bool { return !slices.Contains(asked, s) })
	}
	if len(granted) == 0 {
		return AccessToken{}, policy.Refuse(CodeInvalidScope, "/scope", "scope holds none that this client may have")
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

// TokenKeyID is the kid of a key of access tokens.
func TokenKeyID(key ed25519.PrivateKey) string {
	return seal.KeyID(key.Public().(ed25519.PublicKey))
}

// Agent is the agent that an access token belongs to.
type Agent struct {
	ClientID   string   // agt_…
	Scopes     []string // of the token, without those that the agent has lost since
	CustomerID string   // cus_… of the customer who claimed the agent; empty: unclaimed

	Agent  AgentState
	claims accessClaims
}

// May returns nil if the token has a scope, and otherwise the refusal that names it.
func (g Agent) May(scope string) error {
	if slices.Contains(g.Scopes, scope) {
		return nil
	}
	return policy.Refuse(CodeInsufficientScope, "", "missing scope "+scope)
}

// AuthenticateAgent returns the agent that an access token belongs to. A token that is
// malformed, from another server, expired, revoked, or issued for a resource other than those
// passed is refused with CodeUnauthorized, always with the same text. A token for the whole
// service is valid at every resource. The agent's state may change afterwards; an append has
// its stream as a precondition.
func (a *Accounts) AuthenticateAgent(ctx context.Context, token string, resources ...string) (Agent, error) {
	return a.AgentBehind(ctx, token, jwt.WithAudience(append(resources, a.BaseURL)...))
}

// AgentBehind is AuthenticateAgent for a token of any resource, with options that check more of
// it.
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

// readAccessToken checks what the token alone can show. The signing method is fixed, and the
// key is found by kid among the keys of access tokens only. So a token with the method "none",
// with a MAC over a public key, or signed by another key of this service is refused.
func (a *Accounts) readAccessToken(text string, options ...jwt.ParserOption) (accessClaims, error) {
	if len(text) > maxAccessToken {
		return accessClaims{}, jwt.ErrTokenMalformed
	}
	parser := jwt.NewParser(append(options, jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(a.BaseURL), jwt.WithExpirationRequired(), jwt.WithTimeFunc(a.Clock))...)
	var claims accessClaims
	_, err := parser.ParseWithClaims(text, &claims, func(t *jwt.Token) (any, error) {
		// RFC 7515 section 4.1.11: a header that a token calls critical must be understood or
		// the token refused. This program understands none.
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

// Introspection is what RFC 7662 lets a client know of a token. The zero value means that it is
// not a valid token of this server.
type Introspection struct {
	Active              bool
	Agent               Agent
	TokenID, Audience   string
	IssuedAt, ExpiresAt time.Time
}

// Introspect returns what a client may know of a token.
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

// RevokeAccessToken revokes a token of the client. If the text is not a valid token of that
// client, nothing happens, and the caller does not learn why.
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

// CurrentAgent reads the agent again, after its stream has moved.
func (a *Accounts) CurrentAgent(ctx context.Context, g Agent) (Agent, error) {
	now, err := a.agentOf(ctx, g.ClientID)
	if err == nil && (now.revoked || now.ended[g.claims.ID]) {
		err = ErrToken
	}
	g.Agent, g.CustomerID = now, now.customer
	return g, err
}

// Payer names whose funds an agent's calls draw on: the agent's, or those of the customer who
// claimed it.
func (g Agent) Payer() string {
	if g.CustomerID != "" {
		return g.CustomerID
	}
	return g.ClientID
}

// ErrToken refuses an access token or an organization token that is not valid now.
var ErrToken = policy.Refuse(ground.CodeUnauthorized, "", "invalid or expired token")
