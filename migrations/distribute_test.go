package migrations_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/migrations"
)

func TestDistributeWantsACluster(t *testing.T) {
	ledgertest.Plain(t)
	db := ledgertest.New(t)
	if err := migrations.Distribute(t.Context(), db.OwnerURL); !errors.Is(err, migrations.ErrNoCitus) {
		t.Fatalf("got %v, want ErrNoCitus", err)
	}
	exec(t, db.URL, insertEvent) // insert an event after the refusal, which has changed nothing
	if err := try(t, db.SuperURL, `delete from events`); err == nil {
		t.Error("events can be deleted: the trigger is gone")
	}
}

// The ledger's tables are on the workers, each partition on one worker, and no row remains on the
// coordinator. A second call changes nothing.
func TestADistributedLedger(t *testing.T) {
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	for range 2 {
		if got := value[int](t, db.SuperURL, `select count(*) from pg_dist_partition where partmethod = 'h'`); got != len(migrations.Distributed()) {
			t.Errorf("%d tables are distributed, want %d", got, len(migrations.Distributed()))
		}
		if got := value[int](t, db.SuperURL, `select count(distinct colocationid) from pg_dist_partition`); got != 1 {
			t.Errorf("the tables lie in %d groups, want one", got)
		}
		if got := value[int](t, db.SuperURL, `select coalesce(sum(pg_relation_size(logicalrelid)), 0) from pg_dist_partition`); got != 0 {
			t.Errorf("%d octets are left behind on the coordinator", got)
		}
		if got := value[int](t, db.URL, `select count(*) from ledger_head h join tree_head t using (p)`); got != 1 {
			t.Errorf("%d heads, want the one of partition 0", got)
		}
		if got := value[string](t, db.SuperURL, `select result from run_command_on_shards('events',
			'select n_distinct from pg_stats where tablename = ''%s'' and attname = ''version''') where result <> ''`); got != "200" {
			t.Errorf("the workers' planner takes versions for %s values, want 200", got)
		}
		if got := value[int](t, db.SuperURL, `select count(*) from run_command_on_shards('events',
			'select reloptions from pg_class where oid = ''%s''::regclass') where result <> '{toast_tuple_target=8160}'`); got != 0 {
			t.Errorf("%d shards move payloads out of their rows", got)
		}
		if err := migrations.Distribute(t.Context(), db.SuperURL); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, db.URL, insertEvent)
	for _, statement := range []string{`update events set actor = 'x' where p = 0`, `delete from events where p = 0`, `truncate events`} {
		if err := try(t, db.URL, statement); err == nil {
			t.Errorf("the service may %q", statement)
		}
	}
}

// undistribute moves an empty ledger back to the coordinator. The new tables have no comments.
func undistribute(t *testing.T, url string) {
	t.Helper()
	for _, table := range migrations.Distributed() {
		exec(t, url, `select undistribute_table('`+table+`')`)
	}
	exec(t, url, `comment on table ledger_head is '`+migrations.Beginning()+`'`)
}

// A ledger with events cannot be distributed, because its rows would remain on the coordinator,
// where queries do not see them.
func TestDistributeRefusesALedgerThatHasBegun(t *testing.T) {
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	undistribute(t, db.SuperURL)
	exec(t, db.URL, insertEvent)
	if err := migrations.Distribute(t.Context(), db.SuperURL); !errors.Is(err, migrations.ErrBegun) {
		t.Fatalf("got %v, want ErrBegun", err)
	}
	if got := value[int](t, db.SuperURL, `select count(*) from pg_dist_partition where partmethod = 'h'`); got != 0 {
		t.Errorf("%d tables are distributed after the refusal", got)
	}
}

// A migration after the first one reaches the shards on the workers.
func TestMigrationsOfADistributedLedger(t *testing.T) {
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	exec(t, db.URL, insertEvent)
	if err := migrations.To(t.Context(), db.SuperURL, second, 2); err != nil {
		t.Fatal(err)
	}
	for what, look := range map[string]string{
		"the coordinator": `select count(*) from pg_indexes where indexname = 'events_second'`,
		"the workers": `select count(*) from run_command_on_shards('events', 'select count(*) from pg_index
			where indrelid = ''%s''::regclass and indexrelid::regclass::text like ''events_second%%''') where result = '1'`,
	} {
		if got := value[int](t, db.SuperURL, look); got == 0 {
			t.Errorf("the second migration has not reached %s", what)
		}
	}
}

// The statistics of the first migration reach the shards on the workers.
func TestStatisticsOfADistributedLedger(t *testing.T) {
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	if got := value[string](t, db.SuperURL, `select string_agg(distinct result, ' ') from run_command_on_shards('events',
		'select attstattarget from pg_attribute where attrelid = ''%s''::regclass and attname = ''tenant''')`); got != "0" {
		t.Errorf("the workers' planner keeps statistics of tenants: %s", got)
	}
}

func TestDownRefusesADistributedLedger(t *testing.T) {
	ledgertest.Cluster(t)
	db := ledgertest.New(t)
	if err := migrations.Down(t.Context(), db.SuperURL); !errors.Is(err, migrations.ErrDistributed) {
		t.Fatalf("got %v, want ErrDistributed", err)
	}
	if current, latest, dirty, err := migrations.Status(t.Context(), db.URL); current != latest || dirty || err != nil {
		t.Errorf("after the refusal: at %d of %d, dirty %v, %v", current, latest, dirty, err)
	}
}

// value runs a query and returns its single value.
func value[T any](t *testing.T, url, query string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
