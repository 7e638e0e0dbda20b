package agents

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/canon"
)

// event has the members of an agent's event that the guard reads. All others are ignored.
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

// otherEvent has the members of events whose names differ from Claude Code's.
type otherEvent struct {
	HookEventName string         `json:"hookEventName"` // from VS Code
	SessionID     string         `json:"sessionId"`
	ToolName      string         `json:"toolName"` // from GitHub Copilot CLI
	ToolArgs      jsontext.Value `json:"toolArgs"`
	ToolResult    jsontext.Value `json:"toolResult"`
	Action        string         `json:"agent_action_name"` // from Windsurf
	Trajectory    string         `json:"trajectory_id"`
	ToolInfo      jsontext.Value `json:"tool_info"`
	HookName      string         `json:"hookName"` // from Cline
	Roots         []string       `json:"workspaceRoots"`
	TaskID        string         `json:"taskId"`
	PreToolUse    *struct {
		ToolName   string         `json:"toolName"`
		Tool       string         `json:"tool"`
		Parameters jsontext.Value `json:"parameters"`
	} `json:"preToolUse"`
	Plugin string `json:"countersign_plugin"` // from this project's plugin for OpenCode
}

// translated copies the members of an event with other names into e. It returns the agent that
// sent the event, and whether it was recognized.
func (e *event) translated(text []byte) (Agent, bool) {
	var o otherEvent
	if fill(text, &o) != nil {
		return "", false
	}
	// Session and folder have other names in the events of some agents.
	if e.SessionID == "" {
		e.SessionID = cmp.Or(o.SessionID, o.Trajectory, o.TaskID)
	}
	if e.Cwd == "" && len(o.Roots) > 0 {
		e.Cwd = o.Roots[0]
	}
	// Recognize the agent by the members that only its events have, and copy tool and input.
	switch {
	case o.Plugin != "":
		return OpenCode, true
	case e.Name == "" && o.HookEventName != "": // its other members have the names of Claude Code
		e.Name = o.HookEventName
		return VSCode, true
	case e.Name == "" && e.ToolName == "" && o.ToolName != "":
		if e.Name, e.ToolName, e.ToolInput = "PreToolUse", o.ToolName, o.ToolArgs; len(o.ToolResult) > 0 {
			e.Name = "PostToolUse"
		}
		return Copilot, true
	case o.PreToolUse != nil && o.HookName == "PreToolUse":
		e.Name, e.ToolName, e.ToolInput = "PreToolUse", cmp.Or(o.PreToolUse.ToolName, o.PreToolUse.Tool), o.PreToolUse.Parameters
		return Cline, true
	case o.Action != "" && len(o.ToolInfo) > 0:
		tool, known := windsurfTools[o.Action]
		if !known {
			return Windsurf, false
		}
		var info struct {
			Cwd  string         `json:"cwd"`
			Tool string         `json:"mcp_tool_name"`
			Args jsontext.Value `json:"mcp_tool_arguments"`
		}
		if json.Unmarshal(o.ToolInfo, &info) != nil {
			return Windsurf, false
		}
		e.Name, e.ToolName, e.ToolInput = "PreToolUse", tool, o.ToolInfo
		if tool == "" {
			e.ToolName, e.ToolInput = "mcp__windsurf__"+info.Tool, info.Args
		}
		e.Cwd = cmp.Or(e.Cwd, info.Cwd)
		return Windsurf, true
	case e.Name == "preToolUse" && slices.Contains([]string{"execute_bash", "execute_cmd", "fs_write", "fs_read", "use_aws"}, e.ToolName):
		return Kiro, true
	case e.Name == "PreToolUse" && slices.Contains([]string{"Execute", "Create", "ApplyPatch"}, e.ToolName):
		return Droid, true
	}
	return "", false
}

// windsurfTools maps the actions of Windsurf's events to tool names; "" means an MCP tool.
var windsurfTools = map[string]string{"pre_run_command": "run_terminal_cmd", "pre_read_code": "read_file", "pre_write_code": "write_file", "pre_mcp_tool_use": ""}

