package main

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// What a node found false stops every command that would append, until verify finds
// nothing false, on whatever copy of the ledger it is told of.
func TestWhatWasFoundFalseIsRefusedUntilItVerifies(t *testing.T) {
	t.Parallel()
	db, folder := ledgertest.New(t), checkpoint.Folder{Path: t.TempDir()}
	run := func(args ...string) (said string, code int) {
		t.Helper()
		cmd := program(args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+db.URL, "CHECKPOINT_DIR="+folder.Path,
			"SIGNING_KEY="+strings.Repeat("ab", 32), "DATA_KEK="+strings.Repeat("cd", 32))
		text, _ := cmd.CombinedOutput() // the code says how it ended
		return string(text), cmd.ProcessState.ExitCode()
	}
	create := []string{"org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"}
	if said, code := run(create...); code != 0 {
		t.Fatal(said)
	}
	if err := folder.KeepFinding(ledgertest.Origin, "events, pos 3, hash: another"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start is no way around
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
