package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/policy/actionrisk"
)

// answering replaces the terminal by a user who gives one answer, and returns the question.
func answering(t *testing.T, answer string) *string {
	t.Helper()
	before, asked := askOnTerminal, ""
	askOnTerminal = func(question string) (string, error) { asked = question; return answer, nil }
	t.Cleanup(func() { askOnTerminal = before })
	return &asked
}

// runGate runs a gate command and returns exit code and output. If the command asks the user, the
// function answering has set the answer.
func runGate(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := run(append([]string{"gate"}, args...), &out, &out)
	return code, out.String()
}

// TestGateAllowWritesWhatTheGuardReads checks that "gate allow" stores an exception that then
// applies, and keeps the rest of the settings file.
func TestGateAllowWritesWhatTheGuardReads(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Chdir(folder)
	place(t, filepath.Join(folder, ".config", "countersign.json"), `{"denyFrom":"critical"}`)
	rule := actionrisk.ScoreAction(actionrisk.Action{Command: "git push --force origin topic"}).MatchedRuleIDs[0]
	asked := answering(t, "y")
	if code, out := runGate(t, "allow", rule, "--here", "--for", "1d", "--reason", "release"); code != 0 || !strings.Contains(*asked, rule) {
		t.Fatalf("%d: %s", code, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, ".config", "countersign.json"))
	if err != nil || !strings.Contains(string(text), `"denyFrom": "critical"`) || !strings.Contains(string(text), rule) {
		t.Errorf("%s, %v", text, err)
	}
	if code, out := runGate(t, "git push --force origin topic"); code != 0 || !strings.Contains(out, "pass, allowed by") {
		t.Errorf("%d: %s", code, out)
	}
	for _, args := range [][]string{{"no.such.rule", "--reason", "x"}, {"shell.rm.recursive-root", "--reason", "x"}, {"hook.guard-settings", "--reason", "x"}, {rule}, {rule, "--action", "x", "--reason", "x"}, {"--once", "AAAAAAAA"}} {
		if code, out := runGate(t, append([]string{"allow"}, args...)...); code != 2 {
			t.Errorf("%v: %d: %s", args, code, out)
		}
	}
	answering(t, "n")
	if code, out := runGate(t, "allow", rule, "--reason", "x"); code != 2 || !strings.Contains(out, "nothing was allowed") {
		t.Errorf("%d: %s", code, out)
	}
}

// Without a rule, "gate allow" offers the last blocked action. The answer selects for how long it
// is allowed.
func TestGateAllowOffersTheLastBlockedAction(t *testing.T) {
	for answer, want := range map[string]string{"o": `"once":true`, "s": `"session":"s"`, "t": `"until":"`, "a": `"action":"`, "n": "nothing was allowed"} {
		home := t.TempDir()
		t.Setenv("HOME", home)
		g := guard.Guard{Agent: agents.Claude, Ask: "auto", Judge: actionrisk.ScoreIn, Account: ownAccount(), Log: ownAccount().Log(), Now: time.Now()}
		event := strings.Replace(shellEvent("git push --force origin topic"), `"cwd":"/"`, `"session_id":"s","cwd":"/"`, 1)
		r := g.Answer(strings.NewReader(event))
		_, code, offered := strings.Cut(r.Stdout, "gate allow --once ")
		if !offered {
			t.Fatal(r.Stdout)
		}
		asked := answering(t, answer)
		if _, out := runGate(t, "allow", "--json"); !strings.Contains(out, want) || !strings.Contains(*asked, "git push --force origin topic in /") {
			t.Errorf("%s: %s %s", answer, *asked, out)
		}
		passes := strings.TrimSpace(g.Answer(strings.NewReader(event)).Stdout) == "{}"
		if passes != (answer != "n") {
			t.Errorf("%s: passes %v", answer, passes)
		}
		if answer == "n" {
			answering(t, "y")
			if status, out := runGate(t, "allow", "--once", code[:8]); status != 0 {
				t.Errorf("the code of the answer: %d %s", status, out)
			}
			if r := g.Answer(strings.NewReader(event)); strings.TrimSpace(r.Stdout) != "{}" {
				t.Error(r.Stdout)
			}
		}
	}
}

// TestGateTrust checks that "gate trust" shows the settings that a project's file requests, and
// that it stores the text that was shown.
func TestGateTrust(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	project := filepath.Join(home, "work")
	place(t, filepath.Join(project, ".countersign.json"), `{"askFrom":"critical"}`)
	t.Chdir(project)
	if code, out := runGate(t, "git push --force origin topic"); code != 1 || !strings.Contains(out, "requests askFrom critical") {
		t.Errorf("%d: %s", code, out)
	}
	asked := answering(t, "n")
	if code, _ := runGate(t, "trust"); code != 2 || !strings.Contains(*asked, `{"askFrom":"critical"}`) || !strings.Contains(*asked, "requests askFrom critical") {
		t.Errorf("%d: %s", code, *asked)
	}
	if code, _ := runGate(t, "git push --force origin topic"); code != 1 {
		t.Error("it counts without consent")
	}
	answering(t, "y")
	if code, out := runGate(t, "trust"); code != 0 {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := runGate(t, "git push --force origin topic"); code != 0 {
		t.Errorf("%d: %s", code, out)
	}
}

// The user must confirm at a terminal: input from a pipe is refused, and so is a process without a
// terminal.
func TestConsentNeedsATerminal(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip(err)
	}
	home := t.TempDir()
	place(t, filepath.Join(home, ".countersign-project", ".countersign.json"), `{"askFrom":"critical"}`)
	for _, args := range [][]string{{"allow", "git.reset.hard", "--reason", "x"}, {"trust"}} {
		cmd := exec.Command(setsid, append([]string{"--wait", os.Args[0], "gate"}, args...)...)
		cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+home)
		cmd.Dir = filepath.Join(home, ".countersign-project")
		cmd.Stdin = strings.NewReader("y\ny\ny\n")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "terminal") {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
}
