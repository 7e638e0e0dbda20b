// Package organizations implements the commands for organizations, their members, roles, rights
// and tokens.
package organizations

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/cache"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Organizations implements the commands for organizations, their members, tokens and rights.
type Organizations struct {
	*ground.Ground
	*accounts.Accounts

	// Forgotten is called when an organization is removed from the caches, so that other packages
	// can remove it from theirs.
	Forgotten func(orgID string)

	organizations cache.Cache[Organization]
	tokens        cache.Cache[organizationToken]
	opened        cache.Cache[string] // day of the last personal.opened, by organization, actor and place
}

// The plans and states of an organization.
const (
	PlanTeam       = "team"
	PlanBusiness   = "business"
	StateActive    = "active"
	StateSuspended = "suspended"
	StateLapsed    = "lapsed"
)

// These values select the decisions whose tool arguments are stored for the reviewer. The
// arguments are encrypted and can be erased.
const (
	ArgumentsOff     = "off"     // no decision
	ArgumentsReviews = "reviews" // decisions that need a review; the default
	ArgumentsAlways  = "always"
)

// OrganizationStream is the stream of an organization's plan, state and members. Each append that
// depends on them has it as a precondition.
const OrganizationStream = "organization"

// Organization is the state of OrganizationStream.
type Organization struct {
	ID, name, Plan, State string
	created               time.Time
	planEnded             time.Time         // time at which a lapsed plan has ended
	arguments             string            // which decisions store the arguments of tools, such as ArgumentsReviews
	members               map[string]string // role by member id (cus_…); replaced and never changed, since states are shared
	precondition          ledger.Precondition
}

// Apply returns the state after one more event of the stream.
func (o Organization) Apply(e ledger.Event) (Organization, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.OrganizationCreated:
		o.ID, o.name, o.Plan, o.State, o.created = e.Tenant, fact.Name, fact.Plan, StateActive, e.Occurred()
		o.arguments = ArgumentsReviews
	case events.OrganizationUpdated:
		return o.update(fact)
	case events.MemberAdded:
		o.members = withMember(o.members, fact.MemberID, fact.Role)
	case events.MemberRemoved:
		o.members = withMember(o.members, fact.MemberID, "")
	}
	return o, err
}

func (o Organization) update(u events.OrganizationUpdated) (Organization, error) {
	if u.Name != "" {
		o.name = u.Name
	}
	if u.Plan != "" {
		o.Plan = u.Plan
	}
	if u.State != "" {
		o.State = u.State
	}
	if u.Arguments != "" {
		o.arguments = u.Arguments
	}
	if u.PlanEndedAt != "" {
		ended, err := time.Parse(time.RFC3339, u.PlanEndedAt)
		if err != nil {
			return o, ledger.ErrTampered
		}
		o.planEnded = ended
	}
	return o, nil
}

// withMember returns a copy of members in which the role of one member is changed. An empty role
// removes the member.
func withMember(members map[string]string, id, role string) map[string]string {
	changed := make(map[string]string, len(members)+1)
	for member, has := range members {
		changed[member] = has
	}
	changed[id] = role
	if role == "" {
		delete(changed, id)
	}
	return changed
}

// forgetOrganization removes an organization, its tokens and its policy from all caches. It is
// called after one of the organization's streams got an event.
func (a *Organizations) forgetOrganization(orgID string) {
	a.organizations.Remove(orgID)
	if a.Forgotten != nil {
		a.Forgotten(orgID)
	}
	a.tokens.Forget(func(t organizationToken) bool { return t.orgID == orgID })
}

// ErrNoOrganization refuses an id that no organization has.
var ErrNoOrganization = policy.Refuse(ground.CodeNotFound, "", "organization not found")

func (a *Organizations) organizationOf(ctx context.Context, orgID string) (Organization, error) {
	if o, ok := a.organizations.Get(orgID); ok {
		return o, nil
	}
	o, _, err := a.ReadOrganization(ctx, orgID)
	if err == nil {
		a.organizations.Put(o.ID, o)
	}
	return o, err
}

// ReadOrganization returns the state of an organization and the stream that it was read from.
func (a *Organizations) ReadOrganization(ctx context.Context, orgID string) (Organization, ledger.History, error) {
	if !strings.HasPrefix(orgID, "org_") {
		return Organization{}, ledger.History{}, ErrNoOrganization
	}
	o, history, err := ground.Fold(ctx, a.Ground, orgID, OrganizationStream, Organization{})
	if err == nil && o.ID == "" {
		err = ErrNoOrganization
	}
	o.precondition = history.Precondition()
	return o, history, err
}