// input has the arguments of the agents' built-in tools.
type input struct {
	Command          string `json:"command"`
	CommandLine      string `json:"command_line"`
	FilePath         string `json:"file_path"`
	FilePathCamel    string `json:"filePath"`
	NotebookPath     string `json:"notebook_path"`
	Path             string `json:"path"`
	AbsolutePath     string `json:"absolute_path"`
	TargetFile       string `json:"target_file"`
	Workdir          string `json:"workdir"`
	WorkingDirectory string `json:"working_directory"`
	DirPath          string `json:"dir_path"`
	Directory        string `json:"directory"`
	Cwd              string `json:"cwd"`

	Content   string         `json:"content"`
	FileText  string         `json:"file_text"`
	NewSource string         `json:"new_source"`
	CellType  string         `json:"cell_type"`
	OldString string         `json:"old_string"`
	NewString string         `json:"new_string"`
	OldCamel  string         `json:"oldString"`
	NewCamel  string         `json:"newString"`
	OldStr    string         `json:"old_str"`
	NewStr    string         `json:"new_str"`
	Edits     []replacement  `json:"edits"`
	Pattern   string         `json:"pattern"`
	Query     string         `json:"query"`
	Glob      string         `json:"glob"`
	Include   jsontext.Value `json:"include"`
	Paths     []string       `json:"paths"`
	Mode      string         `json:"output_mode"`
	Patch     string         `json:"patch"`
	PatchText string         `json:"patchText"`
	Pattern2  string         `json:"includePattern"`
	Operation []struct {
		Path string `json:"path"`
	} `json:"operations"`
	Input string `json:"input"`
}

// replacement is one of several edits of a file.
type replacement struct {
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
	OldCamel  string `json:"oldString"`
	NewCamel  string `json:"newString"`
	OldText   string `json:"oldText"`
	NewText   string `json:"newText"`
}

// Request is an event in a form that is the same for all agents.
type Request struct {
	By         Agent
	CanAsk     bool   // the agent's format has an answer "ask" for this event
	AsksHold   bool   // the agent is known to wait for the user after "ask"
	Cwd        string // folder in which the tool runs; the model may have chosen it
	Session    Session
	CallID     string // identifies the tool call before and after the tool
	Moment     Moment
	AsksPerson bool // the agent is about to ask the user anyway
	Steps      []Step
}

// Session is the id of the agent's session and the folder in which the agent runs. The model
// cannot choose this folder.
type Session struct{ ID, Cwd string }

// Moment is the point in a session at which an agent sends an event.
type Moment int

// The points at which agents send events.
const (
	BeforeTool Moment = iota
	AfterTool
	AtStart // start of a session or a subagent
)

// Step is one action for the engine to judge. A file tool is judged as a shell command with the
// same effect, so that both get the same verdict.
type Step struct {
	Command string
	Shell   bool   // true: Command is a shell command of the agent; false: the guard made Command from a call of another tool
	Shown   string // text for the reason, with secrets masked; empty means an excerpt of Command
	writes  string // path of the file that the step writes
}

// ErrShape is the error for an event whose form is unknown.
var ErrShape = errors.New("the event has an unknown format")

// ReadEvent parses an event strictly. named is the agent of the hook's command line, or "". Even
// with an error, the result names the agent if the event shows it.
func ReadEvent(text []byte, named Agent) (Request, error) {
	got := Request{By: named}
	if err := canon.Check(text); err != nil {
		return got, fmt.Errorf("the event is refused: %w", err)
	}
	var e event
	if fill(text, &e) != nil { // do not return the cause, which may contain parts of the event
		return got, ErrShape
	}
	told, ok := e.translated(text)
	if !ok && told == "" {
		told, ok = e.Agent()
	}
	got.Session.ID, got.CallID, got.AsksPerson = ShownPath(e.SessionID), e.call(), e.Name == "PermissionRequest"
	if got.Moment = e.moment(); got.Moment == BeforeTool && !ok {
		return got, ErrShape
	}
	if !ok { // only hooks that Install has written get these events
		told = Claude
		if named != "" {
			told = named
		}
	}
	if named == "" || named == Claude && told == Cursor { // Cursor also runs the hooks in Claude Code's settings
		got.By = told
	}
	got.Cwd = e.Cwd
	if got.Cwd == "" && len(e.WorkspaceRoots) > 0 {
		got.Cwd = e.WorkspaceRoots[0]
	}
	got.Session.Cwd = got.Cwd
	switch got.By {
	case Claude:
		got.CanAsk = true
		// Another agent with the same format might not know "ask". So the user must have named the
		// agent, and its mode must be one in which it asks.
		got.AsksHold = named == Claude && slices.Contains([]string{"", "default", "acceptEdits", "plan", "auto"}, e.PermissionMode)
	case Cursor:
		got.CanAsk = e.Name == "beforeShellExecution" || e.Name == "beforeMCPExecution"
	case VSCode, Copilot:
		got.CanAsk = true // AsksHold stays false: it was not tested whether these agents wait for the user
	}
	if got.Moment != BeforeTool {
		return got, nil
	}
	return got, got.read(e)
}

