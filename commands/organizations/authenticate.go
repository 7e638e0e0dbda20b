package organizations

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// Forbidden returns a refusal with the code forbidden and this text.
func Forbidden(message string) error { return policy.Refuse(CodeForbidden, "", message) }

// ErrNoOrganizationCredential refuses a request without a credential.
var ErrNoOrganizationCredential = policy.Refuse(ground.CodeUnauthorized, "", "authentication required")

// ErrToken refuses a credential for an organization that is malformed, unknown, expired or revoked.
var ErrToken = policy.Refuse(ground.CodeUnauthorized, "", "invalid or expired token: an owner or admin issues a new one on the page /keys")

var (
	errOtherCredential = Forbidden("organization credential required")
	errOtherKind       = policy.Refuse(accounts.CodeInsufficientScope, "", "organization credential required")
	errPlan            = Forbidden("organization plan required")
	errSuspended       = Forbidden("organization is suspended")
)

// AuthenticateOrganization returns the principal of a bearer token. It refuses a malformed,
// unknown, expired or revoked token with CodeUnauthorized. The text is the same in each case, and
// the hashes are compared even if the id is unknown. It refuses a valid API key or agent's access
// token with CodeInsufficientScope. Token and organization may come from the cache and be
// outdated, so an append must have the principal's Preconditions, and a command that only reads
// must call Confirm.
func (a *Organizations) AuthenticateOrganization(ctx context.Context, bearer string) (Principal, error) {
	if strings.HasPrefix(bearer, tokenPrefix) {
		p, err := a.tokenPrincipal(ctx, bearer)
		return p, ground.Refusal(err)
	}
	var err error
	if strings.HasPrefix(bearer, ground.KeyPrefix) {
		_, err = a.Authenticate(ctx, bearer)
	} else {
		_, err = a.AgentBehind(ctx, bearer)
	}
	switch {
	case errors.Is(err, accounts.ErrUnauthorized), errors.Is(err, accounts.ErrToken):
		err = ErrToken
	case err == nil:
		err = errOtherKind
	}
	return Principal{}, err
}

// SessionPrincipal returns the principal of a signed-in member. It refuses a customer who is not a
// member of the organization with CodeForbidden.
func (a *Organizations) SessionPrincipal(ctx context.Context, orgID, member string, signedIn time.Time) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, ground.Refusal(err)
	}
	role, isMember := o.members[member]
	if !isMember { // the cached organization may be outdated: another process may have added the member
		a.forgetOrganization(orgID)
		if o, err = a.organizationOf(ctx, orgID); err != nil {
			return Principal{}, ground.Refusal(err)
		}
		if role, isMember = o.members[member]; !isMember {
			return Principal{}, errOtherCredential
		}
	}
	p := o.principal(a.Clock())
	p.ActorID, p.Member, p.Role = member, member, role
	p.FreshSignIn = a.Clock().Sub(signedIn) < freshSignIn
	return p, nil
}

// Operator returns the principal of the command line. It has the rights of an owner, except to
// decide, to bind receipts and to approve. Its events have the actor "operator".
func (a *Organizations) Operator(ctx context.Context, orgID string) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, ground.Refusal(err)
	}
	p := o.principal(a.Clock())
	p.ActorID, p.Member, p.Role = "operator", "operator", RoleOperator
	return p, nil
}
