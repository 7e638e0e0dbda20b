package commands_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
)

// newClock returns a clock that does not advance by itself. It starts at the same time in all
// tests.
func newClock() *ledgertest.Clock {
	return ledgertest.NewClock(time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC))
}

// openApp opens one node on a database. Several nodes may share a database.
func openApp(t *testing.T, db *ledgertest.DB, c *ledgertest.Clock) *commands.App {
	t.Helper()
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Clock: c.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Activate(t.Context(), signer, "evt_"+t.Name()); err != nil {
		t.Fatal(err)
	}
	a := commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: c.Now, BaseURL: "http://127.0.0.1:8080"})
	if a.Vault, err = vault.Open(t.Context(), l, bytes.Repeat([]byte{3}, 32)); err != nil {
		t.Fatal(err)
	}
	return a
}

// clean verifies all chains of the ledger. Tests that append call it at their end.
func clean(t *testing.T, a *commands.App) {
	t.Helper()
	report, err := audit.Ledger(t.Context(), a.Ledger, nil)
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v %v", err, report.Faults)
	}
}

func newOrganization(t *testing.T, a *commands.App, plan string) (orgID string, operator organizations.Principal) {
	t.Helper()
	o, err := a.CreateOrganization(t.Context(), "operator", "Acme", plan, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return o.OrgID, operatorOf(t, a, o.OrgID)
}

func operatorOf(t *testing.T, a *commands.App, orgID string) organizations.Principal {
	t.Helper()
	p, err := a.Operator(t.Context(), orgID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newToken(t *testing.T, a *commands.App, p organizations.Principal, scopes ...string) organizations.IssuedToken {
	t.Helper()
	issued, err := a.IssueToken(t.Context(), p, organizations.TokenOrder{Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func wantRefusal(t *testing.T, err error, code, message string) {
	t.Helper()
	var refused *policy.Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Message != message {
		t.Errorf("got %v, want %s %q", err, code, message)
	}
}

func TestTokenActsForItsOrganizationOnly(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	orgID, operator := newOrganization(t, a, "team")
	issued := newToken(t, a, operator)
	p, err := a.AuthenticateOrganization(t.Context(), issued.Token)
	if err != nil {
		t.Fatal(err)
	}
	if p.OrgID != orgID || p.ActorID != "svco_"+issued.TokenID || p.Plan != "team" || p.Role != organizations.RoleToken || len(p.Preconditions) != 2 {
		t.Errorf("principal %+v", p)
	}
	if err := p.May(organizations.RightDecide); err != nil {
		t.Error(err)
	}
	wantRefusal(t, p.May(organizations.RightExport), "insufficient_scope", "missing scope export:read")
	wantRefusal(t, p.May(organizations.RightManage), "forbidden", "a signed-in session is required")
	clean(t, a)
}

func TestActivePolicyIsTheLastActivation(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := context.Background()
	orgID, operator := newOrganization(t, a, "team")
	if _, err := a.ActivePolicy(ctx, orgID); err == nil {
		t.Fatal("a new organization has a policy")
	} else {
		wantRefusal(t, err, "no_active_policy", "organization has no active policy")
	}
	first, err := a.DraftAndActivate(ctx, operator, []byte(`{"policyId":"default","maxUsdPerTransaction":5}`), "first")
	if err != nil {
		t.Fatal(err)
	}
	draft, err := a.DraftPolicy(ctx, operator, []byte(`{"maxUsdPerTransaction":3,"policyId":"default","allowedHosts":["api.example.com"]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.ActivePolicy(ctx, orgID)
	if err != nil || p.Version != 1 || p.Hash != first.Hash || string(p.Canonical) != `{"maxUsdPerTransaction":5,"policyId":"default","version":1}` {
		t.Fatalf("%+v %v", p, err)
	}
	second, err := a.ActivatePolicy(ctx, operator, draft.DraftID, "lower the limit")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = a.ActivePolicy(ctx, orgID); err != nil || p.Version != 2 || p.ActivatedSequence != second.ActivatedSequence || p.Precondition.Version != 4 {
		t.Errorf("%+v %v", p, err)
	}
	_, err = a.ActivatePolicy(ctx, operator, draft.DraftID, "again")
	wantRefusal(t, err, "conflict", "policy draft was already activated")
	clean(t, a)
}
