package guard

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// event is what is read of an agent's event; everything else in it is ignored.
type event struct {
	Name           string         `json:"hook_event_name"`
	ToolName       string         `json:"tool_name"`
	ToolInput      jsontext.Value `json:"tool_input"`
	Command        string         `json:"command"`
	FilePath       string         `json:"file_path"`
	Cwd            string         `json:"cwd"`
	WorkspaceRoots []string       `json:"workspace_roots"`
	PermissionMode string         `json:"permission_mode"`
	TurnID         string         `json:"turn_id"`
	Model          jsontext.Value `json:"model"`
	CursorVersion  string         `json:"cursor_version"`
	SessionID      string         `json:"session_id"`
	ToolUseID      string         `json:"tool_use_id"`
}

// input is what is read of the arguments of an agent's own tools.
type input struct {
	Command          string `json:"command"`
	FilePath         string `json:"file_path"`
	NotebookPath     string `json:"notebook_path"`
	Path             string `json:"path"`
	AbsolutePath     string `json:"absolute_path"`
	TargetFile       string `json:"target_file"`
	Workdir          string `json:"workdir"`
	WorkingDirectory string `json:"working_directory"`
	DirPath          string `json:"dir_path"`
	Directory        string `json:"directory"`
	Cwd              string `json:"cwd"`
}

// asked is what an agent wants to do.
type asked struct {
	by       Agent
	canAsk   bool   // the format has a word for asking at this event
	asksHold bool   // and the agent is known to stop for it
	cwd      string // the folder of the call, which the model may choose
	session  session
	callID   string // of the tool call
	moment   moment
	steps    []step
}

// session is the agent's own id of it and the folder that it runs in, which the model does
// not choose.
type session struct{ id, cwd string }

// moment is when an event comes.
type moment int

const (
	beforeTool moment = iota
	afterTool
	atStart // of a session or a subagent
)

// step is one action as the engine judges it. A file tool becomes the command
// with the same effect, so that both ways have one verdict.
type step struct {
	command string
	shell   bool   // the agent's own command, not a stand-in or a tool call
	shown   string // what a reason quotes instead of the command's excerpt, masked
	writes  string // the file a stand-in changes
}

var errShape = errors.New("the event has an unknown shape")

// readEvent reads an event strictly. The agent is known on return as soon as
// the event tells it, also beside an error.
func readEvent(text []byte, named Agent) (asked, error) {
	got := asked{by: named}
	if err := canon.Check(text); err != nil {
		return got, fmt.Errorf("the event is refused: %w", err)
	}
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return got, errShape // the cause may repeat the event
	}
	got.session.id, got.callID = shownPath(e.SessionID), e.call()
	told, ok := e.Agent()
	if got.moment = e.moment(); got.moment == beforeTool && !ok {
		return got, errShape
	}
	if !ok { // only our own configurations send these events
		told = Claude
		if named != "" {
			told = named
		}
	}
	if named == "" || named == Claude && told == Cursor { // Cursor starts the hooks of Claude Code's settings, too
		got.by = told
	}
	got.cwd = e.Cwd
	if got.cwd == "" && len(e.WorkspaceRoots) > 0 {
		got.cwd = e.WorkspaceRoots[0]
	}
	got.session.cwd = got.cwd
	switch got.by {
	case Claude:
		got.canAsk = true
		// An agent that only looks like this one might not know "ask", so it has
		// to be named, and the mode has to be one of those who want to be asked.
		got.asksHold = named == Claude && slices.Contains([]string{"", "default", "acceptEdits", "plan"}, e.PermissionMode)
	case Cursor:
		got.canAsk = e.Name == "beforeShellExecution" || e.Name == "beforeMCPExecution"
	}
	if got.moment != beforeTool {
		return got, nil
	}
	return got, got.read(e)
}

// moment is when the event comes, by its name in any agent's words.
func (e event) moment() moment {
	switch e.Name {
	case "SessionStart", "SubagentStart", "sessionStart", "subagentStart":
		return atStart
	case "PostToolUse", "PostToolUseFailure", "AfterTool", "afterShellExecution", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		return afterTool
	}
	return beforeTool
}

// call names a tool call, the same before the tool and after it: by the agent's own
// id, or by what is called where the agent gives none.
func (e event) call() string {
	switch {
	case e.ToolUseID != "":
		return shownPath(e.ToolUseID)
	case e.ToolName == "" && e.Command == "":
		return ""
	}
	tool, input := e.ToolName[strings.LastIndexByte(e.ToolName, ':')+1:], ""
	if tool == "" {
		input = e.Command // of a shell; beside a tool's name it is the server's
	} else if canonical, err := canon.Canonical(e.ToolInput); err == nil {
		input = string(canonical)
	}
	return "#" + canon.Hash([]byte(e.SessionID + "\x00" + tool + "\x00" + input))[:16]
}

// agent tells who sent an event. What both of two agents might have sent is
// taken for the one that knows fewer answers.
func (e event) Agent() (Agent, bool) {
	switch e.Name {
	case "BeforeTool", "AfterTool":
		return Gemini, true
	case "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "preToolUse",
		"sessionStart", "subagentStart", "afterShellExecution", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		return Cursor, true
	case "PreToolUse":
		switch {
		case e.CursorVersion != "":
			return Cursor, true
		case e.TurnID != "", len(e.Model) > 0:
			return Codex, true
		}
		return Claude, true
	}
	return "", false
}

