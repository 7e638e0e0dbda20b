package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// gate is a proxy of the worker that stores partition 0 of a cluster. The cluster gives clients
// the address of the gate as that of the worker.
type gate struct {
	worker  string      // address of the worker
	closed  atomic.Bool // accept only connections of the coordinator
	keeping atomic.Bool // drop the second phase of commits
	phases  atomic.Int64

	mu     sync.Mutex // guards direct
	direct []net.Conn // connections of nodes that did not come through the coordinator
}

// startGate puts a gate in front of a worker of a test's cluster.
func startGate(t *testing.T, db *ledgertest.DB) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	super, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(context.WithoutCancel(t.Context()))
	g := &gate{}
	var node int
	if err := super.QueryRow(t.Context(), `select n.nodeid, n.nodename || ':' || n.nodeport from pg_dist_node n join citus_shards s using (nodename, nodeport)
		where s.shardid = get_shard_id_for_distribution_column('ledger_head', 0)`).Scan(&node, &g.worker); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		g.turnOut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.serve(conn)
		}
	}()
	if _, err := super.Exec(t.Context(), `select citus_update_node($1, '127.0.0.1', $2)`, node, listener.Addr().(*net.TCPAddr).Port); err != nil {
		t.Fatal(err)
	}
	return g
}

// serve forwards the messages of one client.
func (g *gate) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.worker)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	for untyped := true; ; {
		message, err := readMessage(client, untyped)
		if err != nil {
			return
		}
		if untyped && len(message) > 8 { // a shorter message is the request for TLS
			untyped = false
			if !bytes.Contains(message, []byte("citus_internal")) {
				if !g.admit(client) {
					return
				}
			}
		}
		if bytes.Contains(message, []byte("COMMIT PREPARED")) {
			g.phases.Add(1)
			if g.keeping.Load() {
				return
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads one message of the PostgreSQL protocol. All messages except the first have a
// type.
func readMessage(r io.Reader, untyped bool) ([]byte, error) {
	header := make([]byte, 5)
	if untyped {
		header = header[:4]
	}
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(header[len(header)-4:])-4)
	_, err := io.ReadFull(r, rest)
	return append(header, rest...), err
}

func (g *gate) admit(client net.Conn) bool {
	if g.closed.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.direct = append(g.direct, client)
	return true
}

// turnOut closes the connections of the nodes and returns their number.
func (g *gate) turnOut() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.direct)
	for _, conn := range g.direct {
		conn.Close()
	}
	g.direct = nil
	return n
}

func openAt(t *testing.T, url string, clock func() time.Time) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), url, Options{Log: slog.New(slog.DiscardHandler), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// The coordinator confirms a commit although the worker has not received its second phase. No
// reader sees the rows until the cluster has recovered the transaction. Such an append is not
// acknowledged before its rows are visible.
func TestFaultSecondPhaseLost(t *testing.T) {
	t.Parallel()
	ledgertest.Cluster(t)
	for _, path := range []string{"fast", "lock"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			db := ledgertest.New(t)
			g := startGate(t, db)
			g.closed.Store(true)
			l, ctx := openAt(t, db.URL, nil), t.Context()
			if path == "fast" {
				if _, err := l.Append(ctx, simple("warm", "evt_warm", New())); err != nil {
					t.Fatal(err)
				}
			}
			a := simple("counted", "evt_kept", New())
			a.IdemKey, a.ContentHash = IdemKey("op", "kept"), Hash{1}
			g.keeping.Store(true)
			before := g.phases.Load()
			_, err := l.Append(ctx, a)
			if g.phases.Load() == before {
				t.Fatal("no second phase was kept back: this shows nothing")
			}
			if h, unread := l.Read(ctx, "service", "counted"); !errors.Is(err, ErrUnknown) {
				t.Errorf("the append says %v, and whoever reads finds %d events, %v", err, h.Version(), unread)
			}
			g.keeping.Store(false)
			a.Events[0].ID = "evt_repeated"
			again, err := l.Append(ctx, a)
			if err != nil || !again.Replayed || again.Events[0].ID != "evt_kept" {
				t.Fatalf("repeated: %+v, %v", again, err)
			}
			if h, err := l.Read(ctx, "service", "counted"); err != nil || h.Version() != 1 {
				t.Errorf("%d events, %v", h.Version(), err)
			}
			VerifyAll(t, l)
		})
	}
}

// A sequencer writes to the worker in one phase. If the worker refuses the connection, the
// sequencer writes through the coordinator. After nearestAgain it writes to the worker again.
func TestTheSequencerTalksToTheWorker(t *testing.T) {
	t.Parallel()
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	g := startGate(t, db)
	// With sslmode=prefer, which is the default, a worker without TLS is accepted.
	url := strings.Replace(db.URL, "sslmode=disable", "sslmode=prefer", 1)
	if !strings.Contains(url, "sslmode=prefer") {
		t.Fatal("TEST_DATABASE_URL wants sslmode=disable")
	}
	var late atomic.Int64
	l := openAt(t, url, func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	n := 0
	appends := func(when string, direct bool) {
		t.Helper()
		before := g.phases.Load()
		for range 3 {
			n++
			if _, err := l.Append(t.Context(), simple("s", fmt.Sprint("evt_", n), Any(99))); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
		}
		if got := g.phases.Load() == before; got != direct {
			t.Errorf("%s: in one phase %v, want %v", when, got, direct)
		}
	}
	appends("let in", true)
	g.closed.Store(true)
	if g.turnOut() != 1 {
		t.Error("the node came otherwise than once")
	}
	appends("turned out", false)
	g.closed.Store(false)
	appends("let in, and nobody has looked", false)
	late.Add(int64(nearestAgain))
	appends("let in again", true)
	VerifyAll(t, l)
}

// On a single PostgreSQL server the sequencer opens one connection and does not reconnect.
func TestWithoutAClusterTheSequencerConnectsOnce(t *testing.T) {
	t.Parallel()
	ledgertest.Plain(t)
	var late, dialled atomic.Int64
	l := openAt(t, ledgertest.New(t).URL, func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	config := l.partitions[0].seq.config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return dial(ctx, network, address)
	}
	l.partitions[0].seq.config = config // set before the first append, which opens the connection
	for i := range 3 {
		if _, err := l.Append(t.Context(), simple("s", fmt.Sprint("evt_", i), Any(9))); err != nil {
			t.Fatal(err)
		}
		late.Add(int64(nearestAgain))
	}
	if got := dialled.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	if got := l.Stats().FastPath.Load(); got != 2 {
		t.Errorf("%d batches by the fast path, want 2", got)
	}
}
