//go:build unix

package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childEnv is the environment variable that makes this test binary run as another program. Some
// tests must kill a program, and a test cannot kill itself.
const childEnv = "LOCALPG_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "serve":
		childServes()
	case "go":
		childIsGo()
	case "program":
		childIsProgram()
	}
}

// childServes starts the server of the folder in its first argument, prints where it listens, and
// stops it when its input ends.
func childServes() {
	s, err := Start(context.Background(), Options{DataDir: os.Args[1], NoFetch: true, Log: os.Stderr})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(2)
	}
	fmt.Println("ready", s.Adopted(), s.URL(Superuser))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childIsGo imitates the go command: it runs a program and waits for it.
func childIsGo() {
	cmd := exec.Command(os.Args[1])
	cmd.Env = append(os.Environ(), childEnv+"=program")
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = cmd.Wait()
}

// childIsProgram imitates a program under "go run": it waits for a signal, even if its input ends,
// and prints which signal it got.
func childIsProgram() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGWINCH)
	DieWithGoRun()
	fmt.Println("ready", os.Getpid())
	fmt.Println((<-signals).String())
}

// A program is this test binary, running one of the children above.
type program struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	ready  []string // words that it printed after "ready"
}

func runProgram(t *testing.T, path, what string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(path, args...)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+what)
	p.cmd.Stderr = os.Stderr
	input, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	// StdoutPipe does not work here: the output of the program's child is read after the program
	// has ended.
	output, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	if err := output.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = writer
	err = p.cmd.Start()
	_ = writer.Close()
	if err != nil {
		t.Fatal(err)
	}
	p.input, p.output = input, bufio.NewReader(output)
	t.Cleanup(p.end)
	line, err := p.output.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || words[0] != "ready" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	p.ready = words[1:]
	return p
}

// end lets the program end normally. It may be called twice.
func (p *program) end() {
	_ = p.input.Close()
	_ = p.cmd.Wait()
}

// kill kills the program, as the kernel does when memory runs out.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// dataDir creates an empty data folder that the server's user can reach, unlike those of
// t.TempDir. It is in memory if there is room: a killed process loses nothing there, and on a disk
// the tests take six times as long.
func dataDir(t *testing.T) string {
	t.Helper()
	memory := "/dev/shm"
	var room syscall.Statfs_t
	if syscall.Statfs(memory, &room) != nil || uint64(room.Bavail)*uint64(room.Bsize) < 512<<20 {
		memory = "" // empty means the default folder for temporary files
	}
	parent, err := os.MkdirTemp(memory, "localpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "data")
}

// start starts a server for the test. Without PostgreSQL it skips the test, or fails it if
// REQUIRE_DB is 1.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	needPostgres(t)
	o.NoFetch = true
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func needPostgres(t *testing.T) {
	t.Helper()
	user, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	l := &launcher{user: user}
	for _, b := range l.installed() {
		if b.major >= oldestMajor {
			return
		}
	}
	if os.Getenv("REQUIRE_DB") == "1" {
		t.Fatal("REQUIRE_DB=1, but this machine has no PostgreSQL")
	}
	t.Skip("this machine has no PostgreSQL")
}

// query runs one statement and returns its only value as text.
func query(t *testing.T, url, statement string) string {
	t.Helper()
	value, err := tryQuery(t.Context(), url, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

func tryQuery(ctx context.Context, url, statement string) (value string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, statement).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return value, err
}

// until waits until done returns true. Its only limit is the deadline of all tests, because the
// machine may be slow.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		if deadline, set := t.Deadline(); set && time.Until(deadline) < 5*time.Second {
			t.Fatalf("the condition did not become true before the deadline of the tests: %s", what)
		}
		<-tick.C
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
