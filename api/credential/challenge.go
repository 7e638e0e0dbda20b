package credential

import (
	"errors"
	"net/http"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// ProtectedResourcePath is the path of the document that says where tokens are issued (RFC 9728).
const ProtectedResourcePath = "/.well-known/oauth-protected-resource"

// errNoCustomer refuses a claim without a session.
var errNoCustomer = policy.Refuse(ground.CodeUnauthorized, "", "authentication required: sign in as a customer, too")

// errNoAgent refuses a claim without an agent's token.
var errNoAgent = policy.Refuse(ground.CodeUnauthorized, "", "authentication required: send the agent's access token as Bearer, in addition to the session")

// Challenge answers a credential that was refused or is missing (RFC 6750, RFC 9728). It says where
// tokens are issued, what is wrong with the credential that was sent, and which scope is needed.
// Without a scope clients ask for every scope there is.
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

// ChallengeOf returns the header WWW-Authenticate of a refusal, and "" if the refusal is not about
// a credential.
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

// Problem is the error of a 401. It is empty if no credential was sent, since only a sent one can
// be wrong.
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
