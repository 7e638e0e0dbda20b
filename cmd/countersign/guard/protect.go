package guard

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// The guard protects itself. The engine's trace lists the files that a command writes, moves,
// links, removes or changes the mode of. The guard compares their real paths with the agents'
// settings, with its own settings, state and program, and with the folders that contain them.

// guardSettings lists the files that contain a hook or an exception, by the end of their path. A
// command that writes or removes one can switch the guard off.
var guardSettings = []string{
	".claude/settings.json", ".claude/settings.local.json", "claude-code/managed-settings.json", "ClaudeCode/managed-settings.json",
	".codex/hooks.json", ".codex/config.toml", "codex/requirements.toml", "codex/managed_config.toml", "codex/hooks.json",
	".cursor/hooks.json", "cursor/hooks.json", ".gemini/settings.json", "gemini-cli/settings.json", ".qwen/settings.json", "qwen-code/settings.json",
	".copilot/config.json", ".github/hooks/countersign.json", ".copilot/hooks/countersign.json",
	"opencode/opencode.json", "opencode/opencode.jsonc", "opencode/plugin/countersign.js", "opencode/plugins/countersign.js", ".opencode/plugin/countersign.js", ".opencode/plugins/countersign.js",
	projectFile, ".config/countersign.json",
}

// guardFolders lists the folders of these files.
var guardFolders = func() (out []string) {
	for _, file := range guardSettings {
		if dir := path.Dir(file); dir != "." && dir != ".config" && dir != ".github/hooks" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}()

// fence answers which paths are protected.
type fence struct {
	account Account
	paths   func() *protected // computed on first use, because many commands affect no file
}

// protected has the protected absolute paths.
type protected struct {
	files   []string
	folders []string // everything in these folders is protected
}

func newFence(a Account) fence {
	return fence{a, sync.OnceValue(func() *protected { return protectedBy(a) })}
}

func protectedBy(a Account) *protected {
	p := &protected{}
	add := func(list *[]string, paths ...string) {
		for _, path := range paths {
			if !filepath.IsAbs(path) {
				continue
			}
			for _, q := range []string{filepath.Clean(path), files.Real(path)} {
				if !slices.Contains(*list, q) {
					*list = append(*list, q)
				}
			}
		}
	}
	add(&p.files, a.Machine, a.Program)
	add(&p.folders, a.State())
	add(&p.files, a.userFiles()...)
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) { // programs in PATH; the agent can set PATH, but this can only add protected paths
		for _, name := range launch.Programs {
			if path := filepath.Join(folder, name); files.Exists(path) {
				add(&p.files, path)
			}
		}
	}
	for _, agent := range agents.Agents {
		for _, file := range agent.SettingsFiles() {
			add(&p.files, file)
		}
	}
	return p
}

// holds reports whether a path is protected, as written or after resolving links.
func (f fence) holds(path string) bool {
	if path == "" {
		return false
	}
	parent := filepath.Join(files.Real(filepath.Dir(path)), filepath.Base(path)) // the path of the link itself
	for _, p := range []string{filepath.Clean(path), parent, files.Real(path)} {
		if slices.ContainsFunc(f.paths().files, func(file string) bool { return strings.EqualFold(file, p) }) ||
			slices.ContainsFunc(f.paths().folders, func(folder string) bool { return below(p, folder) }) || endsLikeSettings(p) {
			return true
		}
	}
	return f.sameFile(path)
}

// below reports whether a path is folder or below it. It compares the texts only.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// endsLikeSettings reports whether a path ends like one of guardSettings. It ignores case, as some
// file systems do.
func endsLikeSettings(path string) bool {
	low := "/" + strings.ToLower(strings.TrimPrefix(filepath.ToSlash(path), "/"))
	return slices.ContainsFunc(guardSettings, func(s string) bool { return strings.HasSuffix(low, "/"+strings.ToLower(s)) })
}

// sameFile reports whether a path is another path of a protected file, by a hard link or a mount.
func (f fence) sameFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	return slices.ContainsFunc(f.paths().files, func(file string) bool {
		other, err := os.Stat(file)
		return err == nil && os.SameFile(info, other)
	})
}

// above reports whether a folder contains an existing protected path.
func (f fence) above(path string) bool {
	if path == "" {
		return false
	}
	for _, p := range []string{filepath.Clean(path), files.Real(path)} {
		if slices.ContainsFunc(slices.Concat(f.paths().files, f.paths().folders), func(file string) bool { return file != p && below(file, p) && files.Exists(file) }) || settingsFolder(p) {
			return true
		}
	}
	// The folder may contain a project's settings.
	return slices.ContainsFunc(guardSettings, func(s string) bool { return files.Exists(filepath.Join(path, s)) })
}

