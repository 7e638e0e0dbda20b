package commands

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Roles of members, and the two that are not members': a bearer token, and the
// operator at the command line.
const (
	RoleOwner     = "owner"
	RoleAdmin     = "admin"
	RoleDeveloper = "developer"
	RoleAuditor   = "auditor"
	RoleToken     = "token"
	RoleOperator  = "operator"
)

// Roles lists the roles a member may have, the mightiest first.
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

// Right is what a principal may want to do.
type Right string

// The rights within an organization.
const (
	RightDecide   Right = "decide"
	RightReceipt  Right = "bind receipt"
	RightRead     Right = "read history" // a developer sees the own records only: Principal.OwnOnly
	RightExport   Right = "export"
	RightDraft    Right = "draft policy"
	RightPolicies Right = "read policies"
	RightActivate Right = "activate policy"
	RightMembers  Right = "read members and tokens"
	RightManage   Right = "change members and tokens"
	RightApprove  Right = "resolve a decision"
	RightErase    Right = "erase a subject"
)

// grant says who has a right.
type grant struct {
	roles    []string
	scopes   []string // of a token, each of which is enough; none: no token has it
	fresh    bool     // only within 10 minutes of signing in
	evidence bool     // stays open for 90 days after the plan has ended
}

// grants is the one table of role or scope x right: the checks, and the test
// that walks every cell, read it.
var grants = map[Right]grant{
	RightDecide:   {roles: []string{RoleOwner, RoleAdmin, RoleDeveloper}, scopes: []string{ScopeDecide}},
	RightReceipt:  {roles: []string{RoleOwner, RoleAdmin, RoleDeveloper}, scopes: []string{ScopeReceipt}},
	RightRead:     {roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor, RoleOperator}, scopes: []string{ScopeRead}, evidence: true},
	RightExport:   {roles: []string{RoleOwner, RoleAdmin, RoleAuditor, RoleOperator}, scopes: []string{ScopeExport}, evidence: true},
	RightDraft:    {roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleOperator}, scopes: []string{ScopeDraft}},
	RightPolicies: {roles: []string{RoleOwner, RoleAdmin, RoleDeveloper, RoleAuditor, RoleOperator}, scopes: []string{ScopeRead, ScopeDraft}, evidence: true},
	RightActivate: {roles: []string{RoleOwner, RoleAdmin, RoleOperator}, fresh: true},
	RightMembers:  {roles: []string{RoleOwner, RoleAdmin, RoleAuditor, RoleOperator}},
	RightManage:   {roles: []string{RoleOwner, RoleAdmin, RoleOperator}, fresh: true},
	RightApprove:  {roles: []string{RoleOwner, RoleAdmin}},
	RightErase:    {roles: []string{RoleOwner, RoleOperator}, fresh: true},
}

// ScopeOf is the least scope with which a token has a right; empty if no token has
// it.
func ScopeOf(right Right) string { return grants[right].scope() }

func (g grant) scope() string {
	if len(g.scopes) == 0 {
		return ""
	}
	return g.scopes[0]
}

// RoleMay says whether a role has a right, as far as the role alone decides.
func RoleMay(role string, right Right) bool { return slices.Contains(grants[right].roles, role) }

// Codes of refusals about credentials and organizations.
const (
	CodeForbidden      = "forbidden"
	CodeConflict       = "conflict"
	CodeNoActivePolicy = "no_active_policy"
)

func forbidden(message string) error { return policy.Refuse(CodeForbidden, "", message) }

// ErrNoOrganizationCredential is a request without any credential.
var ErrNoOrganizationCredential = policy.Refuse(CodeUnauthorized, "", "authentication required")

var (
	errToken           = policy.Refuse(CodeUnauthorized, "", "invalid or expired token")
	errOtherCredential = forbidden("organization credential required")
	errOtherKind       = policy.Refuse(CodeInsufficientScope, "", "organization credential required")
	errPlan            = forbidden("organization plan required")
	errSuspended       = forbidden("organization is suspended")
)

// Principal is who acts for an organization: a token or a signed-in member.
type Principal struct {
	OrgID, Plan string
	ActorID     string // svco_… with the token's public id, cus_…, or "operator"; the event's actor
	Member      string // cus_… of the member; for a token whose it is
	Role        string
	Scopes      []string
	FreshSignIn bool // a session younger than 10 minutes since sign-in
	// Guards are the streams of organization and token this rests on. Whoever
	// appends for the principal names them; whoever only reads asks Confirm.
	Guards []ledger.Guard

	tokenID   string
	addresses []netip.Prefix // from which the token may come; none: from anywhere
	suspended bool
	lapsed    bool   // the plan is not in force
	evidence  bool   // and the days in which evidence stays readable are not over
	deciders  int    // how many members may activate and approve
	arguments string // which decisions keep the arguments of tools
}

