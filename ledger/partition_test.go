package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/migrations"
)

// The partition of a tenant never changes: these results must stay.
func TestHome(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tenant string
		n      int
		want   int16
	}{
		{"service", 1, 0}, {"service", 16, 0}, {"service/3", 16, 3}, {"service/15", 16, 15}, {"service/3", 1, 0},
		{"org_01JD3Z8W5T0000000000000000", 1, 0},
		{"org_01JD3Z8W5T0000000000000000", 3, 2},
		{"org_01JD3Z8W5T0000000000000000", 16, 3},
		{"org_01JD3Z8W5T0000000000000002", 3, 1},
		{"org_01JD3Z8W5T0000000000000002", 16, 7},
	} {
		if got := ledger.Home(tc.tenant, tc.n); got != tc.want {
			t.Errorf("%s of %d partitions: %d, want %d", tc.tenant, tc.n, got, tc.want)
		}
	}
	counts := make([]int, 16)
	for i := range 16_000 {
		counts[ledger.Home(fmt.Sprintf("org_%d", i), 16)]++
	}
	for p, n := range counts {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 16,000 tenants are at home in %d", n, p)
		}
	}
}

// tenantOf returns a tenant whose partition is p of n.
func tenantOf(p int16, n int) string {
	for i := 0; ; i++ {
		if tenant := fmt.Sprintf("org_%d", i); ledger.Home(tenant, n) == p {
			return tenant
		}
	}
}

func of(tenant, stream string, expect ledger.Expect, id string) ledger.Append {
	return ledger.Append{Tenant: tenant, Events: []ledger.Pending{fixture.Pending(stream, expect, id)}}
}

// Every partition has its own positions and its own head, and all events of a tenant are in one
// partition.
func TestPartitionsAreIndependent(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			db := ledgertest.NewPartitioned(t, n)
			ctx := t.Context()
			nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
			const tenants, each = 40, 5
			var work sync.WaitGroup
			for i := range tenants {
				work.Go(func() {
					tenant := fmt.Sprintf("org_%d", i)
					for v := range each {
						_, err := nodes[(i+v)%2].Append(ctx, of(tenant, "counted", ledger.Any(100), fmt.Sprintf("%d_%d", i, v)))
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			work.Wait()
			fixture.Clean(t, nodes[0], tenants*each)
			heads, err := nodes[0].Heads(ctx)
			if err != nil || len(heads) != n {
				t.Fatalf("heads %v, %v", heads, err)
			}
			for _, p := range nodes[1].Partitions() {
				list, err := p.After(ctx, 0, 1000)
				if err != nil || int64(len(list)) != heads[p.Number()] {
					t.Errorf("partition %d has %d events and head %d, %v", p.Number(), len(list), heads[p.Number()], err)
				}
				for i, e := range list {
					if e.Position != int64(i)+1 || e.Partition != p.Number() || ledger.Home(e.Tenant, n) != p.Number() {
						t.Errorf("partition %d holds %s at %d of %d", p.Number(), e.Tenant, e.Position, e.Partition)
					}
				}
			}
			for i := range tenants {
				tenant := fmt.Sprintf("org_%d", i)
				if list, err := nodes[1].Tenant(ctx, tenant, 1, 100); err != nil || len(list) != each {
					t.Errorf("%s has %d events, %v", tenant, len(list), err)
				}
			}
		})
	}
}

// An append with a precondition in another partition is refused. On the fast path such an append
// would be accepted even if the precondition no longer holds, because the fast path compares only
// the head of one partition.
func TestAGuardOutsideOfThePartitionIsRefused(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.NewPartitioned(t, 3))
	ctx := t.Context()
	here, there := tenantOf(1, 3), tenantOf(2, 3)
	if _, err := l.Append(ctx, of(there, "policy", ledger.New(), "p")); err != nil {
		t.Fatal(err)
	}
	history, err := l.Read(ctx, there, "policy")
	if err != nil {
		t.Fatal(err)
	}
	order := of(here, "decision/1", ledger.New(), "d")
	order.Preconditions = []ledger.Precondition{history.Precondition()}
	if _, err := l.Append(ctx, order); !errors.Is(err, ledger.ErrElsewhere) {
		t.Errorf("a guard of another partition: %v", err)
	}
	order = of(there, "decision/1", ledger.New(), "d")
	order.Preconditions = []ledger.Precondition{history.Precondition(), {Tenant: l.Home(there).Service(), Stream: ledger.SigningKeyStream}}
	if _, err := l.Append(ctx, order); err != nil {
		t.Errorf("guards of its own partition, the signing keys of it among them: %v", err)
	}
	fixture.Clean(t, l, 2)
}

