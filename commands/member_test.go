package commands_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// memberOf adds a member with a role and returns the member's session.
func memberOf(t *testing.T, a *commands.App, orgID, email, role string) organizations.Principal {
	t.Helper()
	m, err := a.AddMember(t.Context(), operatorOf(t, a, orgID), email, role)
	if err != nil {
		t.Fatal(err)
	}
	return session(t, a, orgID, m.MemberID)
}

func session(t *testing.T, a *commands.App, orgID, member string) organizations.Principal {
	t.Helper()
	p, err := a.SessionPrincipal(t.Context(), orgID, member, a.Clock())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyAnOwnerMakesAnOwner(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	orgID, _ := newOrganization(t, a, "business")
	admin := memberOf(t, a, orgID, "bob@example.com", "admin")
	_, err := a.AddMember(ctx, admin, "bob@example.com", "owner")
	wantRefusal(t, err, "forbidden", "missing role owner")
	_, err = a.AddMember(ctx, admin, "ada@example.com", "auditor")
	wantRefusal(t, err, "forbidden", "missing role owner")
	owner, err := a.EnsureCustomer(ctx, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, a.RemoveMember(ctx, admin, owner, ""), "forbidden", "missing role owner")
	if _, err := a.AddMember(ctx, admin, "carl@example.com", "developer"); err != nil {
		t.Error(err)
	}
	if _, err := a.AddMember(ctx, session(t, a, orgID, owner), "bob@example.com", "owner"); err != nil {
		t.Error(err)
	}
	_, err = a.AddMember(ctx, session(t, a, orgID, owner), "x@example.com", "root")
	wantRefusal(t, err, "invalid_enum", "role must be owner, admin, developer or auditor")
	clean(t, a)
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	apps := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	a, ctx := apps[0], t.Context()
	orgID, _ := newOrganization(t, a, "business")
	ada, err := a.EnsureCustomer(ctx, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	const last = "an organization must have at least one owner"
	wantRefusal(t, a.RemoveMember(ctx, session(t, a, orgID, ada), ada, ""), "conflict", last)
	_, err = a.AddMember(ctx, session(t, a, orgID, ada), "ada@example.com", "admin")
	wantRefusal(t, err, "conflict", last)
	// If two owners remove each other at the same time on two nodes, one of them remains.
	bob := memberOf(t, a, orgID, "bob@example.com", "owner")
	pair := []organizations.Principal{session(t, apps[0], orgID, ada), session(t, apps[1], orgID, bob.Member)}
	victims := []string{bob.Member, ada}
	var all sync.WaitGroup
	for n := range pair {
		all.Go(func() { _ = apps[n].RemoveMember(ctx, pair[n], victims[n], "") })
	}
	all.Wait()
	members, err := a.Members(ctx, operatorOf(t, apps[1], orgID))
	if err != nil || len(members) != 1 || members[0].Role != "owner" {
		t.Errorf("left: %+v, %v", members, err)
	}
	clean(t, a)
}

func TestWhoLeavesHoldsNoToken(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	orgID, _ := newOrganization(t, a, "business")
	admin := memberOf(t, a, orgID, "bob@example.com", "admin")
	own := newToken(t, a, admin)
	of, err := a.IssueToken(ctx, operatorOf(t, a, orgID), organizations.TokenOrder{Member: admin.Member})
	if err != nil {
		t.Fatal(err)
	}
	others := newToken(t, a, operatorOf(t, a, orgID))
	if err := a.RemoveMember(ctx, operatorOf(t, a, orgID), admin.Member, ""); err != nil {
		t.Fatal(err)
	}
	wantToken(t, a, own.Token, false)
	wantToken(t, a, of.Token, false)
	wantToken(t, a, others.Token, true)
	_, err = a.SessionPrincipal(ctx, orgID, admin.Member, a.Clock())
	wantRefusal(t, err, "forbidden", "organization credential required")
	wantRefusal(t, a.RemoveMember(ctx, operatorOf(t, a, orgID), admin.Member, ""), "not_found", "member not found")
	clean(t, a)
}

func TestMembersShowTheNewestRoleOnce(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	orgID, _ := newOrganization(t, a, "team")
	memberOf(t, a, orgID, "Bob@Example.com", "auditor")
	memberOf(t, a, orgID, "bob@example.com", "admin")
	members, err := a.Members(t.Context(), operatorOf(t, a, orgID))
	if err != nil || len(members) != 2 || members[1].Email != "bob@example.com" || members[1].Role != "admin" {
		t.Errorf("%+v, %v", members, err)
	}
}

// Members, tokens and policies of another organization are reported as not found.
func TestOrganizationsAreApart(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	mine, _ := newOrganization(t, a, "business")
	yours, other := newOrganization(t, a, "business")
	token := newToken(t, a, other)
	member := memberOf(t, a, yours, "bob@example.com", "developer")
	draft, err := a.DraftPolicy(ctx, other, []byte(`{"policyId":"default","requireHttps":true}`), "")
	if err != nil {
		t.Fatal(err)
	}
	operator := operatorOf(t, a, mine)
	for name, unknown := range map[string][2]string{
		"token":  {token.TokenID, "000000000000"},
		"member": {member.Member, "cus_01JD3Z8W5T0000000000000000"},
		"draft":  {draft.DraftID, "evt_01JD3Z8W5T0000000000000000"},
	} {
		var texts []string
		for _, id := range unknown {
			var err error
			switch name {
			case "token":
				err = a.RevokeToken(ctx, operator, id, "")
			case "member":
				err = a.RemoveMember(ctx, operator, id, "")
			case "draft":
				_, err = a.ActivatePolicy(ctx, operator, id, "try")
			}
			if err == nil {
				t.Fatalf("%s of another organization was changed", name)
			}
			texts = append(texts, err.Error())
		}
		if texts[0] != texts[1] || !strings.HasSuffix(texts[0], "not found") {
			t.Errorf("%s: another organization's is told apart from an unknown one: %q", name, texts)
		}
	}
	_, err = a.SessionPrincipal(ctx, mine, member.Member, a.Clock())
	wantRefusal(t, err, "forbidden", "organization credential required")
	for _, bad := range []string{"", "service", "org_", "org_01JD3Z8W5T0000000000000000", mine + " "} {
		_, err := a.Operator(ctx, bad)
		wantRefusal(t, err, "not_found", "organization not found")
	}
	wantToken(t, a, token.Token, true)
}

func TestOneCustomerPerAddress(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	apps := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	ids := make([]string, 8)
	var all sync.WaitGroup
	for n := range ids {
		all.Go(func() {
			var err error
			if ids[n], err = apps[n%2].EnsureCustomer(t.Context(), "ada@example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("customers %q", ids)
		}
	}
	clean(t, apps[0])
}

func TestOrganizationIsChecked(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	for _, bad := range []struct{ name, plan, owner, message string }{
		{"", "team", "ada@example.com", "name must be one line of 1 to 200 characters"},
		{"a\nb", "team", "ada@example.com", "name must be one line of 1 to 200 characters"},
		{"Acme", "free", "ada@example.com", "plan must be team or business"},
		{"Acme", "team", "ada@example.com\r\nBcc: eve@example.com", "email must be one e-mail address of at most 254 characters"},
		{"Acme", "team", "Ada <ada@example.com>", "email must be one e-mail address of at most 254 characters"},
	} {
		_, err := a.CreateOrganization(ctx, "operator", bad.name, bad.plan, bad.owner)
		if err == nil || err.Error() != bad.message {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	orgID, _ := newOrganization(t, a, "team")
	for _, bad := range []organizations.OrganizationChange{{Reason: "none"}, {State: "asleep", Reason: "x"}, {Plan: "free", Reason: "x"}, {State: "active"}} {
		if _, err := a.UpdateOrganization(ctx, "operator", orgID, bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	info, err := a.UpdateOrganization(ctx, "operator", orgID, organizations.OrganizationChange{Name: "Acme 2", Plan: "business", Reason: "upgrade"})
	if err != nil || info.Name != "Acme 2" || info.Plan != "business" || info.State != "active" {
		t.Errorf("%+v, %v", info, err)
	}
	list, err := a.ListOrganizations(ctx)
	if err != nil || len(list) != 1 || list[0] != info {
		t.Errorf("%+v, %v", list, err)
	}
}
