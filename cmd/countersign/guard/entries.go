package guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Instructions are the configuration of an agent in words, and where it goes. The file
// names and members are those of the agents' own documentation.
func (a Agent) Instructions(program string) string {
	entry, err := a.entry(program)
	if err != nil {
		return "" // a path that is not UTF-8 has no JSON form
	}
	e := entries[a]
	return fmt.Sprintf("%s\n\n%s\n\n%s\n\nThen: %s doctor --hook --agent %s\nOr let it be merged: %[4]s gate hook --install %[5]s --write\n", e.where, entry, e.notes, Name, a)
}

// entry is the configuration alone. Beside the guard before a tool it has a canary at
// the start of each session and subagent, and a look behind each tool whether it ran
// under a verdict (gate log shows an alarm): doctor --hook sees one moment only.
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
		`onFailure makes Claude Code block when the hook cannot be started or is too slow; it needs 2.1.295 or
later, and without it a wrong path lets every command through. High risk is asked about in the modes default,
acceptEdits, plan and auto, and denied in bypassPermissions and dontAsk, where nobody would be asked.`,
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
		`Codex runs a new or changed hook only after you trusted it: open /hooks in Codex. Until then it is
skipped without a word, and so are all hooks of a project that is not trusted. Codex has no "ask" before
a tool: high risk is denied. What the model types into a running program is not shown to hooks, so a shell
or SQL console without its command counts as high. Codex goes on when the hook cannot be started or is too
slow, so keep the path right. Older versions need hooks = true under
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
		`failClosed makes Cursor block when the hook cannot be started or is too slow. Where nobody can be
asked Cursor lets an "ask" through, so high risk is denied; --ask always in the command makes it ask.
Cursor also runs the hooks of Claude Code's settings; this one answers there in Cursor's format.`,
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
		`Hooks of a project run only in a trusted folder, and --skip-trust leaves them out. Gemini's documented
answers are allow and deny: high risk is denied. Gemini CLI 0.61.0 blocks every call when the command is
not there, and goes on when it exits with 1 or gives no answer in time, so keep the path right.`,
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
		`High risk is denied: nobody tried whether an "ask" stops it in every mode.`,
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
		`High risk is denied: nobody tried whether an "ask" stops it in every mode.`,
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
		`A plugin cannot ask: high risk is denied. OpenCode reads plugins when it starts.`,
	},
}

// ShellWord quotes a text for a shell only where it needs it.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@") == "" {
		return s
	}
	return quotePath(s)
}