// moment returns the point at which the event is sent, by its name.
func (e event) moment() Moment {
	switch e.Name {
	case "SessionStart", "SubagentStart", "sessionStart", "subagentStart":
		return AtStart
	case "PostToolUse", "PostToolUseFailure", "AfterTool", "afterShellExecution", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		return AfterTool
	}
	return BeforeTool
}

// call returns an id for the tool call, which is the same before and after the tool: the agent's
// id or, if there is none, a hash of session, tool and arguments. It is empty if the event has no
// tool.
func (e event) call() string {
	switch {
	case e.ToolUseID != "":
		return ShownPath(e.ToolUseID)
	case e.ToolName == "" && e.Command == "":
		return ""
	}
	tool, input := e.ToolName[strings.LastIndexByte(e.ToolName, ':')+1:], ""
	if tool == "" {
		input = e.Command // without a tool's name, command is a shell command; otherwise it starts an MCP server
	} else if canonical, err := canon.Canonical(e.ToolInput); err == nil {
		input = string(canonical)
	}
	return "#" + canon.Hash([]byte(e.SessionID + "\x00" + tool + "\x00" + input))[:16]
}

// Agent returns the agent that sent the event, recognized by the event's form. If two agents use
// the same form, it returns the one that understands fewer kinds of answers.
func (e event) Agent() (Agent, bool) {
	switch e.Name {
	case "BeforeTool", "AfterTool":
		return Gemini, true
	case "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "preToolUse",
		"sessionStart", "subagentStart", "afterShellExecution", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		return Cursor, true
	case "PreToolUse", "PermissionRequest":
		switch {
		case e.CursorVersion != "":
			return Cursor, true
		case e.TurnID != "", len(e.Model) > 0:
			return Codex, true
		case slices.Contains([]string{"run_shell_command", "read_file", "write_file", "read_many_files", "search_file_content"}, e.ToolName):
			return Qwen, true
		}
		return Claude, true
	}
	return "", false
}

// read sets the steps of a request from the event's tool and arguments.
func (a *Request) read(e event) error {
	// These events of Cursor have their own format.
	switch e.Name {
	case "beforeShellExecution":
		return a.run(e.Command)
	case "beforeMCPExecution": // in this event, command starts the MCP server
		return a.call(e)
	case "beforeReadFile":
		return a.files("cat", e.FilePath)
	}
	// A tool that affects only the agent needs no step. Another tool that is not built in is judged
	// by its name and arguments.
	kind := toolKind(e.ToolName)
	if kind == "own" || kind == "" {
		a.startsAgent(e)
	}
	switch kind {
	case "own":
		return nil
	case "":
		return a.called(e)
	}
	// Read the arguments of a tool that runs a command or uses files.
	var in input
	args, err := e.arguments()
	if err != nil {
		return err
	}
	if len(args) == 0 || fill(args, &in) != nil {
		return ErrShape
	}
	file := cmp.Or(in.FilePath, in.FilePathCamel, in.NotebookPath, in.Path, in.AbsolutePath, in.TargetFile)
	// Add the steps for this kind of tool.
	switch kind {
	case "type":
		return a.run(cmp.Or(strings.TrimSpace(in.Input), "true"))
	case "run":
		a.within(in)
		return a.run(cmp.Or(in.Command, in.CommandLine))
	case "patch":
		return a.patch(cmp.Or(in.Command, in.Patch, in.PatchText, in.Input))
	case "search":
		return a.search(in, cmp.Or(file, in.DirPath, in.Directory))
	case "tee":
		if content := in.written(a.Cwd, file); content != "" && file != "" {
			return a.writes(file, content, in)
		}
	case "cat":
		many := append(in.Paths, in.included()...)
		for _, o := range in.Operation {
			many = append(many, o.Path)
		}
		if len(many) > 0 && file == "" {
			for _, p := range many {
				a.Steps = append(a.Steps, Step{Command: "cat -- " + GlobWord(p), Shown: ShownPath(p)})
			}
			return nil
		}
	}
	return a.files(kind, file)
}

