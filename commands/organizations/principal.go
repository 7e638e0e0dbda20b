package organizations

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/assurance"
)

// Principal is who acts for an organization: a token, a signed-in member or the operator.
type Principal struct {
	OrgID, Plan string
	ActorID     string // actor of the principal's events: svco_ and the token's public id, a member's id (cus_…), or "operator"
	Member      string // id (cus_…) of the member, or of the owner of the token
	Role        string
	Scopes      []string
	FreshSignIn bool // the member signed in less than freshSignIn ago
	// Preconditions are the streams of the organization and token from which the principal was
	// read. Each append for the principal has them; a command that only reads calls Confirm.
	Preconditions []ledger.Precondition

	tokenID   string
	addresses []netip.Prefix // networks from which the token may be used; empty means any
	suspended bool
	lapsed    bool   // the organization has no paid plan, or the plan has ended
	evidence  bool   // the plan has ended, and evidence is still readable
	deciders  int    // number of members who may activate and approve
	arguments string // which decisions store the arguments of tools, such as ArgumentsReviews
}

// OwnOnly reports whether the principal may see only the records of its own member and of that
// member's tokens (OwnActors).
func (p Principal) OwnOnly() bool { return p.Role == RoleDeveloper }

// OwnActors returns the actors whose records a principal with OwnOnly may see: the member, and all
// tokens that the member has issued or been given, even if they are revoked.
func (a *Organizations) OwnActors(ctx context.Context, p Principal) ([]string, error) {
	tokens, err := a.tokensOf(ctx, p.OrgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	actors := []string{p.Member}
	for _, t := range tokens {
		if t.member == p.Member || t.createdBy == p.Member {
			actors = append(actors, TokenActor(t.id))
		}
	}
	return actors, nil
}

// IsOwn reports whether an actor is the principal's member or one of that member's tokens, so that
// members do not approve their own requests.
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

// MayActAlone reports whether the principal may activate an own draft or approve an own request.
// This is allowed on the plan team if no other member has the right, and never on the plan
// business.
func (p Principal) MayActAlone() bool { return p.Plan == PlanTeam && p.deciders == 1 }

// KeepsArguments reports whether a decision with this result stores the arguments of its tool.
func (p Principal) KeepsArguments(decision string) bool {
	return p.arguments == ArgumentsAlways || p.arguments == ArgumentsReviews && decision == assurance.NeedsReview
}

// Allows reports whether the principal may act from this IP address. A token may be restricted to
// networks.
func (p Principal) Allows(address string) bool {
	if len(p.addresses) == 0 {
		return true
	}
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(p.addresses, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}

// principal returns the fields of a principal that follow from the organization alone.
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

// Confirm returns the principal in its current state. It reads the principal's streams again if
// one of them has new events. It returns the refusal unauthorized if the token was revoked, and
// forbidden if the member was removed. Each command that answers without an append must call it.
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

// Permit returns nil as error if the principal has a right, and the refusal of May otherwise. The
// principal may be outdated, for example because its role was raised; so Permit confirms it before
// it refuses.
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

// Again returns the retry rule for a command of a principal: before each further try, the
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

// currentPrincipal returns the principal in its current state, read without the cache.
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
			return Principal{}, ErrToken
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

// RefuseUnlessMoved returns refused if none of the streams that the refusal depends on has moved,
// and ErrMoved otherwise, so that the command is tried again. It is needed because a refusal
// appends nothing, and only an append checks preconditions.
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
