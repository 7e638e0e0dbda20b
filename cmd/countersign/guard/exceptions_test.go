package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/actionrisk"
)

const forcedBranch = "git push --force origin topic"

// inFolder is the agent's event for a command in a folder.
func inFolder(t *testing.T, by Agent, command, folder string) []byte {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	quote := func(s string) []byte {
		text, err := jsontext.AppendQuote(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return bytes.ReplaceAll(by.canary(command), quote(here), quote(folder))
}

// TestExceptionsOfTheUser: a rule, or one exact action, in a folder, for a time; the
// nearest file counts; never above what the operator allows, and never the guard's
// own rules.
func TestExceptionsOfTheUser(t *testing.T) {
	home, now := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	t.Setenv("HOME", home)
	work := filepath.Join(home, "work", "deep")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	score := actionrisk.ScoreAction(actionrisk.Action{Command: forcedBranch, Cwd: work})
	rule := score.MatchedRuleIDs[0]
	for _, c := range []struct {
		name, file, command, in string
		denied                  bool
	}{
		{"none", ``, forcedBranch, work, true},
		{"rule", `{"allow":[{"rule":"` + rule + `","reason":"mine"}]}`, forcedBranch, work, false},
		{"another rule", `{"allow":[{"rule":"git.push.mirror","reason":"mine"}]}`, forcedBranch, work, true},
		{"action", `{"allow":[{"action":"` + score.ActionHash + `","reason":"mine"}]}`, forcedBranch, work, false},
		{"another action", `{"allow":[{"action":"` + score.ActionHash + `","reason":"mine"}]}`, forcedBranch + "2", work, true},
		{"here", `{"allow":[{"rule":"` + rule + `","path":"` + filepath.Dir(work) + `","reason":"mine"}]}`, forcedBranch, work, false},
		{"elsewhere", `{"allow":[{"rule":"` + rule + `","path":"` + work + `x","reason":"mine"}]}`, forcedBranch, work, true},
		{"in time", `{"allow":[{"rule":"` + rule + `","until":"2026-03-02T00:00:00Z","reason":"mine"}]}`, forcedBranch, work, false},
		{"too late", `{"allow":[{"rule":"` + rule + `","until":"2026-02-28T00:00:00Z","reason":"mine"}]}`, forcedBranch, work, true},
		{"critical", `{"allow":[{"rule":"shell.rm.recursive-root","reason":"mine"}]}`, "rm -rf /", work, true},
		{"no reason", `{"allow":[{"rule":"` + rule + `","reason":""}]}`, "ls", work, true},
		{"unknown member", `{"alow":[]}`, "ls", work, true},
		{"stricter", `{"denyFrom":"low"}`, "ls", work, true},
		{"its own file", `{"allow":[{"rule":"hook.guard-settings","reason":"mine"}]}`, "echo '{}' > .countersign.json", work, true},
		{"gate allow", ``, "countersign gate allow " + rule + " --reason x", work, true},
		{"the log", ``, "rm " + home + "/.local/state/countersign/gate.log", work, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := filepath.Join(home, "work", exceptionsFile)
			_ = os.Remove(place)
			if c.file != "" {
				if err := os.WriteFile(place, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newGuard("", now).Answer(bytes.NewReader(inFolder(t, Claude, c.command, c.in)))
			if denied := strings.Contains(r.Stdout, `"deny"`); denied != c.denied {
				t.Errorf("denied %v: %s %v", denied, r.Stdout, r.Failure)
			}
		})
	}
}

// Of two levels that are none, the first one is named, whenever it is asked.
func TestExceptionsNameTheFirstWrongLevel(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, exceptionsFile), []byte(`{"askFrom":"often","denyFrom":"never"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := ReadExceptions(folder); err == nil || !strings.Contains(err.Error(), "askFrom") {
			t.Fatal(err)
		}
	}
}
