//go:build unix

package ledgertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/localpg"
)

// TestUser is a separate program for the tests below. It creates a database, prints the server
// that it is on, and waits until its input ends.
func TestUser(t *testing.T) {
	if os.Getenv("LEDGERTEST_USER") == "" {
		t.Skip("only as a child of the other tests")
	}
	db := New(t)
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var started, database, user string
	err = conn.QueryRow(t.Context(), `select pg_postmaster_start_time()::text, current_database(), current_user`).Scan(&started, &database, &user)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("ready|%s|%s|%s\n", started, database, user)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type user struct {
	cmd                       *exec.Cmd
	input                     io.Closer
	output                    *bufio.Reader
	started, database, dbUser string
}

func startUser(t *testing.T, env ...string) *user {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &user{cmd: exec.Command(program, "-test.run=^TestUser$")}
	u.cmd.Env = append(os.Environ(), append(env, "LEDGERTEST_USER=1", "REQUIRE_DB=1")...)
	u.cmd.Stderr = os.Stderr
	u.cmd.WaitDelay = time.Minute // so that no test waits for ever for its child
	if u.input, err = u.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := u.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	u.output = bufio.NewReader(output)
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.end)
	return u
}

func (u *user) ready(t *testing.T) {
	t.Helper()
	var said strings.Builder
	for {
		line, err := u.output.ReadString('\n')
		said.WriteString(line)
		if words := strings.Split(strings.TrimSpace(line), "|"); len(words) == 4 {
			u.started, u.database, u.dbUser = words[1], words[2], words[3]
			return
		}
		if err != nil {
			t.Fatalf("the user of the shared server said:\n%s", said.String())
		}
	}
}

func (u *user) end() {
	_ = u.input.Close()
	_ = u.cmd.Wait()
}

