package guard

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// guardFolders hold an agent's settings, and guardSettings are the files in
// them that hold a hook: who may write or remove them can switch the guard off.
var (
	guardFolders  = []string{".claude", ".codex", ".cursor", ".gemini"}
	guardSettings = []string{".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml",
		".cursor/hooks.json", ".gemini/settings.json", exceptionsFile, "etc/countersign.json", "countersign/" + logName, "countersign/" + headName, "countersign/" + KeyName, "countersign/" + pushedName}
)

var (
	// guardNamed finds such a file, or such a folder as a whole: a file beside
	// the settings is nobody's concern here.
	guardNamed = regexp.MustCompile(guardFile + `|(?:^|[\s"'=/(])\.(?:claude|codex|cursor|gemini)/?(?:["'\s;&|)*]|$)`)
	guardFile  = `\.(?:claude/settings(?:\.local)?\.json|codex/(?:hooks\.json|config\.toml)|cursor/hooks\.json|gemini/settings\.json|countersign\.json)|/etc/countersign\.json|countersign/gate\.(?:log|head|key|pushed)`
	// guardSwitch is a command that writes them without naming them.
	guardSwitch = regexp.MustCompile(`\bcodex\s+features\s+disable\s+\S*hooks|\bgate\s+(?:allow\b|hook\b[^;|&\n]*--(?:uninstall|write))`)
	// guardSpared is what leaves the settings as they are although it names
	// them: a folder that is made, a path that is left out.
	guardSpared = regexp.MustCompile(`\bmkdir\s+(?:-\S+\s+)*\S+|--?(?:exclude|ignore)\S*[=\s]+\S+`)
	// guardRecorded is one command that puts files into git's history.
	guardRecorded = regexp.MustCompile("^git\\s+(?:add|stage|commit)\\s[^;&|<>$`\\n]*$")
	// guardRewritten finds what the engine may call read-only although it writes
	// the settings: a redirection where nothing is worth keeping (a scratch
	// folder), also below another shell, and a filter that writes its input back.
	guardRewritten = regexp.MustCompile(`>[>|]?\s*["']?[^\s;&|<>]*` + guardFile + `|>[>|]?\s*[^\s/&>|]` +
		`|\b(?:g?sed|g?awk|mawk)\b[^;|&\n]*\s(?:-[a-z]*i|--in-place)|\bxxd\b[^;|&\n]*\s-[a-z]*r`)
)

// changesGuard tells whether a step may change the settings that hold the
// guard: a file tool by the path it writes, anything else by naming them
// without being proven read-only.
func (s step) changesGuard(score actionrisk.ScoreOutput) bool {
	switch {
	case s.writes != "":
		p := strings.ToLower(path.Clean(strings.ReplaceAll(s.writes, `\`, "/"))) // some file systems do not tell case apart
		return slices.Contains(guardFolders, path.Base(p)) ||
			slices.ContainsFunc(guardSettings, func(f string) bool { return strings.Contains(p, f) })
	case s.shown != "", !s.shell && levelOf(score.Risk) < actionrisk.Medium:
		return false
	}
	text := strings.ToLower(s.command)
	if guardRecorded.MatchString(text) {
		return false
	}
	if score.Coverage.ReadOnly {
		return guardNamed.MatchString(text) && guardRewritten.MatchString(text)
	}
	return guardSwitch.MatchString(text) || guardNamed.MatchString(guardSpared.ReplaceAllString(text, " "))
}

// unseenInputs are what is typed in the probe of takesInput: each is critical
// for those who would run it.
var unseenInputs = []string{canaryCommand, "drop database production;"}

// opensInput finds what may be a shell or a console where a command begins: much
// else passes on what it is fed (a transport, a body) and is none.
var opensInput = regexp.MustCompile(`(?:^|[;&|({\n]\s*)(?:(?:exec|sudo|env|command|nohup|time|-\S+|\w+=\S*)\s+)*(?:\S*/)?` +
	`(?:(?:ba|da|z|k|fi|c|tc)?sh|pwsh|su|ssh|docker|podman|nerdctl|kubectl|k|oc|` +
	`psql|mysql|mariadb|sqlite3|sqlcmd|sqlplus|clickhouse-client|duckdb|mongosh|redis-cli)(?:\s|$)`)

// takesInput tells whether a command opens a shell or a console that would run
// what is typed into it later: fed with a canary, it runs the canary. Codex
// types with a tool of its own, which no event shows.
func (g Guard) takesInput(a actionrisk.Action) bool {
	command := a.Command
	return opensInput.MatchString(command) && slices.ContainsFunc(unseenInputs, func(typed string) bool {
		a.Command = "echo " + quotePath(typed) + " | {\n" + command + "\n}"
		return levelOf(g.Judge(a).Risk) == actionrisk.Critical
	})
}
