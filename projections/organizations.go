package projections

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// organizations is the read model that lists the organizations of each member.
var organizations = projection{
	name:    "organizations",
	tables:  []string{"organizations", "organization_members"},
	version: 1,
	handles: events.ShownIn("organizations"),
	apply:   applyOrganizations,
}

func applyOrganizations(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	stored, err := e.Stored() // the members' addresses stay encrypted, because they are not needed
	switch fact := stored.(type) {
	case events.OrganizationCreated:
		_, err = tx.Exec(ctx, `insert into organizations (org_id, name, plan) values ($1, $2, $3)`, e.Tenant, fact.Name, fact.Plan)
	case events.OrganizationUpdated:
		_, err = tx.Exec(ctx, `update organizations set name = coalesce(nullif($2, ''), name), plan = coalesce(nullif($3, ''), plan)
			where org_id = $1`, e.Tenant, fact.Name, fact.Plan)
	case events.MemberAdded:
		_, err = tx.Exec(ctx, `insert into organization_members (org_id, member_id, role) values ($1, $2, $3)
			on conflict (member_id, org_id) do update set role = excluded.role`, e.Tenant, fact.MemberID, fact.Role)
	case events.MemberRemoved:
		_, err = tx.Exec(ctx, `delete from organization_members where org_id = $1 and member_id = $2`, e.Tenant, fact.MemberID)
	}
	return err
}

// Membership is one organization of a member.
type Membership struct {
	OrgID string `json:"orgId"`
	Name  string `json:"name"`
	Plan  string `json:"plan" jsonschema:"enum=team,enum=business"`
	Role  string `json:"role" jsonschema:"enum=owner,enum=admin,enum=developer,enum=auditor"`
}

// Memberships lists the organizations of a member in the order of their ids. It waits until every
// event appended before the call is visible, or returns ErrBehind.
func (p *Projections) Memberships(ctx context.Context, member string) ([]Membership, error) {
	if err := p.waitAll(ctx, organizations.name, "organization"); err != nil {
		return nil, err
	}
	return collect(ctx, p, pgx.RowToStructByPos[Membership], `select o.org_id, o.name, o.plan, m.role
		from readmodels.organization_members m join readmodels.organizations o using (org_id)
		where m.member_id = $1 order by o.org_id`, member)
}
