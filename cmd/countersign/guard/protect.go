package guard

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// The guard protects itself by what the engine says is written, moved, linked, removed or
// re-moded, compared with real paths: the agents' settings, its own settings, state and
// program, and the folders on the way to them.

// guardSettings are files that hold a hook or an exception, by the end of their path. Who
// may write or remove one can switch the guard off.
var guardSettings = []string{
	".claude/settings.json", ".claude/settings.local.json", "claude-code/managed-settings.json", "ClaudeCode/managed-settings.json",
	".codex/hooks.json", ".codex/config.toml", "codex/requirements.toml", "codex/managed_config.toml", "codex/hooks.json",
	".cursor/hooks.json", "cursor/hooks.json", ".gemini/settings.json", "gemini-cli/settings.json", ".qwen/settings.json", "qwen-code/settings.json",
	".copilot/config.json", ".github/hooks/countersign.json", ".copilot/hooks/countersign.json",
	"opencode/opencode.json", "opencode/opencode.jsonc", "opencode/plugin/countersign.js", "opencode/plugins/countersign.js", ".opencode/plugin/countersign.js", ".opencode/plugins/countersign.js",
	projectFile, ".config/countersign.json",
}

// guardFolders are the folders of which such files are.
var guardFolders = func() (out []string) {
	for _, file := range guardSettings {
		if dir := path.Dir(file); dir != "." && dir != ".config" && dir != ".github/hooks" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}()

// fence is what is protected in one session.
type fence struct {
	account Account
	places  func() *protected // found when it is first asked for: many commands touch no file
}

// protected are places by their whole path.
type protected struct {
	files   []string
	folders []string // all that is in them
}

func newFence(a Account) fence {
	return fence{a, sync.OnceValue(func() *protected { return protectedBy(a) })}
}

func protectedBy(a Account) *protected {
	p := &protected{}
	add := func(list *[]string, places ...string) {
		for _, place := range places {
			if !filepath.IsAbs(place) {
				continue
			}
			for _, q := range []string{filepath.Clean(place), realPath(place)} {
				if !slices.Contains(*list, q) {
					*list = append(*list, q)
				}
			}
		}
	}
	add(&p.files, a.Machine, a.Program)
	add(&p.folders, a.State())
	add(&p.files, a.userFiles()...)
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) { // other names of the program; they only add to what is protected
		for _, name := range programNames {
			if place := filepath.Join(folder, name); exists(place) {
				add(&p.files, place)
			}
		}
	}
	for _, agent := range Agents {
		for _, file := range agent.settingsFiles() {
			add(&p.files, file)
		}
	}
	return p
}

// programNames are the programs with the guard in them.
var programNames = []string{"countersign", "countersign-guard"}

func exists(place string) bool {
	_, err := os.Lstat(place)
	return err == nil
}

// holds says whether a path is protected: as it is named or where its links lead.
func (f fence) holds(place string) bool {
	if place == "" {
		return false
	}
	parent := filepath.Join(realPath(filepath.Dir(place)), filepath.Base(place)) // the link itself
	for _, p := range []string{filepath.Clean(place), parent, realPath(place)} {
		if slices.ContainsFunc(f.places().files, func(file string) bool { return strings.EqualFold(file, p) }) ||
			slices.ContainsFunc(f.places().folders, func(folder string) bool { return below(p, folder) }) || endsLikeSettings(p) {
			return true
		}
	}
	return f.sameFile(place)
}

// below says whether a path is a folder or in it, by names alone.
func below(place, folder string) bool {
	return place == folder || strings.HasPrefix(place, strings.TrimSuffix(folder, "/")+"/")
}

// endsLikeSettings compares names as file systems that do not tell case apart.
func endsLikeSettings(place string) bool {
	low := "/" + strings.ToLower(strings.TrimPrefix(filepath.ToSlash(place), "/"))
	return slices.ContainsFunc(guardSettings, func(s string) bool { return strings.HasSuffix(low, "/"+strings.ToLower(s)) })
}

// sameFile finds another name of a protected file: a hard link, a mounted folder.
func (f fence) sameFile(place string) bool {
	info, err := os.Stat(place)
	if err != nil || info.IsDir() {
		return false
	}
	return slices.ContainsFunc(f.places().files, func(file string) bool {
		other, err := os.Stat(file)
		return err == nil && os.SameFile(info, other)
	})
}

// above says whether a folder is on the way to something that is protected and exists.
func (f fence) above(place string) bool {
	if place == "" {
		return false
	}
	for _, p := range []string{filepath.Clean(place), realPath(place)} {
		if slices.ContainsFunc(slices.Concat(f.places().files, f.places().folders), func(file string) bool { return file != p && below(file, p) && exists(file) }) || settingsFolder(p) {
			return true
		}
	}
	// A project's own settings below the folder.
	return slices.ContainsFunc(guardSettings, func(s string) bool { return exists(filepath.Join(place, s)) })
}

