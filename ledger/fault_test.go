package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// cutter is a connection to PostgreSQL that breaks at a chosen message: either before the n-th
// write reaches the server, or after that but before the answer is read.
type cutter struct {
	net.Conn
	plan *cutPlan
}

// cutPlan counts the messages of all connections of a test.
type cutPlan struct {
	armed  atomic.Bool
	writes atomic.Int64
	at     int64
	after  bool
}

var errCut = errors.New("cut by the test")

func (c *cutter) Write(b []byte) (int, error) {
	if c.plan.armed.Load() && c.plan.writes.Add(1) == c.plan.at {
		c.plan.armed.Store(false)
		n := 0
		if c.plan.after {
			n, _ = c.Conn.Write(b)
			// The server has received everything before the connection breaks. The ledger cannot
			// know whether the server has committed it.
			_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
			buffer := make([]byte, 1)
			_, _ = c.Conn.Read(buffer)
		}
		_ = c.Conn.Close()
		return n, errCut
	}
	return c.Conn.Write(b)
}

func cutLedger(t *testing.T, db *ledgertest.DB, plan *cutPlan) *Ledger {
	t.Helper()
	l := quietLedger(t, db.URL)
	config := l.partitions[0].seq.config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &cutter{conn, plan}, nil
	}
	l.partitions[0].seq.config = config // set before the first append, which opens the connection
	return l
}

func simple(stream, id string, expect Expect) Append {
	return Append{Tenant: "service", Events: []Pending{{Stream: stream, Expect: expect, ID: id, Type: "test.happened", SchemaVersion: 1, Payload: []byte(`{}`)}}}
}

// The connection breaks at every message boundary around a commit, on both paths. Each key has one
// result: an acknowledged append is stored exactly once, and a retry with the same key returns it.
func TestFaultConnectionCutAroundTheCommit(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := int64(1); at <= 6; at++ {
			t.Run(fmt.Sprintf("after=%v/message %d", after, at), func(t *testing.T) {
				t.Parallel()
				plan := &cutPlan{at: at, after: after}
				l := cutLedger(t, ledgertest.New(t), plan)
				ctx := t.Context()
				if at%2 == 0 { // fill the cache, so that the cut hits the fast path
					if _, err := l.Append(ctx, simple("warm", "w", New())); err != nil {
						t.Fatal(err)
					}
				}
				plan.armed.Store(true)
				a := simple("counted", "evt_cut", Any(10))
				a.IdemKey, a.ContentHash = IdemKey("op", "cut"), Hash{1}
				result, err := l.Append(ctx, a)
				if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrBusy) {
					t.Fatalf("got %v", err)
				}
				retry := a
				retry.Events = []Pending{a.Events[0]}
				retry.Events[0].ID = "evt_retry"
				again, err2 := l.Append(ctx, retry)
				if err2 != nil {
					t.Fatalf("retry: %v", err2)
				}
				if err == nil && (result.Replayed || !again.Replayed || again.Events[0].Hash != result.Events[0].Hash) {
					t.Errorf("acknowledged %+v, then %+v", result, again)
				}
				h, err := l.Read(ctx, "service", "counted")
				if err != nil || h.Version() != 1 {
					t.Errorf("%d events under one key, %v", h.Version(), err)
				}
				VerifyAll(t, l)
			})
		}
	}
}

