package guard

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
)

// settingsFiles is where an agent may hold hooks, the project's first.
func (a Agent) settingsFiles() []string {
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
	Bash       string           `json:"bash"` // GitHub Copilot CLI's
	Args       jsonList[string] `json:"args"`
	FailClosed bool             `json:"failClosed"`
	OnFailure  string           `json:"onFailure"`
}

// starts says whether an entry's command has these words in it.
func (e hookEntry) starts(words string) bool {
	return strings.Contains(e.Command+e.Bash+" "+strings.Join(e.Args, " "), words)
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
func installedHooks(only Agent) ([]hook, []Finding) {
	var hooks []hook
	var found []Finding
	for _, a := range Agents {
		if only != "" && a != only {
			continue
		}
		var these []hook
		off := ""
		for _, file := range a.settingsFiles() {
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var s settings
			if a == OpenCode { // a program text of ours, or not
				if h, ok := pluginHook(file, string(text)); err == nil && ok {
					these = append(these, h)
				}
				continue
			}
			if err != nil || json.Unmarshal(text, &s) != nil {
				found = append(found, a.found(file, "warning", "cannot be read as JSON; give the hook's command after --"))
				continue
			}
			if name := a.refused(text); name != "" {
				found = append(found, a.found(file, "bad", "NOT GUARDED: Codex skips the whole file, because it does not know the member %q", name))
				continue
			}
			here := a.inSettings(file, s)
			these = append(these, here...)
			if missing := a.unwatched(s); len(here) > 0 && len(missing) > 0 {
				found = append(found, a.found(file, "warning", "no entry for %s: between two looks of doctor nobody would notice that the guard is gone; %s gate hook --install %s --write adds them",
					strings.Join(missing, ", "), Name, a))
			}
			if missing := a.uncovered(s); len(here) > 0 && len(missing) > 0 {
				found = append(found, a.found(file, "bad", "NOT GUARDED: its matcher leaves out %s; %s gate hook --install %s --write covers every tool", strings.Join(missing, ", "), Name, a))
			}
			if s.DisableAllHooks { // one file switches off the hooks of all
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

// refused is a member for which an agent skips a whole settings file, if there is
// one: Codex takes none it does not know.
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

// inSettings are the guards one settings file starts before a shell command.
func (a Agent) inSettings(file string, s settings) []hook {
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
	var out []hook
	for _, group := range s.Hooks[event] {
		entries := group.Hooks
		if a == Cursor || a == Copilot {
			entries = []hookEntry{group}
		}
		for _, e := range entries {
			if !e.starts("gate hook") || !matches(group.Matcher, tool) {
				continue
			}
			h := hook{by: a, place: file, argv: []string{"sh", "-c", e.Command + e.Bash}}
			if len(e.Args) > 0 {
				h.argv = append([]string{e.Command}, e.Args...)
			}
			switch {
			case a == Cursor && e.FailClosed, a == Claude && e.OnFailure == "block":
				h.closed = true
			case a == Cursor:
				h.warning = "without failClosed Cursor goes on when the hook cannot be started"
			case a == Claude:
				h.warning = "without onFailure: block Claude Code goes on when the hook cannot be started"
			case a == Codex:
				h.warning = "whether Codex trusts this hook cannot be seen from here: look at /hooks in Codex"
			}
			out = append(out, h)
		}
	}
	return out
}

// pluginHook is the guard that a plugin of ours starts.
func pluginHook(file, text string) (hook, bool) {
	_, rest, ok := strings.Cut(text, "spawnSync(")
	var program string
	if i := strings.Index(rest, `, ["gate", "hook"`); !ok || i < 0 || json.Unmarshal([]byte(rest[:i]), &program) != nil {
		return hook{}, false
	}
	return hook{by: OpenCode, place: file, argv: []string{program, "gate", "hook", "--agent", "opencode"}, closed: true}, true
}

// toolsOf lists examples of the tools that a guard must see: tools that run, write, read
// and search, a tool of an MCP server, and one that is not known yet.
var toolsOf = map[Agent][]string{
	Claude: {"Bash", "Read", "Write", "Edit", "NotebookEdit", "Grep", "Glob", "Monitor", "mcp__server__tool", "AToolOfTomorrow"},
	Codex:  {"Bash", "apply_patch", "mcp__server__tool", "a_tool_of_tomorrow"},
	Gemini: {"run_shell_command", "read_file", "write_file", "replace", "read_many_files", "search_file_content", "mcp_server_tool", "a_tool_of_tomorrow"},
	Qwen:   {"run_shell_command", "read_file", "write_file", "edit", "grep_search", "mcp__server__tool", "a_tool_of_tomorrow"},
	Cursor: {"Read", "Write", "Grep", "Delete", "AToolOfTomorrow"},
}

// uncovered are the tools that the entries of a settings file do not show to a guard.
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

// watchEvents are where the guard looks after itself, in each agent's words.
var watchEvents = map[Agent][]string{
	Claude:  {"SessionStart", "SubagentStart", "PostToolUse"},
	Codex:   {"SessionStart", "SubagentStart", "PostToolUse"},
	Cursor:  {"sessionStart", "subagentStart", "afterShellExecution"},
	Gemini:  {"SessionStart", "AfterTool"},
	Qwen:    {"SessionStart", "PostToolUse"},
	Copilot: {"postToolUse"},
}

// unwatched are those for which a settings file starts no guard.
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

// matches tells whether a group's matcher covers a tool: empty, *, or a regular
// expression.
func matches(matcher, tool string) bool {
	if matcher == "" || matcher == "*" {
		return true
	}
	re, err := regexp.Compile("^(?:" + matcher + ")$")
	return err == nil && re.MatchString(tool)
}
