package ledgertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// terminateEvery is the shortest time between two rounds of Terminate.
const terminateEvery = 10 * time.Millisecond

// Terminate ends about this share of the database's sessions, in rounds, until stop is closed. It
// returns the number of ended sessions. A round starts only after the result of done has grown.
// Otherwise, if a session took longer to start than a round, the tested work would make no
// progress.
func (db *DB) Terminate(t testing.TB, share float64, done func() int64, stop <-chan struct{}) (ended int64) {
	t.Helper()
	super, err := pgx.Connect(context.Background(), db.SuperURL)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer super.Close(context.Background())
	statement := fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and random() < %g`, share)
	tick := time.NewTicker(terminateEvery)
	defer tick.Stop()
	for before := int64(-1); ; {
		select {
		case <-stop:
			return ended
		case <-tick.C:
		}
		now := done()
		if now == before {
			continue
		}
		before = now
		tag, err := super.Exec(context.Background(), statement)
		if err != nil {
			t.Error(err)
			return ended
		}
		ended += tag.RowsAffected()
	}
}
