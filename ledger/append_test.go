package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

func TestAppendAndRead(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	ctx := t.Context()
	key := ledger.IdemKey("op", "k1")
	first, err := l.Append(ctx, ledger.Append{Tenant: "org_a", IdemKey: key, ContentHash: ledger.Hash{1}, Events: []ledger.Pending{
		fixture.Pending("decision/1", ledger.New(), "a"), fixture.Pending("decision/2", ledger.New(), "b")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Events) != 2 || first.Replayed || first.Events[0].More != 1 || first.Events[1].Position != 2 {
		t.Fatalf("got %+v", first)
	}
	for name, retry := range map[string]*ledger.Ledger{"same node": l, "other node": fixture.Open(t, &ledgertest.DB{URL: l.Pool().Config().ConnString()})} {
		again, err := retry.Append(ctx, ledger.Append{Tenant: "org_a", IdemKey: key, ContentHash: ledger.Hash{1}, Events: []ledger.Pending{
			fixture.Pending("decision/3", ledger.New(), "c")}})
		if err != nil || !again.Replayed || len(again.Events) != 2 || again.Events[1].Hash != first.Events[1].Hash {
			t.Errorf("%s: equal content got %+v, %v", name, again, err)
		}
		_, err = retry.Append(ctx, ledger.Append{Tenant: "org_a", IdemKey: key, ContentHash: ledger.Hash{2}, Events: []ledger.Pending{
			fixture.Pending("decision/3", ledger.New(), "c")}})
		if !errors.Is(err, ledger.ErrKeyReused) {
			t.Errorf("%s: other content got %v", name, err)
		}
	}
	if events, err := l.ByKey(ctx, "org_a", key, ledger.Hash{1}); err != nil || len(events) != 2 {
		t.Errorf("ByKey: %d events, %v", len(events), err)
	}
	if _, err := l.ByKey(ctx, "org_a", key, ledger.Hash{2}); !errors.Is(err, ledger.ErrKeyReused) {
		t.Errorf("ByKey with other content: %v", err)
	}
	if events, err := l.ByKey(ctx, "org_b", key, ledger.Hash{1}); err != nil || events != nil {
		t.Errorf("another tenant's key: %v, %v", events, err)
	}
	history, err := l.Read(ctx, "org_a", "decision/2")
	if err != nil || history.Version() != 1 || history.Events[0].Hash != first.Events[1].Hash {
		t.Errorf("Read: %+v, %v", history, err)
	}
	fixture.Clean(t, l, 2)
}

// A panic during a commit leaves the ledger in an unknown state. The node stops appends but still
// answers reads.
func TestAPanicStopsAppends(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	broken := false
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Log: slog.New(slog.DiscardHandler), Clock: func() time.Time {
		if broken {
			cancel() // the caller does not wait for the result
			panic("the clock is broken")
		}
		return time.Now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(ctx, fixture.One("s", ledger.New(), "a")); err != nil {
		t.Fatal(err)
	}
	broken = true
	if _, err := l.Append(ctx, fixture.One("s", ledger.Any(9), "b")); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("during the panic: %v", err)
	}
	broken = false
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.Any(9), "c")); !errors.Is(err, ledger.ErrStopped) {
		t.Errorf("after the panic: %v", err)
	}
	fixture.Clean(t, l, 1)
}

// An append or a precondition with an outdated version of its stream is refused, and one with the
// current version is accepted.
func TestExpectationsAndGuards(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	ctx := t.Context()
	before, err := l.Read(ctx, "service", "policy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, fixture.One("policy", before.At(), "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, fixture.One("policy", before.At(), "b")); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("an append behind the stream: %v", err)
	}
	guarded := fixture.One("decision/1", ledger.New(), "c")
	guarded.Preconditions = []ledger.Precondition{before.Precondition()}
	if _, err := l.Append(ctx, guarded); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("a moved guard: %v", err)
	}
	now, err := l.Read(ctx, "service", "policy")
	if err != nil {
		t.Fatal(err)
	}
	guarded.Preconditions = []ledger.Precondition{now.Precondition()}
	if _, err := l.Append(ctx, guarded); err != nil {
		t.Errorf("a guard that holds: %v", err)
	}
	if _, err := l.Append(ctx, fixture.One("decision/1", ledger.New(), "d")); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("New on a stream with an event: %v", err)
	}
	fixture.Clean(t, l, 2)
}