// Backends are terminated under load. Every acknowledged append is stored exactly once, every
// refused append at most once, and the chain verifies.
func TestFaultBackendsTerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	nodes := make([]*Ledger, 2)
	for i := range nodes {
		nodes[i] = quietLedger(t, db.URL)
	}
	stop := make(chan struct{})
	var killer, writers sync.WaitGroup
	var killed int64
	var done atomic.Int64
	killer.Go(func() { killed = db.Terminate(t, 0.5, done.Load, stop) })
	var mu sync.Mutex
	acknowledged := map[string]Hash{}
	const workers, each = 12, 25
	for w := range workers {
		writers.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d/%d", w, i)
				for n := 0; ; n++ {
					a := simple("s/"+key, fmt.Sprintf("evt_%s_%d", key, n), New())
					a.IdemKey, a.ContentHash = IdemKey("op", key), Hash{1}
					result, err := nodes[(w+n)%2].Append(context.Background(), a)
					if err != nil {
						if n > 100 {
							t.Errorf("%s: no end: %v", key, err)
							return
						}
						continue
					}
					mu.Lock()
					acknowledged[key] = result.Events[0].Hash
					mu.Unlock()
					done.Add(1)
					break
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d backends terminated; unknown commits %d and %d", killed, nodes[0].Stats().Unknown.Load(), nodes[1].Stats().Unknown.Load())
	VerifyAll(t, nodes[0])
	for key, hash := range acknowledged {
		h, err := nodes[1].Read(context.Background(), "service", "s/"+key)
		if err != nil || h.Version() != 1 || h.Events[0].Hash != hash {
			t.Errorf("%s: %d events, %v", key, h.Version(), err)
		}
	}
	if len(acknowledged) != workers*each {
		t.Errorf("%d acknowledged, want %d", len(acknowledged), workers*each)
	}
}

// Every backend ends between two appends, as after a restart of the database. Nothing of the
// second append was sent, so it succeeds on either path: here to a stream that is cached, and to
// one that is not.
func TestFaultBackendsEndBetweenAppends(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := quietLedger(t, db.URL)
	super := dial(t, db.SuperURL)
	appendAll := func(round int, stream string, expect Expect) {
		t.Helper()
		for _, p := range l.Partitions() {
			a := simple(stream, fmt.Sprintf("evt_%d_%d", round, p.Number()), expect)
			a.Tenant = p.Service()
			if _, err := l.Append(t.Context(), a); err != nil {
				t.Errorf("append %d to %s in partition %d: %v", round, stream, p.Number(), err)
			}
		}
	}
	appendAll(0, "remembered", New())
	for round, next := range []struct {
		stream string
		expect Expect
	}{{"remembered", Expect{expectAt, 1}}, {"remembered", Any(100)}, {"unheard", New()}, {"unheard too", Any(100)}} {
		const others = ` from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
		if _, err := super.Exec(t.Context(), `select pg_terminate_backend(pid)`+others); err != nil {
			t.Fatal(err)
		}
		appendAll(round+1, next.stream, next.expect)
	}
	VerifyAll(t, l)
}

// Another session locks the head row for longer than an append may wait. The append returns an
// error within its time budget and writes nothing. After the lock is released, appends succeed
// again.
func TestFaultHeadRowLocked(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := quietLedger(t, db.URL)
	conn := dial(t, db.OwnerURL)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from ledger_head for update`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), simple("s", "evt_a", New())); !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrBusy) {
		t.Errorf("behind a lock: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := simple("s", "evt_b", Any(2))
	if _, err := l.Append(t.Context(), a); err != nil {
		t.Errorf("after the lock: %v", err)
	}
	VerifyAll(t, l)
}

// If the head is lower than one that this node has seen, the node stops appends. Reads continue.
func TestFaultHeadLowerThanSeenStopsTheNode(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := quietLedger(t, db.URL)
	for i := range 3 {
		if _, err := l.Append(t.Context(), simple("s", fmt.Sprint("evt_", i), Any(9))); err != nil {
			t.Fatal(err)
		}
	}
	super := dial(t, db.SuperURL)
	if _, err := super.Exec(t.Context(), `set session_replication_role = replica; delete from events where p = 0 and pos > 1;
		update ledger_head set pos = 1, last_hash = (select hash from events where p = 0 and pos = 1) where p = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), simple("s", "evt_x", Any(9))); !errors.Is(err, ErrStopped) {
		t.Errorf("got %v", err)
	}
	if l.Stopped() == nil {
		t.Error("the node does not say that it stopped")
	}
	if _, err := l.Read(t.Context(), "service", "s"); err != nil {
		t.Errorf("reading stopped, too: %v", err)
	}
}

// A clock that goes back, or is a day ahead, changes neither the order nor the chain.
func TestFaultClock(t *testing.T) {
	t.Parallel()
	var hour atomic.Int64
	hour.Store(24)
	clock := func() time.Time { return time.Date(2026, 11, 20, int(hour.Load()), 0, 0, 0, time.UTC) }
	l, err := Open(t.Context(), ledgertest.New(t).URL, Options{Log: slog.New(slog.DiscardHandler), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var last time.Time
	for i, h := range []int64{24, 23, 48, 22} {
		hour.Store(h)
		result, err := l.Append(t.Context(), simple("s", fmt.Sprint("evt_", i), Any(9)))
		if err != nil {
			t.Fatal(err)
		}
		if at := result.Events[0].Occurred(); at.Before(last) {
			t.Errorf("event %d is before its predecessor", i)
		} else {
			last = at
		}
	}
	VerifyAll(t, l)
}

// quietLedger opens a ledger that logs nothing.
func quietLedger(t *testing.T, databaseURL string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), databaseURL, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// dial opens a connection besides the ledger's, and closes it before the ledger is closed.
func dial(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
