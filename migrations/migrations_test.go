package migrations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/migrations"
)

func TestUpAndDownBothWays(t *testing.T) {
	ledgertest.Plain(t) // a distributed ledger is never migrated down
	db := ledgertest.New(t)
	ctx := t.Context()
	wantStatus := func(url string, want uint) {
		t.Helper()
		current, latest, dirty, err := migrations.Status(ctx, url)
		if err != nil || current != want || latest != migrations.Latest() || dirty {
			t.Fatalf("status %d, latest %d, dirty %v, %v; want %d", current, latest, dirty, err, want)
		}
	}
	wantStatus(db.URL, migrations.Latest())
	for range 2 {
		for n := migrations.Latest(); n > 0; n-- {
			if err := migrations.Down(ctx, db.OwnerURL); err != nil {
				t.Fatal(err)
			}
			wantStatus(db.OwnerURL, n-1)
		}
		if left := tables(t, db.SuperURL); left != 1 {
			t.Errorf("%d tables are left after all downs; want schema_migrations alone", left)
		}
		for range 2 { // the second time there is nothing to do
			if err := migrations.Up(ctx, db.OwnerURL, ledgertest.Origin); err != nil {
				t.Fatal(err)
			}
			wantStatus(db.URL, migrations.Latest())
		}
	}
}

// second is an example of a later release's migration.
var second = fstest.MapFS{
	"0002_second.up.sql": {Data: []byte(`begin;
do $$
begin
    create index events_second on events (p, event_id);
end
$$;
commit;`)},
	"0002_second.down.sql": {Data: []byte(`drop index events_second;`)},
}

// A later release's migration can be applied to a ledger with events and can be undone.
func TestASecondMigration(t *testing.T) {
	ledgertest.Plain(t)
	db := ledgertest.New(t)
	exec(t, db.URL, insertEvent)
	for _, want := range []uint{2, 1, 2} {
		if err := migrations.To(t.Context(), db.OwnerURL, second, want); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, db.URL, `select (1 + count(*))::text from pg_indexes where indexname = 'events_second'`); got != fmt.Sprint(want) {
			t.Errorf("at %d the schema is that of %s", want, got)
		}
	}
	// The older program reports the newer version and does not change the ledger.
	if current, latest, _, err := migrations.Status(t.Context(), db.URL); current != 2 || latest != 1 || err != nil {
		t.Errorf("at %d, latest %d, %v", current, latest, err)
	}
	if err := migrations.Up(t.Context(), db.OwnerURL, ""); err == nil {
		t.Error("an old program migrated a newer database")
	}
}

// All functions that migrate refuse a database with another first migration. The error says what
// to do, and the database stays unchanged.
func TestADatabaseWithAnotherBeginningIsRefused(t *testing.T) {
	for name, change := range map[string]string{
		"an earlier program":         `comment on table ledger_head is null; update schema_migrations set version = 11`,
		"an earlier program's first": `comment on table ledger_head is null`,
		"another text of it":         `comment on table ledger_head is '` + strings.Repeat("0", 64) + `'`,
		"the text applied by hand":   `comment on table ledger_head is '{beginning}'`,
		"without a number":           `comment on table ledger_head is null; drop table schema_migrations`,
	} {
		t.Run(name, func(t *testing.T) {
			db := ledgertest.New(t)
			exec(t, db.OwnerURL, change)
			ctx := t.Context()
			_, _, _, status := migrations.Status(ctx, db.URL)
			for what, err := range map[string]error{
				"check": migrations.Check(ctx, db.URL), "status": status, "up": migrations.Up(ctx, db.OwnerURL, ""), "down": migrations.Down(ctx, db.OwnerURL),
				"force": migrations.Force(ctx, db.OwnerURL, 1), "distribute": migrations.Distribute(ctx, db.OwnerURL),
			} {
				if !errors.Is(err, migrations.ErrAnotherBeginning) || !strings.Contains(err.Error(), "start with an empty database") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if heads := ask(t, db.URL, `select count(*)::text from ledger_head`); heads != fmt.Sprint(ledgertest.Partitions()) {
				t.Errorf("%s heads are left", heads)
			}
		})
	}
}

func TestDownRefusesALedgerWithEvents(t *testing.T) {
	ledgertest.Plain(t) // a distributed ledger is refused before its events are counted
	db := ledgertest.New(t)
	exec(t, db.URL, insertEvent)
	if err := migrations.Down(t.Context(), db.OwnerURL); !errors.Is(err, migrations.ErrHoldsEvents) {
		t.Fatalf("got %v, want ErrHoldsEvents", err)
	}
	if current, _, dirty, err := migrations.Status(t.Context(), db.URL); current != migrations.Latest() || dirty || err != nil {
		t.Errorf("after the refusal: version %d, dirty %v, %v", current, dirty, err)
	}
}

// downAll undoes every migration.
func downAll(t *testing.T, url string) {
	t.Helper()
	for range migrations.Latest() {
		if err := migrations.Down(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
}

const insertEvent = `insert into events (p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more,
	occurred_us, actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash)
	values (0, 1, 'service', 1, 'policy', 1, 'evt_1', 'policy.drafted', 1, 0, 1795186800000000, 'system', '', null, null,
	'{}', sha256('{}'), sha256('prev'), sha256('hash'))`

func tables(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	err = conn.QueryRow(t.Context(), `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname in ('public', 'readmodels')`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	if err := try(t, url, statement); err != nil {
		t.Fatal(err)
	}
}

func try(t *testing.T, url, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), statement)
	return err
}