// startsAgent adds a step for a tool call that starts an agent without approvals. The step has the
// command line that starts such an agent, so it gets the same verdict.
func (a *Request) startsAgent(e event) {
	var given map[string]jsontext.Value
	args, err := e.arguments()
	if err != nil || len(args) == 0 || json.Unmarshal(args, &given) != nil {
		return
	}
	for name, value := range given {
		asks := ""
		if json.Unmarshal(value, &asks) != nil {
			asks = string(value)
		}
		if key := plainName.Replace(strings.ToLower(name)); modeMembers().MatchString(key) && asksNobody().MatchString(asks) {
			a.Steps = append(a.Steps, Step{Command: "claude --permission-mode bypassPermissions", Shown: ShownPath(name + ": " + asks)})
			return
		}
	}
}

var (
	plainName   = strings.NewReplacer("-", "", "_", "")
	modeMembers = pattern.Lazy(`^(?:(?:agent|permission|approval|sandbox)?(?:mode|policy)|sandbox|yolo|(?:dangerously|skip|bypass)\w*(?:permissions|approvals?(?:andsandbox)?))$`)
	asksNobody  = pattern.Lazy(`^(?:bypassPermissions|danger-full-access|never|yolo|true)$`)
)

// called adds a step for a tool that is not built in, such as an MCP server's. If its name is that
// of a tool that writes files, another step judges the text that it writes.
func (a *Request) called(e event) error {
	if err := a.call(e); err != nil {
		return err
	}
	name := e.ToolName[strings.LastIndex(e.ToolName, "__")+1:]
	args, err := e.arguments()
	var in input
	if toolKind(strings.TrimPrefix(name, "_")) != "tee" || err != nil || len(args) == 0 || fill(args, &in) != nil {
		return nil
	}
	file := cmp.Or(in.Path, in.FilePath, in.FilePathCamel)
	if content := in.written(a.Cwd, file); file != "" && content != "" {
		return a.writes(file, content, in)
	}
	return nil
}

// arguments returns the arguments of a tool. If they are sent as a string with JSON in it, that is
// parsed strictly.
func (e event) arguments() (jsontext.Value, error) {
	if e.ToolInput.Kind() != '"' {
		return e.ToolInput, nil
	}
	var inner string
	if json.Unmarshal(e.ToolInput, &inner) != nil || canon.Check([]byte(inner)) != nil {
		return nil, errors.New("the event's tool_input is refused: invalid JSON")
	}
	return jsontext.Value(inner), nil
}

// included returns the file patterns of a tool that reads several files.
func (in input) included() (out []string) {
	if in.Include.Kind() == '[' && json.Unmarshal(in.Include, &out) != nil {
		return nil
	}
	return out
}

