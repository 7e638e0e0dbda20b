package projections

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
)

func change(t *testing.T, l *ledger.Ledger, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := l.Pool().Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// noScratch fails the test if a rebuild has left a schema or a checkpoint.
func noScratch(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	var left int
	if err := l.Pool().QueryRow(t.Context(), `select (select count(*) from pg_namespace where nspname like 'rebuild%')
		+ (select count(*) from projection_checkpoint where name like '%:%') + (select count(*) from projection_dead where name like '%:%')`).
		Scan(&left); err != nil || left > 0 {
		t.Errorf("%d things are left of a rebuild, %v", left, err)
	}
}

// At the start, a read model is rebuilt if its tables are missing, incomplete or made by another
// program, or if it belongs to another ledger or an older program.
func TestUnsoundReadModelIsRebuiltAtTheStart(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	for n := range 5 {
		appendWorkflow(t, l, n, nil)
	}
	if _, err := p.Status(t.Context(), workflowID(4)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	want := state(t, l)
	for name, damage := range map[string]string{
		"dropped":           `drop table readmodels.workflow_status`,
		"foreign":           `drop table readmodels.workflow_status; create table readmodels.workflow_status (id int)`,
		"another column":    `alter table readmodels.workflow_status add column extra text`,
		"without its key":   `alter table readmodels.workflow_status drop constraint workflow_status_pkey`,
		"of another ledger": `update projection_checkpoint set hash = decode(repeat('ff', 32), 'hex') where name = 'status'`,
		"far ahead":         `update projection_checkpoint set pos = 4711 where name = 'status'`,
	} {
		change(t, l, damage)
		q := start(t, l)
		if _, err := q.Status(t.Context(), workflowID(4)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		q.Close()
		if diff := cmp.Diff(want, state(t, l)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		noScratch(t, l)
	}
	// The stored version is 1, so this program's version must be one higher.
	old := all[0]
	if old.name != status.name {
		t.Fatal("the first read model is another one")
	}
	r := newRun(old, l, slog.New(slog.DiscardHandler))
	r.version++
	if sound, err := r.prepare(t.Context()); sound || err != nil {
		t.Errorf("an older read model: sound %v, %v", sound, err)
	}
	r.repair(t.Context())
	if !r.sound() || rowCount(t, l) != 5 {
		t.Errorf("%d rows", rowCount(t, l))
	}
}

// A rebuild repairs rows that were changed by hand, and applies parked events, while the service
// continues: appends, queries and two nodes.
func TestRebuildWhileTheServiceGoesOn(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l, other := openLedger(t, db), openLedger(t, db)
	p, q := start(t, l), start(t, other)
	for n := range 50 {
		appendWorkflow(t, l, n, nil)
	}
	if _, err := p.Status(t.Context(), workflowID(49)); err != nil {
		t.Fatal(err)
	}
	change(t, l, `update readmodels.workflow_status set record = '{}' where workflow_id = '`+workflowID(7)+`'`,
		`insert into projection_dead (name, p, pos, tenant, stream, attempts, error, parked_us)
			values ('status', 0, 9, 'service', 'workflow/`+workflowID(8)+`', 5, 'an error that was mended since', 1)`)
	if got, err := p.Status(t.Context(), workflowID(7)); err != nil || string(got) != "{}" {
		t.Fatalf("%s, %v", got, err)
	}
	var appended, stop atomic.Int64
	appended.Store(50)
	var working sync.WaitGroup
	working.Go(func() { // append and query all the time
		for stop.Load() == 0 {
			n := int(appended.Load())
			appendWorkflow(t, l, n, nil)
			appended.Add(1)
			for _, node := range []*Projections{p, q} {
				if _, err := node.Status(t.Context(), workflowID(n)); err != nil {
					t.Errorf("while it is rebuilt, workflow %d: %v", n, err)
				}
			}
		}
	})
	for range 3 {
		if at, err := Rebuild(t.Context(), l, slog.New(slog.DiscardHandler), "status"); err != nil || at < 50 {
			t.Errorf("at %d, %v", at, err)
		}
	}
	stop.Store(1)
	working.Wait()
	for _, n := range []int{7, 8, int(appended.Load()) - 1} {
		if got, err := q.Status(t.Context(), workflowID(n)); err != nil || !strings.Contains(string(got), workflowID(n)) {
			t.Errorf("workflow %d: %s, %v", n, got, err)
		}
	}
	if got := rowCount(t, l); got != int(appended.Load()) {
		t.Errorf("%d rows of %d", got, appended.Load())
	}
	noScratch(t, l)
	if _, err := Rebuild(t.Context(), l, slog.New(slog.DiscardHandler), "nonsense"); err == nil || !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
		t.Error(err)
	}
}

// If a table is dropped while a node runs, no event is parked: the events wait for the rebuild.
func TestDroppedTableParksNothing(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	appendWorkflow(t, l, 0, nil)
	if _, err := p.Status(t.Context(), workflowID(0)); err != nil {
		t.Fatal(err)
	}
	change(t, l, `drop table readmodels.workflow_status`)
	for n := range 3 {
		appendWorkflow(t, l, n+1, nil)
	}
	batch := everything(t, l)
	if err := p.models["status"].runs[0].through(t.Context(), batch); err == nil {
		t.Error("applied without a table")
	}
	if _, err := Rebuild(t.Context(), l, slog.New(slog.DiscardHandler), "status"); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if _, err := p.Status(t.Context(), workflowID(n)); err != nil {
			t.Errorf("workflow %d: %v", n, err)
		}
	}
	if lags, err := p.Lags(t.Context()); err != nil || lags["status"].Parked != 0 {
		t.Errorf("%v, %v", lags, err)
	}
}

// Under load, one of two nodes is upgraded to a newer version of the read model, several times. No
// event is lost or applied twice. The old program uses the old tables until the new ones replace
// them.
func TestVersionBumpUnderLoadOnTwoNodes(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l, other := openLedger(t, db), openLedger(t, db)
	start(t, l)
	const each = 20
	version := status.version
	for round := range rounds(t) {
		var working sync.WaitGroup
		for i, node := range []*ledger.Ledger{l, other} {
			working.Go(func() {
				for n := range each {
					appendWorkflow(t, node, (round*2+i)*each+n, nil)
				}
			})
		}
		version++
		next := status
		next.version = version
		r := newRun(next, other, slog.New(slog.DiscardHandler))
		r.repair(t.Context())
		working.Wait()
		if err := r.catchUp(t.Context(), theEnd); err != nil {
			t.Fatal(err)
		}
		if got, want := rowCount(t, l), (round+1)*2*each; got != want {
			t.Fatalf("round %d: %d rows of %d", round, got, want)
		}
		// Return to the version of the other node.
		change(t, l, fmt.Sprintf(`update projection_checkpoint set version = %d where name = 'status'`, status.version))
		version = status.version
	}
	noScratch(t, l)
}

// A replay continues after a step whose connection PostgreSQL has ended, for a comparison as for a
// rebuild.
func TestReplayContinuesAfterALostConnection(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	for n := range 3 {
		appendWorkflow(t, l, n, nil)
	}
	all := everything(t, l)
	r.applyRun = nil // apply each event separately
	good, failing := r.apply, 3
	r.apply = func(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
		if failing--; failing >= 0 {
			return endedWhileIdle(ctx, tx, e)
		}
		return good(ctx, tx, e)
	}
	// Stop before the last event, as a comparison does at the position of the read model in use.
	if err := r.catchUp(t.Context(), all[1].Position); err != nil || rowCount(t, l) != 2 {
		t.Errorf("%d rows, %v", rowCount(t, l), err)
	}
}