// Last returns the same version of a stream as Read.
func TestLastStandsForTheWholeStream(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	for n := range int64(4) {
		last, err := l.Last(t.Context(), "service", "s")
		if err != nil || last.Version() != n || int64(len(last.Events)) != min(n, 1) {
			t.Fatalf("%d events, version %d, %v; want %d", len(last.Events), last.Version(), err, n)
		}
		whole, err := l.Read(t.Context(), "service", "s")
		if err != nil || last.At() != whole.At() || last.Precondition() != whole.Precondition() {
			t.Fatalf("%v and %v, %v", last.Precondition(), whole.Precondition(), err)
		}
		if n > 0 && last.Events[0].ID != whole.Events[n-1].ID {
			t.Errorf("%s is not the last event", last.Events[0].ID)
		}
		if _, err := l.Append(t.Context(), fixture.One("s", last.At(), fmt.Sprintf("last_%d", n))); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), fixture.One("s", last.At(), fmt.Sprintf("late_%d", n))); !errors.Is(err, ledger.ErrMoved) {
			t.Errorf("an append after a stale end: %v", err)
		}
	}
}

func TestWhatCannotBeAppended(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	big := fixture.One("s", ledger.New(), "a")
	big.Events[0].Payload = make([]byte, ledger.MaxPayload+1)
	if _, err := l.Append(t.Context(), big); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("payload over the limit: %v", err)
	}
	many := ledger.Append{Tenant: "service", Events: slices.Repeat([]ledger.Pending{fixture.Pending("s", ledger.Any(100), "a")}, ledger.MaxEvents+1)}
	if _, err := l.Append(t.Context(), many); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("too many events: %v", err)
	}
	for _, bad := range []func(*ledger.Append){
		func(a *ledger.Append) { a.Tenant = "" },
		func(a *ledger.Append) { a.Tenant = "a\x00b" },
		func(a *ledger.Append) { a.Events[0].Actor = "\xff" },
		func(a *ledger.Append) { a.Events[0].Stream = "" },
	} {
		a := fixture.One("s", ledger.New(), "a")
		bad(&a)
		if _, err := l.Append(t.Context(), a); err == nil {
			t.Errorf("appended %+v", a)
		}
	}
	fixture.Clean(t, l, 0)
}