// written returns the text that a file has after a file tool. For an edit it returns the complete
// file if that can be read, so that a setting is judged in its context.
func (in input) written(cwd, file string) string {
	edits := in.Edits
	if text := cmp.Or(in.Content, in.FileText, in.NewSource); text != "" {
		return text
	}
	edits = append(edits, replacement{cmp.Or(in.OldString, in.OldCamel, in.OldStr), cmp.Or(in.NewString, in.NewCamel, in.NewStr), "", "", "", ""})
	if !path.IsAbs(file) {
		file = path.Join(cwd, file)
	}
	text, err := files.ReadRegular(file, maxEdited)
	var added strings.Builder
	whole, found := string(text), err == nil
	for _, r := range edits {
		before, after := cmp.Or(r.OldString, r.OldCamel, r.OldText), cmp.Or(r.NewString, r.NewCamel, r.NewText)
		added.WriteString(after + "\n")
		if before != "" {
			found = found && strings.Contains(whole, before)
			whole = strings.Replace(whole, before, after, 1)
		}
	}
	switch fragment := strings.TrimSpace(added.String()); {
	case fragment == "":
		return ""
	case found && judgedWhole(file):
		return whole
	default:
		return inPlace(file, fragment)
	}
}

// inPlace returns a JSON document with the members of a fragment. Their position in the file is
// unknown, so they are put where they have the most effect.
func inPlace(file, fragment string) string {
	if path.Ext(file) != ".json" || strings.HasPrefix(fragment, "{") || strings.HasPrefix(fragment, "[") {
		return fragment
	}
	fragment = "{" + strings.TrimSuffix(fragment, ",") + "}"
	if path.Base(file) == "package.json" {
		return `{"scripts":` + fragment + "}"
	}
	return fragment
}

// judgedWhole reports whether a file must be judged as a complete document, because a part of it
// has no meaning.
func judgedWhole(file string) bool {
	return slices.Contains([]string{".json", ".jsonc", ".yml", ".yaml", ".toml"}, path.Ext(file))
}

// maxEdited is the size in bytes of the largest file that is read to judge an edit.
const maxEdited = 256 << 10

// maxStandIn is the number of bytes that the engine judges at once. A longer text is judged in
// parts.
const maxStandIn = 24 << 10