// settingsFolder reports whether a path ends like one of guardFolders.
func settingsFolder(path string) bool {
	low := strings.ToLower(filepath.ToSlash(path))
	return slices.ContainsFunc(guardFolders, func(s string) bool { return strings.HasSuffix(low, "/"+strings.ToLower(s)) })
}

// matches reports whether a pattern with *, ? or [ matches a protected path. If tree is set, it
// also matches a folder that contains one.
func (f fence) matches(pattern string, tree bool) bool {
	parts := strings.Split(strings.Trim(pattern, "/"), "/")
	hit := func(file string) bool {
		names := strings.Split(strings.Trim(file, "/"), "/")
		if len(names) < len(parts) || len(names) > len(parts) && !tree {
			return false
		}
		for i, p := range parts {
			if strings.HasPrefix(names[i], ".") && !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, "[") || !paths.GlobMatch(strings.ToLower(p), strings.ToLower(names[i])) {
				return false
			}
		}
		return true
	}
	if slices.ContainsFunc(slices.Concat(f.paths().files, f.paths().folders), func(file string) bool { return hit(file) && files.Exists(file) }) {
		return true
	}
	hits, _ := filepath.Glob(pattern)
	return slices.ContainsFunc(hits[:min(len(hits), 256)], func(h string) bool { return f.holds(h) || tree && f.above(h) })
}

// These lists group programs by what they do with the files in their arguments.
var (
	// The programs in treePrograms remove or move folders with their contents, or change their
	// permissions.
	treePrograms = []string{"rm", "rmdir", "unlink", "mv", "rename", "shred", "srm", "trash", "trash-put", "gio", "chmod", "chown", "chgrp", "chattr", "setfacl", "rimraf", "del-cli",
		"mount", "umount", "rsync", "find", "fd", "ln", "robocopy", "rd", "rmdir", "del", "erase", "move", "ren", "icacls", "attrib", "takeown", "git"}
	// The programs in copies write to their last operand, or to the folder of the option -t.
	copies = []string{"cp", "install", "rsync", "scp", "ditto", "gcp", "ginstall", "copy", "xcopy", "robocopy"}
	// The programs in makes do not change existing files: their arguments name new files, or files
	// to read.
	makes = []string{"mkdir", "md", "echo", "printf", "test", "[", "[[", "code", "cursor", "open", "xdg-open", "less", "more", "bat"}
	// keepsFiles are Git commands that do not change the files in their arguments.
	keepsFiles = []string{"add", "stage", "commit", "diff", "log", "show", "status", "blame", "annotate", "grep", "ls-files", "ls-tree", "check-ignore", "shortlog", "push", "fetch", "tag", "branch", "remote", "describe", "rev-parse", "cat-file", "difftool", "notes"}
)

// touches reports whether a call changes a protected file or folder.
func (f fence) touches(u *actionrisk.Use, cwd string) bool {
	if u.Proven || u.Remote || u.Carries && u.Program != "find" || slices.Contains(makes, u.Program) || len(u.Words) == 0 {
		return false
	}
	if u.Program == "git" && keepsWords(u) {
		return false
	}
	folder := f.account.folderOf(u, cwd)
	moved, last := f.account.movedTo(u, folder)
	if f.brings(u, last) {
		return true
	}
	tree := slices.Contains(treePrograms, u.Program)
	words := u.Words[1:]
	if slices.Contains(copies, u.Program) {
		return f.copiesTo(u, last)
	}
	if modeKeeps(u) {
		tree = false
	}
	for i, w := range words {
		if slices.Contains(moved, f.account.pathOf(folder, w.Text)) && i > 0 && slices.Contains(movesTo, words[i-1].Text) {
			continue // the word only sets the working folder
		}
		if slices.ContainsFunc(spellings(w), func(name act.Word) bool { return f.touched(name, last, tree) }) {
			return true
		}
	}
	return false
}

// keepsWords reports whether a Git command leaves the files in its arguments unchanged.
func keepsWords(u *actionrisk.Use) bool {
	for i := 1; i < len(u.Words); i++ {
		switch w := u.Words[i].Text; {
		case w == "-C" || w == "-c" || w == "--git-dir" || w == "--work-tree":
			i++
		case strings.HasPrefix(w, "-"):
		default:
			return slices.Contains(keepsFiles, w)
		}
	}
	return false
}

