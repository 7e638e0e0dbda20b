// Package pooler detects a connection pooler between the ledger and PostgreSQL.
package pooler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrMixes means that the connection leads through a pooler that mixes sessions.
var ErrMixes = errors.New("DATABASE_URL leads through a pooler in transaction mode, which mixes the sessions of its clients, " +
	"and with them roles and settings: name PostgreSQL itself, or set the pooler to session mode")

// poolerClients is the number of other connections that occupy a session during the check. If a
// pooler has at most this many idle sessions, the first connection gets another session
// afterwards, which shows that the pooler mixes sessions.
const poolerClients = 4

// patience limits the time of the check.
const patience = 5 * time.Second

// Refuse returns ErrMixes if the connection leads through a pooler that assigns a session for only
// one transaction. Role, time-outs, LISTEN and durability are settings of the session, and such a
// pooler would apply them to other clients.
//
// PostgreSQL sends the process id of a session when the session begins. If pg_backend_pid()
// returns the same id, there is no pooler, and the check ends. A pooler or proxy sends an id of
// its own. Refuse accepts a pooler that keeps one session for each client: no two clients have the
// same process, and the process of a client does not change.
//
// The check runs before all other statements. The first statements set role and time-outs, and a
// mixing pooler would leave these in the sessions of other clients.
func Refuse(ctx context.Context, first *pgconn.PgConn, config *pgconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	process, err := ask(ctx, first, `select pg_backend_pid()`)
	if err != nil || process == strconv.FormatUint(uint64(first.PID()), 10) {
		return err
	}
	for range poolerClients {
		other, err := pgconn.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return fmt.Errorf("connect to the database: %w", err)
		}
		defer hangUp(other)
		// The open transaction keeps other clients from this session.
		if got, err := ask(ctx, other, `begin; select pg_backend_pid()`); err != nil {
			return err
		} else if got == process {
			return ErrMixes
		}
	}
	if again, err := ask(ctx, first, `select pg_backend_pid()`); err != nil || again != process {
		return errors.Join(ErrMixes, err)
	}
	return nil
}

// ask runs statements and returns the single value of the last one.
func ask(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", fmt.Errorf("ask the database for its process: %w", err)
	}
	last := results[len(results)-1]
	if len(last.Rows) != 1 || len(last.Rows[0]) != 1 {
		return "", errors.New("ask the database for its process: no answer")
	}
	return string(last.Rows[0][0]), nil
}

func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
