package projections

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// A reader is a run with its own simulated feed: it continues after the last batch that it has
// acknowledged, and from the stored checkpoint after it has refused one.
type reader struct {
	*run
	feed  []ledger.Event
	at    int64
	known bool
}

func newReader(l *ledger.Ledger, version int, feed []ledger.Event) *reader {
	p := status
	p.version = version
	return &reader{run: newRun(p, l, slog.New(slog.DiscardHandler)), feed: feed}
}

// deliver delivers the next two events and reports whether they were accepted.
func (r *reader) deliver(ctx context.Context) bool {
	if !r.known {
		at, err := r.checkpoint(ctx)
		if err != nil {
			return false
		}
		r.at, r.known = at, true
	}
	batch := r.feed[r.at:min(r.at+2, int64(len(r.feed)))]
	if len(batch) == 0 {
		r.known = false // read the checkpoint again, as an idle feed does
		return true
	}
	if !r.passes(batch) && r.through(ctx, batch) != nil {
		r.known = false
		return false
	}
	r.at += int64(len(batch))
	return true
}

// interleavings calls the function do with every order in which the steps of a and b can be mixed.
func interleavings(a, b string, do func(order string)) {
	var next func(order, a, b string)
	next = func(order, a, b string) {
		if a == "" || b == "" {
			do(order + a + b)
			return
		}
		next(order+a[:1], a[1:], b)
		next(order+b[:1], a, b[1:])
	}
	next("", a, b)
}

