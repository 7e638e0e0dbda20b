package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign/countersign/cmd/bench/faults"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestFaultKillNine runs the rows of the fault table in which processes are killed during calls.
// Afterwards each acknowledged answer is stored exactly once, byte for byte, and the ledger
// verifies.
func TestFaultKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	needCluster(t)
	t.Setenv(asProgram, "1")
	t.Setenv("DATABASE_URL", "")
	err := faults.Run(t.Context(), faults.Options{Program: os.Args[0], Rows: []string{"node-killed", "database-killed"},
		Seeds: 1, First: rand.Uint64(), Calls: 5, Out: t.Output(), Log: t.Output()})
	if err != nil {
		t.Error(err)
	}
}

// Two processes serve one data folder. The second uses the PostgreSQL server of the first; when
// the first ends, the second starts its own server and continues.
func TestSecondProcessJoinsAndTakesOver(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := serveIn(t, dir)
	second := serveIn(t, dir)
	key := issueKeys(t, first.base, 1)[0]
	for i, s := range []*served{first, second, first, second} {
		if status, answer, err := post(s.base+quickPath, key, `{"command":"ls"}`); err != nil || status != http.StatusOK {
			t.Fatalf("call %d: %d %s %v", i, status, answer, err)
		}
	}
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	if err := first.cmd.Wait(); err != nil {
		t.Errorf("the first ended with %v", err)
	}
	ledgertest.Until(t, "the second to have a database again", func() bool {
		status, _, err := post(second.base+quickPath, key, `{"command":"ls"}`)
		return err == nil && status == http.StatusOK
	})
	sound(t, dir)
}

// Serve refuses to start with a signing key that this ledger does not know.
func TestForeignSigningKeyDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := serveIn(t, dir)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir)
	cmd.Env = append(cmd.Env, "SIGNING_KEY="+strings.Repeat("ab", 32))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "another environment") {
		t.Errorf("%v: %s", err, out)
	}
}
