package projections_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/projections"
)

// TestMemberships checks the organizations of a member after changes, and again after a rebuild.
func TestMemberships(t *testing.T) {
	t.Parallel()
	a, _ := newApp(t)
	ctx := t.Context()
	p := start(t, a.Ledger)
	one, err := a.CreateOrganization(ctx, "operator", "One", "team", "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	two, err := a.CreateOrganization(ctx, "operator", "Two", "team", "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	operator := func() organizations.Principal {
		t.Helper()
		who, err := a.Operator(ctx, two.OrgID)
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	ada, err := a.AddMember(ctx, operator(), "ada@example.com", "auditor")
	if err != nil {
		t.Fatal(err)
	}
	if ada, err = a.AddMember(ctx, operator(), "ada@example.com", "admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.UpdateOrganization(ctx, "operator", two.OrgID, organizations.OrganizationChange{Plan: "business", Reason: "more"}); err != nil {
		t.Fatal(err)
	}
	want := func(p *projections.Projections, list ...projections.Membership) {
		t.Helper()
		got, err := p.Memberships(ctx, ada.MemberID)
		if diff := cmp.Diff(append([]projections.Membership{}, list...), got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	first := projections.Membership{OrgID: one.OrgID, Name: "One", Plan: "team", Role: "owner"}
	second := projections.Membership{OrgID: two.OrgID, Name: "Two", Plan: "business", Role: "admin"}
	want(p, first, second)
	if err := a.RemoveMember(ctx, operator(), ada.MemberID, ""); err != nil {
		t.Fatal(err)
	}
	want(p, first)
	if got, err := p.Memberships(ctx, "cus_unknown"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("of nobody: %v, %v", got, err)
	}
	p.Close()
	if _, err := a.Ledger.Pool().Exec(ctx, `update projection_checkpoint set version = 0 where name = 'organizations'`); err != nil {
		t.Fatal(err)
	}
	want(start(t, a.Ledger), first)
}
