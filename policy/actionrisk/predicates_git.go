package actionrisk

import (
	"path"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// branchClass of a name: protected names are whole segments, never substrings.
func protectedBranch(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "refs/heads/"), "origin/")
	switch name {
	case "main", "master", "trunk", "stable", "live", "production", "prod", "release", "mainline":
		return true
	}
	first, _, nested := strings.Cut(name, "/")
	if nested && (first == "release" || first == "releases" || first == "hotfix") {
		return true
	}
	return strings.HasPrefix(name, "prod-") || strings.HasPrefix(name, "production-") || strings.HasPrefix(name, "release-")
}

// refspecIs looks at what git push is about. Kinds: protected (a destination is
// a protected branch), topic (all destinations named, none protected), unnamed
// (none named), head (the checked-out branch, not known), force ("+" in front), delete (":name").
func refspecIs(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	specs := v.operands[min(1, len(v.operands)):]
	remoteNamed := len(specs) > 0
	if remoteNamed {
		specs = specs[1:]
	}
	for _, a := range args {
		if a == "unnamed" && len(specs) == 0 {
			return Word{}, true
		}
		topics := 0
		for _, w := range specs {
			t, plus := strings.CutPrefix(w.Text, "+")
			src, dst, colon := strings.Cut(t, ":")
			if !colon {
				dst = src
			}
			if rest, ok := strings.CutPrefix(dst, "+"); ok {
				dst, plus = rest, true
			}
			if dst == "HEAD" || dst == "@" {
				if dst = e.action.Branch; dst == "" {
					if a == "head" {
						return w, true
					}
					continue
				}
			}
			prot := protectedBranch(dst)
			switch {
			case a == "protected" && prot, a == "force" && plus, a == "force-protected" && plus && prot,
				a == "delete" && colon && src == "", a == "delete-protected" && colon && src == "" && prot,
				a == "tag" && strings.HasPrefix(dst, "refs/tags/"),
				a == "unknown" && !w.known():
				return w, true
			case a == "topic" && !prot && w.known():
				topics++
			}
		}
		if a == "topic" && topics > 0 && topics == len(specs) {
			return specs[0], true
		}
	}
	return Word{}, false
}

// namesTopics: a push names what it is about, and none of it is protected, whatever
// branch is checked out.
func namesTopics(e *engine, it *item) bool {
	if it == nil || it.inv == nil || !it.inv.underAny([][]string{{"push"}}) {
		return false
	}
	_, topics := refspecIs(e, it, []string{"topic"})
	return topics
}

func branchIs(e *engine, _ *item, _ []string) (Word, bool) { return Word{}, e.context.branch != "" }

// discards: git checkout with paths throws changes away; with a branch it does not.
func discards(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.has("-b") || v.has("-B") || v.has("--orphan") || v.has("-p") || v.has("--patch") {
		return Word{}, false
	}
	if v.after > 0 && v.after < len(v.operands) {
		w := v.operands[v.after]
		return w, e.classOf(w, "")&paths.IsGenerated == 0
	}
	if len(v.operands) > 2 && !v.has("-t") && !v.has("--track") && !v.has("-l") { // behind a commit only paths can stand
		w := v.operands[len(v.operands)-1]
		return w, e.classOf(w, "")&paths.IsGenerated == 0
	}
	for _, w := range v.operands[min(1, len(v.operands)):] {
		switch {
		case strings.HasPrefix(path.Clean(w.Text), "..") || path.Clean(w.Text) == "." || strings.HasPrefix(w.Text, "./"), w.Glob,
			strings.HasPrefix(w.Text, ":"), strings.ContainsAny(w.Text, "*?["): // no branch has such a name
			return w, true
		case looksFile(w.Text) && e.classOf(w, "")&paths.IsGenerated == 0:
			return w, true
		}
	}
	return Word{}, false
}

// looksFile: a name with a common file extension is a file, not a branch.
func looksFile(t string) bool {
	i := strings.LastIndexByte(t, '.')
	if i < 1 || len(t)-i > 5 || i+1 == len(t) {
		return false
	}
	return strings.Trim(t[i+1:], "abcdefghijklmnopqrstuvwxyz") == "" && !strings.HasPrefix(t, "v")
}

// generated: every path is a lock file or a snapshot.
func generated(e *engine, it *item, _ []string) (Word, bool) {
	named := it.inv.operands[min(1, len(it.inv.operands)):]
	for _, w := range named {
		if e.classOf(w, "")&paths.IsGenerated == 0 {
			return Word{}, false
		}
	}
	return Word{}, len(named) > 0
}

func configValue(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) > 2 && strings.HasPrefix(strings.ToLower(v.operands[1].Text), "alias.") && !strings.HasPrefix(v.operands[2].Text, "!") {
		return Word{}, false // another name of a git command, which is judged itself
	}
	if len(v.operands) > 2 && usualProgram(v.operands[2].Text) {
		return Word{}, false
	}
	return Word{}, len(v.operands) > 2 && !v.has("--get") && !v.has("--unset")
}

var usualPrograms = scan.SetOf("vim vi nvim nano emacs emacsclient micro hx helix code codium subl mate idea less more most cat delta diff-so-fancy bat true false store cache osxkeychain manager manager-core libsecret wincred git-lfs nbstripout ssh meld vimdiff")

// usualProgram: a program people set for Git, by its bare name and with nothing of
// the shell behind it.
func usualProgram(value string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(value, "!gh"), " ")
	return usualPrograms[first] && !strings.ContainsAny(rest, ";|&`$<>(") && !strings.Contains(rest, "Command=")
}

