package main

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// After a node has stored a fault in the checkpoint folder, commands that append are refused until
// verify finds no fault.
func TestWhatWasFoundFalseIsRefusedUntilItVerifies(t *testing.T) {
	t.Parallel()
	db, folder := ledgertest.New(t), checkpoint.Folder{Path: t.TempDir()}
	run := func(args ...string) (said string, code int) {
		t.Helper()
		cmd := program(args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+db.URL, "CHECKPOINT_DIR="+folder.Path,
			"SIGNING_KEY="+strings.Repeat("ab", 32), "DATA_KEK="+strings.Repeat("cd", 32))
		text, _ := cmd.CombinedOutput() // the exit code is checked below
		return string(text), cmd.ProcessState.ExitCode()
	}
	create := []string{"org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"}
	if said, code := run(create...); code != 0 {
		t.Fatal(said)
	}
	if err := folder.KeepFinding(ledgertest.Origin, "events, pos 3, hash: another"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // starting again does not clear the fault
		if said, code := run(create...); code != 2 || !strings.Contains(said, "events, pos 3") || !strings.Contains(said, "countersign verify") {
			t.Fatalf("exit %d: %s", code, said)
		}
	}
	if said, code := run("verify"); code != 0 || !strings.HasPrefix(said, "VALID") {
		t.Fatalf("exit %d: %s", code, said)
	}
	if said, code := run(create...); code != 0 {
		t.Fatal(said)
	}
}
