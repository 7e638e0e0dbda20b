package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
)

// The engine judges a path as the command writes it. A cloned repository can contain a symbolic
// link to another folder. So the guard judges a step with a link a second time with the resolved
// path, and the worse verdict applies. If the folder is the user's home folder or the root, the
// guard also resolves relative paths, because the agent may choose the folder.

const (
	maxLinks   = 16           // links in one step
	maxFolders = 4            // folders against which relative paths are resolved
	maxTexts   = 128          // strings that are checked for paths
	anyHome    = "/home/user" // home folder in the rewritten command, where ~ may not be expanded
)

// keepsLinks lists programs that act on a link itself and not on its target.
var keepsLinks = []string{"rm", "unlink", "mv", "rmdir", "ln", "trash", "trash-put", "rename"}

// link is a path as written in the command, and its real path.
type link struct{ written, real string }

// links is the set of links in one step, at most maxLinks.
type links []link

func (ls *links) add(l link) {
	if len(*ls) < maxLinks && !slices.Contains(*ls, l) {
		*ls = append(*ls, l)
	}
}

// withRealPaths judges a step again with the real paths of its links. It judges two texts, because
// each finds what the other misses: the command with the paths replaced, and the traced calls
// written as commands. Only a worse verdict replaces the first one.
func (g Guard) withRealPaths(s agents.Step, action actionrisk.Action, score actionrisk.ScoreOutput, trace actionrisk.Trace) (actionrisk.ScoreOutput, actionrisk.Trace) {
	var found links
	var rebuilt []string
	for i := range trace.Uses {
		if call := g.withRealWords(s, &trace.Uses[i], action.Cwd, &found); call != "" {
			rebuilt = append(rebuilt, call)
		}
	}
	g.addOtherNames(s, action, trace, &found)
	if len(found) == 0 {
		return score, trace
	}
	// Replace the longest path first, because it may contain a shorter one.
	slices.SortStableFunc(found, func(a, b link) int { return len(b.written) - len(a.written) })
	replaced := action.Command
	for _, l := range found {
		replaced = replaceName(replaced, l.written, g.spelled(l.real))
	}
	for _, text := range []string{replaced, strings.Join(rebuilt, "\n")} {
		if text == action.Command || text == "" {
			continue
		}
		again := action
		again.Command, again.FailClosedOnUnmatched = text, false
		second, seen := g.Judge(again, actionrisk.Surroundings{})
		if second = onlyFound(second); levelOf(second.Risk) > levelOf(score.Risk) {
			second.ActionHash = score.ActionHash
			second.Coverage.ReadOnly = second.Coverage.ReadOnly && score.Coverage.ReadOnly
			score = second
		}
		trace.Uses, trace.Texts = append(trace.Uses, seen.Uses...), append(trace.Texts, seen.Texts...)
	}
	return score, trace
}

// withRealWords returns a call as text with the real paths of its links, and adds the links to
// found. It returns "" if the call has none, or is a redirection, which is not a command.
func (g Guard) withRealWords(s agents.Step, u *actionrisk.Use, cwd string, found *links) string {
	if u.Remote || len(*found) >= maxLinks || u.Program == "git" && keepsWords(u) {
		return ""
	}
	folder := g.Account.folderOf(u, cwd)
	_, last := g.Account.movedTo(u, folder)
	words, changed := make([]string, 0, len(u.Words)), false
	for at, w := range u.Words {
		word := wordOf(w.Text, w.Glob)
		if at > 0 || isRedirection(u) {
			if l := g.linkIn(s, u.Program, w, cwd, folder, last); l.real != "" {
				found.add(l)
				word, changed = g.withReal(w, l), true
			}
		}
		words = append(words, word)
	}
	if !changed || isRedirection(u) {
		return ""
	}
	return strings.Join(words, " ")
}

// linkIn returns the first link in a word. A relative path in the word begins in last, the folder
// to which the call moved, or in folder, where the call began. real is empty if there is no link.
func (g Guard) linkIn(s agents.Step, program string, w act.Word, cwd, folder, last string) link {
	for _, name := range namesIn(w) {
		option := name != w.Text
		real := g.leadsTo(program, last, name, cwd, s.Shell, option)
		if real == "" && last != folder {
			real = g.leadsTo(program, folder, name, cwd, s.Shell, option)
		}
		if real != "" {
			return link{name, real}
		}
	}
	return link{}
}

// withReal returns a word with the link replaced by its real path.
func (g Guard) withReal(w act.Word, l link) string {
	if head := strings.TrimSuffix(w.Text, l.written); head != "" {
		return agents.QuotePath(head) + wordOf(g.spelled(l.real), w.Glob)
	}
	if below(l.real, g.Account.Home) {
		return "~/" + wordOf(strings.TrimPrefix(strings.TrimPrefix(l.real, g.Account.Home), "/"), w.Glob)
	}
	return wordOf(l.real, w.Glob)
}

