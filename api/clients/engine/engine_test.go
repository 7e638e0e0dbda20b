package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
)

// The engine gives the same bytes here and as WebAssembly in Node. COUNTERSIGN_TYPESCRIPT
// is the folder of the compiled TypeScript package with the module (.ci/clients/run).
func TestVerdictsAreTheSameAsWebAssembly(t *testing.T) {
	compiled := os.Getenv("COUNTERSIGN_TYPESCRIPT")
	if compiled == "" {
		t.Skip("COUNTERSIGN_TYPESCRIPT is not set")
	}
	text, err := os.ReadFile("../../../policy/actionrisk/testdata/levels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var requests, want bytes.Buffer
	started := time.Now()
	count := 0
	ask := func(action []byte) {
		requests.Write(append(action, '\n'))
		answer, err := actionrisk.Quick.Evaluate(action)
		if err != nil {
			answer.Body = []byte("refused: " + err.Error())
		}
		want.Write(append(answer.Body, '\n'))
		count++
	}
	for line := range bytes.Lines(text) {
		var c struct{ Action json.RawMessage }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		ask(c.Action)
	}
	for _, odd := range []string{`{"command":" x"}`, `{"command":""}`, `{}`, `[]`, `{"command":"ls","COMMAND":"rm -rf /"}`, `{"command":"echo ü😀"}`, `{"command":"a","failClosedOnUnmatched":true}`} {
		ask([]byte(odd))
	}
	t.Logf("%d verdicts in Go: %v", count, time.Since(started).Round(time.Millisecond))
	node := exec.CommandContext(t.Context(), "node", "../typescript/verdicts.mjs", compiled)
	node.Stdin = &requests
	var said bytes.Buffer
	node.Stderr = &said
	got, err := node.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	t.Log(said.String())
	a, b := bufio.NewScanner(bytes.NewReader(got)), bufio.NewScanner(&want)
	for i := 0; b.Scan(); i++ {
		if !a.Scan() || a.Text() != b.Text() {
			t.Errorf("verdict %d: Node says %s, Go says %s", i, a.Text(), b.Text())
		}
	}
}
