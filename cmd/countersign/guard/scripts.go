package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
)

// What a command does depends on the files that it runs: a script, a Makefile, a package's
// scripts. The guard reads these files and gives them to the engine as if they were part of the
// command. This can only raise the verdict. Files that are too long, too many or not regular are
// not read. A file can change between reading and running.

// Limits for reading files.
const (
	maxScript    = 256 << 10 // bytes of one file; a longer file is not read
	maxScripts   = 16        // files for one command
	maxIncludes  = 1         // levels of files that include files
	maxSlices    = 12        // parts into which a long file is divided, because the engine reads a limited length at once
	sliceOfFile  = 28 << 10
	hooksOff     = "--no-verify"
	hooksFolder  = "hooks"
	gitHookLimit = 4
)

// gitHooks lists the repository hooks that each Git command runs.
var gitHooks = map[string][]string{
	"commit": {"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"}, "push": {"pre-push"}, "merge": {"pre-merge-commit", "post-merge"}, "pull": {"post-merge", "post-rewrite"},
	"checkout": {"post-checkout"}, "switch": {"post-checkout"}, "rebase": {"pre-rebase", "post-rewrite"}, "am": {"applypatch-msg", "pre-applypatch", "post-applypatch"},
}

// withFiles judges an action again with the contents of the files and Git hooks that it would run.
// It returns the worst of these verdicts, or the earlier verdict, score, if none is worse.
func (g Guard) withFiles(action actionrisk.Action, score actionrisk.ScoreOutput, trace actionrisk.Trace) (actionrisk.ScoreOutput, actionrisk.Trace) {
	files := map[string]string{}
	wanted := trace.Wanted
	for level := 0; level <= maxIncludes && len(files) < maxScripts; level++ {
		if !g.readWanted(files, wanted, action.Cwd) {
			break
		}
		var seen actionrisk.Trace
		score, seen = g.judgeSlices(action, files, score)
		wanted = seen.Wanted
		trace.Uses, trace.Texts = append(trace.Uses, seen.Uses...), append(trace.Texts, seen.Texts...)
	}
	for _, hook := range g.hooksOf(trace, action.Cwd) {
		asScript := action
		asScript.Command = "sh " + agents.QuotePath(hook)
		if hooked := map[string]string{}; g.readWanted(hooked, []string{hook}, "/") {
			var seen actionrisk.Trace
			score, seen = g.judgeSlices(asScript, hooked, score)
			trace.Uses, trace.Texts = append(trace.Uses, seen.Uses...), append(trace.Texts, seen.Texts...)
		}
	}
	return score, trace
}

// readWanted reads the wanted files that texts does not contain yet. It returns true if it has read
// any.
func (g Guard) readWanted(texts map[string]string, wanted []string, cwd string) (more bool) {
	for _, name := range g.expanded(wanted, cwd) {
		if _, known := texts[name]; known || len(texts) >= maxScripts {
			continue
		}
		path := g.Account.pathOf(cwd, name)
		if path == "" {
			continue
		}
		text, err := files.ReadRegular(path, maxScript)
		if err != nil || len(text) == 0 || slices.Contains(text[:min(len(text), 512)], 0) { // a binary program cannot be judged as text
			continue
		}
		texts[name], more = g.withIncludes(string(text), path, cwd), true
	}
	return more
}

// expanded returns the names, with patterns replaced by the files in cwd that match.
func (g Guard) expanded(names []string, cwd string) (out []string) {
	for _, name := range names {
		if !strings.ContainsAny(name, "*?[") {
			out = append(out, name)
			continue
		}
		found, _ := filepath.Glob(g.Account.pathOf(cwd, name))
		for _, file := range found[:min(len(found), maxScripts)] {
			if rel, err := filepath.Rel(g.Account.pathOf(cwd, "."), file); err == nil && !filepath.IsAbs(name) && !strings.HasPrefix(name, "~") {
				file = rel
			}
			out = append(out, file)
		}
	}
	return out
}

// includes matches lines of a Makefile or a justfile that include other files.
var includes = pattern.Lazy(`(?m)^[ ]*(?:[-s]?include|import\??|mod\??[ \t]+\w+)[ \t]+([^\n#]+)`)

