package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
)

// shellEvent returns the event that Claude Code sends before it runs a command.
func shellEvent(command string) string {
	return fmt.Sprintf(`{"hook_event_name":"PreToolUse","cwd":"/","permission_mode":"default","tool_name":"Bash","tool_input":{"command":%q}}`, command)
}

// TestHookProcess starts the program as a hook and checks exit code, standard output and standard
// error.
func TestHookProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		out, err    string
	}{
		{"deny", shellEvent("mkfs.ext4 /dev/countersign-canary"), nil, 0, `"permissionDecision":"deny"`, ""},
		{"pass", `{"hook_event_name":"BeforeTool","cwd":"/","tool_name":"run_shell_command","tool_input":{"command":"git status"}}`, []string{"--agent", "gemini"}, 0, "{}\n", ""},
		{"block", "{", []string{"--agent", "cursor"}, 2, `"permission":"deny"`, "blocked: the event is refused"},
		{"block, unknown agent", "{", nil, 2, "", "blocked: the event is refused"},
		{"wrong flag", "{}", []string{"--agnet", "cursor"}, 2, "", "unknown flag"},
		{"wrong agent", "{}", []string{"--agent", "nobody"}, 2, "", "--agent"},
	} {
		cmd := program(append([]string{"gate", "hook"}, c.args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.stdin), &stdout, &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stdout.String(), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("%s: exit %d, stdout %s, stderr %s", c.name, code, stdout.String(), stderr.String())
		}
		if c.code == 2 && strings.TrimSpace(stderr.String()) == "" {
			t.Errorf("%s: exit 2 without a reason", c.name)
		}
	}
}

// TestGateForms checks that "gate COMMAND" prints a verdict and that "gate hook" is a subcommand.
func TestGateForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"gate", "git status"}, 0, "LOW"},
		{[]string{"gate", "verdict", "git status"}, 0, "LOW"},
		{[]string{"gate", "rm -rf /"}, 1, "shell.rm.recursive-root"},
		{[]string{"gate", "--cwd", "/", "rm -rf *"}, 1, "shell.rm.recursive-root"},
		{[]string{"gate", "--json", "git status"}, 0, `"risk":"low"`},
		{[]string{"gate", "--", "-x"}, 0, "LOW"},
		{[]string{"gate"}, 2, ""},
		{[]string{"gate", "hook", "--install", "codex"}, 0, "open /hooks in Codex"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(c.args, &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.out) {
			t.Errorf("%v: exit %d, %s %s", c.args, code, stdout.String(), stderr.String())
		}
	}
	cmd := program("gate", "-")
	cmd.Stdin = strings.NewReader("rm -rf /\n")
	if out, _ := cmd.Output(); cmd.ProcessState.ExitCode() != 1 || !bytes.Contains(out, []byte("shell.rm.recursive-root")) {
		t.Errorf("gate -: %s", out)
	}
}

// TestHookInstall checks that doctor finds the printed configuration and that the installed hook
// works.
func TestHookInstall(t *testing.T) {
	for _, a := range agents.Agents {
		t.Run(string(a), func(t *testing.T) {
			text := a.Instructions("/opt/counter sign/bin/it's")
			_, entry, _ := strings.Cut(text, "\n\n")
			entry, _, _ = strings.Cut(entry, "\n\n")
			if a != agents.OpenCode && !jsontext.Value(entry).IsValid() {
				t.Fatalf("not JSON: %s", entry)
			}
			home, project := hookFolders(t)
			place(t, filepath.Join(home, ownSettings[a]), selfInstall(t, a))
			code, out := doctorHook(t, project)
			if code != 0 || !strings.Contains(out, "ok\thook\t"+string(a)+" (") {
				t.Errorf("exit %d: %s", code, out)
			}
			// Doctor does not find a guard in another agent.
			for _, other := range agents.Agents {
				if code, out := doctorHook(t, project, "--agent", string(other)); (code == 0) != (other == a) {
					t.Errorf("--agent %s: exit %d: %s", other, code, out)
				}
			}
			// With a wrong path in the entry, the agent allows or blocks everything, and doctor
			// reports which.
			broken := strings.ReplaceAll(selfInstall(t, a), os.Args[0], filepath.Join(project, "gone"))
			place(t, filepath.Join(home, ownSettings[a]), broken)
			says := map[agents.Agent]string{agents.Claude: "blocks everything from version 2.1.295 on", agents.Codex: "NOT GUARDED", agents.Cursor: "blocks everything", agents.Gemini: "blocks everything",
				agents.Qwen: "NOT GUARDED", agents.Copilot: "NOT GUARDED", agents.OpenCode: "blocks everything"}
			if code, out := doctorHook(t, project); code != 1 || !strings.Contains(out, says[a]) || !strings.Contains(out, "full path") {
				t.Errorf("wrong path: exit %d: %s", code, out)
			}
		})
	}
}