// OrganizationInfo describes an organization to members and to the operator.
type OrganizationInfo struct {
	OrgID       string  `json:"orgId"`
	Name        string  `json:"name"`
	Plan        string  `json:"plan" jsonschema:"enum=team,enum=business"`
	State       string  `json:"state" jsonschema:"enum=active,enum=suspended,enum=lapsed"`
	PlanEndedAt *string `json:"planEndedAt" jsonschema:"nullable"`
	Members     int     `json:"members"`
	Arguments   string  `json:"arguments" jsonschema:"enum=off,enum=reviews,enum=always" jsonschema_description:"Which decisions store the arguments of tools, encrypted and erasable: off (none), reviews (those that need a review) or always."`
	CreatedAt   string  `json:"createdAt" jsonschema:"format=date-time"`
}

func (o Organization) info() OrganizationInfo {
	i := OrganizationInfo{OrgID: o.ID, Name: o.name, Plan: o.Plan, State: o.State, Members: len(o.members), Arguments: o.arguments, CreatedAt: canon.Stamp(o.created)}
	if o.State == StateLapsed {
		ended := canon.Stamp(o.planEnded)
		i.PlanEndedAt = &ended
	}
	return i
}

// Organization returns the description of one organization. It checks no rights.
func (a *Organizations) Organization(ctx context.Context, orgID string) (OrganizationInfo, error) {
	o, _, err := a.ReadOrganization(ctx, orgID)
	return o.info(), ground.Refusal(err)
}

// ListOrganizations returns all organizations of the ledger, the oldest first. It checks no
// rights: only the operator may call it.
func (a *Organizations) ListOrganizations(ctx context.Context) ([]OrganizationInfo, error) {
	tenants, err := a.Ledger.Directory(ctx, events.Organizations)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []OrganizationInfo{}
	for _, tenant := range tenants {
		info, err := a.Organization(ctx, tenant)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	slices.SortStableFunc(list, func(a, b OrganizationInfo) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	return list, nil
}

// CreateOrganization creates an organization with its first owner. It creates a customer for the
// owner's address if there is none. actor is "operator", or the id of the customer whose
// subscription started.
func (a *Organizations) CreateOrganization(ctx context.Context, actor, name, plan, ownerEmail string) (OrganizationInfo, error) {
	if err := ground.CheckText("name", name, ground.MaxName); err != nil {
		return OrganizationInfo{}, err
	}
	if plan != PlanTeam && plan != PlanBusiness {
		return OrganizationInfo{}, policy.Refuse("invalid_enum", "/plan", "plan must be team or business")
	}
	address, err := accounts.CheckEmail(ownerEmail)
	if err != nil {
		return OrganizationInfo{}, err
	}
	owner, err := a.EnsureCustomer(ctx, address)
	if err != nil {
		return OrganizationInfo{}, err
	}
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (OrganizationInfo, error) {
		return a.AppendOrganization(ctx, a.NewID("org_"), actor, name, plan, owner, address)
	})
}

// AppendOrganization appends the events of a new organization and its first owner. It returns
// ErrMoved if the organization exists.
func (a *Organizations) AppendOrganization(ctx context.Context, orgID, actor, name, plan, owner, address string, preconditions ...ledger.Precondition) (OrganizationInfo, error) {
	created, err := canon.Marshal(events.OrganizationCreated{OrgID: orgID, Name: name, Plan: plan})
	if err != nil {
		return OrganizationInfo{}, err
	}
	member, err := a.memberEvent(ctx, orgID, actor, owner, RoleOwner, address)
	if err != nil {
		return OrganizationInfo{}, err
	}
	member.Expect = Unlimited
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: orgID, Events: []ledger.Pending{
		{Stream: OrganizationStream, Expect: ledger.New(), ID: a.NewID("evt_"), Type: events.TypeOrganizationCreated,
			SchemaVersion: 1, Actor: actor, Payload: created},
		member,
	}, Preconditions: preconditions})
	if err != nil {
		return OrganizationInfo{}, err
	}
	return a.Organization(ctx, orgID)
}

// memberEvent returns an event member.added with the address encrypted.
func (a *Organizations) memberEvent(ctx context.Context, orgID, actor, member, role, address string) (ledger.Pending, error) {
	dataKey, err := a.Vault.Subject(ctx, orgID, "email:"+address, a.NewID("sub_"))
	if err != nil {
		return ledger.Pending{}, err
	}
	id := a.NewID("evt_")
	payload, err := a.Vault.Seal(ctx, orgID, id, dataKey, events.MemberAdded{MemberID: member, Role: role, Email: address})
	return ledger.Pending{Stream: OrganizationStream, ID: id, Type: events.TypeMemberAdded, SchemaVersion: 1, Actor: actor, Payload: payload}, err
}