// read fills in the steps.
func (a *asked) read(e event) error {
	switch e.Name {
	case "beforeShellExecution":
		return a.run(e.Command)
	case "beforeMCPExecution": // command is the server's here, not the agent's
		return a.call(e)
	case "beforeReadFile":
		return a.files("cat", e.FilePath)
	}
	kind := toolKind(e.ToolName)
	switch kind {
	case "own":
		return nil
	case "":
		return a.call(e)
	}
	var in input
	if len(e.ToolInput) == 0 || json.Unmarshal(e.ToolInput, &in) != nil {
		return errShape
	}
	switch kind {
	case "run":
		a.within(in)
		return a.run(in.Command)
	case "patch":
		return a.patch(in.Command)
	}
	return a.files(kind, in.FilePath, in.NotebookPath, in.Path, in.AbsolutePath, in.TargetFile)
}

// within moves to the folder a shell tool's own argument names.
func (a *asked) within(in input) {
	for _, dir := range []string{in.Workdir, in.WorkingDirectory, in.DirPath, in.Directory, in.Cwd} {
		switch {
		case dir == "":
		case path.IsAbs(dir) || strings.HasPrefix(dir, "~"):
			a.cwd = dir
		default:
			a.cwd = path.Join(a.cwd, dir)
		}
	}
}

func (a *asked) run(command string) error {
	command = strings.TrimSpace(command)
	if command == "" {
		return errors.New("the event has no command")
	}
	a.steps = append(a.steps, step{command: command, shell: true})
	return nil
}

// call is a tool call in the form the engine knows from MCP.
func (a *asked) call(e event) error {
	if e.ToolName == "" {
		return errShape
	}
	args := e.ToolInput
	if len(args) == 0 || args.Kind() == 'n' {
		args = jsontext.Value("{}")
	}
	if args.Kind() == '"' { // the arguments as JSON text: as strict as the event itself
		var inner string
		if json.Unmarshal(args, &inner) != nil || canon.Check([]byte(inner)) != nil {
			return errors.New("the event's tool_input is refused: invalid JSON")
		}
		args = jsontext.Value(inner)
	}
	tool := e.ToolName[strings.LastIndexByte(e.ToolName, ':')+1:] // MCP:server:tool
	name, err := jsontext.AppendQuote(nil, tool)
	if err != nil || tool == "" {
		return errShape
	}
	a.steps = append(a.steps, step{command: `{"name":` + string(name) + `,"arguments":` + string(args) + `}`})
	return nil
}

// files are the file tools: one stand-in for each path that is named.
func (a *asked) files(verb string, paths ...string) error {
	before := len(a.steps)
	for _, p := range paths {
		if p == "" {
			continue
		}
		s := step{command: verb + " -- " + quotePath(p), shown: shownPath(p)}
		if verb != "cat" {
			s.writes = p
		}
		a.steps = append(a.steps, s)
	}
	if len(a.steps) == before {
		return errors.New("the event names no file")
	}
	return nil
}

// patch reads the files a patch touches from its header lines.
func (a *asked) patch(text string) error {
	before := len(a.steps)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, h := range [...]struct{ head, verb string }{
			{"*** Add File: ", "tee"}, {"*** Update File: ", "tee"}, {"*** Move to: ", "tee"}, {"*** Delete File: ", "rm"},
		} {
			if p, ok := strings.CutPrefix(line, h.head); ok {
				if err := a.files(h.verb, strings.TrimSpace(p)); err != nil {
					return err
				}
			}
		}
	}
	if len(a.steps) == before {
		return errors.New("the event's patch names no file")
	}
	return nil
}

// toolKind is what one of an agent's own tools does: run a command, apply a
// patch, or the command a file tool is like; own for what stays inside the
// agent; empty for every other tool, which is judged by name and arguments.
func toolKind(name string) string {
	switch strings.ToLower(name) {
	case "bash", "powershell", "shell", "run_shell_command", "run_terminal_cmd":
		return "run"
	case "apply_patch":
		return "patch"
	case "write", "edit", "multiedit", "notebookedit", "strreplace", "write_file", "replace", "edit_file", "search_replace", "tabwrite":
		return "tee"
	case "read", "notebookread", "read_file", "tabread":
		return "cat"
	case "delete", "delete_file":
		return "rm"
	case "bashoutput", "taskoutput", "killshell", "killbash", "taskstop", "task", "agent", "todoread", "todowrite", "write_todos", "update_plan",
		"glob", "grep", "ls", "list_directory", "search_file_content", "grep_search", "semanticsearch", "readlints",
		"askuserquestion", "ask_user", "enterplanmode", "exitplanmode", "enter_plan_mode", "exit_plan_mode", "skill", "slashcommand", "toolsearch":
		return "own"
	}
	return ""
}

// quotePath is a path as one shell word; a leading ~ stays the home folder.
func quotePath(p string) string {
	home := ""
	if p == "~" || strings.HasPrefix(p, "~/") {
		home, p = p[:min(2, len(p))], p[min(2, len(p)):]
	}
	return home + "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}

func shownPath(p string) string {
	runes := []rune(actionrisk.Mask(p))
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}
