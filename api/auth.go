package api

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
)

// An operation with a scope is about a customer's own things. Who calls is
//
//	a session                     the customer, from the same origin
//	an agent with that scope      whoever claimed the agent: call.customer may be
//	                              empty where the scope needs no claim
//	nobody                        where the operation is open
//
// call.customer says whose things they are, call.credential whether an agent asks.

// serveCustomer finds out for whom an operation with a scope is called. With a
// credential in a header the cookie does not count.
func (s *Server) serveCustomer(c *call) error {
	bearer, present, err := organizationCredential(c.request.Header)
	switch {
	case err != nil:
		return err
	case present && !(c.op.open && isOurs(bearer)): // to what is open, a key is nothing
		return s.serveAgent(c, bearer)
	}
	if c.op.scope != commands.ScopeSupport { // which no customer has
		if c.session, err = s.sessions.load(c.request); err != nil {
			return err
		}
	}
	foreign := s.sessions.origin.Check(c.request) != nil
	switch {
	case c.session != nil && !foreign:
		c.customer = c.session.customer
	case c.op.open:
	case c.session != nil:
		return policy.Refuse(commands.CodeForbidden, "", "cross-origin request refused")
	default:
		return commands.ErrNoOrganizationCredential
	}
	return nil
}

// isOurs says whether a bearer credential is a key or an organization's token, by
// its prefix; an access token is neither.
func isOurs(bearer string) bool {
	return strings.HasPrefix(bearer, "svck_") || strings.HasPrefix(bearer, "svco_")
}

func (s *Server) serveAgent(c *call, bearer string) error {
	ctx := c.request.Context()
	if isOurs(bearer) {
		_, err := s.app.AuthenticateOrganization(ctx, bearer)
		if err == nil || isRefusal(err, commands.CodeInsufficientScope) {
			err = policy.Refuse(commands.CodeInsufficientScope, "", "missing scope "+c.op.scope)
		}
		return err
	}
	agent, err := s.app.AuthenticateAgent(ctx, bearer)
	if err != nil {
		return err
	}
	c.credential, c.customer = credential{means: byAgent, agent: agent}, agent.CustomerID
	return agent.May(c.op.scope)
}

// challenge is what a refused credential, or a missing one, leads to (RFC 6750,
// RFC 9728): where tokens come from, what was wrong with the one that was sent,
// and which scope is needed. Without a scope clients ask for every one there is.
func (s *Server) challenge(resource, problem, scope string) string {
	text := `Bearer realm="countersign", resource_metadata="` + s.app.BaseURL + protectedResourcePath + resource + `"`
	if problem != "" {
		text += `, error="` + problem + `"`
	}
	if scope != "" {
		text += `, scope="` + scope + `"`
	}
	return text
}

const protectedResourcePath = "/.well-known/oauth-protected-resource"

// challengeFor sets the header with which an operation answers a refusal.
func (s *Server) challengeFor(h http.Header, r *http.Request, op *operation, err error) {
	scope := op.scope
	switch {
	case op.right != "":
		scope = commands.ScopeOf(op.right)
	case op.service != nil || op.key:
		scope = commands.ScopeCatalog
	}
	switch {
	case isRefusal(err, commands.CodeInvalidClient):
		h.Set("WWW-Authenticate", `Basic realm="countersign"`)
	case isRefusal(err, commands.CodeInsufficientScope):
		h.Set("WWW-Authenticate", s.challenge("", "insufficient_scope", scope))
	case isRefusal(err, commands.CodeUnauthorized):
		h.Set("WWW-Authenticate", s.challenge("", invalidToken(r, err), scope))
	}
}

// invalidToken is what a 401 says: only a credential that was sent can be wrong.
func invalidToken(r *http.Request, err error) string {
	if isMissing(err) || len(r.Header["Authorization"])+len(r.Header["X-Api-Key"]) == 0 {
		return ""
	}
	return "invalid_token"
}

// describeOAuth is the security scheme of access tokens.
func (s *Server) describeOAuth() object {
	return object{"type": "oauth2", "flows": object{"clientCredentials": object{
		"tokenUrl": s.app.BaseURL + "/api/auth/token", "scopes": scopeMeanings}}}
}

// scopeMeanings says what each scope grants.
var scopeMeanings = map[string]string{
	commands.ScopeCatalog:      "read the product catalog",
	commands.ScopeCheckout:     "start checkout sessions",
	commands.ScopeBilling:      "open the billing portal for subscribers",
	commands.ScopeEntitlements: "inspect the claimed customer's live product access",
	commands.ScopeSupport:      "operator-approved clients only; inspect customer entitlements",
}
