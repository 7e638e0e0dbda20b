package localpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKillOfTheParentStopsTheServerAndLosesNoRow(t *testing.T) {
	needPostgres(t)
	dir := dataDir(t)
	var pid int
	last := killedWhileWriting(t, dir, func(p *program, postgres int) {
		pid = postgres
		p.kill(t)
	})
	until(t, "the server ends by itself", func() bool { return !runsIn(pid, filepath.Join(dir, "pg")) })
	if exists(filepath.Join(dir, "pg", "postmaster.pid")) {
		t.Error("the server left a pid file: it did not end in order")
	}
	wantRows(t, dir, last)
}

func TestStartRightAfterTheParentWasKilled(t *testing.T) {
	needPostgres(t)
	dir := dataDir(t)
	last := killedWhileWriting(t, dir, func(p *program, _ int) { p.kill(t) })
	wantRows(t, dir, last) // starts at once, without waiting for the old server to end
}

func TestServerHasAGroupOfItsOwn(t *testing.T) {
	s := start(t, Options{DataDir: dataDir(t)})
	group, err := syscall.Getpgid(s.child.pid)
	if err != nil || group != s.child.pid {
		t.Errorf("the server is in group %d, %v; want %d", group, err, s.child.pid)
	}
}

func TestStopGoesOnToStrongerSignals(t *testing.T) {
	user, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	c, err := launch("/bin/sh", []string{"-c", `trap "" INT; echo; while :; do sleep 600; done`}, user, writer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(make([]byte, 1)); err != nil { // wait until the child handles the signal
		t.Fatal(err)
	}
	if err := c.stop(50*time.Millisecond, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if c.err == nil || !strings.Contains(c.err.Error(), "signal") {
		t.Errorf("it ended by itself: %v", c.err)
	}
	_ = syscall.Kill(-c.pid, syscall.SIGKILL) // kill the sleep that the child has left
}

func TestDieWithGoRun(t *testing.T) {
	for parent, want := range map[string]string{"go": "terminated\n", "supervisor": "window changed\n"} {
		t.Run("parent "+parent, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), parent)
			binary, err := os.ReadFile(self(t))
			if err == nil {
				err = os.WriteFile(path, binary, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			p := runProgram(t, path, "go", self(t))
			pid, err := strconv.Atoi(p.ready[0])
			if err != nil {
				t.Fatal(err)
			}
			p.kill(t)
			if parent != "go" { // SIGTERM has the lower number: if it were pending, it would be delivered first
				_ = syscall.Kill(pid, syscall.SIGWINCH)
			}
			if got, err := p.output.ReadString('\n'); got != want {
				t.Errorf("the program got %q, %v; want %q", got, err, want)
			}
		})
	}
}
