// Package launch recognizes commands that start a coding agent without its guard or without
// approvals, and commands that type an answer into the terminal of another program.
package launch

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
)

// agentPrograms lists the names of coding agents' programs and packages.
var agentPrograms = []string{"claude", "claude-code", "codex", "cursor-agent", "agent", "gemini", "gemini-cli", "qwen", "qwen-code", "copilot", "opencode", "opencode-ai",
	"amp", "aider", "droid", "goose", "kiro-cli", "kiro", "q", "cline", "crush", "auggie", "roo", "kilo", "kilocode", "openhands", "plandex", "jules", "vibe", "kimi", "iflow", "rovodev", "acli", "warp", "cn", "hermes", "junie", "gptme", "interpreter", "trae-cli"}

// saysUnguarded matches words that make any agent run without asking or without its hooks.
// Unguarded also uses some of them to recognize an agent that has another name.
var (
	saysUnguarded = pattern.Lazy(`^--(?:(?:allow-)?dangerously-[a-z-]+|yolo|skip-permissions[a-z-]*|allow-all(?:-tools|-paths)?|trust-all-tools|no-permission[a-z-]*|unsafe-auto[a-z-]*|(?:always|auto)-approve[a-z-]*|approve-all[a-z-]*|no-confirm[a-z-]*|(?:no|disable)-hooks)(?:=|$)|` +
		`^(?:--permission-mode=)?bypassPermissions$|"?permissionMode"?\s*:\s*"?bypassPermissions|danger-full-access|"?disableAllHooks"?\s*[:=]\s*true|features\.(?:codex_)?hooks\s*=\s*false|^(?:--config=)?approval_policy\s*=\s*"?never`)
	// unguardedOf matches further words with this effect, each used by one family of agents only.
	unguardedOf = map[string]func() *regexp.Regexp{
		"claude":      words(`--settings`, `--setting-sources`, `--bare`, `--safe-mode`, `--permission-prompt-tool`, `--allowed-?[tT]ools[= ](?:\S+[, ])*Bash(?:\(\*?:?\*\))?,?`),
		"codex":       words(`--full-auto`, `--disable (?:codex_)?hooks`, `(?:-a|--ask-for-approval)[= ]never`, `--ignore-user-config`, `--ignore-rules`),
		"cursor":      words(`-f`, `--force`),
		"gemini":      words(`-y`, `--approval-mode[= ](?:yolo|auto)`, `--skip-trust`, `--allowed-tools(?:=\S*)?`),
		"copilot":     words(`--allow-tool(?:=\S*)?`),
		"opencode":    words(`--pure`),
		"aider":       words(`--yes`, `--yes-always`),
		"droid":       words(`--auto[= ]high`),
		"cline":       words(`-y`),
		"crush":       words(`-y`),
		"iflow":       words(`-y`),
		"kimi":        words(`-y`, `--yes`),
		"gptme":       words(`-y`, `-n`, `--non-interactive`),
		"interpreter": words(`-y`, `--auto_run`),
		"kiro":        words(`-a`, `--trust-tools[= ]\S*(?:execute|shell|write)\S*`),
		"auggie":      words(`--permission[= ]\S*:allow`),
		"openhands":   words(`--headless`),
		"plandex":     words(`--full`, `--auto[= ]full`),
		"kilocode":    words(`--auto`),
		"cn":          words(`--auto`, `--allow[= ]\*`),
	}
	families = map[string]string{"claude-code": "claude", "cursor-agent": "cursor", "agent": "cursor", "gemini-cli": "gemini",
		"qwen": "gemini", "qwen-code": "gemini", "opencode-ai": "opencode", "kiro-cli": "kiro", "q": "kiro", "kilo": "kilocode"}
	// movesSettings matches environment variables that make an agent use other settings, or ask
	// nobody.
	movesSettings = pattern.Lazy(`\b(?:CLAUDE_CONFIG_DIR|CODEX_HOME|CLAUDE_CODE_SIMPLE|CLAUDE_CODE_DISABLE_[A-Z_]*HOOKS?|GEMINI_CLI_(?:HOME|SYSTEM_SETTINGS_PATH)|QWEN_(?:HOME|CODE_SYSTEM_SETTINGS_PATH)|OPENCODE_(?:CONFIG(?:_DIR|_CONTENT)?|DISABLE_[A-Z_]+|PERMISSION|PURE)|COPILOT_(?:ALLOW_ALL|HOME)|HOME|XDG_CONFIG_HOME|USERPROFILE)=|\bGOOSE_MODE=["']?auto|` +
		`\bunset\s+(?:-v\s+)?(?:\w+\s+)*(?:HOME|USERPROFILE)\b`)
)

// Words returns the words of a call as one text, separated by blanks, and with a blank at both
// ends.
func Words(u *actionrisk.Use) string {
	var b strings.Builder
	for _, w := range u.Words {
		b.WriteString(" " + w.Text)
	}
	return b.String() + " "
}

// words returns a pattern that matches any of patterns between blanks.
func words(patterns ...string) func() *regexp.Regexp {
	return pattern.Lazy(` (?:` + strings.Join(patterns, "|") + `) `)
}

// LeavesSettings reports whether a call runs another program as another user, or without the
// environment variables by which the program finds the user's settings.
func LeavesSettings(u *actionrisk.Use) bool {
	text := Words(u)
	switch u.Program {
	case "env":
		return emptiesEnvironment().MatchString(text)
	case "sudo", "doas", "su", "runuser", "gosu", "setpriv", "chroot", "machinectl", "pkexec":
		return u.Carries
	}
	return false
}

var emptiesEnvironment = pattern.Lazy(` (?:-|-[0v]*i[0v]*|--ignore-environment|-u ?(?:HOME|USERPROFILE)|--unset[= ](?:HOME|USERPROFILE)) `)

// asksAgentItself lists first arguments with which an agent starts no session.
var asksAgentItself = []string{"--help", "-h", "--version", "-v", "-V", "help", "mcp", "config", "login", "logout", "auth", "update", "upgrade", "install", "doctor", "completion", "plugin", "plugins", "setup-token", "features"}

// Unguarded reports whether a call starts an agent without its guard or without approvals. left is
// true if a part of the command leaves the user's settings (LeavesSettings).
func Unguarded(u *actionrisk.Use, command string, left bool) bool {
	if u.Proven || u.Carries || u.Remote || len(u.Words) == 0 || u.Program == "git" || u.Program == "gh" {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Program, ".exe"))
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	name, _, _ = strings.Cut(name, "@")
	agent := slices.Contains(agentPrograms, name)
	if agent && len(u.Words) > 1 && slices.Contains(asksAgentItself, u.Words[1].Text) {
		return false
	}
	for _, w := range u.Words[1:] {
		if (agent || strings.HasPrefix(w.Text, "--dangerously-skip") || strings.HasPrefix(w.Text, "--dangerously-bypass") || w.Text == "--yolo") && saysUnguarded().MatchString(w.Text) {
			return true
		}
	}
	if !agent {
		return false
	}
	says := unguardedOf[cmp.Or(families[name], name)]
	return left || says != nil && says().MatchString(Words(u)) || movesSettings().MatchString(command)
}
