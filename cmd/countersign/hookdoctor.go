package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// canaryCommand must be blocked by every guard, and does nothing if it should
// ever be run: there is no such device. passCommand must not be stopped.
const (
	canaryCommand = "mkfs.ext4 /dev/countersign-canary"
	passCommand   = "git status"
	// hookPatience is how long doctor waits for one answer, as the printed
	// configurations do.
	hookPatience = 10 * time.Second
)

// installed is one hook command found in an agent's settings.
type installed struct {
	by      agent
	place   string   // the settings file, or "the command line"
	argv    []string // what is started
	closed  bool     // the agent blocks when the hook fails
	warning string   // what its entry lacks
}

// guards examines the hooks of the coding agents: each is started as its agent
// would start it, with an event that is only judged.
func (c *doctorCmd) guards(ctx context.Context) []finding {
	var hooks []installed
	var found []finding
	if len(c.HookCommand) > 0 {
		hooks = []installed{{by: agent(c.Agent), place: "the command line", argv: c.HookCommand}}
		if len(c.HookCommand) == 1 {
			hooks[0].argv = []string{"sh", "-c", c.HookCommand[0]}
		}
		if c.Agent == "" {
			hooks[0].by = claude
		}
	} else {
		hooks, found = installedHooks(agent(c.Agent))
	}
	for _, h := range hooks {
		found = append(found, h.try(ctx)...)
	}
	if here, err := os.Getwd(); err == nil {
		found = append(found, describeExceptions(here)...)
	}
	if len(hooks) == 0 && !slices.ContainsFunc(found, func(f finding) bool { return f.State == "bad" }) {
		name := c.Agent
		if name == "" {
			name = "AGENT"
		}
		found = append(found, finding{"hook", "bad", "no guard is installed here: countersign gate hook --install " + name + " prints what to add; or give the hook's command after --"})
	}
	return found
}

// try fires the canary, a harmless command and a broken event at one hook.
func (h installed) try(ctx context.Context) []finding {
	bad := func(format string, args ...any) []finding {
		return []finding{{"hook", "bad", fmt.Sprintf("%s (%s): ", h.by, h.place) + fmt.Sprintf(format, args...)}}
	}
	got := h.fire(ctx, h.by.canary(canaryCommand))
	switch {
	case got.outcome == pass && got.failed && h.closed:
		since := ""
		if h.by == claude {
			since = " from 2.1.295 on, nothing before"
		}
		return bad("blocks everything%s: the hook fails (%s). %s", since, got.detail, h.advice(got))
	case got.outcome != deny:
		return bad("NOT GUARDED: the canary went through (%s). %s", got.detail, h.advice(got))
	}
	if got := h.fire(ctx, h.by.canary(passCommand)); got.outcome != pass {
		return bad("blocks everything: %q was stopped too (%s). %s", passCommand, got.detail, h.advice(got))
	}
	found := []finding{{"hook", "ok", fmt.Sprintf("%s (%s): blocks the canary, lets %q pass", h.by, h.place, passCommand)}}
	whole := h.by.canary(canaryCommand)
	if got := h.fire(ctx, whole[:len(whole)-2]); got.outcome != deny {
		found = append(found, finding{"hook", "warning", fmt.Sprintf("%s (%s): an event cut short is not blocked (%s)", h.by, h.place, got.detail)})
	}
	if h.warning != "" {
		found = append(found, finding{"hook", "warning", fmt.Sprintf("%s (%s): %s", h.by, h.place, h.warning)})
	}
	return found
}

func (h installed) advice(got fired) string {
	switch {
	case got.code == 126 || got.code == 127 || got.code < 0:
		return "Its command cannot be started: write the full path of countersign"
	case got.outcome == deny:
		return "Nobody keeps such a guard switched on"
	case got.code > 2 || got.code == 1:
		return "The agent goes on after such an exit code: only 0 with a denial, or 2, blocks"
	}
	return "countersign gate hook --install " + string(h.by) + " prints the entry that blocks"
}

// canary is the agent's pre-tool event for a command.
func (a agent) canary(command string) []byte {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	quote := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			return `""`
		}
		return string(text)
	}
	common := `"cwd":` + quote(cwd) + `,"session_id":"countersign-doctor","transcript_path":""`
	tool := func(event, name, more string) []byte {
		return []byte(`{"hook_event_name":"` + event + `",` + common + more + `,"tool_name":"` + name + `","tool_input":{"command":` + quote(command) + "}}")
	}
	switch a {
	case codex:
		return tool("PreToolUse", "Bash", `,"turn_id":"1","model":"none","permission_mode":"default","tool_use_id":"1"`)
	case gemini:
		return tool("BeforeTool", "run_shell_command", `,"timestamp":"2026-01-01T00:00:00Z"`)
	case cursor:
		return []byte(`{"hook_event_name":"beforeShellExecution","conversation_id":"1","generation_id":"1","workspace_roots":[` +
			quote(cwd) + `],"cwd":` + quote(cwd) + `,"command":` + quote(command) + "}")
	}
	return tool("PreToolUse", "Bash", `,"permission_mode":"default","tool_use_id":"1"`)
}

