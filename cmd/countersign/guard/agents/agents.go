// Package agents contains the differences between coding agents: the events that they send before
// and after a tool call and at the start of a session, the answers that they read, and the
// settings file with the entry that starts the guard. It adds, removes and tests that entry.
package agents

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Agent is the name of a coding agent whose hook format the guard knows. It is empty if the agent
// is unknown.
type Agent string

// The agents, and the documentation of their formats. .ci/hooks tests Claude Code 2.1.330, Codex
// 0.169.0, Gemini CLI 0.61.0 and the local agent of Cursor's SDK 1.0.31.
//
//	claude  code.claude.com/docs/en/hooks: PreToolUse {tool_name, tool_input, cwd, permission_mode}
//	        -> {hookSpecificOutput: {hookEventName, permissionDecision allow|deny|ask|defer, permissionDecisionReason}};
//	        exit 2 blocks with stderr as the reason; any other code, a time-out and an answer that is not
//	        JSON let the call through (unless the entry says onFailure: block). An "ask" reaches a
//	        permission prompt tool in every mode; if nobody can be asked, the call is denied.
//	        The Monitor tool sends its commands as tool Bash.
//	codex   developers.openai.com/codex/hooks: the same format, with turn_id and model; unknown members of
//	        an answer, "ask", a bare "allow" and a denial without a reason let the call through; exit 2 needs
//	        text on stderr. cwd is the folder of the call. apply_patch sends the patch as tool_input.command.
//	        If the model runs JavaScript, each tool call of that code is sent. Text that the tool
//	        write_stdin types is not sent.
//	cursor  cursor.com/docs/hooks: beforeShellExecution {command, cwd}, beforeMCPExecution {tool_name,
//	        tool_input as JSON text}, beforeReadFile {file_path}, preToolUse {tool_name, tool_input}
//	        -> {permission allow|deny|ask, user_message, agent_message}; exit 2, an answer that is not JSON
//	        and an unknown permission block; another exit code, no answer and a time-out let the call through
//	        (unless the entry says failClosed), and so does an answer without permission. "ask" exists for
//	        the first two events; in the SDK, where nobody can be asked, it lets the call through. Cursor
//	        also runs the PreToolUse hooks of Claude Code's settings, as preToolUse, and reads only answers
//	        in its own format.
//	gemini  geminicli.com/docs/hooks/reference: BeforeTool {tool_name, tool_input, cwd}
//	        -> {decision allow|deny, reason}, read from stdout, or from stderr if stdout is empty. Text that
//	        is not JSON is a denial if the exit code is 2 or more, and ignored otherwise; no text and a
//	        time-out let the call through. Only new versions know "ask"; without a terminal they then wait
//	        without end.
const (
	Claude Agent = "claude"
	Codex  Agent = "codex"
	Cursor Agent = "cursor"
	Gemini Agent = "gemini"

	// In OpenCode, a plugin of this project calls the guard. Qwen Code and GitHub Copilot CLI have
	// hooks.
	OpenCode Agent = "opencode"
	Qwen     Agent = "qwen"
	Copilot  Agent = "copilot"

	// The guard can read the documented events of these agents. They were not tested, so there is
	// no installer for them.
	VSCode   Agent = "vscode"
	Windsurf Agent = "windsurf"
	Cline    Agent = "cline"
	Kiro     Agent = "kiro"
	Droid    Agent = "droid"
)

// Agents lists the agents for which a hook can be installed, in the order in which doctor checks
// them. Known lists all agents whose events the guard can read.
var (
	Agents = []Agent{Claude, Codex, Cursor, Gemini, Qwen, Copilot, OpenCode}
	Known  = []Agent{Claude, Codex, Cursor, Gemini, OpenCode, Qwen, Copilot, VSCode, Windsurf, Cline, Kiro, Droid}
)

// Decision is the guard's decision on an action of an agent.
type Decision string

// The decisions of the guard.
const (
	Pass Decision = "pass" // the agent's own permissions decide
	Ask  Decision = "ask"
	Deny Decision = "deny"
	// Proven is for an action that is proven to change nothing. The agent is told not to ask the
	// user either.
	Proven Decision = "proven"
)

