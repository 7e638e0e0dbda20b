// Package ledgertest gives each test its own migrated database on a real PostgreSQL, within a few
// milliseconds.
//
//	func TestAppend(t *testing.T) {
//		db := ledgertest.New(t)
//		pool, err := pgxpool.New(t.Context(), db.URL)
//
// All test programs of "go test ./..." share one temporary server. A package needs no TestMain for
// it; Overlap in a TestMain speeds up slow tests. The first program that needs the server starts
// its own binary again as the keeper (keeper.go). The keeper runs the server and ends a few
// seconds after the last program. The databases lose their data in a crash (fsync off): a test of
// durability starts its own server with localpg.
//
// TEST_DATABASE_URL names another server instead, as a superuser, in the form postgres://…. Its
// roles get no login; tests log in as the superuser and then set the role. If the server is the
// coordinator of a Citus cluster, every test database belongs to the cluster and has a distributed
// ledger (cluster.go). TEST_PARTITIONS is the number of partitions of the tests' ledgers; the
// default is 1.
//
// TEST_DATABASE_DIR names another folder for the shared server instead of /dev/shm or the folder
// for temporary files. If there is no PostgreSQL and none can be fetched, tests are skipped and
// say why; with REQUIRE_DB=1 they fail. Any other error, such as a failed migration, always fails
// the test.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

// Origin is the ledger's origin in every test database. The origin of partition 0 is Origin +
// "/0", as in the worked example of package ledger.
const Origin = "ledger.example.com/countersign"

// DB is the database of one test. The three URLs connect to it as three roles.
type DB struct {
	URL      string // role countersign_app, with the rights of the service
	OwnerURL string // role countersign_owner, with the rights of migrations
	SuperURL string // a superuser, for tests that tamper with the database
	name     string
}

// setupWithin limits the time of New. The first call may have to fetch and start a server.
const setupWithin = 2 * time.Minute

// New creates a database for the test, and drops it when the test ends. The database is migrated
// and has no events. Without a server, New skips or fails the test, as the package comment says.
func New(t testing.TB) *DB {
	t.Helper()
	return NewPartitioned(t, Partitions())
}

// Partitions returns the number of partitions of the tests' ledgers: TEST_PARTITIONS, or 1.
func Partitions() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_PARTITIONS")); err == nil && n > 0 {
		return n
	}
	return 1
}

// setUp returns the shared server, and a context that limits the time for creating a database
// there.
func setUp(t testing.TB) (context.Context, context.CancelFunc, testServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
	s, err := server(ctx)
	if err != nil {
		cancel()
		unavailable(t, err)
	}
	return ctx, cancel, s
}

// NewPartitioned creates a database, as New does, for a ledger with this number of partitions.
func NewPartitioned(t testing.TB, partitions int) *DB {
	t.Helper()
	ctx, cancel, s := setUp(t)
	defer cancel()
	db := s.copy(ctx, t, templateName())
	if partitions > 1 {
		if err := migrations.UpPartitioned(ctx, db.SuperURL, Origin, partitions); err != nil {
			t.Fatalf("make the partitions of a test database: %v", err)
		}
	}
	return db
}

// A Template is the initial content of several tests' databases. A program creates it once and
// copies it for each test.
type Template struct {
	Make func(context.Context, *DB) error // fills the database, and closes what it opens
	once sync.Once
	name string
	err  error
}

// New creates a database with the content of Make. On a server of TEST_DATABASE_URL no template
// may remain, so there New calls Make for each database.
func (m *Template) New(t testing.TB) *DB {
	t.Helper()
	ctx, cancel, s := setUp(t)
	defer cancel()
	if !s.logins {
		db := New(t)
		if err := m.Make(ctx, db); err != nil {
			t.Fatalf("make a test database: %v", err)
		}
		return db
	}
	m.once.Do(func() { m.err = m.prepare(ctx, t, s) })
	if m.err != nil {
		t.Fatalf("make a template: %v", m.err)
	}
	return s.copy(ctx, t, m.name)
}