// settingsFolder says whether a folder is by its name one that holds agents' settings.
func settingsFolder(place string) bool {
	low := strings.ToLower(filepath.ToSlash(place))
	return slices.ContainsFunc(guardFolders, func(s string) bool { return strings.HasSuffix(low, "/"+strings.ToLower(s)) })
}

// matches says whether a pattern with * ? or [ takes a protected path or, for a program
// that works on whole trees, a folder on the way to one.
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
	if slices.ContainsFunc(slices.Concat(f.places().files, f.places().folders), func(file string) bool { return hit(file) && exists(file) }) {
		return true
	}
	hits, _ := filepath.Glob(pattern)
	return slices.ContainsFunc(hits[:min(len(hits), 256)], func(h string) bool { return f.holds(h) || tree && f.above(h) })
}

// Programs by what they do to the files they are given.
var (
	// treePrograms take whole folders away, put them elsewhere, or change who may use them.
	treePrograms = []string{"rm", "rmdir", "unlink", "mv", "rename", "shred", "srm", "trash", "trash-put", "gio", "chmod", "chown", "chgrp", "chattr", "setfacl", "rimraf", "del-cli",
		"mount", "umount", "rsync", "find", "fd", "ln", "robocopy", "rd", "rmdir", "del", "erase", "move", "ren", "icacls", "attrib", "takeown", "git"}
	// copies write their last operand, or the folder of -t.
	copies = []string{"cp", "install", "rsync", "scp", "ditto", "gcp", "ginstall", "copy", "xcopy", "robocopy"}
	// makes are programs whose words name what they put where nothing is, or only look at.
	makes = []string{"mkdir", "md", "echo", "printf", "test", "[", "[[", "code", "cursor", "open", "xdg-open", "less", "more", "bat"}
	// keepsFiles are commands of Git that leave the files as they are.
	keepsFiles = []string{"add", "stage", "commit", "diff", "log", "show", "status", "blame", "annotate", "grep", "ls-files", "ls-tree", "check-ignore", "shortlog", "push", "fetch", "tag", "branch", "remote", "describe", "rev-parse", "cat-file", "difftool", "notes"}
)

// touches says whether a call changes something that is protected.
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
		if slices.Contains(moved, f.account.place(folder, w.Text)) && i > 0 && slices.Contains(movesTo, words[i-1].Text) {
			continue // the folder that the program works in
		}
		if slices.ContainsFunc(spellings(w), func(name act.Word) bool { return f.touched(name, last, tree) }) {
			return true
		}
	}
	return false
}

// keepsWords: the command of Git leaves the files that it names as they are.
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

// modeKeeps: chmod leaves its owner the right to read and write, and to enter a folder.
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

// spellings are the paths that a word may name: the word, what follows "=" in it, and what
// follows the letter of a short option.
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

// fromEnvironment puts the value of a variable of the agent's environment in the place of
// the one unknown part of a word. It only adds a spelling.
func fromEnvironment(w act.Word) act.Word {
	value := os.Getenv(w.Var)
	if w.Var == "" || value == "" || strings.Count(w.Text, hole) != 1 {
		return act.Word{}
	}
	w.Text, w.At = strings.Replace(w.Text, hole, value, 1), -1
	return w
}

