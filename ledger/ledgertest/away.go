package ledgertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Away lets no session of the database begin and ends all there are: it is gone for its
// users until Back. A session that was beginning meanwhile is ended, too.
func (db *DB) Away(t testing.TB) {
	t.Helper()
	db.elsewhere(t, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `alter database `+db.name+` allow_connections false`)
		for left := 1; left > 0 && err == nil; {
			err = conn.QueryRow(ctx, `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1`, db.name).Scan(&left)
		}
		return err
	})
}

// Back lets sessions begin again.
func (db *DB) Back(t testing.TB) {
	t.Helper()
	db.elsewhere(t, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `alter database `+db.name+` allow_connections true`)
		return err
	})
}

// elsewhere does something from another database of the server.
func (db *DB) elsewhere(t testing.TB, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
	defer cancel()
	config, err := pgx.ParseConfig(db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := do(ctx, conn); err != nil {
		t.Fatal(fmt.Errorf("put a test database away or back: %w", err))
	}
}
