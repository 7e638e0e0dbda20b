package credential

import (
	"errors"
	"net/http"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// ProtectedResourcePath is the path of the metadata that names the issuer of tokens (RFC 9728).
const ProtectedResourcePath = "/.well-known/oauth-protected-resource"

// errNoCustomer refuses a claim without a session.
var errNoCustomer = policy.Refuse(ground.CodeUnauthorized, "", "authentication required: also sign in as a customer")

// errNoAgent refuses a claim without an agent's token.
var errNoAgent = policy.Refuse(ground.CodeUnauthorized, "", "authentication required: send the agent's access token as Bearer, in addition to the session")

// Challenge returns the WWW-Authenticate header for a missing or refused bearer token (RFC 6750,
// RFC 9728). It names the metadata of the resource, the problem with the token, and the required
// scope. Without a scope, clients ask for all scopes.
func Challenge(baseURL, resource, problem, scope string) string {
	text := `Bearer realm="countersign", resource_metadata="` + baseURL + ProtectedResourcePath + resource + `"`
	if problem != "" {
		text += `, error="` + problem + `"`
	}
	if scope != "" {
		text += `, scope="` + scope + `"`
	}
	return text
}

// ChallengeOf returns the WWW-Authenticate header of a refusal, or "" if the refusal does not
// concern a credential.
func ChallengeOf(baseURL string, r *http.Request, a Access, err error) string {
	switch {
	case isRefusal(err, accounts.CodeInvalidClient):
		return `Basic realm="countersign"`
	case isRefusal(err, accounts.CodeInsufficientScope):
		return Challenge(baseURL, "", "insufficient_scope", a.challenged())
	case isRefusal(err, ground.CodeUnauthorized):
		return Challenge(baseURL, "", Problem(r, err), a.challenged())
	}
	return ""
}

// Problem returns the error code for the header of a 401. It is empty if the caller sent no
// credential, because then none is invalid.
func Problem(r *http.Request, err error) string {
	missing := errors.Is(err, organizations.ErrNoOrganizationCredential) || errors.Is(err, errNoCustomer) || errors.Is(err, errNoAgent)
	if missing || len(r.Header["Authorization"])+len(r.Header["X-Api-Key"]) == 0 {
		return ""
	}
	return "invalid_token"
}

func isRefusal(err error, code string) bool {
	var refused *policy.Error
	return errors.As(err, &refused) && refused.Code == code
}
