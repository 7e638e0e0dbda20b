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

// Forbidden refuses with the code forbidden.
func Forbidden(message string) error { return policy.Refuse(CodeForbidden, "", message) }

// ErrNoOrganizationCredential is a request without any credential.
var ErrNoOrganizationCredential = policy.Refuse(ground.CodeUnauthorized, "", "authentication required")

var (
	errOtherCredential = Forbidden("organization credential required")
	errOtherKind       = policy.Refuse(accounts.CodeInsufficientScope, "", "organization credential required")
	errPlan            = Forbidden("organization plan required")
	errSuspended       = Forbidden("organization is suspended")
)

// AuthenticateOrganization returns the principal with a bearer token. A malformed, unknown,
// expired or revoked token is refused with CodeUnauthorized, with the same text and after one
// comparison in every case. A valid credential of another kind, an API key or an agent's access
// token, is refused with CodeInsufficientScope. The state of token and organization may be out
// of date: an append carries the Preconditions, and a read calls Confirm.
func (a *Organizations) AuthenticateOrganization(ctx context.Context, bearer string) (Principal, error) {
	if strings.HasPrefix(bearer, ground.KeyPrefix) {
		if _, err := a.Authenticate(ctx, bearer); err != nil {
			if errors.Is(err, accounts.ErrUnauthorized) {
				err = accounts.ErrToken
			}
			return Principal{}, err
		}
		return Principal{}, errOtherKind
	}
	if strings.HasPrefix(bearer, tokenPrefix) {
		p, err := a.tokenPrincipal(ctx, bearer)
		return p, ground.Refusal(err)
	}
	if _, err := a.AgentBehind(ctx, bearer); err != nil {
		return Principal{}, err
	}
	return Principal{}, errOtherKind
}

// SessionPrincipal returns the principal of a signed-in member. A person who is not a member,
// or no longer one, is refused with CodeForbidden.
func (a *Organizations) SessionPrincipal(ctx context.Context, orgID, member string, signedIn time.Time) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, ground.Refusal(err)
	}
	role, isMember := o.members[member]
	if !isMember { // the cache may be out of date: another process may have added the member
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

// Operator is the principal of the command line. It may do for an organization what its owner
// may, except decide and approve. What it does is recorded as the operator's.
func (a *Organizations) Operator(ctx context.Context, orgID string) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, ground.Refusal(err)
	}
	p := o.principal(a.Clock())
	p.ActorID, p.Member, p.Role = "operator", "operator", RoleOperator
	return p, nil
}
