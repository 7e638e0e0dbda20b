package projections_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// TestMemberships follows a member through organizations, and once more after
// the read model was built anew.
func TestMemberships(t *testing.T) {
	db, ctx := ledgertest.New(t), t.Context()
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(ctx, db.URL, ledger.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	a := &commands.App{Ledger: l, Signer: signer, Clock: time.Now}
	if a.Vault, err = l.OpenVault(ctx, bytes.Repeat([]byte{9}, 32)); err != nil {
		t.Fatal(err)
	}
	start := func() *projections.Projections {
		t.Helper()
		p, err := projections.Start(ctx, l, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	p := start()
	one, err := a.CreateOrganization(ctx, "operator", "One", "team", "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	two, err := a.CreateOrganization(ctx, "operator", "Two", "team", "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	operator := func() commands.Principal {
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
	if _, err := a.UpdateOrganization(ctx, "operator", two.OrgID, commands.OrganizationChange{Plan: "business", Reason: "more"}); err != nil {
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
	if err := a.RemoveMember(ctx, operator(), ada.MemberID); err != nil {
		t.Fatal(err)
	}
	want(p, first)
	if got, err := p.Memberships(ctx, "cus_unknown"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("of nobody: %v, %v", got, err)
	}
	p.Close()
	if _, err := l.Pool().Exec(ctx, `update projection_checkpoint set version = 0 where name = 'organizations'`); err != nil {
		t.Fatal(err)
	}
	want(start(), first)
}