// writes adds steps for a text that is written to a file. One step judges a shell command that
// writes the file. Other steps judge text that will run: a notebook cell, a file such as .envrc,
// or a command in a prompt for an agent.
func (a *Request) writes(file, content string, in input) error {
	if real := a.realOf(file); !runsItself().MatchString(file) && runsItself().MatchString(real) {
		for part := range parts(content) {
			a.Steps = append(a.Steps, Step{Command: part, Shown: ShownPath(file)})
		}
	}
	if path.Ext(file) == ".ipynb" {
		if in.CellType != "markdown" {
			a.cell(file, content)
		}
		return a.files("tee", file)
	}
	if dir := path.Dir(strings.ReplaceAll(file, `\`, "/")) + "/"; path.Ext(file) == ".md" && agentText().MatchString(dir) {
		for _, run := range runsInText().FindAllStringSubmatch(content, -1) {
			a.Steps = append(a.Steps, Step{Command: run[1], Shown: ShownPath(file)})
		}
	}
	for part := range parts(content) {
		if runsItself().MatchString(file) {
			a.Steps = append(a.Steps, Step{Command: part, Shown: ShownPath(file)})
		}
		end := "COUNTERSIGN_END"
		for strings.Contains(part, end) {
			end += "_"
		}
		a.Steps = append(a.Steps, Step{Command: "cat > " + QuotePath(file) + " <<'" + end + "'\n" + part + "\n" + end, Shown: ShownPath(file), writes: file})
	}
	return nil
}

// realOf returns the path of a file with links resolved, unless the path begins with "~".
func (a *Request) realOf(file string) string {
	if strings.HasPrefix(file, "~") {
		return file
	}
	if !path.IsAbs(file) {
		file = path.Join(a.Cwd, file)
	}
	return files.Real(file)
}

// agentText matches the names of files with prompts and commands for an agent. runsInText matches
// shell commands in these files that the agent runs when it loads the file.
var (
	agentText = pattern.Lazy(`(?:^|/)\.(?:claude|opencode|qwen|gemini|codex|cursor)/(?:commands?|skills|prompts|agents?)/`)
	// runsItself matches files that run when the user enters a folder or uses Git.
	runsItself = pattern.Lazy(`(?:^|/)(?:\.envrc|(?:\.husky|\.githooks|\.git/hooks)/[^/]+)$`)
	runsInText = pattern.Lazy("!`([^`\n]+)`")
)

// parts divides a long text at line ends.
func parts(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > maxStandIn {
			cut := strings.LastIndexByte(text[:maxStandIn], '\n')
			if cut <= 0 {
				cut = maxStandIn
			}
			if !yield(text[:cut]) {
				return
			}
			text = text[cut:]
		}
		yield(text)
	}
}

// cell adds steps for the source of a notebook cell. Lines that begin with "!" and shell cells are
// shell commands; the rest is Python.
func (a *Request) cell(file, source string) {
	shell, python := "", ""
	if first, rest, _ := strings.Cut(source, "\n"); strings.HasPrefix(first, "%%bash") || strings.HasPrefix(first, "%%sh") || strings.HasPrefix(first, "%%script") {
		shell = rest
	} else {
		for line := range strings.Lines(source) {
			if command, is := strings.CutPrefix(strings.TrimSpace(line), "!"); is {
				shell += strings.TrimPrefix(command, "!") + "\n"
			} else if !strings.HasPrefix(strings.TrimSpace(line), "%") {
				python += line
			}
		}
	}
	for text := range parts(strings.TrimSpace(shell)) {
		if text != "" {
			a.Steps = append(a.Steps, Step{Command: text, Shown: ShownPath(file)})
		}
	}
	for text := range parts(strings.TrimSpace(python)) {
		if text != "" {
			a.Steps = append(a.Steps, Step{Command: "python3 - <<'COUNTERSIGN_END'\n" + text + "\nCOUNTERSIGN_END", Shown: ShownPath(file)})
		}
	}
}

// search adds a step for a tool that searches files as grep does and returns matching lines or
// file names.
func (a *Request) search(in input, folder string) error {
	options := "-rn"
	switch in.Mode {
	case "files_with_matches":
		options = "-rl"
	case "count":
		options = "-rc"
	}
	where := cmp.Or(folder, ".")
	pattern := cmp.Or(in.Pattern, in.Query, ".")
	globs := in.included()
	if in.Include.Kind() == '"' {
		var one string
		if json.Unmarshal(in.Include, &one) == nil {
			globs = append(globs, one)
		}
	}
	for _, g := range []string{in.Glob, in.Pattern2} {
		if g != "" {
			globs = append(globs, g)
		}
	}
	for _, g := range globs {
		if strings.HasPrefix(g, "!") { // a pattern for files to exclude
			continue
		}
		a.Steps = append(a.Steps, Step{Command: "grep " + options + " -e " + QuotePath(pattern) + " -- " + GlobWord(strings.TrimSuffix(where, "/")+"/"+strings.TrimPrefix(g, "**/")), Shown: ShownPath(g)})
	}
	if len(a.Steps) == 0 {
		a.Steps = append(a.Steps, Step{Command: "grep " + options + " -e " + QuotePath(pattern) + " -- " + QuotePath(where), Shown: ShownPath(where)})
	}
	return nil
}

// within sets the folder of the request to the one in the arguments of the shell tool.
func (a *Request) within(in input) {
	for _, dir := range []string{in.Workdir, in.WorkingDirectory, in.DirPath, in.Directory, in.Cwd} {
		switch {
		case dir == "":
		case path.IsAbs(dir) || strings.HasPrefix(dir, "~"):
			a.Cwd = dir
		default:
			a.Cwd = path.Join(a.Cwd, dir)
		}
	}
}

func (a *Request) run(command string) error {
	command = strings.TrimSpace(command)
	if command == "" {
		return errors.New("the event has no command")
	}
	a.Steps = append(a.Steps, Step{Command: command, Shell: true})
	return nil
}

// call adds a step that judges a tool call by its name and arguments, in the form of an MCP call.
func (a *Request) call(e event) error {
	if e.ToolName == "" {
		return ErrShape
	}
	args, err := e.arguments()
	if err != nil {
		return err
	}
	if len(args) == 0 || args.Kind() == 'n' {
		args = jsontext.Value("{}")
	}
	tool := e.ToolName[strings.LastIndexByte(e.ToolName, ':')+1:] // the name may be MCP:server:tool
	name, err := jsontext.AppendQuote(nil, tool)
	if err != nil || tool == "" {
		return ErrShape
	}
	a.Steps = append(a.Steps, Step{Command: `{"name":` + string(name) + `,"arguments":` + string(args) + `}`})
	return nil
}

// files adds a step for each path: the shell command with the effect of the file tool.
func (a *Request) files(verb string, paths ...string) error {
	before := len(a.Steps)
	for _, p := range paths {
		if p == "" {
			continue
		}
		s := Step{Command: verb + " -- " + QuotePath(p), Shown: ShownPath(p)}
		if verb != "cat" {
			s.writes = p
		}
		a.Steps = append(a.Steps, s)
	}
	if len(a.Steps) == before {
		return errors.New("the event names no file")
	}
	return nil
}

// patch adds steps for the files that a patch changes, and for the lines that it adds to them.
func (a *Request) patch(text string) error {
	before, file, added := len(a.Steps), "", ""
	flush := func() error {
		content := strings.TrimSpace(added)
		if file == "" || content == "" {
			return nil
		}
		defer func() { added = "" }()
		return a.writes(file, inPlace(file, content), input{})
	}
	for line := range strings.Lines(text) {
		if more, ok := strings.CutPrefix(line, "+"); ok && file != "" {
			added += more
			continue
		}
		line = strings.TrimSpace(line)
		for _, h := range [...]struct{ head, verb string }{
			{"*** Add File: ", "tee"}, {"*** Update File: ", "tee"}, {"*** Move to: ", "tee"}, {"*** Delete File: ", "rm"},
		} {
			if p, ok := strings.CutPrefix(line, h.head); ok {
				if err := flush(); err != nil {
					return err
				}
				if file = strings.TrimSpace(p); h.verb == "rm" {
					file = ""
				}
				if err := a.files(h.verb, strings.TrimSpace(p)); err != nil {
					return err
				}
			}
		}
	}
	if len(a.Steps) == before {
		return errors.New("the event's patch names no file")
	}
	return flush()
}

// toolKind returns what a built-in tool does: "run" a command, "patch" files, "search" files,
// "type" into a shell, or the shell command that a file tool equals. "own" is a tool that affects
// only the agent. "" is any other tool; it is judged by its name and arguments.
func toolKind(name string) string {
	switch strings.ToLower(name) {
	case "bash", "powershell", "shell", "run_shell_command", "run_terminal_cmd", "run_in_terminal", "runcommands", "execute_command", "execute_bash", "execute_cmd", "execute", "local_shell":
		return "run"
	case "write_bash", "write_powershell": // these type into a running shell
		return "type"
	case "apply_patch", "applypatch", "patch":
		return "patch"
	case "write", "edit", "multiedit", "notebookedit", "strreplace", "write_file", "replace", "edit_file", "search_replace", "tabwrite",
		"create_file", "insert_edit_into_file", "replace_string_in_file", "multi_replace_string_in_file", "edit_notebook_file", "create", "str_replace", "str_replace_editor", "insert", "write_to_file", "replace_in_file", "fs_write", "createfile", "editfiles":
		return "tee"
	case "read", "notebookread", "read_file", "tabread", "read_many_files", "view", "fs_read", "readfile", "read_notebook":
		return "cat"
	case "grep", "grep_search", "search_file_content", "search_files", "ripgrep", "rg", "codebase_search", "textsearch", "findtextinfiles":
		return "search"
	case "delete", "delete_file":
		return "rm"
	case "bashoutput", "taskoutput", "killshell", "killbash", "taskstop", "task", "agent", "todoread", "todowrite", "write_todos", "update_plan", "todo_write", "manage_todo_list", "report_intent", "attempt_completion", "ask_followup_question",
		"glob", "ls", "list", "list_directory", "list_dir", "list_files", "file_search", "semanticsearch", "semantic_search", "readlints", "get_errors", "list_code_usages", "list_code_definition_names", "get_terminal_output", "read_bash", "stop_bash", "get_changed_files", "think",
		"askuserquestion", "ask_user", "ask_user_question", "enterplanmode", "exitplanmode", "enter_plan_mode", "exit_plan_mode", "skill", "slashcommand", "toolsearch", "save_memory", "todo":
		return "own"
	}
	return ""
}
