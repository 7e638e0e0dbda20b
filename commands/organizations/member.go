package organizations

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// MemberInfo describes a member of an organization. Email is empty if the address was erased.
type MemberInfo struct {
	MemberID string `json:"memberId"`
	Email    string `json:"email"`
	Role     string `json:"role" jsonschema:"enum=owner,enum=admin,enum=developer,enum=auditor"`
	Since    string `json:"since" jsonschema:"format=date-time"`
}

var errNoMember = policy.Refuse(ground.CodeNotFound, "", "member not found")

// Members returns an organization's members, ordered by id. Ids follow the time at which a member
// became a customer.
func (a *Organizations) Members(ctx context.Context, p Principal) ([]MemberInfo, error) {
	p, err := a.Permit(ctx, p, RightMembers)
	if err != nil {
		return nil, err
	}
	list, err := a.MembersOf(ctx, p.OrgID)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(list, func(m MemberInfo) bool { return m.Email != "" && m.MemberID != p.Member }) {
		err = a.NotePersonalOpened(ctx, p, "members")
	}
	return list, err
}

// MembersOf returns the members of an organization without checking a right.
func (a *Organizations) MembersOf(ctx context.Context, orgID string) ([]MemberInfo, error) {
	o, history, err := a.ReadOrganization(ctx, orgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []MemberInfo{}
	for _, e := range slices.Backward(history.Events) {
		if e.Type != events.TypeMemberAdded {
			continue
		}
		var added events.MemberAdded
		if err := a.openMember(ctx, e, &added); err != nil {
			return nil, ground.Refusal(err)
		}
		known := slices.ContainsFunc(list, func(m MemberInfo) bool { return m.MemberID == added.MemberID })
		if role := o.members[added.MemberID]; role != "" && !known {
			email, _ := added.Email.(string)
			list = append(list, MemberInfo{added.MemberID, email, role, canon.Stamp(e.Occurred())})
		}
	}
	slices.SortFunc(list, func(a, b MemberInfo) int { return strings.Compare(a.MemberID, b.MemberID) })
	return list, nil
}

// openMember decrypts an event member.added. The address stays empty if it was erased or there is
// no vault.
func (a *Organizations) openMember(ctx context.Context, e ledger.Event, added *events.MemberAdded) error {
	if a.Vault != nil {
		if err := a.Vault.Open(ctx, e, added); err == nil || !errors.Is(err, vault.ErrErased) {
			return err
		}
	}
	return e.Read(added)
}

// AddMember adds a member with a role, or changes the role of a member. Only an owner can add an
// owner or change an owner's role, and the last owner must stay an owner.
func (a *Organizations) AddMember(ctx context.Context, p Principal, email, role string) (MemberInfo, error) {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return MemberInfo{}, err
	}
	if !slices.Contains(Roles, role) {
		return MemberInfo{}, policy.Refuse("invalid_enum", "/role", "role must be owner, admin, developer or auditor")
	}
	address, err := accounts.CheckEmail(email)
	if err != nil {
		return MemberInfo{}, err
	}
	member, err := a.EnsureCustomer(ctx, address)
	if err != nil {
		return MemberInfo{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (MemberInfo, error) {
		o, history, err := a.ReadOrganization(ctx, p.OrgID)
		if err != nil {
			return MemberInfo{}, err
		}
		if err := o.mayChange(p, member, role); err != nil {
			return MemberInfo{}, err
		}
		if len(o.members) >= maxMembers && o.members[member] == "" {
			return MemberInfo{}, policy.Refuse(CodeConflict, "", "organization has too many members")
		}
		pending, err := a.memberEvent(ctx, p.OrgID, p.ActorID, member, role, address)
		if err != nil {
			return MemberInfo{}, err
		}
		pending.Expect = history.At()
		result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: p.OrgID, Events: []ledger.Pending{pending}, Preconditions: p.Preconditions})
		a.forgetOrganization(p.OrgID)
		if err != nil {
			return MemberInfo{}, err
		}
		return MemberInfo{member, address, role, canon.Stamp(result.Events[0].Occurred())}, nil
	})
}

// mayChange returns nil if the principal may give a member this role, and a refusal otherwise. An
// empty role means to remove the member.
func (o Organization) mayChange(p Principal, member, role string) error {
	now := o.members[member]
	if (now == RoleOwner || role == RoleOwner) && p.Role != RoleOwner && p.Role != RoleOperator {
		return Forbidden("missing role owner")
	}
	if now == RoleOwner && role != RoleOwner {
		owners := 0
		for _, has := range o.members {
			if has == RoleOwner {
				owners++
			}
		}
		if owners == 1 {
			return policy.Refuse(CodeConflict, "", "an organization must have at least one owner")
		}
	}
	return nil
}