func TestDoctorHook(t *testing.T) {
	self := agents.ShellWord(os.Args[0])
	for _, c := range []struct {
		name, agent, command string
		code                 int
		says                 string
	}{
		{"good", "claude", self + " gate hook --agent claude", 0, "blocks the canary"},
		{"good without an agent", "", self + " gate hook", 0, "blocks the canary"},
		{"strict", "gemini", self + " gate hook --strict", 0, "blocks the canary"},
		{"failure swallowed", "claude", self + " gate hook --agent claude || true", 0, "blocks the canary"},
		{"answer thrown away", "codex", self + " gate hook --agent codex >/dev/null", 1, "NOT GUARDED"},
		{"exit code 1", "claude", "exit 1", 1, "only 0 with a denial, or 2, blocks"},
		{"says nothing", "codex", "true", 1, "NOT GUARDED"},
		{"not there", "codex", "/nonexistent/countersign gate hook", 1, "cannot be started"},
		{"not there, which Gemini CLI takes for a denial", "gemini", "/nonexistent/countersign gate hook", 1, "blocks everything"},
		{"exit code 2 without a word", "gemini", "exit 2", 1, "NOT GUARDED"},
		{"exit code 2 without a word", "claude", "exit 2", 1, "blocks everything"},
		{"exit code 1 beside an answer", "gemini", self + " gate hook --agent gemini; exit 1", 0, "blocks the canary"},
		{"exit code 1 and words", "gemini", "echo no; exit 1", 1, "NOT GUARDED"},
		{"words", "codex", "echo no", 1, "NOT GUARDED"},
		{"words", "cursor", "echo no", 1, "blocks everything"},
		{"an answer with a word nobody knows", "cursor", `echo '{"permission":"maybe"}'`, 1, "blocks everything"},
		{"an answer without the word", "cursor", `echo '{}'`, 1, "NOT GUARDED"},
		{"says nothing", "cursor", "true", 1, "NOT GUARDED"},
		{"blocks everything", "cursor", "echo no >&2; exit 2", 1, "blocks everything"},
		{"codex is asked", "codex", `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"x"}}'`, 1, "NOT GUARDED"},
		{"an answer for another agent", "cursor", self + " gate hook --agent gemini", 1, "NOT GUARDED"},
		{"broken events pass", "claude", `grep -q 'mkfs.*}}' && { echo no >&2; exit 2; }; true`, 0, "a truncated event is not blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, project := hookFolders(t)
			args := []string{"--", c.command}
			if c.agent != "" {
				args = append([]string{"--agent", c.agent}, args...)
			}
			if code, out := doctorHook(t, project, args...); code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d: %s", code, out)
			}
		})
	}
	_, project := hookFolders(t)
	if code, out := doctorHook(t, project); code != 1 || !strings.Contains(out, "no guard is installed") {
		t.Errorf("nothing installed: exit %d: %s", code, out)
	}
	if code, out := doctorHook(t, project, "--agent", "codex", "--", os.Args[0], "gate", "hook", "--agent", "codex"); code != 0 {
		t.Errorf("command in words: exit %d: %s", code, out)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"doctor", "--agent", "codex"}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "--hook") {
		t.Errorf("without --hook: exit %d: %s", code, stderr.String())
	}
}