// emptied: a redirection that writes nothing.
// ownSettings: what is appended to one's own shell's start file only puts folders of
// one's own or of the system on the path, sets a plain variable, or gives a tool's own
// command a short name.
func ownSettings(e *engine, it *item, _ []string) (Word, bool) {
	in := it.inv.stdin
	if !in.known || strings.TrimSpace(in.word.Text) == "" || len(it.inv.operands) == 0 || !strings.HasPrefix(scan.Base(it.inv.operands[0].Text), ".") {
		return Word{}, false
	}
	for line := range strings.Lines(in.word.Text) {
		if !ownSetting(e, strings.TrimSpace(line)) {
			return Word{}, false
		}
	}
	return Word{}, true
}

func ownSetting(e *engine, line string) bool {
	if line == "" || line[0] == '#' {
		return true
	}
	if strings.ContainsAny(line, "`;|&<>") || strings.Contains(line, "$(") || strings.IndexByte(line, scan.Hole) >= 0 || strings.Contains(line, "/tmp") || strings.Contains(line, "/dev/") {
		return false
	}
	if rest, ok := strings.CutPrefix(line, "alias "); ok {
		name, value, _ := strings.Cut(rest, "=")
		program, _, _ := strings.Cut(strings.Trim(value, `'"`), " ")
		return !e.exe[name] && e.tools[name] == nil && len(e.readonly[name]) == 0 && (len(e.readonly[program]) > 0 || e.exe[program]) && len(e.wrappers[program]) == 0
	}
	name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
	if !ok || !syntaxName(name) || e.variableOf(name) != nil && name != "PATH" {
		return false
	}
	if name != "PATH" {
		return strings.HasPrefix(line, "export ") && !strings.HasSuffix(name, "_COMMAND") && name != "BASH_ENV" && name != "ENV" && name != "PS1"
	}
	keeps := false
	for folder := range strings.SplitSeq(strings.Trim(value, `'"`), ":") {
		switch {
		case folder == "$PATH" || folder == "${PATH}":
			keeps = true
		case strings.HasPrefix(folder, "$HOME/"), strings.HasPrefix(folder, "~/"), strings.HasPrefix(folder, "/usr/"), strings.HasPrefix(folder, "/opt/"), strings.HasPrefix(folder, "$") && strings.HasSuffix(folder, "/bin"):
		default:
			return false
		}
	}
	return keeps
}

func emptied(_ *engine, it *item, _ []string) (Word, bool) {
	in := it.inv.stdin
	return Word{}, in.known && strings.TrimSpace(in.word.Text) == ""
}

// gitSet: the setting "name=off" or "name=now" holds, given with -c, in the
// environment, or by a git config before; the last one counts.
func gitSet(e *engine, it *item, args []string) (Word, bool) {
	for _, a := range args {
		name, kind, _ := strings.Cut(a, "=")
		if w, ok := e.gitSettingOf(it.inv, name); ok && (kind == "off" && gitOff(w.Text) || kind == "now" && expiresNow(w.Text)) {
			return w, true
		}
	}
	return Word{}, false
}

// gitSettingOf is the value of a setting, its name in lower case.
func (e *engine) gitSettingOf(v *invocation, name string) (Word, bool) {
	w, ok := e.gitConfig[name]
	key := ""
	for _, a := range v.env {
		switch {
		case strings.HasPrefix(a.name, "GIT_CONFIG_KEY_"):
			key = strings.ToLower(a.value.Text)
		case strings.HasPrefix(a.name, "GIT_CONFIG_VALUE_") && key == name:
			w, ok = a.value, true
		}
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.name == "-c" && o.given {
			if n, value, valued := strings.Cut(o.value.Text, "="); valued && strings.EqualFold(n, name) {
				w, ok = o.value.tail(len(n)+1), true
				w.Text = value
			}
		}
	}
	return w, ok
}

// remembersSetting notes "git config key value".
func (e *engine) remembersSetting(words []Word) {
	if len(words) > 0 && words[0].Text == "set" {
		words = words[1:]
	}
	if len(words) < 2 {
		return
	}
	if e.gitConfig == nil {
		e.gitConfig = map[string]Word{}
	}
	if len(e.gitConfig) < scan.MaxFiles {
		e.gitConfig[strings.ToLower(words[0].Text)] = words[1]
	}
}

func gitOff(value string) bool {
	switch strings.ToLower(value) {
	case "false", "no", "off", "0", "":
		return true
	}
	return false
}

// expiresNow: a time so near that what is lost today is lost for good.
func expiresNow(value string) bool {
	l := strings.ToLower(value)
	if l == "now" || l == "all" || l == "0" || l == "today" || l == "tomorrow" {
		return true
	}
	for _, unit := range [...]string{"second", "minute", "hour", "1.day", "1 day", "yesterday"} {
		if strings.Contains(l, unit) {
			return true
		}
	}
	return false
}

// expires: reflog expire and prune take away what is new, not only what is old.
func expires(_ *engine, it *item, _ []string) (Word, bool) {
	given := false
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if !o.given || !strings.HasPrefix(o.name, "--exp") && !strings.HasPrefix(o.name, "--pr") {
			continue
		}
		if given = true; expiresNow(o.value.Text) || !o.value.known() {
			return o.value, true
		}
	}
	return Word{}, !given && len(it.inv.operands) > 0 && it.inv.operands[0].Text == "prune"
}