// RemoveMember removes a member and revokes the member's tokens, with immediate effect.
func (a *Organizations) RemoveMember(ctx context.Context, p Principal, member, reason string) error {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return err
	}
	if reason != "" {
		if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
			return err
		}
	}
	_, err = ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (struct{}, error) {
		o, history, err := a.ReadOrganization(ctx, p.OrgID)
		if err != nil {
			return struct{}{}, err
		}
		if o.members[member] == "" {
			return struct{}{}, errNoMember
		}
		if err := o.mayChange(p, member, ""); err != nil {
			return struct{}{}, err
		}
		pending := []ledger.Pending{{Stream: OrganizationStream, Expect: history.At(), Type: events.TypeMemberRemoved}}
		stored := []any{events.MemberRemoved{MemberID: member, Reason: reason}}
		tokens, err := a.tokensOf(ctx, p.OrgID)
		if err != nil {
			return struct{}{}, err
		}
		now := a.Now()
		for _, t := range tokens {
			if t.member == member && t.live(now) {
				pending = append(pending, ledger.Pending{Stream: tokenStream(t.id), Expect: t.at(), Type: events.TypeOrganizationTokenRevoked})
				stored = append(stored, events.OrganizationTokenRevoked{TokenID: t.id, Reason: "member removed", EffectiveAt: canon.Stamp(now)})
			}
		}
		if len(pending) > ledger.MaxEvents {
			return struct{}{}, policy.Refuse(CodeConflict, "", "the member has too many tokens; revoke them first")
		}
		_, err = a.AppendAs(ctx, p, pending, stored)
		return struct{}{}, err
	})
	return err
}

// OrganizationChange is a change by the operator or by the subscription. Empty fields change
// nothing.
type OrganizationChange struct {
	Name, Plan, State string
	Arguments         string    // which decisions store the arguments of tools, such as ArgumentsReviews
	PlanEnded         time.Time // end of the plan, with StateLapsed; zero means now
	Reason            string
}

// UpdateOrganization changes the name, plan, state or arguments setting of an organization. It
// checks no rights.
func (a *Organizations) UpdateOrganization(ctx context.Context, actor, orgID string, c OrganizationChange) (OrganizationInfo, error) {
	if err := c.check(); err != nil {
		return OrganizationInfo{}, err
	}
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (OrganizationInfo, error) {
		return a.updateOrganization(ctx, Principal{OrgID: orgID, ActorID: actor}, c)
	})
}

// RenameOrganization renames the principal's organization. Members cannot change its plan or
// state; the operator and the subscription do.
func (a *Organizations) RenameOrganization(ctx context.Context, p Principal, name, reason string) (OrganizationInfo, error) {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return OrganizationInfo{}, err
	}
	if err := ground.CheckText("name", name, ground.MaxName); err != nil {
		return OrganizationInfo{}, err
	}
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return OrganizationInfo{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (OrganizationInfo, error) {
		return a.updateOrganization(ctx, p, OrganizationChange{Name: name, Reason: reason})
	})
}

// KeepArguments sets which future decisions of an organization store the arguments of tools.
func (a *Organizations) KeepArguments(ctx context.Context, p Principal, which, reason string) (OrganizationInfo, error) {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return OrganizationInfo{}, err
	}
	change := OrganizationChange{Arguments: which, Reason: reason}
	if err := change.check(); err != nil {
		return OrganizationInfo{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (OrganizationInfo, error) {
		return a.updateOrganization(ctx, p, change)
	})
}

func (a *Organizations) updateOrganization(ctx context.Context, p Principal, c OrganizationChange) (OrganizationInfo, error) {
	o, history, err := a.ReadOrganization(ctx, p.OrgID)
	if err != nil {
		return OrganizationInfo{}, err
	}
	updated := events.OrganizationUpdated{Name: c.Name, Plan: c.Plan, State: c.State, Arguments: c.Arguments, Reason: c.Reason}
	if c.State == StateLapsed {
		ended := c.PlanEnded
		if ended.IsZero() {
			ended = a.Now()
		}
		updated.PlanEndedAt = canon.Stamp(ended)
	}
	appended, err := a.AppendAs(ctx, p, []ledger.Pending{{Stream: OrganizationStream, Expect: history.At(), Type: events.TypeOrganizationUpdated}}, []any{updated})
	if err != nil {
		return OrganizationInfo{}, err
	}
	o, err = o.Apply(appended[0])
	return o.info(), err
}

func (c OrganizationChange) check() error {
	if c.Name != "" {
		if err := ground.CheckText("name", c.Name, ground.MaxName); err != nil {
			return err
		}
	}
	switch {
	case c.Plan != "" && c.Plan != PlanTeam && c.Plan != PlanBusiness:
		return policy.Refuse("invalid_enum", "/plan", "plan must be team or business")
	case c.State != "" && c.State != StateActive && c.State != StateSuspended && c.State != StateLapsed:
		return policy.Refuse("invalid_enum", "/state", "state must be active, suspended or lapsed")
	case c.Arguments != "" && c.Arguments != ArgumentsOff && c.Arguments != ArgumentsReviews && c.Arguments != ArgumentsAlways:
		return policy.Refuse("invalid_enum", "/arguments", "arguments must be off, reviews or always")
	case c.Name == "" && c.Plan == "" && c.State == "" && c.Arguments == "":
		return policy.Refuse("missing_field", "", "name, plan, state or arguments is required")
	}
	return ground.CheckText("reason", c.Reason, ground.MaxReason)
}

// Unlimited is the expectation for an append to a stream of any version.
var Unlimited = ledger.Any(math.MaxInt64)