// touched says whether a word names something protected, or for a program that works on
// trees a folder above it.
func (f fence) touched(w act.Word, folder string, tree bool) bool {
	name := strings.TrimSuffix(w.Text, "/")
	if name == "" {
		return false
	}
	if w.At < 0 && slices.Contains(programNames, name) { // what which(1) and command -v print
		return true
	}
	if strings.Contains(name, hole) {
		return unknownNamesSettings(name)
	}
	place := f.account.place(folder, strings.ReplaceAll(name, `\`, "/"))
	if strings.ContainsAny(name, "*?[") && f.matches(place, tree) {
		return true
	}
	return f.holds(place) || tree && f.above(place) && !f.worksIn(place, folder)
}

// worksIn: the folder is the one the agent works in, or above it. To remove that is judged
// by the rules; that settings of a project are in it says nothing more.
func (f fence) worksIn(place, folder string) bool {
	return below(folder, place) && !settingsFolder(place) && !below(f.account.Program, place) && !below(f.account.State(), place)
}

// unknownNamesSettings: the known end of a path names such a file.
func unknownNamesSettings(name string) bool {
	rest := name[strings.LastIndex(name, hole)+1:]
	return strings.Count(rest, "/") >= 1 && endsLikeSettings(rest)
}

// copiesTo says whether a copy lands on something protected.
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

// carriesSettings: a folder with agents' settings in it is copied over one that has them.
func (f fence) carriesSettings(u *actionrisk.Use, from, to act.Word, folder string) bool {
	if !from.Known() || !to.Known() {
		return false
	}
	if f.pours(u, from.Text, f.account.place(folder, from.Text), f.account.place(folder, to.Text)) {
		return true
	}
	source, target := f.account.place(folder, strings.TrimSuffix(from.Text, "/.")), f.account.place(folder, to.Text)
	return settingsFolder(source) && (settingsFolder(target) || f.above(target))
}

// pours: what is in a folder is written into a folder of settings, or holds settings and is
// written into another one.
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
	if whole && (settingsFolder(target) || settingsFolder(realPath(target))) {
		return true
	}
	return (whole || strings.HasSuffix(from, "/")) && slices.ContainsFunc(guardSettings, func(s string) bool {
		place := filepath.Join(target, filepath.Base(s))
		return exists(filepath.Join(source, s)) && f.holds(filepath.Join(target, s)) || endsLikeSettings(place) && exists(filepath.Join(source, filepath.Base(s)))
	})
}

// guardNamed finds the name of such a file in a text that the engine reads in part only: a
// program text of another language, a word that is not known.
var guardNamed = pattern(`(?i)\.(?:claude|gemini|qwen)` + betweenNames + `settings(?:\.local)?\.json|\.codex` + betweenNames + `(?:hooks\.json|config\.toml)|\.cursor` + betweenNames + `hooks\.json|\.countersign\.json|etc/countersign\.json|\.config/countersign\.json|countersign/(?:gate\.(?:log|head|key|pushed)|trust\.json|allowed\.json|blocked\.json)`)

// betweenNames is what stands between two names of a path, also where they are texts of
// their own: ".claude", "settings.json".
const betweenNames = `(?:[/\\]+|['"]\s*[,/+]\s*['"][/\\]*)`

// asksForProgram finds a command that asks where the guard's program is.
var asksForProgram = pattern(`\b(?:which|whence|whereis|command\s+-v|type\s+-\w*[pP]\w*|readlink)\b[^;|&)\n]*\bcountersign`)

// switches are commands of agents that switch hooks off without naming a file.
func switchesOff(u *actionrisk.Use) bool {
	text := launch.Words(u)
	return u.Program == "codex" && strings.Contains(text, " features disable ") && strings.Contains(text, "hooks") ||
		isOwn(u) && (strings.Contains(text, " gate hook ") || strings.Contains(text, " hook ")) && (strings.Contains(text, " --uninstall") || strings.Contains(text, " --write"))
}

// isOwn says whether a call starts a program with the guard in it, by whatever name.
func isOwn(u *actionrisk.Use) bool {
	return slices.Contains(programNames, strings.TrimSuffix(u.Program, ".exe")) || strings.Contains(launch.Words(u), " gate ")
}

// consents says whether a call gives the guard's own consent in the user's place: gate
// allow, gate trust. A copy of the program under another name is told from its words.
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

// speaks: the words before are of a program that says or searches what follows, or ask the
// gate about it.
func speaks(u *actionrisk.Use, at int) bool {
	return u.Proven || u.Carries || slices.Contains(makes, u.Program) || u.Program == "git" || u.Program == "gh" ||
		at > 0 && isOwn(u) && slices.ContainsFunc(u.Words[:at], func(w act.Word) bool { return w.Text == "gate" })
}

// consentText finds the same in a program text of another language.
var consentText = pattern(`countersign[^\n;|&]*\bgate\b['", ()\[\]]+(?:allow|trust)\b|['"]gate['"]\s*,\s*['"](?:allow|trust)['"]`)

// ownRule is a rule of the guard about itself, which nothing excepts.
type ownRule struct {
	level              actionrisk.Level
	id, title, instead string
}

var (
	ruleSettings = ownRule{actionrisk.High, "hook.guard-settings", "Changes the settings, the state or the program of this guard", "let the user edit them"}
	ruleConsent  = ownRule{actionrisk.Critical, "hook.own-consent", "Gives this guard's consent in the user's place", "ask the user to run it in a terminal of their own"}
	ruleUnseen   = ownRule{actionrisk.High, "hook.unseen-input", "Opens a shell or console, and what is typed into it later is not shown to this guard", "give it the command to run, as in sh -c 'COMMAND'"}
	ruleStop     = ownRule{actionrisk.High, "hook.stops-guard", "Stops the process of this guard or the one that started the shell", "stop the one process that you mean by its number"}
	ruleTyped    = ownRule{actionrisk.High, "hook.typed-answer", "Types an answer into another terminal, which may give an agent's or this guard's consent", "let the user answer there"}
	ruleLaunch   = ownRule{actionrisk.High, "hook.unguarded-agent", "Starts a coding agent without its guard or without approvals", "let the user start it"}
)

// ownRules are those that hold for what the engine saw of a command.
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

// programText: the language can write files without a program that the engine sees.
func programText(language string) bool {
	switch language {
	case "sql", "mongo", "redis", "manifest", "settings", "scripts", "make", "just", "shell", "any", "body":
		return false
	}
	return true
}
