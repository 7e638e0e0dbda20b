package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler refuses a connection through which sessions are mixed.
var errPooler = errors.New("DATABASE_URL leads through a pooler in transaction mode, which mixes the sessions of its clients, " +
	"and with them roles and settings: name PostgreSQL itself, or set the pooler to session mode")

// poolerClients is how many other connections are held while one is looked at: a
// pooler with no more idle sessions than these has to give it another one.
const poolerClients = 4

// refusePooler tells a session of PostgreSQL from a pooler that lends a session for
// one transaction only. Role, time-outs, LISTEN and durability are settings of the
// session: through such a pooler they would be somebody else's.
//
// PostgreSQL names the process of a session when it begins, and pg_backend_pid()
// says the same: then nothing stands between, and that is all that is asked. A
// pooler or proxy names a process of its own making. One that keeps a session for
// each client is good, and shows it: no two clients have one process, and none
// changes.
//
// It asks before anything else is said on the connection: the first statements set
// role and time-outs, and behind such a pooler those would stay with sessions of other
// clients.
func refusePooler(ctx context.Context, first *pgconn.PgConn, config *pgconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
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
		// The transaction stays open, so that its session is lent to nobody else.
		if got, err := ask(ctx, other, `begin; select pg_backend_pid()`); err != nil {
			return err
		} else if got == process {
			return errPooler
		}
	}
	if again, err := ask(ctx, first, `select pg_backend_pid()`); err != nil || again != process {
		return errors.Join(errPooler, err)
	}
	return nil
}

// ask returns the last value of a text of statements.
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