// TestDoctorHookSettings checks what doctor reports about settings files whose entry guards,
// guards only in part, or does not guard.
func TestDoctorHookSettings(t *testing.T) {
	command := `"` + os.Args[0] + ` gate hook"`
	for name, c := range map[string]struct {
		file, text string
		code       int
		says       string
	}{
		"project's settings":              {".claude/settings.json", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":` + command + `}]}]}}`, 0, "onFailure"},
		"words":                           {".claude/settings.local.json", `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"command":"` + os.Args[0] + `","args":["gate","hook"],"onFailure":"block"}]}]}}`, 0, "blocks the canary"},
		"matcher for others":              {".claude/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Write|Edit","hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "no guard"},
		"matcher that is wrong":           {".claude/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"(","hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "no guard"},
		"another event":                   {".claude/settings.json", `{"hooks":{"PostToolUse":[{"hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "no guard"},
		"all hooks off":                   {".claude/settings.json", `{"disableAllHooks":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "disableAllHooks"},
		"somebody else's hook":            {".cursor/hooks.json", `{"version":1,"hooks":{"beforeShellExecution":[{"command":"touch started"}]}}`, 1, "no guard"},
		"open cursor":                     {".cursor/hooks.json", `{"version":1,"hooks":{"beforeShellExecution":[{"command":` + command + `}],"preToolUse":[{"command":` + command + `}]}}`, 0, "without failClosed"},
		"closed cursor that says nothing": {".cursor/hooks.json", `{"version":1,"hooks":{"beforeShellExecution":[{"command":"true # gate hook","failClosed":true}]}}`, 1, "blocks everything"},
		"flags beside lists":              {".gemini/settings.json", `{"hooks":{"enabled":true,"BeforeTool":[{"matcher":".*","hooks":[{"type":"command","command":` + command + `}]}]}}`, 0, "blocks the canary"},
		"a member Codex does not know":    {".codex/hooks.json", `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "NOT GUARDED: Codex skips the whole file"},
		"a matcher that leaves tools out": {".gemini/settings.json", `{"hooks":{"BeforeTool":[{"matcher":"run_.*","hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "does not match read_file"},
		"the matcher of before":           {".claude/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Bash|Read|Write|Edit|MultiEdit|NotebookEdit|mcp__.*","hooks":[{"type":"command","command":` + command + `}]}]}}`, 1, "does not match Grep, Glob, Monitor"},
		"only the shell of Cursor":        {".cursor/hooks.json", `{"version":1,"hooks":{"beforeShellExecution":[{"command":` + command + `,"failClosed":true}]}}`, 1, "does not match Read"},
		"a member Codex knows":            {".codex/hooks.json", `{"description":"x","hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":` + command + `}]}]}}`, 0, "blocks the canary"},
		"not JSON":                        {".gemini/settings.json", `{"hooks":{ // comment`, 1, "cannot be read as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, project := hookFolders(t)
			place(t, filepath.Join(project, c.file), c.text)
			if code, out := doctorHook(t, project); code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d: %s", code, out)
			}
			if _, err := os.Stat(filepath.Join(project, "started")); err == nil {
				t.Error("a hook that is not ours was started")
			}
		})
	}
}