// The number of partitions never changes: a node with another number refuses to start.
func TestTheNumberOfPartitionsNeverChanges(t *testing.T) {
	t.Parallel()
	db := ledgertest.NewPartitioned(t, 3)
	ctx := t.Context()
	// Before the first append the number may still grow.
	if err := migrations.UpPartitioned(ctx, db.SuperURL, "", 4); err != nil {
		t.Fatal(err)
	}
	l := fixture.Open(t, db)
	if len(l.Partitions()) != 4 {
		t.Fatalf("%d partitions", len(l.Partitions()))
	}
	if _, err := l.Append(ctx, fixture.One("a", ledger.New(), "a")); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, 5} {
		_, err := ledger.Open(ctx, db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler), Partitions: n})
		if !errors.Is(err, ledger.ErrPartitions) || !strings.Contains(err.Error(), fmt.Sprintf("this ledger has 4, but LEDGER_PARTITIONS is %d", n)) {
			t.Errorf("open with %d: %v", n, err)
		}
		if err := migrations.UpPartitioned(ctx, db.SuperURL, "", n); err == nil || !strings.Contains(err.Error(), "set LEDGER_PARTITIONS to 4 or unset it") {
			t.Errorf("migrate with %d: %v", n, err)
		}
	}
	if err := migrations.UpPartitioned(ctx, db.SuperURL, ledgertest.Origin, 4); err != nil {
		t.Error(err)
	}
}

