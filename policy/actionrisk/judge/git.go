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

// protectedBranch reports whether a branch has a name that is usually protected, such as main or
// release/1.2. It compares complete segments, not substrings.
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
	to                                  string // the branch or tag that it changes; "" if that is the checked-out branch and unknown
	force, deletes, protected, headless bool
}

// readRefspec parses "+from:to".
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

// is reports whether the refspec is of the given kind; see refspecIs.
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

// refspecIs reports whether a refspec of git push is of one of the kinds: protected (it changes a
// protected branch), head (the checked-out branch, which is unknown), force (begins with "+"),
// delete (":name"), force-protected, delete-protected, tag (refs/tags/…), unknown (contains a
// variable). Two kinds are about all refspecs: topic (all destinations are known, none is
// protected) and unnamed (there is no refspec).
func refspecIs(e *interp.Env, it *act.Item, kinds []string) (act.Word, bool) {
	operands := it.Inv.Operands[min(2, len(it.Inv.Operands)):] // operands after "push" and the remote
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

// namesTopics reports whether a push names its destinations and none is protected. Then the
// checked-out branch does not matter.
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

// discards reports whether git checkout discards changes. It does so if it names paths, not a
// branch. Lock files and snapshots do not count.
func discards(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	made := func(w act.Word) bool { return e.ClassOf(w, "")&paths.IsGenerated != 0 }
	switch n := len(v.Operands); {
	case hasAny(v, "-b", "-B", "--orphan", "-p", "--patch"):
		return act.Word{}, false
	case v.After > 0 && v.After < n:
		return v.Operands[v.After], !made(v.Operands[v.After])
	case n > 2 && !hasAny(v, "-t", "--track", "-l"): // after a commit only paths may follow
		return v.Operands[n-1], !made(v.Operands[n-1])
	}
	return first(v.Operands[min(1, len(v.Operands)):], func(w act.Word) bool {
		return noBranch(w) || looksFile(w.Text) && !made(w)
	})
}

// noBranch reports whether a word cannot be the name of a branch.
func noBranch(w act.Word) bool {
	clean := path.Clean(w.Text)
	return w.Glob || strings.HasPrefix(clean, "..") || clean == "." || strings.HasSuffix(w.Text, "/") || scan.HasAnyPrefix(w.Text, "./", ":") || strings.ContainsAny(w.Text, "*?[")
}

// looksFile reports whether a name has a common file extension, so that it is probably a file, not
// a branch.
func looksFile(t string) bool {
	i := strings.LastIndexByte(t, '.')
	if i < 1 || len(t)-i > 5 || i+1 == len(t) {
		return false
	}
	return strings.Trim(t[i+1:], "abcdefghijklmnopqrstuvwxyz") == "" && !strings.HasPrefix(t, "v")
}

// generated reports whether every path is a lock file or a snapshot.
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
		return act.Word{}, false // an alias for a git command, which is judged when it runs
	}
	if len(v.Operands) > 2 && (usualProgram(e, v.Operands[2].Text) || sameHost(v.Operands[1].Text, v.Operands[2].Text)) {
		return act.Word{}, false
	}
	return act.Word{}, len(v.Operands) > 2 && !v.Has("--get") && !v.Has("--unset")
}

// sameHost reports whether a setting rewrites URLs (url.NEW.insteadOf OLD) but keeps their host.
func sameHost(setting, old string) bool {
	rest, isURL := strings.CutPrefix(setting, "url.")
	lower := strings.ToLower(rest)
	i := max(strings.LastIndex(lower, ".insteadof"), strings.LastIndex(lower, ".pushinsteadof"))
	return isURL && i > 0 && gitHost(rest[:i]) != "" && gitHost(rest[:i]) == gitHost(old)
}

// gitHost returns the host of a Git URL: https://user:token@host/path or git@host:path.
func gitHost(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	address = address[strings.LastIndexByte(address, '@')+1:]
	host, _, _ := strings.Cut(address, ":")
	return strings.ToLower(host)
}

// usualProgram reports whether a value is a program that people usually configure for Git, by its
// name and without shell syntax after it.
func usualProgram(e *interp.Env, value string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(value, "!gh"), " ")
	return e.In("git-programs", first) && !strings.ContainsAny(rest, ";|&`$<>(") && !strings.Contains(rest, "Command=")
}

// ownSettings reports whether the lines that are appended to a shell's start file are harmless:
// see ownSetting.
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

// ownSetting reports whether a line of a start file is harmless: a comment, a completion, an alias
// for a program without side effects, a plain variable, or a folder of the user or the system on
// the search path.
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

// plainAlias reports whether an alias has a name that is not a known program's, and its program
// runs no other commands.
func plainAlias(e *interp.Env, alias string) bool {
	name, value, _ := strings.Cut(alias, "=")
	first, _, _ := strings.Cut(strings.Trim(value, `'"`), " ")
	named, program := e.Program(name), e.Program(first)
	free := !named.Judged && len(named.Carries) == 0 && !e.In("coreutils", name) || len(name) < 3 && !e.In("coreutils", name) || e.In("kube", name) && e.In("kube", first)
	return free && (len(program.Proves) > 0 || program.Judged) && !slices.ContainsFunc(program.Carries, func(w *facts.Wrapper) bool {
		return len(w.Sub) == 0 && (w.Argv || w.Join || w.Script || w.Stdin || w.File) || slices.ContainsFunc(w.Options, func(o string) bool { return strings.Contains(value, " "+o) })
	})
}

// loadsTool reports whether a line loads the file of a common tool, possibly after a test that the
// file exists: [ -s "$NVM_DIR/nvm.sh" ] && \. "$NVM_DIR/nvm.sh"
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

// addsOwnFolders reports whether a new search path contains the old one and otherwise only folders
// of the user or the system.
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

// emptied reports whether a redirection writes nothing.
func emptied(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	in := it.Inv.Stdin
	return act.Word{}, in.Known && strings.TrimSpace(in.Word.Text) == ""
}

// gitSet reports whether a setting "name=off" or "name=now" is active: given with -c, in the
// environment, or by an earlier git config. The last one counts.
func gitSet(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, a := range args {
		name, kind, _ := strings.Cut(a, "=")
		if w, ok := e.GitSettingOf(it.Inv, name); ok && (kind == "off" && interp.GitOff(w.Text) || kind == "now" && expiresNow(w.Text)) {
			return w, true
		}
	}
	return act.Word{}, false
}

// expiresNow reports whether an expiry time is so near that recent data is lost.
func expiresNow(value string) bool {
	l := strings.ToLower(value)
	return slices.Contains([]string{"now", "all", "0", "today", "tomorrow"}, l) || scan.HasAny(l, "second", "minute", "hour", "1.day", "1 day", "yesterday")
}

// expires reports whether reflog expire or prune deletes recent data, not only old data.
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

// completes reports whether a line evaluates the completion script that a known tool prints: eval
// "$(uv generate-shell-completion bash)".
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
