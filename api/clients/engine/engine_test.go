package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/clients/conformance"
)

// TestVerdictsAreTheSameAsWebAssembly checks that the engine gives the same bytes here and as
// WebAssembly in Node. COUNTERSIGN_TYPESCRIPT is the folder of the compiled TypeScript package
// with the module (.ci/clients/run).
func TestVerdictsAreTheSameAsWebAssembly(t *testing.T) {
	compiled := os.Getenv("COUNTERSIGN_TYPESCRIPT")
	if compiled == "" {
		t.Skip("COUNTERSIGN_TYPESCRIPT is not set")
	}
	requests, err := conformance.Actions("../../../policy/actionrisk/testdata")
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	want := conformance.Verdicts(requests)
	t.Logf("%d verdicts in Go: %v", len(requests), time.Since(started).Round(time.Millisecond))
	node := exec.CommandContext(t.Context(), "node", "../typescript/verdicts.mjs", compiled)
	node.Stdin = strings.NewReader(strings.Join(requests, "\n") + "\n")
	var said bytes.Buffer
	node.Stderr = &said
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	t.Log(said.String())
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("Node gives %d verdicts, Go %d", len(got), len(want))
	}
	for i, verdict := range got {
		if verdict != want[i] {
			t.Errorf("%s: Node says %s, Go says %s", requests[i], verdict, want[i])
		}
	}
}
