package projections_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// member adds a member with a role to an organization.
func member(t *testing.T, a *commands.App, orgID, email, role string) organizations.Principal {
	t.Helper()
	operator, err := a.Operator(t.Context(), orgID)
	if err != nil {
		t.Fatal(err)
	}
	added, err := a.AddMember(t.Context(), operator, email, role)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.SessionPrincipal(t.Context(), orgID, added.MemberID, a.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The figures about reviews cover the decisions of the period: times of verdicts, reviewers who
// never refuse, expired approvals. They are the same after a rebuild, and zero for an empty
// period.
func TestOversight(t *testing.T) {
	t.Parallel()
	a, _ := newApp(t)
	p := start(t, a.Ledger)
	now := time.Now().Add(time.Hour).Truncate(time.Second)
	a.Clock = func() time.Time { return now }
	token := asToken(t, a, "ada@example.com")
	kind, strict := member(t, a, token.OrgID, "kind@example.com", "admin"), member(t, a, token.OrgID, "strict@example.com", "admin")
	begin := now
	for i, c := range []struct {
		reviewer organizations.Principal
		verdict  string
		after    time.Duration
		outcome  string // outcome of the receipt
	}{
		{kind, "approved", time.Second, "fulfilled"}, {kind, "approved", 2 * time.Second, ""}, {kind, "approved", 10 * time.Second, ""},
		{strict, "rejected", time.Minute, ""}, {strict, "approved", 4 * time.Second, ""}, {strict, "", 0, ""}, {strict, "", 0, "rejected"},
	} {
		now = now.Add(time.Minute)
		d, hash := decided(t, a, token, fmt.Sprintf(`{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"r","agentId":"a"},"intent":{"resourceUrl":"https://api.example/","method":"BREW","amountUsd":0.5}}`, i))
		if d.Decision != "needs_review" {
			t.Fatal(d.Decision)
		}
		if now = now.Add(c.after); c.verdict != "" {
			if _, err := a.Approve(t.Context(), c.reviewer, d.DecisionID, assurance.ApprovalInput{Verdict: c.verdict, Reason: "reason"}); err != nil {
				t.Fatal(err)
			}
		}
		if c.outcome != "" {
			reported(t, a, token, d, hash, c.outcome)
		}
	}
	now = now.Add(14 * time.Minute) // the last approval was given two minutes ago and ends in a minute
	figures := func(from, to time.Time) projections.Oversight {
		t.Helper()
		o, err := p.Oversight(t.Context(), token.OrgID, from, to, now)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	want := projections.Oversight{Asked: 7, Answered: 5, Approved: 4, Overruled: 1, Unanswered: 2, Unawaited: 1, Expired: 3, Instant: 3, MedianSeconds: 4, P95Seconds: 60,
		Reviewers: []projections.Reviewer{{MemberID: kind.Member, Answered: 3, Instant: 2, MedianSeconds: 2}, {MemberID: strict.Member, Answered: 2, Overruled: 1, Instant: 1, MedianSeconds: 4}}}
	slices.SortFunc(want.Reviewers, func(a, b projections.Reviewer) int { return strings.Compare(a.MemberID, b.MemberID) })
	got := figures(begin, now)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if never := got.NeverRefused(); !slices.Equal(never, []string{kind.Member}) {
		t.Errorf("never refused: %v", never)
	}
	if diff := cmp.Diff(projections.Oversight{Reviewers: []projections.Reviewer{}}, figures(now, now.AddDate(0, 3, 0))); diff != "" {
		t.Error(diff)
	}
	c, err := projections.Diff(t.Context(), a.Ledger, slog.New(slog.DiscardHandler), "oversight")
	if err != nil || len(c.Differences) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// The access history lists members, tokens, policies, exports, verifications and accesses to
// personal data of one organization, newest first. Accesses of one actor in one part of the
// service give one entry a day.
func TestAccess(t *testing.T) {
	t.Parallel()
	a, _ := newApp(t)
	p := start(t, a.Ledger)
	now := time.Now().Add(time.Hour).Truncate(time.Second)
	a.Clock = func() time.Time { return now }
	token, other := asToken(t, a, "ada@example.com"), asToken(t, a, "bob@example.com")
	exported, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: token.OrgID, Actor: "operator", Folder: t.TempDir(), Filters: bundle.Filters{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.NoteVerified(t.Context(), token.OrgID, "operator", events.ExportVerified{ExportID: exported.ExportID, Valid: true}); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"decisions", "decisions", "reviews"} {
		if err := a.NotePersonalOpened(t.Context(), token, place); err != nil {
			t.Fatal(err)
		}
	}
	now = now.AddDate(0, 0, 1)
	if err := a.NotePersonalOpened(t.Context(), token, "decisions"); err != nil {
		t.Fatal(err)
	}
	list := func(f projections.AccessFilter, limit int) (types []string) {
		t.Helper()
		rows, err := p.Access(t.Context(), token.OrgID, f, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			types = append(types, r.Type)
		}
		return types
	}
	want := []string{"personal.opened", "personal.opened", "personal.opened", "export.verified", "export.created", "organization_token.issued", "policy.activated", "policy.drafted", "member.added", "organization.created"}
	if got := list(projections.AccessFilter{}, 100); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := list(projections.AccessFilter{From: now}, 100); !slices.Equal(got, want[:1]) {
		t.Errorf("of the second day: %q", got)
	}
	if got := list(projections.AccessFilter{To: now, Types: []string{"personal.opened"}}, 100); !slices.Equal(got, want[:2]) {
		t.Errorf("openings of the first day: %q", got)
	}
	if rows, err := p.Access(t.Context(), token.OrgID, projections.AccessFilter{Before: 1 << 62}, 100); err != nil || len(rows) == 0 {
		t.Errorf("before the largest cursor: %v, %v", rows, err)
	}
	rows, err := p.Access(t.Context(), token.OrgID, projections.AccessFilter{}, 4)
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	if got := list(projections.AccessFilter{Before: rows[3].Sequence}, 100); !slices.Equal(got, want[4:]) {
		t.Errorf("the second page: %q", got)
	}
	if rows, err := p.Access(t.Context(), other.OrgID, projections.AccessFilter{}, 100); err != nil || len(rows) != 5 {
		t.Errorf("of another organization: %+v, %v", rows, err)
	}
}
