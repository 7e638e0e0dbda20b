package organizations

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
)

// Roles of members, and the roles of two principals who are not members: a bearer token, and
// the operator at the command line.
const (
	RoleOwner     = "owner"
	RoleAdmin     = "admin"
	RoleDeveloper = "developer"
	RoleAuditor   = "auditor"
	RoleToken     = "token"
	RoleOperator  = "operator"
)

// Roles lists the roles that a member may have, those with the most rights first.
var Roles = []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor}

// Scopes a token may have.
const (
	ScopeDecide  = "assurance:decide"
	ScopeReceipt = "assurance:receipt"
	ScopeRead    = "assurance:read"
	ScopeExport  = "export:read"
	ScopeDraft   = "policy:draft"
)

// Scopes lists every scope of a token.
var Scopes = []string{ScopeDecide, ScopeReceipt, ScopeRead, ScopeExport, ScopeDraft}

// Right names an action that a principal needs permission for.
type Right string

// The rights within an organization.
const (
	RightDecide   Right = "decide"
	RightReceipt  Right = "bind receipt"
	RightRead     Right = "read history" // a developer sees only their own records: Principal.OwnOnly
	RightExport   Right = "export"
	RightDraft    Right = "draft policy"
	RightPolicies Right = "read policies"
	RightActivate Right = "activate policy"
	RightMembers  Right = "read members and tokens"
	RightManage   Right = "change members and tokens"
	RightApprove  Right = "resolve a decision"
	RightErase    Right = "erase a subject"
)

// grant describes who has a right.
type grant struct {
	Roles    []string
	scopes   []string // each of which gives a token the right; none: no token has it
	fresh    bool     // only within 10 minutes of signing in
	evidence bool     // remains for 90 days after the plan has ended
}

// Grants is the only table of roles, scopes and rights. The checks read it, and so does the
// test of every combination.
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

// ScopeOf returns the scope with which a token has a right; empty if no token has it.
func ScopeOf(right Right) string { return Grants[right].scope() }

func (g grant) scope() string {
	if len(g.scopes) == 0 {
		return ""
	}
	return g.scopes[0]
}

// RoleMay reports whether a role has a right, as far as the role alone decides.
func RoleMay(role string, right Right) bool { return slices.Contains(Grants[right].Roles, role) }

// Codes of refusals about credentials and organizations.
const (
	CodeForbidden      = "forbidden"
	CodeConflict       = "conflict"
	CodeNoActivePolicy = "no_active_policy"
)

// ErrSignInAgain is the refusal if a recent sign-in is required.
var ErrSignInAgain = Forbidden("sign in again to do this")

// May returns nil if the principal has a right, and otherwise the 403 with the first thing that
// is missing: the plan, the scope or role, a recent sign-in; or that the organization is
// suspended.
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