// prepare creates the template as a copy of a database of this test, so that the template is not
// dropped with the test. It is dropped with the shared server.
func (m *Template) prepare(ctx context.Context, t testing.TB, s testServer) error {
	db := New(t)
	if err := m.Make(ctx, db); err != nil {
		return err
	}
	m.name = fmt.Sprintf("tmpl_%d_%d", os.Getpid(), count.Add(1))
	return s.everywhere(ctx, fmt.Sprintf("create database %s template %s strategy file_copy owner %s", m.name, db.name, migrations.OwnerRole))
}

// copy creates a database for the test from a template.
func (s testServer) copy(ctx context.Context, t testing.TB, template string) *DB {
	t.Helper()
	// A ledger writes to temporary folders of its test until it is closed; the last write is the
	// note of its last event. The first call of TempDir registers the removal of all these
	// folders. Calling it here, before the ledger is opened, means that they are removed after the
	// ledger was closed.
	t.TempDir()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), count.Add(1))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
		defer cancel()
		if err := s.everywhere(ctx, fmt.Sprintf(untilUsersLeft, name), "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	err := s.everywhere(ctx,
		fmt.Sprintf("create database %s template %s strategy file_copy owner %s", name, template, migrations.OwnerRole),
		// A copy has the rights on tables, but not the rights on the database itself.
		fmt.Sprintf("grant create on database %s to %s", name, migrations.AppRole))
	if err != nil {
		t.Fatalf("make a test database: %v", err)
	}
	return &DB{
		URL:      s.url(name, migrations.AppRole),
		OwnerURL: s.url(name, migrations.OwnerRole),
		SuperURL: s.url(name, ""),
		name:     name,
	}
}

// untilUsersLeft waits for the end of sessions whose clients have just disconnected, which takes
// one or two milliseconds. A drop that meets a session waits a tenth of a second before it checks
// again, and delays other tests.
const untilUsersLeft = `do $$ begin
	for i in 1..50 loop
		exit when not exists (select from pg_stat_activity where datname = '%s');
		perform pg_sleep(0.002);
		perform pg_stat_clear_snapshot();
	end loop;
end $$`

var (
	count atomic.Int64 // number of databases that this program has created
	said  sync.Once    // prints the line on stderr only once
)

// unavailable skips or fails a test that cannot get a database.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, localpg.ErrNoPostgres) {
		t.Fatalf("make the test server: %v", err)
	}
	if os.Getenv("REQUIRE_DB") == "1" {
		t.Fatalf("REQUIRE_DB=1, but there is no test server: %v", err)
	}
	said.Do(func() {
		fmt.Fprintln(os.Stderr, "ledgertest: tests that need PostgreSQL are skipped:", localpg.ErrNoPostgres)
	})
	t.Skipf("no test server: %v", err)
}

// A testServer is the server, or cluster, with this program's databases.
type testServer struct {
	super   string   // URL of the superuser
	workers []string // superuser's URLs of the workers, if the server is the coordinator of a cluster
	logins  bool     // the roles may log in without a password
	work    *worker
}

// A worker runs statements as superuser, one after the other, on one connection that stays open.
// Two new connections for each test would cost the server as much as the test's database.
type worker struct {
	mu   sync.Mutex
	conn *pgx.Conn // nil if it was not opened yet
}

// server returns the server with its template. It is determined once for the whole program, and an
// error is kept, too.
var server = func() func(context.Context) (testServer, error) {
	var (
		once sync.Once
		s    testServer
		err  error
	)
	return func(ctx context.Context) (testServer, error) {
		once.Do(func() {
			s.work = &worker{}
			if s.super = os.Getenv("TEST_DATABASE_URL"); s.super != "" {
				if !strings.HasPrefix(s.super, "postgres://") && !strings.HasPrefix(s.super, "postgresql://") {
					err = errors.New("TEST_DATABASE_URL does not begin with postgres://")
				}
			} else {
				s.logins = true
				s.super, err = shared(ctx)
			}
			if err == nil && !s.logins {
				s.workers, err = workersOf(ctx, s.super)
			}
			if err == nil {
				err = s.makeTemplate(ctx)
			}
		})
		return s, err
	}
}()