// fired is what a hook did with one event, as its agent reads it.
type fired struct {
	outcome decision
	detail  string
	code    int  // -1: not started or killed
	failed  bool // it did not answer, which an agent may be told to take for a denial
}

// fire starts the hook with one event on standard input.
func (h installed) fire(ctx context.Context, event []byte) fired {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.argv[0], h.argv[1:]...)
	cmd.WaitDelay = time.Second // a child that keeps the pipes open
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(event), &stdout, &stderr
	if cwd, err := os.Getwd(); err == nil {
		cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+cwd, "GEMINI_PROJECT_DIR="+cwd)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fired{pass, fmt.Sprintf("no answer within %s", hookPatience), -1, true}
	case err != nil && !errors.As(err, &exit):
		return fired{pass, "it cannot be started", -1, true}
	}
	code := cmd.ProcessState.ExitCode()
	d, detail := h.by.understands(code, stdout.Bytes(), stderr.String())
	return fired{d, detail, code, code != 0 || h.by == cursor && len(bytes.TrimSpace(stdout.Bytes())) == 0}
}

// understands is how an agent reads a hook's answer. Whatever an agent takes
// for a failed hook lets the action through.
func (a agent) understands(code int, stdout []byte, stderr string) (decision, string) {
	if a == gemini { // it reads either output, and an answer in JSON beside any exit code
		text := bytes.TrimSpace(stdout)
		if len(text) == 0 {
			text = bytes.TrimSpace([]byte(stderr))
		}
		switch {
		case jsontext.Value(text).IsValid():
			code, stdout = 0, text
		case code > 1 && len(text) > 0:
			return deny, fmt.Sprintf("exit code %d", code)
		case code == 2:
			return pass, "exit code 2 without a reason on standard error"
		}
	}
	switch {
	case code == 2 && a == codex && strings.TrimSpace(stderr) == "":
		return pass, "exit code 2 without a reason on standard error"
	case code == 2:
		return deny, "exit code 2"
	case code != 0:
		return pass, fmt.Sprintf("exit code %d", code)
	case len(bytes.TrimSpace(stdout)) == 0:
		return pass, "an empty answer"
	}
	var got struct {
		HookSpecificOutput claudeDecision `json:"hookSpecificOutput"`
		Permission         string         `json:"permission"`
		Decision           string         `json:"decision"`
		Reason             string         `json:"reason"`
	}
	if json.Unmarshal(stdout, &got) != nil {
		if a == cursor {
			return deny, "an answer that is not JSON"
		}
		return pass, "an answer that is not JSON"
	}
	said, reason := got.Decision, got.Reason
	switch a {
	case cursor:
		said, reason = got.Permission, "-"
	case claude, codex:
		if got.HookSpecificOutput.PermissionDecision != "" {
			said, reason = got.HookSpecificOutput.PermissionDecision, got.HookSpecificOutput.PermissionDecisionReason
		}
	}
	switch {
	case a == cursor && !slices.Contains([]string{"", "allow", "ask", "deny"}, said):
		return deny, "an unknown permission"
	case said == "ask" && a != gemini && a != codex:
		return query, "ask"
	case said != "deny" && (said != "block" || a == cursor):
		return pass, "no denial"
	case a == codex && strings.TrimSpace(reason) == "":
		return pass, "a denial without a reason"
	}
	return deny, "denied"
}

