package organizations

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/assurance"
)

// Principal acts for an organization: a token or a signed-in member.
type Principal struct {
	OrgID, Plan string
	ActorID     string // svco_… with the token's public id, cus_…, or "operator"; the event's actor
	Member      string // cus_… of the member; of a token its owner
	Role        string
	Scopes      []string
	FreshSignIn bool // the session began less than 10 minutes ago
	// Preconditions are the streams of organization and token that the principal was read from.
	// An append for the principal carries them; a read calls Confirm.
	Preconditions []ledger.Precondition

	tokenID   string
	addresses []netip.Prefix // from which the token may be used; none: from anywhere
	suspended bool
	lapsed    bool   // the plan has lapsed
	evidence  bool   // the plan has lapsed, and evidence is still readable
	deciders  int    // how many members may activate and approve
	arguments string // which decisions store the arguments of tools
}

// OwnOnly reports whether the principal sees only the records that its own member or one of the
// member's tokens caused (OwnActors).
func (p Principal) OwnOnly() bool { return p.Role == RoleDeveloper }

// OwnActors returns the actors of the events whose records a principal with OwnOnly sees: the
// member, and every token that the member ever issued or was given.
func (a *Organizations) OwnActors(ctx context.Context, p Principal) ([]string, error) {
	tokens, err := a.tokensOf(ctx, p.OrgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	actors := []string{p.Member}
	for _, t := range tokens {
		if t.member == p.Member || t.createdBy == p.Member {
			actors = append(actors, tokenPrefix+t.id)
		}
	}
	return actors, nil
}

// IsOwn reports whether an actor is the principal's member or one of the member's tokens. A
// person who requested a decision must not approve it.
func (a *Organizations) IsOwn(ctx context.Context, p Principal, actor string) (bool, error) {
	if actor == p.Member {
		return true, nil
	}
	id, isToken := strings.CutPrefix(actor, tokenPrefix)
	if !isToken {
		return false, nil
	}
	t, err := a.readToken(ctx, p.OrgID, id)
	return t.createdBy == p.Member || t.member == p.Member, ground.Refusal(err)
}

// MayActAlone reports whether the principal may activate its own draft, or approve its own
// decision: in a Team in which nobody else could. In Business nobody may.
func (p Principal) MayActAlone() bool { return p.Plan == PlanTeam && p.deciders == 1 }

// KeepsArguments reports whether a decision of this kind stores the arguments of its tool.
func (p Principal) KeepsArguments(decision string) bool {
	return p.arguments == ArgumentsAlways || p.arguments == ArgumentsReviews && decision == assurance.NeedsReview
}

// Allows reports whether the token may be used from a network address.
func (p Principal) Allows(address string) bool {
	if len(p.addresses) == 0 {
		return true
	}
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(p.addresses, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}

// principal returns what is the same for everybody who acts for the organization.
func (o Organization) principal(now time.Time) Principal {
	p := Principal{OrgID: o.ID, Plan: o.Plan, Preconditions: []ledger.Precondition{o.precondition}, suspended: o.State == StateSuspended, arguments: o.arguments}
	p.lapsed = o.State == StateLapsed || o.Plan != PlanTeam && o.Plan != PlanBusiness
	p.evidence = p.lapsed && now.Before(o.planEnded.Add(evidenceReadable))
	for _, role := range o.members {
		if slices.Contains(Grants[RightActivate].Roles, role) {
			p.deciders++
		}
	}
	return p
}

// Confirm reads the streams of a principal again if any of them has moved, and returns the
// principal as it is now: 401 for a token that was revoked, 403 for a person who is no longer a
// member. Every answer without an append needs it.
func (a *Organizations) Confirm(ctx context.Context, p Principal) (Principal, error) {
	for _, g := range p.Preconditions {
		version, err := a.Ledger.Version(ctx, g.Tenant, g.Stream)
		if err != nil {
			return Principal{}, ground.Refusal(err)
		}
		if version != g.Version {
			return a.currentPrincipal(ctx, p)
		}
	}
	return p, nil
}

// Permit checks whether the principal has a right, as May does, and returns the principal. Its
// state may be out of date, and another process may have restored the organization or raised
// the member's role. So before Permit refuses, it reads the streams again.
func (a *Organizations) Permit(ctx context.Context, p Principal, right Right) (Principal, error) {
	if p.May(right) == nil {
		return p, nil
	}
	p, err := a.Confirm(ctx, p)
	if err != nil {
		return Principal{}, err
	}
	return p, p.May(right)
}

// Again returns how a command of a principal is tried again: before each further try the
// principal is read again and must still have the right.
func (a *Organizations) Again(p *Principal, right Right) ground.Tries {
	return ground.Tries{Again: func(ctx context.Context) error {
		now, err := a.currentPrincipal(ctx, *p)
		if err != nil {
			return err
		}
		*p = now
		return p.May(right)
	}}
}

// currentPrincipal reads the principal's streams and returns the principal as it is now.
func (a *Organizations) currentPrincipal(ctx context.Context, p Principal) (Principal, error) {
	a.forgetOrganization(p.OrgID)
	now, err := a.rebuild(ctx, p)
	return now, ground.Refusal(err)
}

func (a *Organizations) rebuild(ctx context.Context, p Principal) (Principal, error) {
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
			return Principal{}, accounts.ErrToken
		}
		now.tokenID, now.addresses = t.id, t.addresses
		now.Preconditions = append(now.Preconditions, t.precondition)
	default:
		role, isMember := o.members[p.Member]
		if !isMember {
			return Principal{}, errOtherCredential
		}
		now.Role = role
	}
	return now, nil
}

// RefuseUnlessMoved returns refused if no stream that the refusal depends on has moved, and
// ErrMoved otherwise. A refusal appends nothing, so no append checks its preconditions.
func (a *Organizations) RefuseUnlessMoved(ctx context.Context, p Principal, preconditions []ledger.Precondition, refused error) error {
	for _, g := range append(preconditions, p.Preconditions...) {
		version, err := a.Ledger.Version(ctx, g.Tenant, g.Stream)
		if err != nil {
			return err
		}
		if version != g.Version {
			return ledger.ErrMoved
		}
	}
	return refused
}
