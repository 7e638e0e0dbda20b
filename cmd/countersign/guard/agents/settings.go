package agents

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/guard/launch"
)

// SettingsFiles returns the paths of the files that may contain an agent's hooks, the project's
// first.
func (a Agent) SettingsFiles() []string {
	home, err := os.UserHomeDir()
	own := func(env, folder string) string {
		if dir := os.Getenv(env); env != "" && dir != "" {
			return dir
		}
		return filepath.Join(home, folder)
	}
	var files []string
	switch a {
	case Claude:
		files = []string{".claude/settings.json", ".claude/settings.local.json", systemFile(), filepath.Join(own("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")}
	case Codex:
		files = []string{".codex/hooks.json", filepath.Join(own("CODEX_HOME", ".codex"), "hooks.json")}
	case Cursor:
		files = []string{".cursor/hooks.json", filepath.Join(own("", ".cursor"), "hooks.json")}
	case Gemini:
		files = []string{".gemini/settings.json", filepath.Join(own("", ".gemini"), "settings.json")}
	case Qwen:
		files = []string{".qwen/settings.json", filepath.Join(own("QWEN_HOME", ".qwen"), "settings.json")}
	case Copilot:
		files = []string{".github/hooks/countersign.json", filepath.Join(own("COPILOT_HOME", ".copilot"), "hooks", "countersign.json")}
	case OpenCode:
		files = []string{".opencode/plugins/countersign.js", filepath.Join(own("OPENCODE_CONFIG_DIR", filepath.Join(".config", "opencode")), "plugins", "countersign.js")}
	}
	if err != nil && len(files) > 0 {
		files = files[:len(files)-1]
	}
	return files
}

// settings has the members of agents' settings that the guard reads. In most agents, hooks are
// grouped under a matcher; in Cursor and GitHub Copilot CLI they are a flat list.
type settings struct {
	Hooks           map[string]jsonList[hookEntry] `json:"hooks"`
	DisableAllHooks bool                           `json:"disableAllHooks"`
}

type hookEntry struct {
	Matcher    string           `json:"matcher"`
	Hooks      []hookEntry      `json:"hooks"`
	Command    string           `json:"command"`
	Bash       string           `json:"bash"` // from GitHub Copilot CLI
	Args       jsonList[string] `json:"args"`
	FailClosed bool             `json:"failClosed"`
	OnFailure  string           `json:"onFailure"`
}

// starts reports whether an entry's command contains these words.
func (e hookEntry) starts(words string) bool {
	return strings.Contains(e.Command+e.Bash+" "+strings.Join(e.Args, " "), words)
}

// jsonList decodes a list. It decodes any other value as an empty list, because Gemini has flags
// among the lists of hooks.
type jsonList[T any] []T

// UnmarshalJSON never fails.
func (l *jsonList[T]) UnmarshalJSON(text []byte) error {
	var list []T
	if json.Unmarshal(text, &list) == nil {
		*l = list
	}
	return nil
}

// InstalledHooks returns the guard's hooks in the settings of one agent, or of all agents, and
// findings about hooks that do not guard. It returns only commands that contain "gate hook",
// because doctor starts them.
func InstalledHooks(only Agent) ([]Hook, []Finding) {
	var hooks []Hook
	var found []Finding
	for _, a := range Agents {
		if only != "" && a != only {
			continue
		}
		var these []Hook
		off := ""
		for _, file := range a.SettingsFiles() {
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var s settings
			if a == OpenCode { // the file is a program, so it is not parsed as JSON
				if h, ok := pluginHook(file, string(text)); err == nil && ok {
					these = append(these, h)
				}
				continue
			}
			if err != nil || json.Unmarshal(text, &s) != nil {
				found = append(found, a.found(file, "warning", "the file cannot be read as JSON; give the hook's command after --"))
				continue
			}
			if name := a.refused(text); name != "" {
				found = append(found, a.found(file, "bad", "NOT GUARDED: Codex skips the whole file, because it does not know the member %q", name))
				continue
			}
			here := a.inSettings(file, s)
			these = append(these, here...)
			if missing := a.unwatched(s); len(here) > 0 && len(missing) > 0 {
				found = append(found, a.found(file, "warning", "no entry for %s: without it a removed guard is noticed only by doctor; %s gate hook --install %s --write adds it",
					strings.Join(missing, ", "), launch.Name, a))
			}
			if missing := a.uncovered(s); len(here) > 0 && len(missing) > 0 {
				found = append(found, a.found(file, "bad", "NOT GUARDED: its matcher does not match %s; %s gate hook --install %s --write covers every tool", strings.Join(missing, ", "), launch.Name, a))
			}
			if s.DisableAllHooks { // switches off the hooks in all files of the agent
				off = file
			}
		}
		if off != "" && len(these) > 0 {
			found = append(found, a.found(off, "bad", "NOT GUARDED: disableAllHooks is set"))
			continue
		}
		hooks = append(hooks, these...)
	}
	return hooks, found
}

// refused returns the name of a member because of which the agent ignores the whole file, or "".
// Codex ignores a file with an unknown member.
func (a Agent) refused(text []byte) string {
	var members map[string]jsontext.Value
	if a != Codex || json.Unmarshal(text, &members) != nil {
		return ""
	}
	delete(members, "description")
	delete(members, "hooks")
	if len(members) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(members)))
}

