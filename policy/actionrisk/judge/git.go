package judge

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// protectedBranch tells whether a name is one that many build on: such names are whole segments, never substrings.
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
	return scan.HasAnyPrefix(name, "prod-", "production-", "release-")
}

// refspec is one operand of git push.
type refspec struct {
	word                                act.Word
	to                                  string // the branch or tag that it changes; "" for the checked-out one, which is not known
	force, deletes, protected, headless bool
}

// readRefspec reads "+from:to" and its parts.
func readRefspec(e *interp.Env, w act.Word) refspec {
	t, plus := strings.CutPrefix(w.Text, "+")
	from, to, colon := strings.Cut(t, ":")
	if !colon {
		to = from
	}
	if rest, ok := strings.CutPrefix(to, "+"); ok {
		to, plus = rest, true
	}
	if to == "HEAD" || to == "@" {
		to = e.Action.Branch
		if to == "" {
			return refspec{word: w, headless: true}
		}
	}
	return refspec{word: w, to: to, force: plus, deletes: colon && from == "", protected: protectedBranch(to)}
}

// is tells whether a refspec is of a kind.
func (r *refspec) is(kind string) bool {
	if r.headless {
		return kind == "head"
	}
	switch kind {
	case "protected":
		return r.protected
	case "force":
		return r.force
	case "force-protected":
		return r.force && r.protected
	case "delete":
		return r.deletes
	case "delete-protected":
		return r.deletes && r.protected
	case "tag":
		return strings.HasPrefix(r.to, "refs/tags/")
	case "unknown":
		return !r.word.Known()
	}
	return false
}

// refspecIs looks at what git push is about. Kinds: protected (a destination is
// a protected branch), topic (all destinations named, none protected), unnamed
// (none named), head (the checked-out branch, not known), force ("+" in front), delete (":name").
func refspecIs(e *interp.Env, it *act.Item, kinds []string) (act.Word, bool) {
	operands := it.Inv.Operands[min(2, len(it.Inv.Operands)):] // after "push" and the remote
	for _, kind := range kinds {
		if kind == "unnamed" && len(operands) == 0 {
			return act.Word{}, true
		}
		topics := 0
		for _, w := range operands {
			r := readRefspec(e, w)
			if r.is(kind) {
				return w, true
			}
			if !r.headless && !r.protected && w.Known() {
				topics++
			}
		}
		if kind == "topic" && topics > 0 && topics == len(operands) {
			return operands[0], true
		}
	}
	return act.Word{}, false
}

// namesTopics: a push names what it is about, and none of it is protected, whatever
// branch is checked out.
func namesTopics(e *interp.Env, it *act.Item) bool {
	if it == nil || it.Inv == nil || !it.Inv.UnderAny([]string{"push"}) {
		return false
	}
	_, topics := refspecIs(e, it, []string{"topic"})
	return topics
}

func branchIs(e *interp.Env, _ *act.Item, _ []string) (act.Word, bool) {
	return act.Word{}, e.Context.Branch != ""
}

// discards: git checkout of paths discards changes; of a branch it does not.
func discards(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	made := func(w act.Word) bool { return e.ClassOf(w, "")&paths.IsGenerated != 0 }
	switch n := len(v.Operands); {
	case hasAny(v, "-b", "-B", "--orphan", "-p", "--patch"):
		return act.Word{}, false
	case v.After > 0 && v.After < n:
		return v.Operands[v.After], !made(v.Operands[v.After])
	case n > 2 && !hasAny(v, "-t", "--track", "-l"): // after a commit only paths can be given
		return v.Operands[n-1], !made(v.Operands[n-1])
	}
	return first(v.Operands[min(1, len(v.Operands)):], func(w act.Word) bool {
		return noBranch(w) || looksFile(w.Text) && !made(w)
	})
}

