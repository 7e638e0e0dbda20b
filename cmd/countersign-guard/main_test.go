package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program.
const asProgram = "COUNTERSIGN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Both programs give the same output and exit codes.
func TestBothProgramsAnswerTheSame(t *testing.T) {
	other := filepath.Join(t.TempDir(), "countersign")
	if out, err := exec.Command("go", "build", "-o", other, "../countersign").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const event = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"COMMAND"}}`
	for _, c := range []struct {
		stdin string
		args  []string
	}{
		{strings.Replace(event, "COMMAND", "git status", 1), []string{"gate", "hook", "--agent", "claude", "--no-log"}},
		{strings.Replace(event, "COMMAND", "rm -rf /", 1), []string{"gate", "hook", "--agent", "claude", "--no-log"}},
		{strings.Replace(event, "COMMAND", "git reset --hard", 1), []string{"gate", "hook", "--agent=codex", "--strict", "--no-log"}},
		{strings.Replace(event, "COMMAND", "frobnicate", 1), []string{"gate", "hook", "--fail-closed", "--no-log"}},
		{"{", []string{"gate", "hook", "--agent", "gemini", "--no-log"}},
		{event, []string{"gate", "hook", "--agnet", "x"}},
		{"", []string{"gate", "rm -rf /"}},
		{"", []string{"gate", "--json", "--", "git", "push", "--force", "origin", "main"}},
		{"", []string{"gate", "explain", "git reset --hard"}},
		{"ls\nrm -rf /\n", []string{"gate", "--batch", "-"}},
		{"", []string{"rules", "show", "git.reset.hard"}},
		{"", []string{"rules", "list", "git.push"}},
		{"", []string{"gate", "allow", "no.such.rule", "--reason", "x"}},
	} {
		type answer struct {
			out, err string
			code     int
		}
		ask := func(program string) answer {
			cmd := exec.Command(program, c.args...)
			var out, err bytes.Buffer
			cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), strings.NewReader(c.stdin), &out, &err
			_ = cmd.Run()
			hide := strings.NewReplacer(program, "PROGRAM", "countersign-guard", "countersign")
			return answer{hide.Replace(out.String()), hide.Replace(err.String()), cmd.ProcessState.ExitCode()}
		}
		if a, b := ask(os.Args[0]), ask(other); a.out != b.out || a.code != b.code || a.code != 2 && a.err != b.err {
			t.Errorf("%v:\n%+v\n%+v", c.args, a, b)
		}
	}
}
