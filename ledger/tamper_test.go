package ledger_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

func TestTheApplicationCannotChangeEvents(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.New(), "a")); err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{"application": db.URL}
	if !ledgertest.OnCluster() { // a cluster has no triggers on this table
		roles["owner"] = db.OwnerURL
	}
	for name, url := range roles {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`update events set actor = 'x'`, `delete from events`, `truncate events`,
		} {
			if _, err := conn.Exec(t.Context(), statement); err == nil {
				t.Errorf("the %s may: %s", name, statement)
			}
		}
		_ = conn.Close(t.Context())
	}
	fixture.Clean(t, l, 1)
}

// A read recomputes the hash of an event, so an altered event is not returned.
func TestATamperedEventIsNotServed(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.New(), "a")); err != nil {
		t.Fatal(err)
	}
	super := fixture.Must(pgx.Connect(t.Context(), db.SuperURL))
	defer super.Close(t.Context())
	fixture.Must(super.Exec(t.Context(), `set session_replication_role = replica; update events set payload = '{"a":1}'`))
	if _, err := l.Read(t.Context(), "service", "s"); err == nil {
		t.Error("a tampered event was served")
	}
}
