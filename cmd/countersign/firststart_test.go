package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheFirstStartShowsItsSteps checks that serve prints each slow step of the first start before
// it begins, in order, and that the second start does not repeat these steps.
func TestTheFirstStartShowsItsSteps(t *testing.T) {
	t.Parallel()
	dir := reachable(t)
	start := func(name string) string {
		stderr, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir)
		cmd.Stderr = stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
			ready = strings.HasPrefix(lines.Text(), "countersign answers at ")
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		said, err := os.ReadFile(stderr.Name())
		if err != nil || !ready {
			t.Fatalf("serve ended: %s %v", said, err)
		}
		return string(said)
	}
	rest := start("first")
	for _, step := range []string{"making a PostgreSQL cluster in ", "made the cluster in ", "countersign: PostgreSQL ", "countersign: migrating the schema of the database"} {
		_, after, said := strings.Cut(rest, step)
		if !said {
			t.Fatalf("the first start does not say %q, or not in this order: %s", step, rest)
		}
		rest = after
	}
	if said := start("second"); strings.Contains(said, "making a") || strings.Contains(said, "migrating") {
		t.Errorf("the second start says %s", said)
	}
}