// testDir creates a base folder that the server's user can reach.
func testDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ledgertest-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestProgramsShareOneServerThatEndsAfterTheLast(t *testing.T) {
	t.Parallel()
	New(t) // skips the test if there is no PostgreSQL
	base := testDir(t)
	dir := filepath.Join(base, fmt.Sprintf("countersign-test-%d", os.Geteuid()))
	users := make([]*user, 3)
	for i := range users {
		users[i] = startUser(t, "TEST_DATABASE_DIR="+base)
	}
	databases := map[string]bool{}
	for _, u := range users {
		u.ready(t)
		databases[u.database] = true
		if u.started != users[0].started {
			t.Errorf("two servers: started %s and %s", users[0].started, u.started)
		}
	}
	if len(databases) != len(users) {
		t.Errorf("%d programs have %d databases", len(users), len(databases))
	}

	// A program that was killed or has ended does not count as a user. A later program gets the
	// same server.
	if err := users[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	users[0].end()
	users[1].end()
	late := startUser(t, "TEST_DATABASE_DIR="+base)
	late.ready(t)
	if late.started != users[2].started {
		t.Errorf("a later program got a server started %s, not %s", late.started, users[2].started)
	}
	users[2].end()
	late.end()

	me, err := lock(t.Context(), filepath.Join(dir, "keeper"), syscall.LOCK_EX) // waits until the keeper ends
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	for _, name := range []string{"ready", "data/pg", "data/run"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func TestAProgramThatComesWhileTheKeeperEndsGetsANewServer(t *testing.T) {
	t.Parallel()
	New(t)
	base := testDir(t)
	first := startUser(t, "TEST_DATABASE_DIR="+base)
	first.ready(t)
	dir := filepath.Join(base, fmt.Sprintf("countersign-test-%d", os.Geteuid()))
	first.end()
	keeper, err := lock(t.Context(), filepath.Join(dir, "keeper"), syscall.LOCK_EX) // waits until the keeper ends
	if err != nil {
		t.Fatal(err)
	}
	// Imitate a keeper that is about to end: it has both locks, users last.
	ending, err := lock(t.Context(), filepath.Join(dir, "users"), syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	second := startUser(t, "TEST_DATABASE_DIR="+base)
	if err := errors.Join(keeper.Close(), ending.Close()); err != nil {
		t.Fatal(err)
	}
	second.ready(t)
	if second.started == first.started {
		t.Error("the second program is on the server that ended")
	}
}

func TestDatabaseURLNamesAnotherServer(t *testing.T) {
	t.Parallel()
	New(t)
	dir := filepath.Join(testDir(t), "data")
	s, err := localpg.Start(t.Context(), localpg.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // its own test
	u := startUser(t, "TEST_DATABASE_URL="+s.DatabaseURL(localpg.Superuser, "postgres"))
	u.ready(t)
	if u.dbUser != "countersign_app" {
		t.Errorf("the test works as %s", u.dbUser)
	}
	conn, err := pgx.Connect(t.Context(), s.URL(localpg.Superuser))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var there bool
	if err := conn.QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, u.database).Scan(&there); err != nil || !there {
		t.Errorf("the database %s is not on the server named: %v", u.database, err)
	}
	u.end()
	if err := conn.QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, u.database).Scan(&there); err != nil || there {
		t.Errorf("the database %s was not dropped: %v", u.database, err)
	}
}

// recorder is a testing.TB that records whether it was skipped or failed.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Skipf(f string, a ...any)  { r.skipped = fmt.Sprintf(f, a...); panic(r) }
func (r *recorder) Fatalf(f string, a ...any) { r.failed = fmt.Sprintf(f, a...); panic(r) }

func TestWithoutPostgresTestsSkipUnlessRequired(t *testing.T) {
	said.Do(func() {}) // suppress the line on stderr
	exit := func(code int) error {
		return exec.Command("/bin/sh", "-c", fmt.Sprintf("exit %d", code)).Run()
	}
	none := explain(exit(exitNoPostgres), "fetching …\nno PostgreSQL to keep the ledger in\n  looked for it")
	for name, test := range map[string]struct {
		err      error
		required string
		want     recorder
	}{
		"nothing there":               {none, "", recorder{skipped: "no test server: no PostgreSQL to keep the ledger in\n  looked for it"}},
		"nothing there, but required": {none, "1", recorder{failed: "REQUIRE_DB=1, but there is no test server: no PostgreSQL to keep the ledger in\n  looked for it"}},
		"a keeper that failed":        {explain(exit(2), "disk full"), "", recorder{failed: "make the test server: the keeper of the shared test server ended (exit status 2):\ndisk full"}},
		"a migration that failed":     {errors.New("make the template: syntax error"), "", recorder{failed: "make the test server: make the template: syntax error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REQUIRE_DB", test.required)
			var got recorder
			func() {
				defer func() { _ = recover() }()
				unavailable(&got, test.err)
			}()
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestAFolderOfSomebodyElseIsRefused(t *testing.T) {
	base := testDir(t)
	t.Setenv("TEST_DATABASE_DIR", base)
	dir := filepath.Join(base, fmt.Sprintf("countersign-test-%d", os.Geteuid()))
	if err := os.Symlink(testDir(t), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := sharedDir(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("a link was taken: %v", err)
	}
}

// BenchmarkNew creates one database, connects to it once, and drops it.
func BenchmarkNew(b *testing.B) {
	New(b)
	var clone, drop time.Duration
	for b.Loop() {
		began := time.Now()
		s, err := server(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("bench_%d_%d", os.Getpid(), count.Add(1))
		if err := s.run(b.Context(), "create database "+name+" template "+templateName()+" strategy file_copy"); err != nil {
			b.Fatal(err)
		}
		clone += time.Since(began)
		began = time.Now()
		if err := s.run(b.Context(), "drop database "+name+" with (force)"); err != nil {
			b.Fatal(err)
		}
		drop += time.Since(began)
	}
	b.ReportMetric(float64(clone.Microseconds())/1000/float64(b.N), "ms/clone")
	b.ReportMetric(float64(drop.Microseconds())/1000/float64(b.N), "ms/drop")
}