// May answers whether the principal has a right: nil, or the 403 that says what
// is missing first: the plan, the scope or role, a fresh sign-in; or that the
// organization is suspended.
func (p Principal) May(right Right) error {
	g, known := grants[right]
	switch {
	case !known:
		return forbidden("unknown right")
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
		return forbidden("a signed-in session is required")
	case p.Role == RoleToken && !slices.ContainsFunc(g.scopes, func(scope string) bool { return slices.Contains(p.Scopes, scope) }):
		return policy.Refuse(CodeInsufficientScope, "", "missing scope "+g.scope())
	case p.Role != RoleToken && len(g.scopes) > 0 && !slices.Contains(g.roles, p.Role):
		return forbidden("missing scope " + g.scope())
	case p.Role != RoleToken && !slices.Contains(g.roles, p.Role):
		return forbidden("missing role " + strings.Join(slices.DeleteFunc(slices.Clone(g.roles),
			func(role string) bool { return role == RoleOperator }), " or "))
	case g.fresh && !p.FreshSignIn && p.Role != RoleOperator:
		return forbidden("sign in again to do this")
	}
	return nil
}

// OwnOnly says whether the principal sees only the records that the own member
// or one of the member's tokens caused: OwnActors names them.
func (p Principal) OwnOnly() bool { return p.Role == RoleDeveloper }

// OwnActors are the event actors whose records a principal with OwnOnly sees:
// the member, and every token the member ever issued or was given.
func (a *App) OwnActors(ctx context.Context, p Principal) ([]string, error) {
	tokens, err := a.tokensOf(ctx, p.OrgID)
	if err != nil {
		return nil, refusal(err)
	}
	actors := []string{p.Member}
	for _, t := range tokens {
		if t.member == p.Member || t.createdBy == p.Member {
			actors = append(actors, tokenPrefix+t.id)
		}
	}
	return actors, nil
}

// IsOwn says whether an actor is the principal's member or one of its tokens:
// who asked for a decision must not approve it.
func (a *App) IsOwn(ctx context.Context, p Principal, actor string) (bool, error) {
	if actor == p.Member {
		return true, nil
	}
	id, isToken := strings.CutPrefix(actor, tokenPrefix)
	if !isToken {
		return false, nil
	}
	t, err := a.readToken(ctx, p.OrgID, id)
	return t.createdBy == p.Member || t.member == p.Member, refusal(err)
}

// MayActAlone says whether the principal may activate an own draft, or approve
// an own decision: on a Team with nobody else who could. Business never.
func (p Principal) MayActAlone() bool { return p.Plan == PlanTeam && p.deciders == 1 }

// keepsArguments says whether a decision of this kind keeps the arguments of its
// tool.
func (p Principal) keepsArguments(decision string) bool {
	return p.arguments == ArgumentsAlways || p.arguments == ArgumentsReviews && decision == assurance.NeedsReview
}

