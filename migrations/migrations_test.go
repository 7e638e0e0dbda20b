package migrations_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/migrations"
)

func TestUpAndDownBothWays(t *testing.T) {
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

func TestDownRefusesALedgerWithEvents(t *testing.T) {
	db := ledgertest.New(t)
	exec(t, db.URL, insertEvent)
	if err := migrations.Down(t.Context(), db.OwnerURL); !errors.Is(err, migrations.ErrHoldsEvents) {
		t.Fatalf("got %v, want ErrHoldsEvents", err)
	}
	if current, _, dirty, err := migrations.Status(t.Context(), db.URL); current != migrations.Latest() || dirty || err != nil {
		t.Errorf("after the refusal: version %d, dirty %v, %v", current, dirty, err)
	}
}

// downAll takes every migration back.
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
