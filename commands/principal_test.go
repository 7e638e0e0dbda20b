package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// cells is the table of rights, written here independently of the code: for each right, the roles
// and token scopes that have it.
var cells = map[organizations.Right]string{
	organizations.RightDecide:   "owner admin developer assurance:decide",
	organizations.RightReceipt:  "owner admin developer assurance:receipt",
	organizations.RightRead:     "owner admin developer auditor operator assurance:read",
	organizations.RightExport:   "owner admin auditor operator export:read",
	organizations.RightDraft:    "owner admin developer operator policy:draft",
	organizations.RightPolicies: "owner admin developer auditor operator assurance:read policy:draft",
	organizations.RightActivate: "owner admin operator",
	organizations.RightMembers:  "owner admin auditor operator",
	organizations.RightManage:   "owner admin operator",
	organizations.RightApprove:  "owner admin",
	organizations.RightErase:    "owner operator",
}

// principals returns one principal of each kind, by its name in the table.
func principals() map[string]organizations.Principal {
	all := map[string]organizations.Principal{}
	for _, role := range append([]string{organizations.RoleOperator}, organizations.Roles...) {
		all[role] = organizations.Principal{Role: role, FreshSignIn: true}
	}
	for _, scope := range organizations.Scopes {
		all[scope] = organizations.Principal{Role: organizations.RoleToken, Scopes: []string{scope}, FreshSignIn: true}
	}
	return all
}

func TestEveryCellOfTheRoleTable(t *testing.T) {
	t.Parallel()
	for right, who := range cells {
		has := strings.Fields(who)
		for word, p := range principals() {
			want := false
			for _, w := range has {
				want = want || w == word
			}
			if err := p.May(right); (err == nil) != want {
				t.Errorf("%s, %s: got %v, want allowed %v", word, right, err, want)
			}
		}
		if err := (organizations.Principal{}).May(right); err == nil {
			t.Errorf("nobody may %s", right)
		}
		all := organizations.Principal{Role: organizations.RoleToken, Scopes: organizations.Scopes}
		if hasScope := strings.Contains(who, ":"); (all.May(right) == nil) != hasScope {
			t.Errorf("a token with every scope and %s: %v", right, all.May(right))
		}
	}
	if err := (organizations.Principal{Role: organizations.RoleOwner}).May("own the moon"); err == nil {
		t.Error("an unknown right was granted")
	}
}

func TestWhatChangesRightsNeedsAFreshSignIn(t *testing.T) {
	t.Parallel()
	fresh := map[organizations.Right]bool{organizations.RightActivate: true, organizations.RightManage: true, organizations.RightErase: true}
	for right := range cells {
		err := organizations.Principal{Role: organizations.RoleOwner}.May(right)
		if fresh[right] {
			wantRefusal(t, err, "forbidden", "sign in again to do this")
		} else if err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
}

func TestRefusalsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	auditor, token := organizations.Principal{Role: organizations.RoleAuditor}, organizations.Principal{Role: organizations.RoleToken}
	wantRefusal(t, auditor.May(organizations.RightDecide), "forbidden", "missing scope assurance:decide")
	wantRefusal(t, token.May(organizations.RightRead), "insufficient_scope", "missing scope assurance:read")
	wantRefusal(t, token.May(organizations.RightActivate), "forbidden", "a signed-in session is required")
	wantRefusal(t, auditor.May(organizations.RightManage), "forbidden", "missing role owner or admin")
	wantRefusal(t, auditor.May(organizations.RightErase), "forbidden", "missing role owner")
}

// TestPlanStates takes one organization through all plan states, with a token that has every
// scope.
func TestPlanStates(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	orgID, operator := newOrganization(t, a, "team")
	token := newToken(t, a, operator, organizations.Scopes...)
	change := func(state string) {
		t.Helper()
		if _, err := a.UpdateOrganization(t.Context(), "operator", orgID, organizations.OrganizationChange{State: state, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	may := func(right organizations.Right) error {
		t.Helper()
		p, err := a.AuthenticateOrganization(t.Context(), token.Token)
		if err != nil {
			t.Fatal(err)
		}
		return p.May(right)
	}
	evidence := []organizations.Right{organizations.RightRead, organizations.RightExport, organizations.RightPolicies}
	rest := []organizations.Right{organizations.RightDecide, organizations.RightReceipt, organizations.RightDraft}
	want := func(rights []organizations.Right, message string) {
		t.Helper()
		for _, right := range rights {
			if err := may(right); message == "" && err != nil {
				t.Errorf("%s: %v", right, err)
			} else if message != "" {
				wantRefusal(t, err, "forbidden", message)
			}
		}
	}
	want(append(evidence, rest...), "")
	change("suspended")
	want(append(evidence, rest...), "organization is suspended")
	change("lapsed")
	want(rest, "organization plan required")
	want(evidence, "")
	c.Add(90*24*time.Hour - time.Second)
	// The token has expired by now, but the session and the operator are still valid.
	operator = operatorOf(t, a, orgID)
	if err := operator.May(organizations.RightExport); err != nil {
		t.Errorf("the operator exports for a lapsed organization: %v", err)
	}
	members, err := a.Members(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	session := func() organizations.Principal {
		t.Helper()
		p, err := a.SessionPrincipal(t.Context(), orgID, members[0].MemberID, c.Now())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := session().May(organizations.RightRead); err != nil {
		t.Errorf("history on the last of the 90 days: %v", err)
	}
	c.Add(time.Second)
	wantRefusal(t, session().May(organizations.RightRead), "forbidden", "organization plan required")
	change("active")
	if err := session().May(organizations.RightDecide); err != nil {
		t.Errorf("after resuming: %v", err)
	}
	clean(t, a)
}

func TestWhoActsAlone(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	for plan, want := range map[string]bool{"team": true, "business": false} {
		orgID, operator := newOrganization(t, a, plan)
		owner, err := a.AddMember(ctx, operator, "ada@example.com", "owner")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.AddMember(ctx, operatorOf(t, a, orgID), "dev@example.com", "developer"); err != nil {
			t.Fatal(err)
		}
		p, err := a.SessionPrincipal(ctx, orgID, owner.MemberID, a.Clock())
		if err != nil || p.MayActAlone() != want {
			t.Errorf("%s with one admin: alone %v, %v", plan, p.MayActAlone(), err)
		}
		if _, err := a.AddMember(ctx, operatorOf(t, a, orgID), "bob@example.com", "admin"); err != nil {
			t.Fatal(err)
		}
		if p, err = a.SessionPrincipal(ctx, orgID, owner.MemberID, a.Clock()); err != nil || p.MayActAlone() {
			t.Errorf("%s with two admins: alone %v, %v", plan, p.MayActAlone(), err)
		}
	}
}