// Answer returns a decision in the agent's format. For Pass, it avoids "allow" if that would
// override the agent's own permissions.
func (a Agent) Answer(d Decision, reason string) string {
	var value any = struct{}{}
	switch {
	case a == "":
		return ""
	case a == Cursor && (d == Pass || d == Proven): // its documentation requires a permission in every answer
		value = cursorAnswer{Permission: "allow"}
	case a == Cursor:
		value = cursorAnswer{Permission: string(d), UserMessage: reason, AgentMessage: reason}
	case a == OpenCode: // this project's plugin
		value = pluginAnswer{Decision: string(d), Reason: reason}
	case a == Windsurf, a == Kiro: // these read only the exit code and standard error
	case a == Cline && d != Pass && d != Proven:
		value = clineAnswer{Cancel: true, ErrorMessage: reason}
	case a == Copilot && d != Pass && d != Proven:
		value = copilotAnswer{PermissionDecision: string(d), PermissionDecisionReason: reason}
	case d == Pass, d == Proven && a != Gemini && a != Claude && a != Qwen: // an "allow" without more might be treated as a failure
	case d == Proven && a == Gemini:
		value = geminiAnswer{Decision: "allow"}
	case d == Proven:
		value = claudeAnswer{claudeDecision{HookEventName: "PreToolUse", PermissionDecision: "allow", PermissionDecisionReason: reason}}
	case a == Gemini:
		value = geminiAnswer{Decision: string(Deny), Reason: reason}
	default:
		value = claudeAnswer{claudeDecision{HookEventName: "PreToolUse", PermissionDecision: string(d), PermissionDecisionReason: reason}}
	}
	text, err := canon.Marshal(value)
	if err != nil {
		panic(err) // Guard.Answer recovers and blocks the tool
	}
	return string(text) + "\n"
}

type claudeAnswer struct {
	HookSpecificOutput claudeDecision `json:"hookSpecificOutput"`
}

type claudeDecision struct {
	HookEventName            string `json:"hookEventName"`
	PermissionDecision       string `json:"permissionDecision"`
	PermissionDecisionReason string `json:"permissionDecisionReason"`
}

type cursorAnswer struct {
	Permission   string `json:"permission"`
	UserMessage  string `json:"user_message,omitempty"`
	AgentMessage string `json:"agent_message,omitempty"`
}

type geminiAnswer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
}