// modeKeeps reports whether a chmod call leaves the owner the permissions to read and write files
// and to enter folders.
func modeKeeps(u *actionrisk.Use) bool {
	if u.Program != "chmod" {
		return false
	}
	recursive := slices.ContainsFunc(u.Words, func(w act.Word) bool { return w.Text == "-R" || w.Text == "--recursive" })
	for _, w := range u.Words[1:] {
		t := strings.TrimLeft(w.Text, "0")
		switch {
		case strings.HasPrefix(w.Text, "-") && len(w.Text) > 1 && strings.ContainsAny(w.Text[1:2], "rwxX"):
			return false
		case strings.HasPrefix(w.Text, "-"):
			continue
		case strings.Trim(t, "01234567") == "" && len(t) >= 3:
			return t[len(t)-3] == '7' || t[len(t)-3] == '6' && !recursive
		}
		return !strings.ContainsAny(w.Text, "-=") && strings.Contains(w.Text, "+")
	}
	return false
}

// spellings returns the possible paths in a word: the word itself, also with a variable of the
// environment replaced, and the parts after "=" and after a short option.
func spellings(w act.Word) (out []act.Word) {
	if u := fromEnvironment(w); u.Text != "" {
		out = append(out, u)
		w = u
	}
	out = append(out, w)
	if i := strings.IndexByte(w.Text, '='); i > 0 {
		out = append(out, w.Tail(i+1))
	}
	if len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' {
		out = append(out, w.Tail(2))
	}
	return out
}

// fromEnvironment replaces the unknown part of a word by the value of its variable in the guard's
// environment. It returns the empty word if there is no such value. The agent's value may differ,
// so the caller must use the word itself, too.
func fromEnvironment(w act.Word) act.Word {
	value := os.Getenv(w.Var)
	if w.Var == "" || value == "" || strings.Count(w.Text, hole) != 1 {
		return act.Word{}
	}
	w.Text, w.At = strings.Replace(w.Text, hole, value, 1), -1
	return w
}