// appendMixed appends one event for each letter; the read model handles only those with the letter
// w.
func appendMixed(t *testing.T, l *ledger.Ledger, kinds string) {
	t.Helper()
	for n, kind := range kinds {
		if kind == 'w' {
			appendWorkflow(t, l, n, nil)
			continue
		}
		_, err := l.Append(t.Context(), ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{
			Stream: "other", Expect: ledger.Any(100), ID: fmt.Sprintf("evt_other_%d", n),
			Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "system", Payload: []byte(`{}`)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Two nodes read the ledger while the read model is moved back: by a rebuild of a newer program (a
// rolling upgrade), by a rebuild of the same program, or by a crash of the database that undoes
// its last steps. In every order of their steps no event is skipped or applied twice.
func TestReadModelPutBackBetweenAnyTwoBatches(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	stopped(t, l)
	const kinds = "wo" + "ww" + "oo" + "ow" + "w" // batches of two events, some without effect
	appendMixed(t, l, kinds)
	feed := everything(t, l)
	sql := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := l.Pool().Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	const empty = `truncate readmodels.workflow_status; delete from projection_dead;
		update projection_checkpoint set pos = 0, hash = decode(repeat('00', 32), 'hex'), version = %d where name = 'status'`
	for name, reset := range map[string]struct {
		to   int // version of the second node, and of the read model after the rebuild
		undo bool
	}{
		"version bump": {to: status.version + 1}, "rebuild": {to: status.version}, "crash": {to: status.version, undo: true},
	} {
		cases := 0
		interleavings("aaaaa", "Rbb", func(order string) {
			cases++
			sql(fmt.Sprintf(empty, status.version))
			a, b := newReader(l, status.version, feed), newReader(l, reset.to, feed)
			for i, step := range order {
				switch {
				case step == 'a':
					a.deliver(t.Context())
				case step == 'b':
					b.deliver(t.Context())
				case reset.undo && i > 0: // restore the state before the previous step
					sql(`delete from readmodels.workflow_status where workflow_id > '`+workflowID(1)+`'`,
						`update projection_checkpoint c set pos = e.pos, hash = e.hash from events e
							where e.p = 0 and e.pos = 2 and c.pos > 2 and c.name = 'status'`)
				default:
					sql(fmt.Sprintf(empty, reset.to))
				}
			}
			for range 2 * len(kinds) { // let both nodes continue to the end
				a.deliver(t.Context())
				b.deliver(t.Context())
			}
			if got, want := rowCount(t, l), strings.Count(kinds, "w"); got != want {
				t.Errorf("%s, %s: %d rows of %d", name, order, got, want)
			}
			if behind := b.position < int64(len(kinds)); behind {
				t.Errorf("%s, %s: the second node stands at %d", name, order, b.position)
			}
		})
		t.Logf("%s: %d orders", name, cases)
	}
	var parked int
	if err := l.Pool().QueryRow(t.Context(), `select count(*) from projection_dead`).Scan(&parked); err != nil || parked > 0 {
		t.Errorf("%d parked, %v", parked, err)
	}
}

// If a program of another version has rebuilt the read model, the node neither writes nor shows
// it. After a rebuild by the same version, it waits until the read model is complete again.
func TestQueriesAfterTheReadModelWasPutBack(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := openLedger(t, db)
	p := start(t, l)
	for n := range 3 {
		appendWorkflow(t, l, n, nil)
	}
	if _, err := p.Status(t.Context(), workflowID(2)); err != nil {
		t.Fatal(err)
	}
	reset := func(version int) {
		t.Helper()
		if _, err := l.Pool().Exec(t.Context(), `with gone as (delete from readmodels.workflow_status)
			update projection_checkpoint set pos = 0, hash = decode(repeat('00', 32), 'hex'), version = $1 where name = 'status'`, version); err != nil {
			t.Fatal(err)
		}
	}
	reset(status.version)
	if _, err := p.Status(t.Context(), workflowID(0)); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	reset(status.version + 1)
	appendWorkflow(t, l, 3, nil)
	if _, err := p.Status(t.Context(), workflowID(0)); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("after a version bump: %v", err)
	}
	if got := rowCount(t, l); got != 0 {
		t.Errorf("a program of the old version wrote %d rows", got)
	}
}

// If the ledger does not contain the event that a checkpoint names, the checkpoint belongs to
// another ledger, and nothing is applied after it.
func TestCheckpointOfAnotherLedger(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	for n := range 3 {
		appendWorkflow(t, l, n, nil)
	}
	batch := everything(t, l)
	if err := r.step(t.Context(), batch[:1]); err != nil {
		t.Fatal(err)
	}
	for _, put := range []string{`hash = decode(repeat('ff', 32), 'hex')`, `pos = 99`} {
		if _, err := l.Pool().Exec(t.Context(), `update projection_checkpoint set `+put+` where name = 'status'`); err != nil {
			t.Fatal(err)
		}
		if err := r.step(t.Context(), batch[1:]); err == nil || rowCount(t, l) != 1 {
			t.Errorf("%s: %v, %d rows", put, err, rowCount(t, l))
		}
	}
}

// TestSimulatedReadModel checks with random orders of the steps that no event is skipped or
// applied twice. The runs are too long to try all orders: two nodes, and between any two of their
// steps a rebuild, or a crash of the database that moves the read model back to an earlier event.
// The test prints the seed; the environment variable SEED repeats a run.
func TestSimulatedReadModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	l := openLedger(t, ledgertest.New(t))
	stopped(t, l)
	const kinds = "wowwoowwowooww"
	appendMixed(t, l, kinds)
	feed := everything(t, l)
	backTo := func(position int64) {
		t.Helper()
		hash := make([]byte, 32)
		if position > 0 {
			hash = feed[position-1].Hash[:]
		}
		_, err := l.Pool().Exec(t.Context(), `with gone as (delete from readmodels.workflow_status where workflow_id >= $1)
			update projection_checkpoint set pos = $2, hash = $3, version = $4 where name = 'status'`, workflowID(int(position)), position, hash, status.version)
		if err != nil {
			t.Fatal(err)
		}
	}
	for run := range 40 {
		backTo(0)
		nodes := []*reader{newReader(l, status.version, feed), newReader(l, status.version, feed)}
		var order strings.Builder
		for range 24 {
			switch step := r.IntN(10); {
			case step < 8:
				nodes[step%2].deliver(t.Context())
				fmt.Fprint(&order, string(rune('a'+step%2)))
			default:
				at, err := nodes[0].checkpoint(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if step == 8 {
					at = 0 // a rebuild
				}
				at = r.Int64N(at + 1)
				backTo(at)
				fmt.Fprint(&order, at)
			}
		}
		for range 2 * len(kinds) { // let both nodes continue to the end
			nodes[0].deliver(t.Context())
			nodes[1].deliver(t.Context())
		}
		if got, want := rowCount(t, l), strings.Count(kinds, "w"); got != want {
			t.Errorf("run %d, %s: %d rows of %d", run, &order, got, want)
		}
		if at, err := nodes[1].checkpoint(t.Context()); err != nil || at != int64(len(kinds)) {
			t.Errorf("run %d, %s: the checkpoint stands at %d, %v", run, &order, at, err)
		}
	}
}

// newRun returns the run of the first partition.
func newRun(p projection, l *ledger.Ledger, log *slog.Logger) *run {
	return newModel(p, l, log).runs[0]
}