// AnswerPermission returns the answer to the event that Claude Code sends before it asks the user:
// a denial, or an empty answer, after which the user is asked.
func AnswerPermission(d Decision, reason string) string {
	if d != Deny {
		return "{}\n"
	}
	var answer struct {
		HookSpecificOutput struct {
			HookEventName string `json:"hookEventName"`
			Decision      struct {
				Behavior string `json:"behavior"`
				Message  string `json:"message"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	answer.HookSpecificOutput.HookEventName = "PermissionRequest"
	answer.HookSpecificOutput.Decision.Behavior, answer.HookSpecificOutput.Decision.Message = "deny", reason
	text, err := canon.Marshal(answer)
	if err != nil {
		panic(err) // Guard.Answer recovers and blocks the tool
	}
	return string(text) + "\n"
}

type pluginAnswer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
}

type clineAnswer struct {
	Cancel       bool   `json:"cancel"`
	ErrorMessage string `json:"errorMessage"`
}

type copilotAnswer struct {
	PermissionDecision       string `json:"permissionDecision"`
	PermissionDecisionReason string `json:"permissionDecisionReason"`
}

// BlocksByCode reports whether only exit code 2 and standard error stop this agent.
func (a Agent) BlocksByCode() bool { return a == Windsurf || a == Kiro }

// Understands returns the decision that the agent takes from a hook's output, with an explanation.
// Pass means that the tool runs: agents run the tool if a hook fails in a way that they do not
// recognize.
func (a Agent) Understands(code int, stdout []byte, stderr string) (Decision, string) {
	if a == Gemini { // Gemini reads either output, and accepts JSON with any exit code
		text := bytes.TrimSpace(stdout)
		if len(text) == 0 {
			text = bytes.TrimSpace([]byte(stderr))
		}
		switch {
		case jsontext.Value(text).IsValid():
			code, stdout = 0, text
		case code > 1 && len(text) > 0:
			return Deny, fmt.Sprintf("exit code %d", code)
		case code == 2:
			return Pass, "exit code 2 without a reason on standard error"
		}
	}
	// First the exit code: some agents decide by it alone.
	switch {
	case a == OpenCode && code != 0:
		return Deny, fmt.Sprintf("exit code %d, on which the plugin stops", code)
	case code == 2 && a == Codex && strings.TrimSpace(stderr) == "":
		return Pass, "exit code 2 without a reason on standard error"
	case code == 2:
		return Deny, "exit code 2"
	case code != 0:
		return Pass, fmt.Sprintf("exit code %d", code)
	case len(bytes.TrimSpace(stdout)) == 0:
		return Pass, "an empty answer"
	}
	// Then the JSON answer, with the members that any agent reads.
	var got struct {
		HookSpecificOutput claudeDecision `json:"hookSpecificOutput"`
		Permission         string         `json:"permission"`
		Decision           string         `json:"decision"`
		Reason             string         `json:"reason"`
		PermissionDecision string         `json:"permissionDecision"`
	}
	if json.Unmarshal(stdout, &got) != nil {
		if a == Cursor {
			return Deny, "an answer that is not JSON"
		}
		return Pass, "an answer that is not JSON"
	}
	// Select the members that this agent reads.
	said, reason := got.Decision, got.Reason
	switch a {
	case OpenCode:
		if said != "pass" && said != "proven" { // the plugin blocks the tool for all other values
			said = "deny"
		}
	case Copilot:
		said = got.PermissionDecision
	case Qwen:
		if got.HookSpecificOutput.PermissionDecision != "" {
			said = got.HookSpecificOutput.PermissionDecision
		}
	case Cursor:
		said, reason = got.Permission, "-"
	case Claude, Codex:
		if got.HookSpecificOutput.PermissionDecision != "" {
			said, reason = got.HookSpecificOutput.PermissionDecision, got.HookSpecificOutput.PermissionDecisionReason
		}
	}
	// Translate their values.
	switch {
	case a == Cursor && !slices.Contains([]string{"", "allow", "ask", "deny"}, said):
		return Deny, "an unknown permission"
	case said == "ask" && a != Gemini && a != Codex:
		return Ask, "ask"
	case said != "deny" && (said != "block" || a == Cursor):
		return Pass, "no denial"
	case a == Codex && strings.TrimSpace(reason) == "":
		return Pass, "a denial without a reason"
	}
	return Deny, "denied"
}

// DoctorSession is the session id of the events with which doctor tests a hook.
const DoctorSession = "countersign-doctor"

// Canary returns the event that the agent sends before it runs this shell command.
func (a Agent) Canary(command string) []byte {
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
	common := `"cwd":` + quote(cwd) + `,"session_id":"` + DoctorSession + `","transcript_path":""`
	tool := func(event, name, more string) []byte {
		return []byte(`{"hook_event_name":"` + event + `",` + common + more + `,"tool_name":"` + name + `","tool_input":{"command":` + quote(command) + "}}")
	}
	switch a {
	case Codex:
		return tool("PreToolUse", "Bash", `,"turn_id":"1","model":"none","permission_mode":"default","tool_use_id":"1"`)
	case Qwen:
		return tool("PreToolUse", "run_shell_command", `,"permission_mode":"default","tool_use_id":"1"`)
	case Copilot:
		args := `{"command":` + quote(command) + "}"
		return []byte(`{"timestamp":1,"cwd":` + quote(cwd) + `,"sessionId":"` + DoctorSession + `","toolName":"bash","toolArgs":` + quote(args) + "}")
	case OpenCode:
		return tool("PreToolUse", "bash", `,"countersign_plugin":"1","tool_use_id":"1"`)
	case Gemini:
		return tool("BeforeTool", "run_shell_command", `,"timestamp":"2026-01-01T00:00:00Z"`)
	case Cursor:
		return []byte(`{"hook_event_name":"beforeShellExecution","conversation_id":"1","generation_id":"1","workspace_roots":[` +
			quote(cwd) + `],"cwd":` + quote(cwd) + `,"command":` + quote(command) + "}")
	}
	return tool("PreToolUse", "Bash", `,"permission_mode":"default","tool_use_id":"1"`)
}
