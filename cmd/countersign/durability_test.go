package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// A PostgreSQL server with fsync or full_page_writes off can lose acknowledged commits. Serve
// refuses to start on it, unless DURABILITY=provider says that the provider makes commits durable;
// /readyz then reports the setting. The servers of these tests have fsync off.
func TestServeRefusesAPostgreSQLThatMayLoseCommits(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	cmd := program(append([]string{"serve", "--listen", "127.0.0.1:0"}, o.base...)...)
	cmd.Env = append(cmd.Env, "DURABILITY=database")
	said, _ := cmd.CombinedOutput() // the exit code is checked below
	for _, part := range []string{"fsync", "full_page_writes", "turn on both", "--durability=provider"} {
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(said), part) {
			t.Errorf("exit %d: %q does not say %q", code, said, part)
		}
	}
	if keys := o.run(0, "signer", "list"); strings.Contains(keys, "record") {
		t.Errorf("the start that failed activated a key: %s", keys)
	}
	for setting, want := range map[string]string{"DURABILITY=database": "bad", "DURABILITY=provider": "warning"} {
		cmd := program(append([]string{"doctor"}, o.base...)...)
		cmd.Env = append(cmd.Env, setting)
		said, _ := cmd.CombinedOutput()
		if !strings.Contains(line(string(said), "durability"), want) {
			t.Errorf("%s: doctor says %s", setting, said)
		}
	}

	s := serveIn(t, t.TempDir(), "DATABASE_URL="+ledgertest.New(t).URL, "SIGNING_KEY="+strings.Repeat("07", 32), "DURABILITY=provider")
	if says := s.readyz(t)["durability"]; says != "provider" {
		t.Errorf("readyz says durability %v", says)
	}
}

// line returns the first line of a text that contains a word.
func line(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

// readyz returns the members of the answer of /readyz.
func (s *served) readyz(t *testing.T) (members map[string]any) {
	t.Helper()
	answer, err := http.Get(s.base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return members
}