// addOtherNames adds the links that otherNames finds, relative to each folder of the step.
func (g Guard) addOtherNames(s agents.Step, action actionrisk.Action, trace actionrisk.Trace, found *links) {
	folders := []string{action.Cwd}
	for i := range trace.Uses {
		if folder := g.Account.folderOf(&trace.Uses[i], action.Cwd); !slices.Contains(folders, folder) && len(folders) < maxFolders {
			folders = append(folders, folder)
		}
	}
	for _, name := range otherNames(s, action.Command, trace) {
		for _, folder := range folders {
			if real := g.leadsTo("cat", folder, name, action.Cwd, s.Shell, true); real != "" {
				found.add(link{name, real})
			}
		}
	}
}

var (
	// quotedTexts matches string literals in a tool's input or a program.
	quotedTexts = pattern.Lazy(`"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`)
	// readsFrom matches the files of input redirections.
	readsFrom = pattern.Lazy(`<[ \t]*['"]?([^\s'"<>&|;()]+)`)
)

// otherNames returns possible paths that are not words of a call: string literals in a tool's
// input and in programs of other languages, and files of input redirections.
func otherNames(s agents.Step, command string, trace actionrisk.Trace) (out []string) {
	quoted := func(text string) {
		for _, found := range quotedTexts().FindAllString(text, maxTexts) {
			name := found[1 : len(found)-1]
			if s := ""; json.Unmarshal([]byte(found), &s) == nil {
				name = s
			}
			if name != "" && len(name) <= 4096 && len(out) < maxTexts {
				out = append(out, name)
			}
		}
	}
	if !s.Shell && strings.HasPrefix(command, "{") {
		quoted(command)
	}
	for _, t := range trace.Texts {
		if programText(t.Language) {
			quoted(t.Text)
		}
	}
	if s.Shell && strings.Contains(command, "<") {
		for _, found := range readsFrom().FindAllStringSubmatch(command, maxTexts) {
			out = append(out, found[1])
		}
	}
	return out
}

func isRedirection(u *actionrisk.Use) bool { return strings.ContainsAny(u.Program, "<>") }

// namesIn returns the possible paths in a word: the word itself, and the parts after "=", after
// "@" and after a short option.
func namesIn(w act.Word) (out []string) {
	for _, s := range spellings(w) {
		if !s.Known() || s.Text == "" || len(s.Text) > 4096 {
			continue
		}
		out = append(out, s.Text)
		if i := strings.IndexByte(s.Text, '@'); i >= 0 && i+1 < len(s.Text) {
			out = append(out, s.Text[i+1:])
		}
	}
	return out
}

// leadsTo returns the real path of a name if that path must be judged, otherwise "". If option is
// true, the name is only a part of a word, so it may not be a path.
func (g Guard) leadsTo(program, folder, name, cwd string, shell, option bool) string {
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\n\x00") || strings.Contains(name, "://") {
		return ""
	}
	path := g.Account.pathOf(folder, strings.TrimSuffix(name, "/."))
	if path == "" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") { // a file descriptor of the guard's own process
		return ""
	}
	bare := !strings.Contains(name, "/")
	real := files.Real(path)
	if slices.Contains(keepsLinks, program) && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, "/.") {
		real = filepath.Join(files.Real(filepath.Dir(path)), filepath.Base(path))
	}
	tree := slices.Contains(treePrograms, program)
	if !files.Exists(path) && (!tree || option) && (bare || !files.Exists(filepath.Dir(path))) {
		return ""
	}
	if atTop := files.Real(folder); !filepath.IsAbs(name) && !strings.HasPrefix(name, "~") && (atTop == "/" || g.Account.Home != "" && atTop == files.Real(g.Account.Home)) {
		if tree && bare && !files.Exists(path) && !strings.ContainsAny(name, "*?[") && slices.Contains([]string{"git", "find", "fd", "gio", "chmod", "chown", "chgrp", "mount"}, program) {
			return "" // a subcommand or mode, not a path
		}
		return real
	}
	if real == path || real == "/private"+path {
		return ""
	}
	if !shell || strings.Contains(real+"/", "/.git/") {
		return real
	}
	base := g.Account.pathOf(cwd, ".")
	if base != "" {
		if top, _ := repositoryOf(base); top != "" {
			base = top
		}
		if below(real, files.Real(base)) {
			return ""
		}
	}
	return real
}

// spelled returns a real path in a form that the rules recognize: an unusual home folder is
// replaced by anyHome.
func (g Guard) spelled(real string) string {
	if home := files.Real(g.Account.Home); g.Account.Home != "" && below(real, home) {
		if home == "/root" || filepath.Dir(home) == "/home" || filepath.Dir(home) == "/Users" {
			return real
		}
		return anyHome + strings.TrimPrefix(real, home)
	}
	return real
}

// wordOf returns a text quoted as one word of a shell. If glob is set, pattern characters stay
// special.
func wordOf(text string, glob bool) string {
	if glob {
		return agents.GlobWord(text)
	}
	return agents.QuotePath(text)
}

// replaceName replaces a path in a text, but not inside a longer name.
func replaceName(text, name, with string) string {
	const edge = "\x00 \t\n\"'=@<>:(){};|&,`"
	var b strings.Builder
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(name)
		before := i == 0 || strings.IndexByte(edge, text[i-1]) >= 0 || i > 1 && text[i-2] == '-'
		after := end == len(text) || strings.IndexByte(edge, text[end]) >= 0
		b.WriteString(text[:i])
		if before && after {
			b.WriteString(with)
		} else {
			b.WriteString(name)
		}
		text = text[end:]
	}
}
