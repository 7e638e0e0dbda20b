//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/migrations"
)

func TestStartServesThreeRolesAndStopEndsIt(t *testing.T) {
	dir := dataDir(t)
	var log strings.Builder
	s := start(t, Options{DataDir: dir, Log: &log})
	if s.Adopted() {
		t.Error("a new server says it was adopted")
	}
	for _, role := range []string{migrations.OwnerRole, migrations.AppRole, Superuser} {
		if got := query(t, s.URL(role), `select current_user || '@' || current_database()`); got != role+"@countersign" {
			t.Errorf("as %s: %s", role, got)
		}
	}
	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "data_checksums": "on",
		"listen_addresses": "", "max_connections": "100", "shared_buffers": "128MB",
		"bgwriter_delay": "20ms", "backend_flush_after": "256kB", "max_parallel_workers_per_gather": "0", "server_encoding": "UTF8", "lc_collate": "C",
	} {
		if setting == "lc_collate" {
			if got := query(t, s.URL(Superuser), `select datcollate from pg_database where datname = 'countersign'`); got != want {
				t.Errorf("collation %q, want %q", got, want)
			}
			continue
		}
		if got := query(t, s.URL(Superuser), "show "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	for _, private := range []string{"pg", "run"} {
		info, err := os.Stat(filepath.Join(dir, private))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want 0700", private, info.Mode(), err)
		}
	}
	if !strings.Contains(log.String(), "data in "+dir) {
		t.Errorf("the start line does not name the data folder:\n%s", log.String())
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	<-s.Done()
	if exists(filepath.Join(dir, "pg", "postmaster.pid")) {
		t.Error("the server left its pid file")
	}
	if err := (*Server)(nil).Stop(); err != nil {
		t.Errorf("stop of a server that never started: %v", err)
	}
}

func TestMigrationsRunAsOwnerAndTheServiceCannotChangeTheSchema(t *testing.T) {
	s := start(t, Options{DataDir: dataDir(t)})
	if err := migrations.Up(t.Context(), s.URL(migrations.OwnerRole), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := tryQuery(t.Context(), s.URL(migrations.AppRole), `create table mine (n int)`); err == nil {
		t.Error("the service made a table in the ledger's schema")
	}
	if got := query(t, s.URL(migrations.AppRole), `select rolsuper::text from pg_roles where rolname = current_user`); got != "false" {
		t.Error("the service is a superuser")
	}
}

func TestSecondStartAdoptsAndStartsAgainWhenTheFirstEnds(t *testing.T) {
	dir := dataDir(t)
	first := start(t, Options{DataDir: dir})
	second := start(t, Options{DataDir: dir})
	if !second.Adopted() || second.URL(Superuser) != first.URL(Superuser) {
		t.Fatalf("the second start did not adopt: %v, %s", second.Adopted(), second.URL(Superuser))
	}
	third := start(t, Options{DataDir: dir})
	if err := third.Stop(); err != nil {
		t.Fatal(err)
	}
	<-third.Done()
	query(t, second.URL(migrations.AppRole), `select '1'`)

	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	<-second.Done()
	if again := start(t, Options{DataDir: dir}); again.Adopted() {
		t.Error("the start after the end of the server adopted something")
	}
}

func TestTwoStartsAtOnceMakeOneServer(t *testing.T) {
	needPostgres(t)
	dir := dataDir(t)
	const programs = 3
	adopted := make(chan bool, programs)
	var all sync.WaitGroup
	for range programs {
		all.Go(func() {
			s, err := Start(t.Context(), Options{DataDir: dir, NoFetch: true})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = s.Stop() })
			adopted <- s.Adopted()
		})
	}
	all.Wait()
	close(adopted)
	started := 0
	for a := range adopted {
		if !a {
			started++
		}
	}
	if started != 1 {
		t.Errorf("%d servers were started, want 1", started)
	}
}

func TestStartWhileTheLastServerStops(t *testing.T) {
	dir := dataDir(t)
	s := start(t, Options{DataDir: dir})
	for range 5 {
		stopped := make(chan error)
		go func() { stopped <- s.Stop() }()
		next, err := Start(t.Context(), Options{DataDir: dir, NoFetch: true})
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = next.Stop() })
		if next.Adopted() { // it had adopted the old server before the stop ended that server
			<-next.Done()
			next = start(t, Options{DataDir: dir})
		}
		s = next
	}
	query(t, s.URL(migrations.AppRole), `select '1'`)
}

