package commands_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/assurance"
)

// Two organizations have an agent of the same name, which is erased twice in each and so has three
// data keys. Several decisions have the same time, also at the bounds of the period. Selections and
// whole histories of both are valid with one pin for all of them, and none shows a decision of the
// other organization or of an earlier data key.
func TestAnAgentWithThreeDataKeysInTwoOrganizations(t *testing.T) {
	t.Parallel()
	clock := newClock()
	a := openApp(t, ledgertest.New(t), clock)
	keys := keepCheckpoints(t, a, nil)
	type organization struct {
		id     string
		decide func(outcome string)
	}
	var orgs []organization
	n := 0
	for range 2 {
		id, operator := newOrganization(t, a, "team")
		withPolicy(t, a, operator)
		p, err := a.AuthenticateOrganization(t.Context(), newToken(t, a, operator).Token)
		if err != nil {
			t.Fatal(err)
		}
		orgs = append(orgs, organization{id, func(outcome string) {
			t.Helper()
			n++
			r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"run","agentId":"Émile"},"intent":%s}`, n, intentFor[outcome]))
			if err == nil {
				_, err = a.Decide(t.Context(), p, r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}})
	}
	var bounds []string
	for era := range 3 {
		if era > 0 {
			for _, o := range orgs {
				erasure := evidence.Erasure{Tenant: o.id, Subject: "agent:Émile", Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}
				if _, err := a.EraseSubject(t.Context(), erasure); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 3 {
			clock.Add(time.Second)
			bounds = append(bounds, clock.Now().UTC().Format("2006-01-02T15:04:05.999999Z"))
			for _, o := range orgs {
				o.decide("deny")
				o.decide("allow")
				o.decide("deny")
			}
		}
	}
	clock.Add(time.Second)
	pins := map[string][]byte{} // by partition
	verify := func(o organization, filters bundle.Filters) (evidence.Exported, bundle.Result) {
		t.Helper()
		folder := t.TempDir()
		m, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: o.id, Filters: filters, Actor: "operator", Folder: folder, Statement: filters.Receipts})
		if err != nil {
			t.Fatalf("%+v: %v", filters, err)
		}
		b, err := bundle.Open(t.Context(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		pin := pins[m.Origin]
		if pin == nil {
			if pin, err = b.Text("checkpoint.txt"); err != nil {
				t.Fatal(err)
			}
		}
		r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: keys, Pin: pin}, nil)
		if err != nil || !r.Valid {
			t.Fatalf("%+v: %+v, %v", filters, r, err)
		}
		pins[m.Origin] = r.Pin
		return m, r
	}
	for range 2 {
		for _, o := range orgs {
			for _, c := range []struct {
				filters   bundle.Filters
				decisions int64
			}{
				{bundle.Filters{Agent: "Émile"}, 9},
				{bundle.Filters{Agent: "Émile", Receipts: true}, 9},
				{bundle.Filters{Agent: "Émile", Decision: "deny", From: bounds[7], To: bounds[8]}, 2},
				{bundle.Filters{Decision: "deny"}, 18},
				{bundle.Filters{Decision: "deny", From: bounds[1], To: bounds[4]}, 6},
				{bundle.Filters{From: bounds[2], To: bounds[3]}, 3},
				{bundle.Filters{}, 27},
			} {
				if m, r := verify(o, c.filters); m.Decisions != c.decisions {
					t.Errorf("%+v: %d decisions, %q, %q", c.filters, m.Decisions, r.Proven, r.Stated)
				}
			}
		}
	}
	if report, err := audit.Ledger(t.Context(), a.Ledger, nil); err != nil || len(report.Faults) > 0 {
		t.Errorf("%v, %v", report.Faults, err)
	}
}