// settingsFiles is where an agent may hold hooks, the project's first.
func (a agent) settingsFiles() []string {
	home, err := os.UserHomeDir()
	own := func(env, folder string) string {
		if dir := os.Getenv(env); env != "" && dir != "" {
			return dir
		}
		return filepath.Join(home, folder)
	}
	var files []string
	switch a {
	case claude:
		files = []string{".claude/settings.json", ".claude/settings.local.json", filepath.Join(own("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")}
	case codex:
		files = []string{".codex/hooks.json", filepath.Join(own("CODEX_HOME", ".codex"), "hooks.json")}
	case cursor:
		files = []string{".cursor/hooks.json", filepath.Join(own("", ".cursor"), "hooks.json")}
	case gemini:
		files = []string{".gemini/settings.json", filepath.Join(own("", ".gemini"), "settings.json")}
	}
	if err != nil {
		files = files[:len(files)-1]
	}
	return files
}

// settings is what is read of every agent's settings. Claude Code, Codex and
// Gemini group hooks under a matcher, Cursor lists them flat.
type settings struct {
	Hooks           map[string]jsonList[hookEntry] `json:"hooks"`
	DisableAllHooks bool                           `json:"disableAllHooks"`
}

type hookEntry struct {
	Matcher    string           `json:"matcher"`
	Hooks      []hookEntry      `json:"hooks"`
	Command    string           `json:"command"`
	Args       jsonList[string] `json:"args"`
	FailClosed bool             `json:"failClosed"`
	OnFailure  string           `json:"onFailure"`
}

// jsonList reads a list, and anything else as an empty one: Gemini keeps flags
// beside the lists of hooks.
type jsonList[T any] []T

// UnmarshalJSON never fails for a value that is no such list.
func (l *jsonList[T]) UnmarshalJSON(text []byte) error {
	var list []T
	if json.Unmarshal(text, &list) == nil {
		*l = list
	}
	return nil
}

// installedHooks finds the guards of one agent, or of all if it is empty. Only
// commands with "gate hook" in them are ours to start.
func installedHooks(only agent) ([]installed, []finding) {
	var hooks []installed
	var found []finding
	for _, a := range agents {
		if only != "" && a != only {
			continue
		}
		var these []installed
		off := ""
		for _, file := range a.settingsFiles() {
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var s settings
			if err != nil || json.Unmarshal(text, &s) != nil {
				found = append(found, finding{"hook", "warning", fmt.Sprintf("%s (%s): cannot be read as JSON; give the hook's command after --", a, file)})
				continue
			}
			if name := a.refused(text); name != "" {
				found = append(found, finding{"hook", "bad", fmt.Sprintf("%s (%s): NOT GUARDED: Codex skips the whole file, because it does not know the member %q", a, file, name)})
				continue
			}
			here := a.inSettings(file, s)
			these = append(these, here...)
			if missing := a.unwatched(s); len(here) > 0 && len(missing) > 0 {
				found = append(found, finding{"hook", "warning", fmt.Sprintf("%s (%s): no entry for %s: between two looks of doctor nobody would notice that the guard is gone; countersign gate hook --install %s --write adds them",
					a, file, strings.Join(missing, ", "), a)})
			}
			if s.DisableAllHooks { // one file switches off the hooks of all
				off = file
			}
		}
		if off != "" && len(these) > 0 {
			found = append(found, finding{"hook", "bad", fmt.Sprintf("%s (%s): NOT GUARDED: disableAllHooks is set", a, off)})
			continue
		}
		hooks = append(hooks, these...)
	}
	return hooks, found
}

// refused is a member for which an agent skips a whole settings file, if there is
// one: Codex takes none it does not know.
func (a agent) refused(text []byte) string {
	var members map[string]jsontext.Value
	if a != codex || json.Unmarshal(text, &members) != nil {
		return ""
	}
	delete(members, "description")
	delete(members, "hooks")
	if len(members) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(members)))
}

// inSettings are the guards one settings file starts before a shell command.
func (a agent) inSettings(file string, s settings) []installed {
	event, tool := "PreToolUse", "Bash"
	switch a {
	case cursor:
		event = "beforeShellExecution"
	case gemini:
		event, tool = "BeforeTool", "run_shell_command"
	}
	var out []installed
	for _, group := range s.Hooks[event] {
		entries := group.Hooks
		if a == cursor {
			entries = []hookEntry{group}
		}
		for _, e := range entries {
			whole := strings.Join(append([]string{e.Command}, e.Args...), " ")
			if !strings.Contains(whole, "gate hook") || a != cursor && !matches(group.Matcher, tool) {
				continue
			}
			h := installed{by: a, place: file, argv: []string{"sh", "-c", e.Command}}
			if len(e.Args) > 0 {
				h.argv = append([]string{e.Command}, e.Args...)
			}
			switch {
			case a == cursor && e.FailClosed, a == claude && e.OnFailure == "block":
				h.closed = true
			case a == cursor:
				h.warning = "without failClosed Cursor goes on when the hook cannot be started"
			case a == claude:
				h.warning = "without onFailure: block Claude Code goes on when the hook cannot be started"
			case a == codex:
				h.warning = "whether Codex trusts this hook cannot be seen from here: look at /hooks in Codex"
			}
			out = append(out, h)
		}
	}
	return out
}

// watchEvents are where the guard looks after itself, in each agent's words.
var watchEvents = map[agent][]string{
	claude: {"SessionStart", "SubagentStart", "PostToolUse"},
	codex:  {"SessionStart", "SubagentStart", "PostToolUse"},
	cursor: {"sessionStart", "subagentStart", "afterShellExecution"},
	gemini: {"SessionStart", "AfterTool"},
}

// unwatched are those for which a settings file starts no guard.
func (a agent) unwatched(s settings) (missing []string) {
	for _, event := range watchEvents[a] {
		if !slices.ContainsFunc(s.Hooks[event], func(group hookEntry) bool {
			return slices.ContainsFunc(append(group.Hooks, group), func(e hookEntry) bool { return strings.Contains(e.Command+" "+strings.Join(e.Args, " "), "gate hook") })
		}) {
			missing = append(missing, event)
		}
	}
	return missing
}

// matches tells whether a group's matcher covers a tool: empty, *, or a regular
// expression.
func matches(matcher, tool string) bool {
	if matcher == "" || matcher == "*" {
		return true
	}
	re, err := regexp.Compile("^(?:" + matcher + ")$")
	return err == nil && re.MatchString(tool)
}
