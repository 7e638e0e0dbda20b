package ledgertest

import (
	"fmt"
	"testing"
)

// Away makes the database unreachable until Back: it forbids new sessions and ends all existing
// ones, including sessions that are just starting.
func (db *DB) Away(t testing.TB) {
	t.Helper()
	db.fromElsewhere(t, "alter database "+db.name+" allow_connections false", fmt.Sprintf(endUsers, db.name))
}

// Back allows sessions again.
func (db *DB) Back(t testing.TB) {
	t.Helper()
	db.fromElsewhere(t, "alter database "+db.name+" allow_connections true")
}

// endUsers ends the sessions of a database until none is left.
const endUsers = `do $$ begin
	loop
		perform pg_terminate_backend(pid) from pg_stat_activity where datname = '%s';
		exit when not found;
		perform pg_stat_clear_snapshot();
	end loop;
end $$`

// fromElsewhere runs statements from another database of the server.
func (db *DB) fromElsewhere(t testing.TB, statements ...string) {
	t.Helper()
	ctx, cancel, s := setUp(t)
	defer cancel()
	if err := s.run(ctx, statements...); err != nil {
		t.Fatalf("make a test database unreachable, or reachable again: %v", err)
	}
}