// An operator who changes the number of partitions by hand gives tenants a second chain.
// Verification and the start of a node report it.
func TestATenantAwayFromHomeIsFound(t *testing.T) {
	t.Parallel()
	db := ledgertest.NewPartitioned(t, 1)
	ctx := t.Context()
	l := fixture.Open(t, db)
	for i := range 8 {
		if _, err := l.Append(ctx, of(fmt.Sprintf("org_%d", i), "policy", ledger.New(), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	conn, err := pgx.Connect(ctx, db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for p := 1; p < 4; p++ {
		origin := fmt.Sprintf("%s/%d", ledgertest.Origin, p)
		genesis := migrations.Genesis(origin, "")
		if _, err := conn.Exec(ctx, `insert into ledger_head (p, origin, last_hash) values ($1, $2, $3)`, p, origin, genesis[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, `insert into tree_head (p, size, root, edge) select $1, size, root, edge from tree_head where p = 0`, p); err != nil {
			t.Fatal(err)
		}
	}
	l = fixture.Open(t, db)
	if _, _, err := keeper.CheckOutside(ctx, l, keeper.Options{Folder: checkpoint.Folder{Path: t.TempDir()}}); !errors.Is(err, ledger.ErrTampered) || !strings.Contains(err.Error(), "does not belong to partition") {
		t.Errorf("the start: %v", err)
	}
	report, err := audit.Ledger(context.WithoutCancel(ctx), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range report.Faults {
		found = found || f.Column == "p" && strings.Contains(f.Detail, "because of tenant")
	}
	if !found {
		t.Errorf("verify: %v", report.Faults)
	}
}

// Two nodes use 16 partitions. The sessions of one node are terminated repeatedly. The other node
// continues in every partition, each append within a second.
func TestANodeGoesOnInEveryPartitionWhenTheOtherIsKilled(t *testing.T) {
	t.Parallel()
	const n = 16
	db := ledgertest.NewPartitioned(t, n)
	ctx := t.Context()
	killed, err := ledger.Open(ctx, db.URL+separator(db.URL)+"application_name=killed", ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	other := fixture.Open(t, db)
	append1 := func(l *ledger.Ledger, p int16, id string) error {
		_, err := l.Append(ctx, of(tenantOf(p, n), "counted", ledger.Any(1000), id))
		return err
	}
	acknowledged := make([]int64, n)
	for p := range int16(n) {
		for i := range 3 {
			if err := append1(killed, p, fmt.Sprint("a", i, "_", p)); err != nil {
				t.Fatal(err)
			}
			acknowledged[p]++
		}
	}
	// A transaction of the node locks every head row when the node dies.
	held, err := killed.Pool().Begin(ctx)
	if err == nil {
		_, err = held.Exec(ctx, `select pos from ledger_head order by p for update`)
	}
	if err != nil {
		t.Fatal(err)
	}
	super, err := pgx.Connect(ctx, db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(ctx)
	var work sync.WaitGroup
	late := make([]time.Duration, n)
	if _, err := super.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'killed'`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for p := range int16(n) {
		work.Go(func() {
			if err := append1(other, p, fmt.Sprint("b_", p)); err != nil {
				t.Errorf("partition %d: %v", p, err)
			}
			late[p] = time.Since(began)
		})
	}
	work.Wait()
	t.Logf("the other node has appended to all partitions after %v", slices.Max(late))
	_ = held.Rollback(ctx)
	killed.Close()
	for p := range int16(n) {
		if head, err := other.Partition(p).Head(ctx); err != nil || head != acknowledged[p]+1 {
			t.Errorf("partition %d ends at %d, want %d: %v", p, head, acknowledged[p]+1, err)
		}
	}
	fixture.Clean(t, other, 4*n)
}

func separator(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}

// A truncated partition is detected, whichever it is. An accepted rollback gives up only what that
// partition has lost; the other partitions stay unchanged.
func TestAPartitionThatWasPutBackIsRefused(t *testing.T) {
	t.Parallel()
	const n = 3
	db := ledgertest.NewPartitioned(t, n)
	ctx := t.Context()
	record, err := seal.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	keep := keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: t.TempDir()}, Every: 10 * time.Millisecond}
	first := fixture.Open(t, db)
	if err := first.Activate(ctx, record, "evt_key"); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(ctx, first, keep, fixture.Numbered("a")); err != nil {
		t.Fatal(err)
	}
	for p := range int16(n) {
		for i := range 3 {
			if _, err := first.Append(ctx, of(tenantOf(p, n), "counted", ledger.Any(9), fmt.Sprint(p, "_", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	first.Close() // Close signs the last heads
	super, err := pgx.Connect(ctx, db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(ctx)
	if _, err := super.Exec(ctx, `set session_replication_role = replica; delete from events where p = 2 and pos > 4;
		update ledger_head h set pos = e.pos, last_hash = e.hash from events e where h.p = 2 and e.p = 2 and e.pos = 4;
		delete from checkpoints where p = 2; delete from tiles where p = 2;
		update tree_head set size = 0, root = sha256(''), edge = '' where p = 2; reset session_replication_role`); err != nil {
		t.Fatal(err)
	}
	second := fixture.Open(t, db)
	_, _, err = keeper.CheckOutside(ctx, second, keep)
	var rollback *keeper.Rollback
	if !errors.As(err, &rollback) || rollback.Partition != 2 || rollback.From != 5 || rollback.To != 6 {
		t.Fatalf("the start: %v, %+v", err, rollback)
	}
	if err := keeper.AcceptRollback(ctx, second, rollback, record, "evt_lost"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keeper.CheckOutside(ctx, second, keep); err != nil {
		t.Errorf("after it was accepted: %v", err)
	}
	if err := keeper.Start(ctx, second, keep, fixture.Numbered("b")); err != nil {
		t.Fatal(err)
	}
	for p := range int16(n) {
		if _, err := second.Append(ctx, of(tenantOf(p, n), "after", ledger.New(), fmt.Sprint("after_", p))); err != nil {
			t.Errorf("partition %d: %v", p, err)
		}
	}
	report, err := audit.Ledger(context.WithoutCancel(ctx), second, nil)
	if err != nil || len(report.Faults) > 0 || len(report.Partitions) != n {
		t.Errorf("verify: %v, %+v", err, report)
	}
}