// Allows says whether the token may be used from a network address.
func (p Principal) Allows(address string) bool {
	if len(p.addresses) == 0 {
		return true
	}
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(p.addresses, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}

// AuthenticateOrganization returns the principal behind a bearer token. A
// malformed, unknown, expired or revoked one is CodeUnauthorized, in one text and
// after one comparison; a good credential of another kind, an API key or an
// agent's access token, is CodeInsufficientScope. What
// it knows of token and organization may be a moment old: an append names the
// Guards, a read asks Confirm.
func (a *App) AuthenticateOrganization(ctx context.Context, bearer string) (Principal, error) {
	if strings.HasPrefix(bearer, keyPrefix) {
		if _, err := a.Authenticate(ctx, bearer); err != nil {
			if errors.Is(err, errUnauthorized) {
				err = errToken
			}
			return Principal{}, err
		}
		return Principal{}, errOtherKind
	}
	if strings.HasPrefix(bearer, tokenPrefix) {
		p, err := a.tokenPrincipal(ctx, bearer)
		return p, refusal(err)
	}
	if _, err := a.AuthenticateAgent(ctx, bearer); err != nil {
		return Principal{}, err
	}
	return Principal{}, errOtherKind
}

// SessionPrincipal returns the principal of a signed-in member. Not a member (any
// more) is CodeForbidden.
func (a *App) SessionPrincipal(ctx context.Context, orgID, member string, signedIn time.Time) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, refusal(err)
	}
	role, isMember := o.members[member]
	if !isMember { // but perhaps has become one elsewhere
		a.forgetOrganization(orgID)
		if o, err = a.organizationOf(ctx, orgID); err != nil {
			return Principal{}, refusal(err)
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

// Operator is the command line, which may do for an organization what its owner
// may but for deciding and approving. It is recorded as such.
func (a *App) Operator(ctx context.Context, orgID string) (Principal, error) {
	o, err := a.organizationOf(ctx, orgID)
	if err != nil {
		return Principal{}, refusal(err)
	}
	p := o.principal(a.Clock())
	p.ActorID, p.Member, p.Role = "operator", "operator", RoleOperator
	return p, nil
}

// principal is what the organization says about anybody who acts for it.
func (o organization) principal(now time.Time) Principal {
	p := Principal{OrgID: o.id, Plan: o.plan, Guards: []ledger.Guard{o.guard}, suspended: o.state == StateSuspended, arguments: o.arguments}
	p.lapsed = o.state == StateLapsed || o.plan != PlanTeam && o.plan != PlanBusiness
	p.evidence = p.lapsed && now.Before(o.planEnded.Add(evidenceReadable))
	for _, role := range o.members {
		if slices.Contains(grants[RightActivate].roles, role) {
			p.deciders++
		}
	}
	return p
}

// Confirm reads again what a principal rests on if any of it has moved, and
// returns the principal of now: 401 for a token revoked since, 403 for a member
// who is none any more. Every answer that appends nothing needs it.
func (a *App) Confirm(ctx context.Context, p Principal) (Principal, error) {
	for _, g := range p.Guards {
		version, err := a.Ledger.Version(ctx, g.Tenant, g.Stream)
		if err != nil {
			return Principal{}, refusal(err)
		}
		if version != g.Version {
			return a.currentPrincipal(ctx, p)
		}
	}
	return p, nil
}

// Permit answers whether the principal has a right, as May does, and returns it.
// What is known of it may be a moment old, and another process may have restored
// the organization, or raised the member's role: a refusal is given only after
// the streams it rests on were read again.
func (a *App) Permit(ctx context.Context, p Principal, right Right) (Principal, error) {
	if p.May(right) == nil {
		return p, nil
	}
	p, err := a.Confirm(ctx, p)
	if err != nil {
		return Principal{}, err
	}
	return p, p.May(right)
}

// currentPrincipal is the principal as its streams are now.
func (a *App) currentPrincipal(ctx context.Context, p Principal) (Principal, error) {
	a.forgetOrganization(p.OrgID)
	now, err := a.rebuild(ctx, p)
	return now, refusal(err)
}

func (a *App) rebuild(ctx context.Context, p Principal) (Principal, error) {
	o, err := a.organizationOf(ctx, p.OrgID)
	if err != nil {
		return Principal{}, err
	}
	now := o.principal(a.Clock())
	now.ActorID, now.Member, now.Role, now.Scopes, now.FreshSignIn = p.ActorID, p.Member, p.Role, p.Scopes, p.FreshSignIn
	switch p.Role {
	case RoleOperator:
	case RoleToken:
		t, err := a.token(ctx, p.OrgID, p.tokenID)
		if err != nil {
			return Principal{}, err
		}
		if !t.live(a.Clock()) {
			return Principal{}, errToken
		}
		now.tokenID, now.addresses = t.id, t.addresses
		now.Guards = append(now.Guards, t.guard)
	default:
		role, isMember := o.members[p.Member]
		if !isMember {
			return Principal{}, errOtherCredential
		}
		now.Role = role
	}
	return now, nil
}

// attemptAs is attempt for a principal: when a stream has moved, the principal
// is read again and must still have the right.
func attemptAs[T any](ctx context.Context, a *App, p Principal, right Right, try func(context.Context, Principal) (T, error)) (T, error) {
	first := true
	return attempt(ctx, a, func(ctx context.Context) (T, error) {
		if !first {
			var none T
			var err error
			if p, err = a.currentPrincipal(ctx, p); err != nil {
				return none, err
			}
			if err := p.May(right); err != nil {
				return none, err
			}
		}
		first = false
		return try(ctx, p)
	})
}