// With Any(limit), exactly limit appends succeed, with many concurrent callers on two nodes.
func TestAnyCountsExactly(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
	const limit, callers = 250, 300
	var mu sync.Mutex
	granted, refused := 0, 0
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			_, err := nodes[i%2].Append(t.Context(), fixture.One("usage/key_1/2026-11", ledger.Any(limit), fmt.Sprint(i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				granted++
			case errors.Is(err, ledger.ErrLimit):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if granted != limit || refused != callers-limit {
		t.Errorf("%d granted and %d refused, want %d and %d", granted, refused, limit, callers-limit)
	}
	fixture.Clean(t, nodes[0], limit)
}

// The same key in 32 parallel requests gives one event, and every caller gets that event.
func TestStormOfOneKey(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
	hashes := make([]ledger.Hash, 32)
	fresh := make([]bool, 32)
	var wg sync.WaitGroup
	for i := range hashes {
		wg.Go(func() {
			a := fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint(i))
			a.IdemKey, a.ContentHash = ledger.IdemKey("op", "storm"), ledger.Hash{7}
			result, err := nodes[i%2].Append(t.Context(), a)
			if err != nil {
				t.Error(err)
				return
			}
			hashes[i], fresh[i] = result.Events[0].Hash, !result.Replayed
		})
	}
	wg.Wait()
	firsts := 0
	for i := range hashes {
		if hashes[i] != hashes[0] {
			t.Errorf("caller %d got another event", i)
		}
		if fresh[i] {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d callers were told that they were first", firsts)
	}
	fixture.Clean(t, nodes[0], 1)
}

// Two nodes append to the same tenants. Positions stay dense and chains intact, no event is lost
// or stored twice, and a collision in a batch refuses only the append that caused it.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
	const each = 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	lost := 0
	for n, l := range nodes {
		for worker := range 8 {
			wg.Go(func() {
				for i := range each / 8 {
					// Both nodes append to every fourth stream, and one of them loses.
					stream := fmt.Sprintf("s/%d/%d/%d", n, worker, i)
					if i%4 == 0 {
						stream = fmt.Sprintf("s/both/%d/%d", worker, i)
					}
					a := fixture.One(stream, ledger.New(), fmt.Sprint(n, worker, i))
					a.Tenant = fmt.Sprint("org_", worker%3)
					_, err := l.Append(t.Context(), a)
					if errors.Is(err, ledger.ErrMoved) {
						mu.Lock()
						lost++
						mu.Unlock()
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	contested := 8 * 7 // for each worker the indices 0, 4 … 24
	if lost != contested {
		t.Errorf("%d appends lost their stream, want %d", lost, contested)
	}
	fixture.Clean(t, nodes[0], int64(2*each-contested))
}

func TestClosedAndCancelled(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Append(cancelled, fixture.One("s", ledger.New(), "a"))
	if err != nil && !errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrBusy) && !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("cancelled: %v", err)
	}
	l.Close()
	l.Close()
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.New(), "b")); !errors.Is(err, ledger.ErrStopped) {
		t.Errorf("after Close: %v", err)
	}
}

// A node has cached the version of a stream, and another node has appended to it since. If a
// caller has read the later version, the node must accept that version, both as Expect and as
// Precondition.
func TestWhatTheOtherNodeWroteIsNotMoved(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	a, b := fixture.Open(t, db), fixture.Open(t, db)
	ctx := t.Context()
	for i, l := range []*ledger.Ledger{a, a, b, b} {
		if _, err := l.Append(ctx, fixture.One("policy", ledger.Any(9), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	history, err := a.Read(ctx, "service", "policy")
	if err != nil || history.Version() != 4 {
		t.Fatalf("version %d, %v", history.Version(), err)
	}
	guarded := fixture.One("decision/1", ledger.New(), "guarded")
	guarded.Preconditions = []ledger.Precondition{history.Precondition()}
	if _, err := a.Append(ctx, guarded); err != nil {
		t.Errorf("a guard at the true version: %v", err)
	}
	if _, err := b.Append(ctx, fixture.One("policy", ledger.Any(9), "b")); err != nil {
		t.Fatal(err)
	}
	if history, err = a.Read(ctx, "service", "policy"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(ctx, fixture.One("policy", history.At(), "at")); err != nil {
		t.Errorf("an append at the true version: %v", err)
	}
	fixture.Clean(t, a, 7)
}

// A repeated old request is often repeated again. Only the first repetition sends its batch to the
// lock path.
func TestAnOldKeyIsRememberedWhenItIsRepeated(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	first := fixture.One("s", ledger.New(), "1")
	first.IdemKey = ledger.IdemKey("test", "k")
	if _, err := fixture.Open(t, db).Append(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	l := fixture.Open(t, db) // a node that has not seen the key
	for n := range 3 {
		first.Events[0].ID, first.Events[0].Stream = fmt.Sprint("evt_again_", n), fmt.Sprint("s", n)
		if r, err := l.Append(t.Context(), first); err != nil || !r.Replayed || r.Events[0].ID != "evt_1" {
			t.Fatalf("repetition %d: %+v, %v", n, r, err)
		}
	}
	if got := l.Stats().LockPath.Load(); got != 1 {
		t.Errorf("%d batches by the lock path, want the first", got)
	}
	fixture.Clean(t, l, 1)
}

// A payload of several KB is stored in its row, even if it cannot be packed. PostgreSQL does not
// move it to a TOAST table, which would double the cost of the append.
func TestAPayloadStaysInItsRow(t *testing.T) {
	t.Parallel()
	ledgertest.Plain(t)
	db := ledgertest.New(t)
	l := fixture.Open(t, db)
	noise := make([]byte, 3500)
	rand.Read(noise)
	a := fixture.One("s", ledger.New(), "1")
	a.Events[0].Payload = fmt.Appendf(nil, `{"noise":"%x"}`, noise)
	if _, err := l.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	var stored, elsewhere int
	if err := l.Pool().QueryRow(t.Context(), `select pg_column_size(payload), pg_relation_size(reltoastrelid)
		from events, pg_class where oid = 'events'::regclass`).Scan(&stored, &elsewhere); err != nil || stored < len(noise) || elsewhere != 0 {
		t.Errorf("%d octets in the row, %d elsewhere, %v", stored, elsewhere, err)
	}
}

// Batches slightly below and above fewRows, the limit from which rows are passed as arrays, are
// stored alike, with and without a precondition.
func TestBatchesOfEveryLength(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	var events int64
	for n := 1; n <= 20; n++ {
		for _, preconditions := range [][]ledger.Precondition{nil, {{Tenant: "service", Stream: "guard", Version: 0}}} {
			a := ledger.Append{Tenant: "service", Preconditions: preconditions}
			for i := range n {
				d := fixture.Pending(fmt.Sprint("s", i), ledger.Any(99), fmt.Sprint(n, "/", len(preconditions), "/", i))
				d.Payload = fmt.Appendf(nil, `{"n":%d,"text":%q}`, i, strings.Repeat("x", 40*i))
				a.Events = append(a.Events, d)
			}
			result, err := l.Append(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := l.Partition(0).After(t.Context(), events, 2*n)
			if err != nil || len(stored) != n {
				t.Fatalf("%d events of %d are stored, %v", len(stored), n, err)
			}
			for i, e := range stored {
				if d := a.Events[i]; !e.Intact() || e.ID != d.ID || e.Stream != d.Stream || string(e.Payload) != string(d.Payload) || e.Hash != result.Events[i].Hash {
					t.Errorf("event %d of %d is stored as %+v", i, n, e)
				}
			}
			events += int64(n)
		}
	}
	fixture.Clean(t, l, events)
}