// inSettings returns the hooks in a settings file that start a guard before a shell command.
func (a Agent) inSettings(file string, s settings) []Hook {
	event, tool := "PreToolUse", "Bash"
	switch a {
	case Cursor:
		event = "beforeShellExecution"
	case Gemini:
		event, tool = "BeforeTool", "run_shell_command"
	case Qwen:
		tool = "run_shell_command"
	case Copilot:
		event = "preToolUse"
	}
	var out []Hook
	for _, group := range s.Hooks[event] {
		entries := group.Hooks
		if a == Cursor || a == Copilot {
			entries = []hookEntry{group}
		}
		for _, e := range entries {
			if !e.starts("gate hook") || !matches(group.Matcher, tool) {
				continue
			}
			h := Hook{By: a, Path: file, Argv: []string{"sh", "-c", e.Command + e.Bash}}
			if len(e.Args) > 0 {
				h.Argv = append([]string{e.Command}, e.Args...)
			}
			switch {
			case a == Cursor && e.FailClosed, a == Claude && e.OnFailure == "block":
				h.closed = true
			case a == Cursor:
				h.warning = "without failClosed Cursor runs the tool if the hook cannot be started"
			case a == Claude:
				h.warning = "without onFailure: block Claude Code runs the tool if the hook cannot be started"
			case a == Codex:
				h.warning = "this program cannot see whether Codex trusts the hook: check /hooks in Codex"
			}
			out = append(out, h)
		}
	}
	return out
}

// pluginHook returns the hook that this project's plugin starts.
func pluginHook(file, text string) (Hook, bool) {
	_, rest, ok := strings.Cut(text, "spawnSync(")
	var program string
	if i := strings.Index(rest, `, ["gate", "hook"`); !ok || i < 0 || json.Unmarshal([]byte(rest[:i]), &program) != nil {
		return Hook{}, false
	}
	return Hook{By: OpenCode, Path: file, Argv: []string{program, "gate", "hook", "--agent", "opencode"}, closed: true}, true
}

// toolsOf lists tools that a guard must see, as examples: tools that run, write, read and search,
// a tool of an MCP server, and an unknown tool.
var toolsOf = map[Agent][]string{
	Claude: {"Bash", "Read", "Write", "Edit", "NotebookEdit", "Grep", "Glob", "Monitor", "mcp__server__tool", "AToolOfTomorrow"},
	Codex:  {"Bash", "apply_patch", "mcp__server__tool", "a_tool_of_tomorrow"},
	Gemini: {"run_shell_command", "read_file", "write_file", "replace", "read_many_files", "search_file_content", "mcp_server_tool", "a_tool_of_tomorrow"},
	Qwen:   {"run_shell_command", "read_file", "write_file", "edit", "grep_search", "mcp__server__tool", "a_tool_of_tomorrow"},
	Cursor: {"Read", "Write", "Grep", "Delete", "AToolOfTomorrow"},
}

// uncovered returns the tools of toolsOf for which the settings start no guard.
func (a Agent) uncovered(s settings) (missing []string) {
	event := "PreToolUse"
	switch a {
	case Cursor:
		event = "preToolUse"
	case Gemini:
		event = "BeforeTool"
	}
	for _, tool := range toolsOf[a] {
		if !slices.ContainsFunc(s.Hooks[event], func(group hookEntry) bool {
			return matches(group.Matcher, tool) && slices.ContainsFunc(append(group.Hooks, group), func(e hookEntry) bool { return e.starts("gate hook") })
		}) {
			missing = append(missing, tool)
		}
	}
	return missing
}

// watchEvents lists the events at which the guard checks itself, by the agent's names.
var watchEvents = map[Agent][]string{
	Claude:  {"SessionStart", "SubagentStart", "PostToolUse"},
	Codex:   {"SessionStart", "SubagentStart", "PostToolUse"},
	Cursor:  {"sessionStart", "subagentStart", "afterShellExecution"},
	Gemini:  {"SessionStart", "AfterTool"},
	Qwen:    {"SessionStart", "PostToolUse"},
	Copilot: {"postToolUse"},
}

// unwatched returns the events of watchEvents for which the settings start no guard.
func (a Agent) unwatched(s settings) (missing []string) {
	for _, event := range watchEvents[a] {
		if !slices.ContainsFunc(s.Hooks[event], func(group hookEntry) bool {
			return slices.ContainsFunc(append(group.Hooks, group), func(e hookEntry) bool { return e.starts("gate hook") })
		}) {
			missing = append(missing, event)
		}
	}
	return missing
}

// matches reports whether a matcher ("", "*" or a regular expression) matches a tool's name.
func matches(matcher, tool string) bool {
	if matcher == "" || matcher == "*" {
		return true
	}
	re, err := regexp.Compile("^(?:" + matcher + ")$")
	return err == nil && re.MatchString(tool)
}