// noBranch: no branch has such a name.
func noBranch(w act.Word) bool {
	clean := path.Clean(w.Text)
	return w.Glob || strings.HasPrefix(clean, "..") || clean == "." || strings.HasSuffix(w.Text, "/") || scan.HasAnyPrefix(w.Text, "./", ":") || strings.ContainsAny(w.Text, "*?[")
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
func generated(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	named := it.Inv.Operands[min(1, len(it.Inv.Operands)):]
	for _, w := range named {
		if e.ClassOf(w, "")&paths.IsGenerated == 0 {
			return act.Word{}, false
		}
	}
	return act.Word{}, len(named) > 0
}

func configValue(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if len(v.Operands) > 2 && strings.HasPrefix(strings.ToLower(v.Operands[1].Text), "alias.") && !strings.HasPrefix(v.Operands[2].Text, "!") {
		return act.Word{}, false // another name of a git command, which is judged itself
	}
	if len(v.Operands) > 2 && (usualProgram(e, v.Operands[2].Text) || sameHost(v.Operands[1].Text, v.Operands[2].Text)) {
		return act.Word{}, false
	}
	return act.Word{}, len(v.Operands) > 2 && !v.Has("--get") && !v.Has("--unset")
}

// sameHost: addresses are written otherwise (url.NEW.insteadOf OLD), and their host stays.
func sameHost(setting, old string) bool {
	rest, isURL := strings.CutPrefix(setting, "url.")
	lower := strings.ToLower(rest)
	i := max(strings.LastIndex(lower, ".insteadof"), strings.LastIndex(lower, ".pushinsteadof"))
	return isURL && i > 0 && gitHost(rest[:i]) != "" && gitHost(rest[:i]) == gitHost(old)
}

// gitHost is the host of an address that Git takes: https://user:token@host/path,
// git@host:path.
func gitHost(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	address = address[strings.LastIndexByte(address, '@')+1:]
	host, _, _ := strings.Cut(address, ":")
	return strings.ToLower(host)
}

// usualProgram: a program people set for Git, by its bare name and with nothing of
// the shell after it.
func usualProgram(e *interp.Env, value string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(value, "!gh"), " ")
	return e.In("git-programs", first) && !strings.ContainsAny(rest, ";|&`$<>(") && !strings.Contains(rest, "Command=")
}

// ownSettings: what is appended to one's own shell's start file only puts folders of
// one's own or of the system on the path, sets a plain variable, or gives a tool's own
// command a short name.
func ownSettings(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	in := it.Inv.Stdin
	if !in.Known || strings.TrimSpace(in.Word.Text) == "" || len(it.Inv.Operands) == 0 || !strings.HasPrefix(scan.Base(it.Inv.Operands[0].Text), ".") {
		return act.Word{}, false
	}
	for line := range strings.Lines(in.Word.Text) {
		if !ownSetting(e, strings.TrimSpace(line)) {
			return act.Word{}, false
		}
	}
	return act.Word{}, true
}

// ownSetting: a line of a start file that only makes one's own work easier: a comment, a
// completion, a new name for a program that changes nothing, a variable, a folder of
// programs of one's own.
func ownSetting(e *interp.Env, line string) bool {
	if line == "" || line[0] == '#' || completes(e, line) || loadsTool(e, line) {
		return true
	}
	if strings.ContainsAny(line, "`;|&<>") || scan.HasAny(line, "$(", string(scan.Hole), "/tmp", "/dev/") {
		return false
	}
	first, rest, _ := strings.Cut(line, " ")
	if e.In("start-file-words", first) && !strings.Contains(rest, "/") {
		return true
	}
	if program, ok := strings.CutPrefix(line, "complete -C "); ok {
		name, _, _ := strings.Cut(program, " ")
		return e.In("completion-tools", name)
	}
	if alias, ok := strings.CutPrefix(line, "alias "); ok {
		return plainAlias(e, alias)
	}
	setting, exported := strings.CutPrefix(line, "export ")
	name, value, ok := strings.Cut(setting, "=")
	if ok && name == "PATH" {
		return addsOwnFolders(value)
	}
	return ok && exported && act.SyntaxName(name) && e.VariableOf(name) == nil &&
		!strings.HasSuffix(name, "_COMMAND") && !slices.Contains([]string{"BASH_ENV", "ENV", "PS1"}, name)
}

// plainAlias: a new name, which no known program has, for one that carries nothing.
func plainAlias(e *interp.Env, alias string) bool {
	name, value, _ := strings.Cut(alias, "=")
	first, _, _ := strings.Cut(strings.Trim(value, `'"`), " ")
	named, program := e.Program(name), e.Program(first)
	free := !named.Judged && len(named.Carries) == 0 && !e.In("coreutils", name) || len(name) < 3 && !e.In("coreutils", name) || e.In("kube", name) && e.In("kube", first)
	return free && (len(program.Proves) > 0 || program.Judged) && !slices.ContainsFunc(program.Carries, func(w *facts.Wrapper) bool {
		return len(w.Sub) == 0 && (w.Argv || w.Join || w.Script || w.Stdin || w.File) || slices.ContainsFunc(w.Options, func(o string) bool { return strings.Contains(value, " "+o) })
	})
}

