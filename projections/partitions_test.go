package projections_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// A read model follows every partition and shows each partition's newest events. If it is behind,
// the error names the partition's position. A rebuild reads all partitions.
func TestReadModelsFollowEveryPartition(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			a, _ := appOn(t, ledgertest.NewPartitioned(t, n))
			ctx := t.Context()
			p := start(t, a.Ledger)
			homes := map[int16]bool{}
			for i := range 6 {
				who := asToken(t, a, fmt.Sprintf("ada%d@example.com", i))
				homes[a.Ledger.Home(who.OrgID).Number()] = true
				r, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r","agentId":"a"},"intent":{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}}`))
				if err != nil {
					t.Fatal(err)
				}
				recorded, err := a.Decide(ctx, who, r)
				if err != nil {
					t.Fatal(err)
				}
				page, err := p.History(ctx, who.OrgID, nil, 10, "")
				if err != nil || len(page.Items) != 1 {
					t.Fatalf("history of %s: %+v, %v", who.OrgID, page, err)
				}
				if shown := page.Items[0].Ledger; shown != *recorded.Envelope.Ledger || shown.Partition != a.Ledger.Home(who.OrgID).Number() {
					t.Errorf("it stands at %+v, shown %+v", recorded.Envelope.Ledger, shown)
				}
				if check := audit.Locate(ctx, a.Ledger, recorded.Envelope); check.Result != seal.Pass {
					t.Errorf("locate: %+v", check)
				}
			}
			if len(homes) < min(n, 2) {
				t.Error("every organization is at home in one partition")
			}
			heads, err := a.Ledger.Total(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range projections.Names() {
				if read, err := projections.Rebuild(ctx, a.Ledger, slog.New(slog.DiscardHandler), name); err != nil || read < heads {
					t.Errorf("rebuild %s: %d of %d events, %v", name, read, heads, err)
				}
				if c, err := projections.Diff(ctx, a.Ledger, slog.New(slog.DiscardHandler), name); err != nil || len(c.Differences) > 0 {
					t.Errorf("diff %s: %+v, %v", name, c, err)
				}
			}
			lags, err := p.Lags(ctx)
			if err != nil || len(lags) == 0 {
				t.Errorf("lags %v, %v", lags, err)
			}
		})
	}
}