func TestStalePIDFileOfALivingStranger(t *testing.T) {
	dir := dataDir(t)
	other := start(t, Options{DataDir: dataDir(t)})
	s := start(t, Options{DataDir: dir})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	user, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := launch("/bin/sleep", []string{"600"}, user, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.process.Kill() //nolint:errcheck // it may have ended
	for name, socketDir := range map[string]string{
		"a process that is no server":       filepath.Join(dir, "run"),
		"a server of another folder":        other.socketDir,
		"a socket folder that is gone":      "/nonexistent",
		"a pid file that ends after a line": "",
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("%d\n", stranger.pid)
			if socketDir != "" {
				text += fmt.Sprintf("%s/pg\n1795186800\n%d\n%s\n\n  1234567    123456\nready   \n", dir, port, socketDir)
			}
			path := filepath.Join(dir, "pg", "postmaster.pid")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			socket := filepath.Join(dir, "run", ".s.PGSQL.5432.lock")
			if err := os.WriteFile(socket, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			s := start(t, Options{DataDir: dir})
			if s.Adopted() {
				t.Fatal("a stranger was adopted")
			}
			if got := query(t, s.URL(Superuser), `show data_directory`); got != filepath.Join(dir, "pg") {
				t.Errorf("the data is in %s", got)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	query(t, other.URL(Superuser), `select '1'`)
}

// The pid file stays until the server is proven to be dead. Here its process id does not exist in
// this container. While the lock is held, the start waits and gives up; without the lock,
// PostgreSQL decides.
func TestPIDFileOfAServerElsewhereStays(t *testing.T) {
	dir := dataDir(t)
	s := start(t, Options{DataDir: dir})
	held := &launcher{dataDir: dir}
	if !held.heldAlive() {
		t.Error("a running server does not hold its lock")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if held.heldAlive() {
		t.Error("a stopped server holds its lock")
	}
	pid := filepath.Join(dir, "pg", "postmaster.pid")
	const elsewhere = "4194304\n/pg\n1795186800\n5432\n/nonexistent\n\n  1234567    123456\nready   \n" // larger than every process id here
	if err := os.WriteFile(pid, []byte(elsewhere), 0o644); err != nil {
		t.Fatal(err)
	}
	alive, err := lockedFile(t.Context(), held.alivePath())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*readyEvery, cancel) // nothing ends the wait earlier
	if _, err := Start(ctx, Options{DataDir: dir, NoFetch: true}); err == nil {
		t.Error("started beside a server that lives")
	}
	if text, err := os.ReadFile(pid); err != nil || string(text) != elsewhere {
		t.Errorf("the pid file: %q, %v", text, err)
	}
	_ = alive.Close()
	if err := os.Remove(held.alivePath()); err != nil { // without this file only PostgreSQL can tell that the server is dead
		t.Fatal(err)
	}
	query(t, start(t, Options{DataDir: dir}).URL(Superuser), `select '1'`)
}

// write inserts rows, each in its own commit, until the server is gone. It calls acknowledged with
// the number of each committed row.
func write(ctx context.Context, conn *pgx.Conn, acknowledged func(int)) {
	for n := 1; ; n++ {
		if _, err := conn.Exec(ctx, `insert into kept values ($1)`, n); err != nil {
			return
		}
		acknowledged(n)
	}
}

// killedWhileWriting runs a server in a separate program. It calls kill after a hundred
// acknowledged rows, while more are written, and returns the highest acknowledged one.
func killedWhileWriting(t *testing.T, dir string, kill func(p *program, postgres int)) (last int) {
	t.Helper()
	p := runProgram(t, self(t), "serve", dir)
	conn, err := pgx.Connect(t.Context(), p.ready[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `create table kept (n int primary key)`); err != nil {
		t.Fatal(err)
	}
	pid, ok := readPIDFile(filepath.Join(dir, "pg"))
	if !ok {
		t.Fatal("the server has no pid file")
	}
	enough, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		write(t.Context(), conn, func(n int) {
			if last = n; n == 100 {
				close(enough)
			}
		})
	}()
	<-enough
	kill(p, pid.pid)
	<-ended
	return last
}

// wantRows starts the server again and checks the number of rows.
func wantRows(t *testing.T, dir string, last int) {
	t.Helper()
	s := start(t, Options{DataDir: dir})
	if s.Adopted() {
		t.Error("a server that should be gone was adopted")
	}
	rows, err := strconv.Atoi(query(t, s.URL(Superuser), `select count(*)::text from kept`))
	if err != nil {
		t.Fatal(err)
	}
	// There may be one more row, which was committed but not acknowledged.
	if rows != last && rows != last+1 {
		t.Errorf("%d rows were acknowledged, %d are there", last, rows)
	}
}

func TestKillOfBothLosesNoRow(t *testing.T) {
	needPostgres(t)
	dir := dataDir(t)
	last := killedWhileWriting(t, dir, func(p *program, postgres int) {
		if err := syscall.Kill(postgres, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.kill(t)
	})
	if !exists(filepath.Join(dir, "pg", "postmaster.pid")) {
		t.Fatal("the killed server left no pid file: the test does not test")
	}
	wantRows(t, dir, last)
}

func TestLongPathsGetASocketInTheTempFolder(t *testing.T) {
	dir := filepath.Join(dataDir(t), strings.Repeat("long", 20))
	s := start(t, Options{DataDir: dir})
	if s.temp == "" || s.socketDir != s.temp {
		t.Fatalf("the socket is in %s", s.socketDir)
	}
	info, err := os.Stat(s.temp)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has mode %v, %v", info.Mode(), err)
	}
	second := start(t, Options{DataDir: dir})
	if !second.Adopted() {
		t.Error("the second start did not find the socket")
	}
	query(t, second.URL(migrations.AppRole), `select '1'`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if exists(s.temp) {
		t.Error("the socket's folder is still there after Stop")
	}
}

func TestServerThatEndsWhileStartingSaysWhy(t *testing.T) {
	needPostgres(t)
	_, err := Start(t.Context(), Options{DataDir: dataDir(t), NoFetch: true, Settings: []string{"work_mem=nonsense"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "work_mem"`) {
		t.Errorf("got %v, want the end of the server's log", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	dir := dataDir(t)
	s := start(t, Options{DataDir: dir})
	unlock, err := lockFile(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{DataDir: dir, NoFetch: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a start that waits for the lock returned %v", err)
	}
	query(t, s.URL(Superuser), `select '1'`)
}

func TestFoldersThatAreNotOursAreLeftAlone(t *testing.T) {
	needPostgres(t)
	t.Run("something else in pg", func(t *testing.T) {
		dir := dataDir(t)
		letter := filepath.Join(dir, "pg", "letter.txt")
		if err := os.MkdirAll(filepath.Dir(letter), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(letter, []byte("dear"), 0o644); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, dir, "contains files that are not a PostgreSQL cluster")
		if !exists(letter) {
			t.Error("what was there is gone")
		}
	})
	t.Run("a link instead of run", func(t *testing.T) {
		dir, elsewhere := dataDir(t), t.TempDir()
		if err := os.Chmod(elsewhere, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, dir, "is not a folder")
		if info, err := os.Stat(elsewhere); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the other folder was changed: %v, %v", info.Mode(), err)
		}
	})
	t.Run("a file instead of the data folder", func(t *testing.T) {
		dir := dataDir(t)
		if err := os.WriteFile(dir, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, dir, "is not a folder")
	})
	t.Run("somebody else's", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give a folder away")
		}
		for _, name := range []string{"", "pg", "run"} {
			dir := dataDir(t)
			folder := filepath.Join(dir, name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(folder, 54321, 54321); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, dir, "belongs to another user (uid 54321)")
			if info, err := os.Stat(folder); err != nil || owner(info) != 54321 {
				t.Errorf("%q has another owner now, %v", name, err)
			}
		}
	})
	t.Run("a closed folder above", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("an ordinary user's server runs as that user")
		}
		dir := dataDir(t)
		if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, dir, filepath.Dir(dir)+" is closed to that user")
	})
}

func wantRefused(t *testing.T, dir, text string) {
	t.Helper()
	s, err := Start(t.Context(), Options{DataDir: dir, NoFetch: true})
	if err == nil {
		_ = s.Stop()
		t.Errorf("started; want an error with %q", text)
	} else if !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	usual := "/home/ada/.local/share/countersign"
	if os.Geteuid() == 0 {
		usual = "/var/lib/countersign"
	}
	for xdg, want := range map[string]string{ // the variable applies to root, too
		"":         usual,
		"relative": usual,
		"/data":    "/data/countersign",
	} {
		t.Setenv("XDG_DATA_HOME", xdg)
		if got := DefaultDataDir(); got != want {
			t.Errorf("XDG_DATA_HOME=%q: %s, want %s", xdg, got, want)
		}
	}
}