// withIncludes replaces include lines of a Makefile or a justfile by the included files, one level
// deep. make finds such files relative to the folder in which it runs.
func (g Guard) withIncludes(text, path, cwd string) string {
	left := maxScripts
	return includes().ReplaceAllStringFunc(text, func(line string) string {
		names := strings.NewReplacer("$(CURDIR)/", "", "${CURDIR}/", "", "$(wildcard ", "", ")", "", "'", "", `"`, "").Replace(includes().FindStringSubmatch(line)[1])
		var b strings.Builder
		for _, name := range strings.Fields(names) {
			for _, folder := range []string{filepath.Dir(path), g.Account.pathOf(cwd, ".")} {
				found, _ := filepath.Glob(g.Account.pathOf(folder, name))
				for _, file := range found {
					if left--; left < 0 {
						break
					}
					if more, err := files.ReadRegular(file, maxScript); err == nil && !slices.Contains(more[:min(len(more), 512)], 0) {
						b.WriteString(strings.TrimRight(string(more), "\n") + "\n")
					}
				}
				if len(found) > 0 {
					break
				}
			}
		}
		if b.Len() == 0 {
			return line
		}
		return b.String()
	})
}

// judgeSlices judges an action with files that may be longer than the engine reads at once, part
// by part. worst is the worst verdict so far. Rules that only report a text that was not
// understood are ignored.
func (g Guard) judgeSlices(action actionrisk.Action, files map[string]string, worst actionrisk.ScoreOutput) (actionrisk.ScoreOutput, actionrisk.Trace) {
	var all actionrisk.Trace
	most := 1
	for _, text := range files {
		most = max(most, (len(text)+sliceOfFile-1)/sliceOfFile)
	}
	for part := range min(most, maxSlices) {
		given := map[string]string{}
		for name, text := range files {
			given[name] = sliced(text, part)
		}
		score, trace := g.Judge(action, actionrisk.Surroundings{Files: given})
		if score = onlyFound(score); levelOf(score.Risk) > levelOf(worst.Risk) {
			worst = score
		}
		all.Uses, all.Texts, all.Wanted = append(all.Uses, trace.Uses...), append(all.Texts, trace.Texts...), append(all.Wanted, trace.Wanted...)
	}
	return worst, all
}

// sliced returns one part of a long text. The part begins with the first line of the text, which
// names the interpreter. A JSON document is not divided.
func sliced(text string, part int) string {
	if len(text) <= sliceOfFile || strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text
	}
	head, _, _ := strings.Cut(text, "\n")
	from, to := min(part*sliceOfFile, len(text)), min((part+1)*sliceOfFile, len(text))
	if i := strings.IndexByte(text[from:to], '\n'); part > 0 && i >= 0 {
		from += i
	}
	if i := strings.IndexByte(text[to:], '\n'); i >= 0 && i < 2048 {
		to += i
	}
	if part == 0 {
		return text[:to]
	}
	return head + "\n" + text[from:to]
}

// notUnderstood lists rules that report that a text was not parsed completely, or that a variable
// is unknown. In an agent's command this is suspicious. In a project's script it is common,
// because variables are often set elsewhere.
var notUnderstood = []string{"parse.", "obf.dynamic-", "obf.excess-quoting", "gate.unmatched-fail-closed", "shell.rm.recursive-dynamic-target"}

// expectedOf lists rules about actions that are common in build files.
var expectedOf = []string{"rce.known-installer"}

// onlyFound removes the rules of notUnderstood and expectedOf from a verdict.
func onlyFound(score actionrisk.ScoreOutput) actionrisk.ScoreOutput {
	kept, level := score.MatchedRules[:0:0], actionrisk.Low
	for _, r := range score.MatchedRules {
		if slices.Contains(expectedOf, r.ID) || slices.ContainsFunc(notUnderstood, func(start string) bool { return strings.HasPrefix(r.ID, start) }) {
			continue
		}
		kept, level = append(kept, r), max(level, levelOf(r.Severity))
	}
	score.MatchedRules, score.Risk = kept, level.String()
	return score
}

// hooksOf returns the paths of the repository hooks that the Git commands in a trace would run.
func (g Guard) hooksOf(trace actionrisk.Trace, cwd string) (out []string) {
	for i := range trace.Uses {
		u := &trace.Uses[i]
		if u.Program != "git" || u.Remote || u.Carries {
			continue
		}
		_, folder := g.Account.movedTo(u, g.Account.folderOf(u, cwd))
		_, common := repositoryOf(folder)
		skip := slices.ContainsFunc(u.Words, func(w act.Word) bool { return w.Text == hooksOff })
		for _, w := range u.Words[min(1, len(u.Words)):] {
			for _, hook := range gitHooks[w.Text] {
				if path := filepath.Join(common, hooksFolder, hook); common != "" && !skip && len(out) < gitHookLimit && executable(path) && !slices.Contains(out, path) {
					out = append(out, path)
				}
			}
		}
	}
	return out
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