// TestDoctorHookOffElsewhere checks a guard that another settings file switches off.
func TestDoctorHookOffElsewhere(t *testing.T) {
	home, project := hookFolders(t)
	place(t, filepath.Join(home, ownSettings[agents.Claude]), selfInstall(t, agents.Claude))
	if code, out := doctorHook(t, project); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	place(t, filepath.Join(project, ".claude/settings.local.json"), `{"disableAllHooks":true}`)
	if code, out := doctorHook(t, project); code != 1 || !strings.Contains(out, "NOT GUARDED: disableAllHooks") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// ownSettings has the agents' settings files in the home folder.
var ownSettings = map[agents.Agent]string{agents.Claude: ".claude/settings.json", agents.Codex: ".codex/hooks.json", agents.Cursor: ".cursor/hooks.json", agents.Gemini: ".gemini/settings.json",
	agents.Qwen: ".qwen/settings.json", agents.Copilot: ".copilot/hooks/countersign.json", agents.OpenCode: ".config/opencode/plugins/countersign.js"}

// selfInstall returns the configuration to install, with this test binary as the program.
func selfInstall(t *testing.T, a agents.Agent) string {
	t.Helper()
	_, entry, _ := strings.Cut(a.Instructions(os.Args[0]), "\n\n")
	entry, _, _ = strings.Cut(entry, "\n\n")
	return entry
}

// hookFolders creates an empty home folder and an empty project.
func hookFolders(t *testing.T) (home, project string) {
	t.Helper()
	home, project = t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	return home, project
}

func place(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// doctorHook runs doctor --hook in a project. The hooks that doctor starts are this test binary.
func doctorHook(t *testing.T, project string, args ...string) (int, string) {
	t.Helper()
	cmd := program(append([]string{"doctor", "--hook"}, args...)...)
	cmd.Dir = project
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestManyHooksAtOnceDenyNothing starts 64 guards at the same time, on a machine of any speed.
// Waiting for a processor must not deny an action. Only the time limit may deny, which is shorter
// than the agent's. If the machine is so slow that 64 guards reach the limit, the test tries half
// as many, and so on down to one.
func TestManyHooksAtOnceDenyNothing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for guards := 64; ; guards /= 2 {
		var running sync.WaitGroup
		var late atomic.Int64
		for range guards {
			running.Go(func() {
				cmd := program("gate", "hook", "--agent", "claude")
				cmd.Env = append(cmd.Env, "HOME="+home)
				cmd.Stdin = strings.NewReader(shellEvent("git status"))
				answer, err := cmd.Output()
				switch {
				case guards > 1 && strings.Contains(string(answer), "no verdict within 8s;"):
					late.Add(1)
				case err != nil || strings.Contains(string(answer), "deny"):
					t.Errorf("%v: %s", err, answer)
				}
			})
		}
		running.Wait()
		if late.Load() == 0 {
			return
		}
		t.Logf("this machine does not answer %d guards within 8 s", guards)
	}
}

// TestInstallWrites checks that the entry is added to the existing settings once, that the old
// file is copied, and that the entry can be removed.
func TestInstallWrites(t *testing.T) {
	t.Parallel()
	for _, a := range agents.Agents {
		if a == agents.OpenCode {
			continue // its plugin is a separate file, see TestUninstallLeavesTheFileAsItWas in package agents
		}
		t.Run(string(a), func(t *testing.T) {
			home := t.TempDir()
			do := func(args ...string) string {
				t.Helper()
				cmd := program(append([]string{"gate", "hook", "--install", string(a)}, args...)...)
				cmd.Env = append(cmd.Env, "HOME="+home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=")
				cmd.Dir = home
				text, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				return string(text)
			}
			place := filepath.Join(home, ownSettings[a])
			if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
				t.Fatal(err)
			}
			there := `{"theme":"dark","hooks":{"Other":[{"hooks":[{"command":"mine"}]}]}}`
			if a == agents.Codex {
				there = `{"hooks":{"Other":[{"hooks":[{"command":"mine"}]}]}}` // this agent accepts no other member in the file
			}
			if err := os.WriteFile(place, []byte(there), 0o600); err != nil {
				t.Fatal(err)
			}
			if said := do("--write"); !strings.Contains(said, "blocks the canary") || !strings.Contains(said, "old settings") {
				t.Errorf("%s", said)
			}
			do("--write")
			text, err := os.ReadFile(place)
			if err != nil || !strings.Contains(string(text), `"mine"`) {
				t.Errorf("%s, %v", text, err)
			}
			const ours = "gate hook --agent "
			if strings.Count(string(text), ours) != strings.Count(a.Instructions("countersign"), ours) {
				t.Errorf("not one guard in %s", text)
			}
			do("--uninstall")
			text, err = os.ReadFile(place)
			var before, after any
			if err != nil || json.Unmarshal([]byte(there), &before) != nil || json.Unmarshal(text, &after) != nil || fmt.Sprint(before) != fmt.Sprint(after) && a != agents.Cursor {
				t.Errorf("after --uninstall: %s, %v", text, err)
			}
		})
	}
}

// TestInstallIsOneOrTheOther checks that --write and --uninstall together are refused.
func TestInstallIsOneOrTheOther(t *testing.T) {
	home, project := hookFolders(t)
	cmd := program("gate", "hook", "--install", "claude", "--write", "--uninstall")
	cmd.Dir = project
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "cannot be combined") {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(home, ownSettings[agents.Claude])); err == nil {
		t.Error("it was written")
	}
}
