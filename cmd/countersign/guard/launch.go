package guard

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// agentPrograms are coding agents by the names of their programs and packages.
var agentPrograms = []string{"claude", "claude-code", "codex", "cursor-agent", "agent", "gemini", "gemini-cli", "qwen", "qwen-code", "copilot", "opencode", "opencode-ai",
	"amp", "aider", "droid", "goose", "kiro-cli", "kiro", "q", "cline", "crush", "auggie", "roo", "kilo", "kilocode", "openhands", "plandex", "jules", "vibe", "kimi", "iflow", "rovodev", "warp"}

// unguarded are words by which an agent runs without asking or without its hooks. The
// first ones say so by themselves, whatever the program is called.
var (
	saysUnguarded = pattern(`^--(?:(?:allow-)?dangerously-[a-z-]+|yolo|skip-permissions[a-z-]*|allow-all(?:-tools|-paths)?|trust-all-tools|no-permission[a-z-]*|unsafe-auto[a-z-]*)(?:=|$)|^(?:--permission-mode=)?bypassPermissions$|danger-full-access|"?disableAllHooks"?\s*[:=]\s*true|features\.(?:codex_)?hooks\s*=\s*false`)
	unguardedOf   = map[string][]string{
		"claude":   {"--settings", "--setting-sources", "--bare", "--safe-mode"},
		"codex":    {"--full-auto", "--disable hooks", "--disable codex_hooks", "-a never", "--ask-for-approval never", "--ask-for-approval=never", "--ignore-user-config", "--ignore-rules"},
		"cursor":   {"-f", "--force"},
		"gemini":   {"-y", "--approval-mode yolo", "--approval-mode=yolo", "--approval-mode auto", "--approval-mode=auto", "--skip-trust", "--no-hooks"},
		"copilot":  {"--allow-tool"},
		"opencode": {"--pure"},
		"aider":    {"--yes-always", "--yes"},
		"droid":    {"--auto high", "--auto=high"},
		"cline":    {"-y"}, "crush": {"-y"}, "amp": {}, "kiro": {"-a"},
	}
	families = map[string]string{"claude": "claude", "claude-code": "claude", "codex": "codex", "cursor-agent": "cursor", "agent": "cursor", "gemini": "gemini", "gemini-cli": "gemini",
		"qwen": "gemini", "qwen-code": "gemini", "copilot": "copilot", "opencode": "opencode", "opencode-ai": "opencode", "aider": "aider", "droid": "droid", "cline": "cline", "crush": "crush", "amp": "amp", "kiro": "kiro", "kiro-cli": "kiro", "q": "kiro"}
	// movesSettings are variables that make an agent read other settings.
	movesSettings = pattern(`\b(?:CLAUDE_CONFIG_DIR|CODEX_HOME|CLAUDE_CODE_SIMPLE|CLAUDE_CODE_DISABLE_[A-Z_]*HOOKS?|GEMINI_CLI_(?:HOME|SYSTEM_SETTINGS_PATH)|QWEN_(?:HOME|CODE_SYSTEM_SETTINGS_PATH)|OPENCODE_(?:CONFIG(?:_DIR|_CONTENT)?|DISABLE_[A-Z_]+|PERMISSION|PURE)|COPILOT_(?:ALLOW_ALL|HOME)|GOOSE_MODE|HOME|XDG_CONFIG_HOME|USERPROFILE)=`)
)

// asksAgentItself are commands of agents that start no session.
var asksAgentItself = []string{"--help", "-h", "--version", "-v", "-V", "help", "mcp", "config", "login", "logout", "auth", "update", "upgrade", "install", "doctor", "completion", "plugin", "plugins", "setup-token", "features"}

// launchesUnguarded says whether a call starts an agent past its guard or without anybody's
// approval.
func launchesUnguarded(u *actionrisk.Use, command string) bool {
	if u.Proven || u.Carries || u.Remote || len(u.Words) == 0 || slices.Contains(makes, u.Program) || u.Program == "git" || u.Program == "gh" {
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
	family, ok := families[name]
	if !ok {
		return false
	}
	text := wordsText(u)
	for _, words := range unguardedOf[family] {
		if strings.Contains(text, " "+words+" ") || strings.HasPrefix(words, "--") && !strings.Contains(words, " ") && strings.Contains(text, " "+words+"=") {
			return true
		}
	}
	return movesSettings().MatchString(command)
}
