package projections_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// TestHistory checks the history after decisions, receipts and a review, and again after a
// rebuild.
func TestHistory(t *testing.T) {
	t.Parallel()
	a, db := newApp(t)
	l, ctx := a.Ledger, t.Context()
	p := start(t, l)
	one, two := asToken(t, a, "ada@example.com"), asToken(t, a, "bob@example.com")
	for i := range 5 {
		r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"r%d","agentId":"a"},
			"intent":{"resourceUrl":"https://api.example/","method":%q,"amountUsd":0.5}}`, i, i, []string{"GET", "BREW"}[i%2]))
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []organizations.Principal{one, two} {
			recorded, err := a.Decide(ctx, who, r)
			if err != nil {
				t.Fatal(err)
			}
			d, err := assurance.ReadDecision(recorded.Envelope.Record)
			if err != nil {
				t.Fatal(err)
			}
			if i > 2 {
				continue
			}
			receipt, err := assurance.ParseReceipt(fmt.Appendf(nil, `{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"rejected","settlementId":"s%d"}`,
				d.DecisionID, recorded.Envelope.Integrity.RecordHash, d.BindingHash, i/2))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.BindReceipt(ctx, who, receipt); err != nil {
				t.Fatal(err)
			}
		}
	}
	page, err := p.History(ctx, one.OrgID, nil, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the history has each decision and receipt", func(t *testing.T) {
		alerts, receipts := 0, 0
		for _, item := range page.Items {
			alerts += len(item.Alerts)
			if item.Kind == "receipt" {
				receipts++
			}
			if item.Ledger.Tenant != one.OrgID || item.RunID == "" || item.PolicyID != "default" || item.PolicyVersion != 1 {
				t.Errorf("%+v", item)
			}
		}
		if len(page.Items) != 8 || receipts != 3 || alerts != 4 || page.NextCursor != nil {
			t.Errorf("%d items, %d receipts, %d alerts", len(page.Items), receipts, alerts)
		}
	})
	t.Run("the history is filtered by actor", func(t *testing.T) {
		if own, err := p.History(ctx, one.OrgID, []string{one.ActorID}, 100, ""); err != nil || len(own.Items) != 8 {
			t.Errorf("own: %d, %v", len(own.Items), err)
		}
		if none, err := p.History(ctx, one.OrgID, []string{two.ActorID}, 100, ""); err != nil || len(none.Items) != 0 {
			t.Errorf("of somebody else: %d, %v", len(none.Items), err)
		}
	})
	t.Run("the open reviews are filtered", func(t *testing.T) {
		for _, c := range []struct {
			filter projections.ReviewFilter
			open   int
		}{
			{projections.ReviewFilter{}, 1}, // r1 has its receipt
			{projections.ReviewFilter{Actors: []string{one.ActorID}}, 1},
			{projections.ReviewFilter{Actors: []string{"somebody else"}}, 0},
			{projections.ReviewFilter{Except: []string{one.ActorID}}, 0},
			{projections.ReviewFilter{After: 1 << 40}, 0},
		} {
			if reviews, err := p.OpenReviews(ctx, one.OrgID, c.filter, 10); err != nil || len(reviews) != c.open {
				t.Errorf("%+v: reviews %+v, %v", c.filter, reviews, err)
			}
		}
	})

	// The read model is rebuilt.
	p.Close()
	owner, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, `update projection_checkpoint set version = 0 where name = 'history'`); err != nil {
		t.Fatal(err)
	}
	p = start(t, l)
	t.Run("the history is the same after a rebuild", func(t *testing.T) {
		again, err := p.History(ctx, one.OrgID, nil, 100, "")
		if diff := cmp.Diff(page, again); err != nil || diff != "" {
			t.Errorf("rebuilt: %v %s", err, diff)
		}
	})

	// An event that cannot be applied blocks only the history of its own organization.
	if _, err := l.Append(ctx, ledger.Append{Tenant: two.OrgID, Events: []ledger.Pending{{Stream: "decision/broken", Expect: ledger.New(), ID: "evt_broken",
		Type: "decision.recorded", SchemaVersion: 1, Actor: "system", Payload: []byte(`{"record":{"decision":"allow","issuedAt":[]}}`)}}}); err != nil {
		t.Fatal(err)
	}
	after, err := assurance.ParseDecision([]byte(`{"protocol":"mcp","idempotencyKey":"after","subject":{"runId":"after"},"intent":{"serverId":"files","toolName":"read"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []organizations.Principal{one, two} {
		if _, err := a.Decide(ctx, who, after); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the history of another organization goes on", func(t *testing.T) {
		if page, err = p.History(ctx, one.OrgID, nil, 1, ""); err != nil || page.Items[0].RunID != "after" {
			t.Fatalf("the other organization: %+v, %v", page.Items, err)
		}
	})
	t.Run("a history with a parked event is refused", func(t *testing.T) {
		if _, err := p.History(ctx, two.OrgID, nil, 1, ""); !errors.Is(err, projections.ErrBehind) {
			t.Errorf("a history with a parked event: %v", err)
		}
	})
}

// asToken returns the principal of a token in a new organization with an active policy.
func asToken(t *testing.T, a *commands.App, owner string) organizations.Principal {
	t.Helper()
	o, err := a.CreateOrganization(t.Context(), "operator", "Acme", "team", owner)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := a.Operator(t.Context(), o.OrgID)
	if err != nil {
		t.Fatal(err)
	}
	// Only an unknown method needs a review.
	if _, err := a.DraftAndActivate(t.Context(), operator, []byte(`{"policyId":"default","maxUsdPerTransaction":1,"blockedHosts":[]}`), "test"); err != nil {
		t.Fatal(err)
	}
	issued, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.AuthenticateOrganization(t.Context(), issued.Token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
