package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// notSigned is a fault of the receipts of these tests, which need numbers and no signatures.
const notSigned = "must contain a signed record"

// receipt returns an append of a receipt of an agent, which is numbered in two series.
func receipt(tenant, agent, id string, isNew bool) ledger.Append {
	return ledger.Append{Tenant: tenant, Events: []ledger.Pending{{Stream: "decision/" + id, Expect: ledger.New(), ID: "evt_" + id, Type: "receipt.recorded",
		SchemaVersion: 1, Actor: "system", Payload: []byte(`{"record":{"conformance":"violation"}}`), Agent: agent, NewAgent: isNew}}}
}

// Two nodes number the events of the same agents, in one partition and in three, with batches of
// every size and with unnumbered events between them.
func TestTwoNodesNumberTheSameSeries(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			db := ledgertest.NewPartitioned(t, n)
			nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
			const callers, each = 24, 12
			var work sync.WaitGroup
			for c := range callers {
				work.Go(func() {
					for i := range each {
						id := fmt.Sprint(c, "_", i)
						a := receipt(fmt.Sprint("org_", c%3), fmt.Sprint("sub_", i%5), id, i == 0)
						if i%4 == 3 {
							a = of(a.Tenant, "other/"+id, ledger.New(), id)
						}
						if _, err := nodes[(c+i)%2].Append(t.Context(), a); err != nil {
							t.Error(err)
						}
					}
				})
			}
			work.Wait()
			fixture.Clean(t, nodes[0], callers*each, notSigned)
			var numbered int
			if err := nodes[0].Pool().QueryRow(t.Context(), `select count(*) from events where series = 'receipt/violation' and agent is not null`).Scan(&numbered); err != nil || numbered != callers*each*3/4 {
				t.Errorf("%d events are numbered, %v", numbered, err)
			}
		})
	}
}

// If an agent is falsely declared new, the unique index refuses the number 1, and the sequencer
// reads the right number.
func TestAnAgentThatIsNotNew(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	one, two := fixture.Open(t, db), fixture.Open(t, db)
	for i, node := range []*ledger.Ledger{one, two, one} {
		result := fixture.Must(node.Append(t.Context(), receipt("org_a", "sub_1", fmt.Sprint(i), true)))
		if e := result.Events[0]; e.AgentN != int64(i)+1 || e.SeriesN != int64(i)+1 {
			t.Errorf("append %d has the numbers %d and %d", i, e.SeriesN, e.AgentN)
		}
	}
	fixture.Clean(t, one, 3, notSigned)
}

// A node that has lost a swap reads the missed events and keeps its cached series. It does not
// read each series again.
func TestALostSwapKeepsTheSeries(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	one, two := fixture.Open(t, db), fixture.Open(t, db)
	const agents = 40
	for i := range agents {
		fixture.Must(one.Append(t.Context(), receipt("org_a", fmt.Sprint("sub_", i), fmt.Sprint("first", i), true)))
	}
	for i := range 3 {
		fixture.Must(two.Append(t.Context(), receipt("org_a", "sub_7", fmt.Sprint("foreign", i), false)))
	}
	before := one.Stats().LockPath.Load()
	for i := range agents {
		result := fixture.Must(one.Append(t.Context(), receipt("org_a", fmt.Sprint("sub_", i), fmt.Sprint("second", i), false)))
		if want := int64(2); i != 7 && result.Events[0].AgentN != want || i == 7 && result.Events[0].AgentN != want+3 {
			t.Errorf("agent %d has number %d", i, result.Events[0].AgentN)
		}
	}
	if by := one.Stats().LockPath.Load() - before; by > 8 {
		t.Errorf("%d of %d batches took the lock path after one lost swap", by, agents)
	}
	fixture.Clean(t, one, 2*agents+3, notSigned)
}

// The look-ups of the sequencer and the pages of a series use the indexes of series, both before
// and after the table is analyzed.
func TestSeriesAreReadByTheirIndexes(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	ledgertest.Plain(t)
	l := fixture.Open(t, db)
	conn := fixture.Must(pgx.Connect(t.Context(), db.OwnerURL))
	defer conn.Close(t.Context())
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			for i := range 200 {
				a := ledger.Append{Tenant: "org_a"}
				for j := range 32 {
					a.Events = append(a.Events, receipt("", fmt.Sprint("sub_", j), fmt.Sprint(i, "_", j), false).Events[0], fixture.Pending(fmt.Sprint("x", i, "_", j), ledger.New(), fmt.Sprint("x", i, "_", j)))
				}
				fixture.Must(l.Append(t.Context(), a))
			}
			fixture.Must(conn.Exec(t.Context(), `analyze events`))
		}
		fixture.Must(conn.Exec(t.Context(), `set enable_seqscan = off; set enable_bitmapscan = off; set plan_cache_mode = force_generic_plan; deallocate all`))
		for name, q := range map[string]struct{ statement, arguments, index string }{
			"look-up of a series": {`prepare s0 (text, text) as select series_n, hash from events where p = 0 and tenant = $1 and series = $2 order by series_n desc limit 1`,
				`execute s0 ('org_a', 'receipt/violation')`, "events_series_key"},
			"look-up of an agent": {`prepare s1 (text, text, text) as select agent_n, hash from events where p = 0 and tenant = $1 and agent = $2 and series = $3 order by agent_n desc limit 1`,
				`execute s1 ('org_a', 'sub_1', 'receipt/violation')`, "events_agent_key"},
			"page of a series": {`prepare s2 (text, text, bigint) as select * from events where p = 0 and tenant = $1 and series = $2 and series_n >= $3 order by series_n limit 500`,
				`execute s2 ('org_a', 'receipt/violation', 5)`, "events_series_key"},
			"page of an agent": {`prepare s3 (text, text, text, bigint) as select * from events where p = 0 and tenant = $1 and agent = $2 and series = $3 and agent_n >= $4 order by agent_n limit 500`,
				`execute s3 ('org_a', 'sub_1', 'receipt/violation', 5)`, "events_agent_key"},
		} {
			fixture.Must(conn.Exec(t.Context(), q.statement))
			plan := strings.Join(fixture.Must(pgx.CollectRows(fixture.Must(conn.Query(t.Context(), `explain `+q.arguments, pgx.QueryExecModeSimpleProtocol)), pgx.RowTo[string])), "\n")
			if !strings.Contains(plan, q.index) || strings.Contains(plan, "Sort") {
				t.Errorf("%s, analyzed %t:\n%s", name, analyzed, plan)
			}
		}
	}
}