// touched reports whether a word names a protected path. If tree is set, it also reports a folder
// that contains one.
func (f fence) touched(w act.Word, folder string, tree bool) bool {
	name := strings.TrimSuffix(w.Text, "/")
	if name == "" {
		return false
	}
	if w.At < 0 && slices.Contains(launch.Programs, name) { // a word computed by which(1) or command -v
		return true
	}
	if strings.Contains(name, hole) {
		return unknownNamesSettings(name)
	}
	path := f.account.pathOf(folder, strings.ReplaceAll(name, `\`, "/"))
	if strings.ContainsAny(name, "*?[") && f.matches(path, tree) {
		return true
	}
	return f.holds(path) || tree && f.above(path) && !f.worksIn(path, folder)
}

// worksIn reports whether a path is the agent's working folder or contains it. Other rules judge
// the removal of such a folder, so it does not matter here that it contains a project's settings.
func (f fence) worksIn(path, folder string) bool {
	return below(folder, path) && !settingsFolder(path) && !below(f.account.Program, path) && !below(f.account.State(), path)
}

// unknownNamesSettings reports whether a partly unknown path ends like a settings file.
func unknownNamesSettings(name string) bool {
	rest := name[strings.LastIndex(name, hole)+1:]
	return strings.Count(rest, "/") >= 1 && endsLikeSettings(rest)
}

// copiesTo reports whether a copy overwrites a protected file.
func (f fence) copiesTo(u *actionrisk.Use, folder string) bool {
	var operands []act.Word
	var to []act.Word
	for i := 1; i < len(u.Words); i++ {
		w := u.Words[i]
		switch {
		case (w.Text == "-t" || w.Text == "--target-directory") && i+1 < len(u.Words):
			i++
			to = append(to, u.Words[i])
		case strings.HasPrefix(w.Text, "--target-directory="):
			to = append(to, w.Tail(len("--target-directory=")))
		case !strings.HasPrefix(w.Text, "-"):
			operands = append(operands, w)
		}
	}
	if len(to) == 0 && len(operands) > 0 {
		to, operands = []act.Word{onThisMachine(operands[len(operands)-1])}, operands[:len(operands)-1]
	}
	overTree := u.Program == "rsync" && slices.ContainsFunc(u.Words, func(w act.Word) bool { return strings.HasPrefix(w.Text, "--del") })
	for _, t := range to {
		for _, spelled := range spellings(t) {
			if f.touched(spelled, folder, overTree) {
				return true
			}
			for _, from := range operands {
				into := spelled
				into.Text, into.Glob = strings.TrimSuffix(spelled.Text, "/")+"/"+path.Base(from.Text[strings.LastIndexByte(from.Text, ':')+1:]), spelled.Glob || from.Glob
				if f.touched(into, folder, false) || f.carriesSettings(u, from, spelled, folder) {
					return true
				}
			}
		}
	}
	return false
}

// carriesSettings reports whether a copy of a folder overwrites agents' settings in another
// folder.
func (f fence) carriesSettings(u *actionrisk.Use, from, to act.Word, folder string) bool {
	if !from.Known() || !to.Known() {
		return false
	}
	if f.pours(u, from.Text, f.account.pathOf(folder, from.Text), f.account.pathOf(folder, to.Text)) {
		return true
	}
	source, target := f.account.pathOf(folder, strings.TrimSuffix(from.Text, "/.")), f.account.pathOf(folder, to.Text)
	return settingsFolder(source) && (settingsFolder(target) || f.above(target))
}

// pours reports whether the contents of a folder are copied into a folder with settings, or
// include settings that overwrite protected ones.
func (f fence) pours(u *actionrisk.Use, from, source, target string) bool {
	if source == "" || target == "" {
		return false
	}
	whole := from == "." || strings.HasSuffix(from, "/.") || slices.Contains([]string{"ditto", "xcopy", "robocopy"}, u.Program) ||
		u.Program == "rsync" && strings.HasSuffix(from, "/") || slices.ContainsFunc(u.Words, func(w act.Word) bool {
		return w.Text == "-T" || w.Text == "--no-target-directory" || w.Text == "-rT" || w.Text == "-aT"
	})
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		return false
	}
	if whole && (settingsFolder(target) || settingsFolder(files.Real(target))) {
		return true
	}
	return (whole || strings.HasSuffix(from, "/")) && slices.ContainsFunc(guardSettings, func(s string) bool {
		path := filepath.Join(target, filepath.Base(s))
		return files.Exists(filepath.Join(source, s)) && f.holds(filepath.Join(target, s)) || endsLikeSettings(path) && files.Exists(filepath.Join(source, filepath.Base(s)))
	})
}

// guardNamed matches the name of a settings or state file in a text that the engine does not parse
// completely: a program in another language, or a partly unknown word.
var guardNamed = pattern.Lazy(`(?i)\.(?:claude|gemini|qwen)` + betweenNames + `settings(?:\.local)?\.json|\.codex` + betweenNames + `(?:hooks\.json|config\.toml)|\.cursor` + betweenNames + `hooks\.json|\.countersign\.json|etc/countersign\.json|\.config/countersign\.json|countersign/(?:gate\.(?:log|head|key|pushed)|trust\.json|allowed\.json|blocked\.json)`)

// betweenNames matches what separates two names of a path, even if each name is a separate string,
// as in ".claude", "settings.json".
const betweenNames = `(?:[/\\]+|['"]\s*[,/+]\s*['"][/\\]*)`

// asksForProgram matches a command that prints the path of the guard's program.
var asksForProgram = pattern.Lazy(`\b(?:which|whence|whereis|command\s+-v|type\s+-\w*[pP]\w*|readlink)\b[^;|&)\n]*\bcountersign`)

// switchesOff reports whether a call is a command of an agent or of the guard that switches hooks
// off without naming a file.
func switchesOff(u *actionrisk.Use) bool {
	text := launch.Words(u)
	return u.Program == "codex" && strings.Contains(text, " features disable ") && strings.Contains(text, "hooks") ||
		isOwn(u) && (strings.Contains(text, " gate hook ") || strings.Contains(text, " hook ")) && (strings.Contains(text, " --uninstall") || strings.Contains(text, " --write"))
}

// isOwn reports whether a call starts a program that contains the guard, under any name.
func isOwn(u *actionrisk.Use) bool {
	return slices.Contains(launch.Programs, strings.TrimSuffix(u.Program, ".exe")) || strings.Contains(launch.Words(u), " gate ")
}

// consents reports whether a call gives consent in the user's place ("gate allow" or "gate
// trust"). It compares these words only, so it also recognizes a copy of the program under another
// name.
func consents(u *actionrisk.Use) bool {
	for i := 0; i+1 < len(u.Words); i++ {
		verb := u.Words[i+1].Text
		if u.Words[i].Text == "gate" && (verb == "allow" || verb == "trust") && !slices.ContainsFunc(u.Words[i+2:], isHelp) {
			return !speaks(u, i)
		}
	}
	return false
}

func isHelp(w act.Word) bool { return w.Text == "--help" || w.Text == "-h" || w.Text == "--help-all" }

// speaks reports whether a call's words, beginning with the index "at", are only printed or searched
// for, or are a command that the gate judges.
func speaks(u *actionrisk.Use, at int) bool {
	return u.Proven || u.Carries || slices.Contains(makes, u.Program) || u.Program == "git" || u.Program == "gh" ||
		at > 0 && isOwn(u) && slices.ContainsFunc(u.Words[:at], func(w act.Word) bool { return w.Text == "gate" })
}

// consentText matches code in another language that gives consent.
var consentText = pattern.Lazy(`countersign[^\n;|&]*\bgate\b['", ()\[\]]+(?:allow|trust)\b|['"]gate['"]\s*,\s*['"](?:allow|trust)['"]`)

// ownRule is a rule that protects the guard itself. It has no exceptions.
type ownRule struct {
	level              actionrisk.Level
	id, title, instead string
}

var (
	ruleSettings = ownRule{actionrisk.High, "hook.guard-settings", "Changes the settings, the state or the program of this guard", "let the user edit them"}
	ruleConsent  = ownRule{actionrisk.Critical, "hook.own-consent", "Gives this guard's consent in the user's place", "ask the user to run it in a terminal of their own"}
	ruleUnseen   = ownRule{actionrisk.High, "hook.unseen-input", "Opens a shell or console, and this guard does not see what is typed into it later", "give it the command to run, as in sh -c 'COMMAND'"}
	ruleStop     = ownRule{actionrisk.High, "hook.stops-guard", "Stops the process of this guard or the one that started the shell", "stop only the process that you mean, by its number"}
	ruleTyped    = ownRule{actionrisk.High, "hook.typed-answer", "Types an answer into another terminal, which may give an agent's or this guard's consent", "let the user answer there"}
	ruleLaunch   = ownRule{actionrisk.High, "hook.unguarded-agent", "Starts a coding agent without its guard or without approvals", "let the user start it"}
)

// ownRules returns the rules of the guard itself that a command matches.
func (f fence) ownRules(trace actionrisk.Trace, command, cwd string) (out []ownRule) {
	add := func(r ownRule, holds bool) {
		if holds && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	changes, known := false, true
	left := slices.ContainsFunc(trace.Uses, func(u actionrisk.Use) bool { return launch.LeavesSettings(&u) })
	for i := range trace.Uses {
		u := &trace.Uses[i]
		add(ruleConsent, consents(u))
		add(ruleSettings, f.touches(u, cwd) || f.mounts(u, cwd) || switchesOff(u))
		add(ruleLaunch, !slices.Contains(makes, u.Program) && launch.Unguarded(u, command, left))
		add(ruleConsent, launch.TypesText(u) && consentText().MatchString(launch.Words(u)))
		add(ruleTyped, launch.TypesText(u) && launch.TypesAnswer(u) || (u.Program == "expect" || u.Program == "osascript") && launch.TypesInText().MatchString(launch.Words(u)))
		if !u.Proven && !u.Carries && !u.Remote && !slices.Contains(makes, u.Program) && !(u.Program == "git" && keepsWords(u)) {
			changes = true
			for _, w := range u.Words {
				known = known && w.Known()
			}
		}
	}
	add(ruleStop, stopsGuard(trace))
	for _, t := range trace.Texts {
		add(ruleSettings, programText(t.Language) && guardNamed().MatchString(t.Text))
		add(ruleConsent, programText(t.Language) && consentText().MatchString(t.Text))
		add(ruleTyped, programText(t.Language) && launch.TypesInText().MatchString(t.Text))
	}
	if changes {
		add(ruleSettings, !known && guardNamed().MatchString(command) || strings.Contains(command, "countersign") && asksForProgram().MatchString(command))
	}
	return out
}

// programText reports whether code in a language can write files without starting a program, which
// the trace would show.
func programText(language string) bool {
	switch language {
	case "sql", "mongo", "redis", "manifest", "settings", "scripts", "make", "just", "shell", "any", "body":
		return false
	}
	return true
}