// templateName returns a name that changes with the migrations. It contains half of their hash,
// because names in PostgreSQL have at most 63 bytes.
func templateName() string { return "tmpl_" + migrations.Hash()[:32] }

// everywhere runs statements as superuser on the server and, in a cluster, on each worker. Each
// statement is its own transaction.
func (s testServer) everywhere(ctx context.Context, statements ...string) error {
	if err := s.work.run(ctx, s.super, statements); err != nil {
		return err
	}
	for _, server := range s.workers {
		if err := (testServer{super: server}).run(ctx, statements...); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) run(ctx context.Context, url string, statements []string) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil || w.conn.IsClosed() {
		if w.conn, err = pgx.Connect(ctx, url); err != nil {
			return err
		}
	}
	return patiently(ctx, w.conn, statements)
}

// templateLock is the advisory lock of the program that creates the template.
const templateLock = 7_024_118_366_510_443

// makeTemplate creates the migrated database that tests copy, unless it exists. It creates it
// under another name and then renames it, so that a killed program leaves no incomplete template.
func (s testServer) makeTemplate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.super)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return err
	}
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, templateName()).Scan(&exists)
	if err != nil || exists {
		return err
	}
	unfinished := templateName() + "_draft"
	if err := s.everywhere(ctx, "drop database if exists "+unfinished+" with (force)", "create database "+unfinished); err != nil {
		return fmt.Errorf("make the template: %w", err)
	}
	if err := s.makeLedger(ctx, unfinished); err != nil {
		return fmt.Errorf("make the template: %w", err)
	}
	err = s.everywhere(ctx,
		"alter database "+unfinished+" allow_connections false",
		// In a cluster, Citus keeps its own session in each database.
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+unfinished+"'",
		"alter database "+unfinished+" rename to "+templateName())
	if err != nil {
		return fmt.Errorf("make the template: %w", err)
	}
	return nil
}

// makeLedger migrates an empty database, and distributes it if it belongs to a cluster.
func (s testServer) makeLedger(ctx context.Context, database string) error {
	if len(s.workers) == 0 {
		return migrations.Up(ctx, s.url(database, ""), Origin)
	}
	if err := s.join(ctx, database); err != nil {
		return err
	}
	if err := migrations.Up(ctx, s.url(database, ""), Origin); err != nil {
		return err
	}
	return migrations.Distribute(ctx, s.url(database, ""))
}

// patiently runs statements, each as its own transaction. If one fails because the database has
// sessions, patiently repeats it: a session that was just closed may still be listed.
func patiently(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for len(statements) > 0 {
		_, err := conn.Exec(ctx, statements[0])
		var pg *pgconn.PgError
		switch {
		case err == nil:
			statements = statements[1:]
		case !errors.As(err, &pg) || pg.Code != "55006":
			return err
		default:
			if waitErr := wait(ctx, pollEvery); waitErr != nil {
				return errors.Join(err, waitErr)
			}
		}
	}
	return nil
}

// run runs statements as superuser on a new connection.
func (s testServer) run(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.super)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return patiently(ctx, conn, statements)
}

// url returns the URL of a database for a role; an empty role is the superuser. If the roles
// cannot log in, the superuser logs in and the session has the role from the start.
func (s testServer) url(database, role string) string {
	u, err := url.Parse(s.super)
	if err != nil {
		return s.super // cannot happen: pgx has connected with it
	}
	u.Path = "/" + database
	query := u.Query()
	switch {
	case role == "":
	case s.logins:
		query.Set("user", role)
	default:
		query.Set("role", role)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
