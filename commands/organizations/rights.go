package organizations

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
)

// The roles of members, and two roles of principals who are not members: RoleToken for a bearer
// token and RoleOperator for the command line.
const (
	RoleOwner     = "owner"
	RoleAdmin     = "admin"
	RoleDeveloper = "developer"
	RoleAuditor   = "auditor"
	RoleToken     = "token"
	RoleOperator  = "operator"
)

// Roles lists the roles of members, with the most rights first.
var Roles = []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor}

// The scopes that a token can have.
const (
	ScopeDecide  = "assurance:decide"
	ScopeReceipt = "assurance:receipt"
	ScopeRead    = "assurance:read"
	ScopeExport  = "export:read"
	ScopeDraft   = "policy:draft"
)

// Scopes lists all scopes of tokens.
var Scopes = []string{ScopeDecide, ScopeReceipt, ScopeRead, ScopeExport, ScopeDraft}

// Right is the name of a kind of action that a principal may or may not do.
type Right string

// The rights within an organization.
const (
	RightDecide   Right = "decide"
	RightReceipt  Right = "bind receipt"
	RightRead     Right = "read history" // a developer may read only own records, see Principal.OwnOnly
	RightExport   Right = "export"
	RightDraft    Right = "draft policy"
	RightPolicies Right = "read policies"
	RightActivate Right = "activate policy"
	RightMembers  Right = "read members and tokens"
	RightManage   Right = "change members and tokens"
	RightApprove  Right = "resolve a decision"
	RightErase    Right = "erase a subject"
)

// grant lists who has a right, and under which conditions.
type grant struct {
	Roles    []string
	scopes   []string // a token needs one of these scopes; empty means that no token has the right
	fresh    bool     // requires a sign-in younger than freshSignIn
	evidence bool     // the right remains for the time evidenceReadable after the plan has ended
}

// Grants is the table of rights by role and scope, and the only one. Both the checks and the test
// of all combinations read it.
var Grants = map[Right]grant{
	RightDecide:   {Roles: []string{RoleOwner, RoleAdmin, RoleDeveloper}, scopes: []string{ScopeDecide}},
	RightReceipt:  {Roles: []string{RoleOwner, RoleAdmin, RoleDeveloper}, scopes: []string{ScopeReceipt}},
	RightRead:     {Roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor, RoleOperator}, scopes: []string{ScopeRead}, evidence: true},
	RightExport:   {Roles: []string{RoleOwner, RoleAdmin, RoleAuditor, RoleOperator}, scopes: []string{ScopeExport}, evidence: true},
	RightDraft:    {Roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleOperator}, scopes: []string{ScopeDraft}},
	RightPolicies: {Roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor, RoleOperator}, scopes: []string{ScopeRead, ScopeDraft}, evidence: true},
	RightActivate: {Roles: []string{RoleOwner, RoleAdmin, RoleOperator}, fresh: true},
	RightMembers:  {Roles: []string{RoleOwner, RoleAdmin, RoleAuditor, RoleOperator}},
	RightManage:   {Roles: []string{RoleOwner, RoleAdmin, RoleOperator}, fresh: true},
	RightApprove:  {Roles: []string{RoleOwner, RoleAdmin}},
	RightErase:    {Roles: []string{RoleOwner, RoleOperator}, fresh: true},
}

// ScopeOf returns the scope that gives a token this right, or "" if no token can have it.
func ScopeOf(right Right) string { return Grants[right].scope() }

func (g grant) scope() string {
	if len(g.scopes) == 0 {
		return ""
	}
	return g.scopes[0]
}

// RoleMay reports whether a role has a right. Plan, state and sign-in may still prevent it.
func RoleMay(role string, right Right) bool { return slices.Contains(Grants[right].Roles, role) }

// Codes of refusals about credentials, organizations and policies.
const (
	CodeForbidden      = "forbidden"
	CodeConflict       = "conflict"
	CodeNoActivePolicy = "no_active_policy"
)

// ErrSignInAgain refuses a right that requires a recent sign-in.
var ErrSignInAgain = Forbidden("sign in again to do this")

// May returns nil if the principal has a right. Otherwise it returns a refusal. The refusal names
// the first missing condition, in this order: the plan, the scope or role, a recent sign-in, an
// organization that is not suspended.
func (p Principal) May(right Right) error {
	g, known := Grants[right]
	switch {
	case !known:
		return Forbidden("unknown right")
	case p.lapsed && !(g.evidence && p.evidence) && p.Role != RoleOperator:
		return errPlan
	}
	if err := p.has(g); err != nil {
		return err
	}
	if p.suspended && p.Role != RoleOperator {
		return errSuspended
	}
	return nil
}

func (p Principal) has(g grant) error {
	switch {
	case p.Role == RoleToken && len(g.scopes) == 0:
		return Forbidden("a signed-in session is required")
	case p.Role == RoleToken && !slices.ContainsFunc(g.scopes, func(scope string) bool { return slices.Contains(p.Scopes, scope) }):
		return policy.Refuse(accounts.CodeInsufficientScope, "", "missing scope "+g.scope())
	case p.Role != RoleToken && len(g.scopes) > 0 && !slices.Contains(g.Roles, p.Role):
		return Forbidden("missing scope " + g.scope())
	case p.Role != RoleToken && !slices.Contains(g.Roles, p.Role):
		return Forbidden("missing role " + strings.Join(slices.DeleteFunc(slices.Clone(g.Roles),
			func(role string) bool { return role == RoleOperator }), " or "))
	case g.fresh && !p.FreshSignIn && p.Role != RoleOperator:
		return ErrSignInAgain
	}
	return nil
}