// loadsTool: the line loads the file of a tool that people set up so, if it is there:
// [ -s "$NVM_DIR/nvm.sh" ] && \. "$NVM_DIR/nvm.sh"
func loadsTool(e *interp.Env, line string) bool {
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "", ";", " ; ").Replace(line))
	if len(words) > 4 && (words[0] == "[" || words[0] == "[[" || words[0] == "test") {
		if i := slices.Index(words, "&&"); i > 2 && i < 6 && slices.Contains(words[i:], words[2]) {
			words = words[i+1:]
		}
	}
	if len(words) == 3 && words[2] == "#" || len(words) > 2 && strings.HasPrefix(words[2], "#") {
		words = words[:2]
	}
	if len(words) != 2 || !slices.Contains([]string{"source", ".", `\.`}, words[0]) || strings.ContainsAny(words[1], "`;|&<>()*") || strings.Contains(words[1], "..") ||
		!scan.HasAnyPrefix(words[1], "~/", "$HOME/", "$", "/usr/share/", "/usr/local/", "/opt/homebrew/", "/etc/profile.d/") {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(words[1], func(r rune) bool { return strings.ContainsRune("/.-_${}", r) }), func(part string) bool {
		return e.In("start-file-tools", strings.ToLower(part))
	})
}

// addsOwnFolders: a search path that keeps what was there and adds folders of the user's
// or the system's.
func addsOwnFolders(value string) (keeps bool) {
	for folder := range strings.SplitSeq(strings.Trim(value, `'"`), ":") {
		switch {
		case folder == "$PATH" || folder == "${PATH}":
			keeps = true
		case !scan.HasAnyPrefix(folder, "$HOME/", "~/", "/usr/", "/opt/") && !(folder != "" && folder[0] == '$' && strings.HasSuffix(folder, "/bin")):
			return false
		}
	}
	return keeps
}

// emptied: a redirection that writes nothing.
func emptied(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	in := it.Inv.Stdin
	return act.Word{}, in.Known && strings.TrimSpace(in.Word.Text) == ""
}

// gitSet: the setting "name=off" or "name=now" holds, given with -c, in the
// environment, or by a git config before; the last one counts.
func gitSet(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, a := range args {
		name, kind, _ := strings.Cut(a, "=")
		if w, ok := e.GitSettingOf(it.Inv, name); ok && (kind == "off" && interp.GitOff(w.Text) || kind == "now" && expiresNow(w.Text)) {
			return w, true
		}
	}
	return act.Word{}, false
}

// expiresNow: a time so near that what is lost today is lost for good.
func expiresNow(value string) bool {
	l := strings.ToLower(value)
	return slices.Contains([]string{"now", "all", "0", "today", "tomorrow"}, l) || scan.HasAny(l, "second", "minute", "hour", "1.day", "1 day", "yesterday")
}

// expires: reflog expire and prune take away what is new, not only what is old.
func expires(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	given := false
	for i := range it.Inv.Opts {
		o := &it.Inv.Opts[i]
		if !o.Given || !strings.HasPrefix(o.Name, "--exp") && !strings.HasPrefix(o.Name, "--pr") {
			continue
		}
		if given = true; expiresNow(o.Value.Text) || !o.Value.Known() {
			return o.Value, true
		}
	}
	return act.Word{}, !given && len(it.Inv.Operands) > 0 && it.Inv.Operands[0].Text == "prune"
}

// completes: the line evaluates what a tool that is known prints to complete its own
// words: eval "$(uv generate-shell-completion bash)".
func completes(e *interp.Env, line string) bool {
	command, evaluates := "", false
	for _, form := range [...][2]string{{`eval "$(`, `)"`}, {"eval $(", ")"}, {"source <(", ")"}, {". <(", ")"}, {"eval \"`", "`\""}} {
		if text, begins := strings.CutPrefix(line, form[0]); begins && !evaluates {
			command, evaluates = strings.CutSuffix(text, form[1])
		}
	}
	if !evaluates {
		return false
	}
	words := strings.Fields(command)
	if len(words) > 0 && facts.StandardDirectory(words[0]) {
		words[0] = path.Base(words[0])
		command = strings.Join(words, " ")
	}
	if len(words) < 2 || len(words) > 4 || strings.ContainsAny(command, "`;|&<>$()\\/'\"") {
		return false
	}
	return slices.Contains(e.Groups.Get("completion-tools"), words[0]) && slices.Contains(e.Groups.Get("completion-words"), words[1])
}
