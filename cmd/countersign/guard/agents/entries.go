package agents

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/guard/launch"
)

// Instructions returns the configuration to install for an agent, with the file that it belongs in
// and notes.
func (a Agent) Instructions(program string) string {
	entry, err := a.entry(program)
	if err != nil {
		return "" // a path that is not UTF-8 cannot be part of JSON
	}
	e := entries[a]
	return fmt.Sprintf("%s\n\n%s\n\n%s\n\nThen: %s doctor --hook --agent %s\nTo merge it automatically: %[4]s gate hook --install %[5]s --write\n", e.where, entry, e.notes, launch.Name, a)
}

// entry returns the configuration only. It has a hook before each tool, and two more so that a
// removed guard is noticed: one at the start of each session and subagent judges the canary (a
// dangerous test command), and one after each tool checks that the tool had a verdict ("gate log"
// shows an alarm if not). doctor --hook checks the guard only when it is run.
func (a Agent) entry(program string) (string, error) {
	quoted, err := jsontext.AppendQuote(nil, ShellWord(program)+" gate hook --agent "+string(a))
	path, err2 := jsontext.AppendQuote(nil, program)
	return strings.NewReplacer("COMMAND", string(quoted), "PROGRAM", string(path)).Replace(entries[a].entry), errors.Join(err, err2)
}

var entries = map[Agent]struct{ where, entry, notes string }{
	Claude: {
		"Claude Code: merge this into ~/.claude/settings.json (every project) or .claude/settings.json (this one).",
		`{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {"type": "command", "command": COMMAND, "timeout": 10, "onFailure": "block"}
        ]
      }
    ],
    "PostToolUse": [
      {
        "matcher": "*",
        "hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]
      }
    ],
    "SessionStart": [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]}],
    "SubagentStart": [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]}]
  }
}`,
		`onFailure makes Claude Code block if the hook cannot be started or is too slow. It needs version 2.1.295
or later; without it a wrong path lets every command through. High risk is asked about in the modes default,
acceptEdits, plan and auto, and denied in bypassPermissions and dontAsk, which ask nobody.`,
	},
	Codex: {
		"Codex CLI: merge this into ~/.codex/hooks.json (every project) or .codex/hooks.json (this one).",
		`{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {"type": "command", "command": COMMAND, "timeout": 10}
        ]
      }
    ],
    "PostToolUse": [
      {
        "matcher": "*",
        "hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]
      }
    ],
    "SessionStart": [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]}],
    "SubagentStart": [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]}]
  }
}`,
		`Codex runs a new or changed hook only after you have trusted it: open /hooks in Codex. Until then Codex
silently skips it, as it skips every hook of a project that is not trusted. Codex has no "ask" before
a tool: high risk is denied. Hooks do not see what the model types into a running program, so a shell
or SQL console without its command counts as high risk. Codex continues if the hook cannot be started or is too
slow, so check the path. Older versions need hooks = true under
[features] in config.toml.`,
	},
	Cursor: {
		"Cursor: merge this into ~/.cursor/hooks.json (every project) or .cursor/hooks.json (this one).",
		`{
  "version": 1,
  "hooks": {
    "beforeShellExecution": [{"command": COMMAND, "failClosed": true}],
    "beforeMCPExecution": [{"command": COMMAND, "failClosed": true}],
    "preToolUse": [{"command": COMMAND, "failClosed": true}],
    "afterShellExecution": [{"command": COMMAND}],
    "afterMCPExecution": [{"command": COMMAND}],
    "postToolUse": [{"command": COMMAND}],
    "sessionStart": [{"command": COMMAND}],
    "subagentStart": [{"command": COMMAND}]
  }
}`,
		`failClosed makes Cursor block if the hook cannot be started or is too slow. If nobody can be
asked, Cursor lets an "ask" through, so high risk is denied; --ask always in the command makes it ask.
Cursor also runs the hooks in Claude Code's settings; this hook then answers in Cursor's format.`,
	},
	Gemini: {
		"Gemini CLI: merge this into ~/.gemini/settings.json (every project) or .gemini/settings.json (this one).",
		`{
  "hooks": {
    "BeforeTool": [
      {
        "matcher": ".*",
        "hooks": [
          {"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}
        ]
      }
    ],
    "AfterTool": [
      {
        "matcher": ".*",
        "hooks": [{"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}]
      }
    ],
    "SessionStart": [{"hooks": [{"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}]}]
  }
}`,
		`Hooks of a project run only in a trusted folder, and --skip-trust skips them. Gemini's documented
answers are allow and deny: high risk is denied. Gemini CLI 0.61.0 blocks every call if the command does
not exist, and continues if it exits with 1 or gives no answer in time, so check the path.`,
	},
	Qwen: {
		"Qwen Code: merge this into ~/.qwen/settings.json (every project) or .qwen/settings.json (this one).",
		`{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [{"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}]
      }
    ],
    "PostToolUse": [
      {
        "matcher": "*",
        "hooks": [{"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}]
      }
    ],
    "SessionStart": [{"hooks": [{"name": "countersign", "type": "command", "command": COMMAND, "timeout": 10000}]}]
  }
}`,
		`High risk is denied, because it was not tested that an "ask" stops the tool in every mode.`,
	},
	Copilot: {
		"GitHub Copilot CLI: write this to ~/.copilot/hooks/countersign.json (every project) or .github/hooks/countersign.json (this one).",
		`{
  "version": 1,
  "hooks": {
    "preToolUse": [{"type": "command", "bash": COMMAND, "timeoutSec": 10}],
    "postToolUse": [{"type": "command", "bash": COMMAND, "timeoutSec": 10}]
  }
}`,
		`High risk is denied, because it was not tested that an "ask" stops the tool in every mode.`,
	},
	OpenCode: {
		"OpenCode: write this to ~/.config/opencode/plugins/countersign.js (every project) or .opencode/plugins/countersign.js (this one).",
		`import { spawnSync } from "node:child_process";
// Asks the guard before each tool; a guard that does not answer stops the tool.
export const Countersign = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const event = { countersign_plugin: "1", hook_event_name: "PreToolUse", session_id: input.sessionID, tool_use_id: input.callID, cwd: directory, tool_name: input.tool, tool_input: output.args ?? {} };
    const { status, stdout } = spawnSync(PROGRAM, ["gate", "hook", "--agent", "opencode"], { input: JSON.stringify(event), encoding: "utf8", timeout: 10000 });
    let answer = {};
    try {
      answer = JSON.parse(stdout);
    } catch {}
    if (status !== 0 || (answer.decision !== "pass" && answer.decision !== "proven")) throw new Error(answer.reason || "countersign: the guard did not answer");
  },
});`,
		`A plugin cannot ask the user, so high risk is denied. OpenCode reads plugins when it starts.`,
	},
}
