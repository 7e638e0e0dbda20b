package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// A program that no table knows may carry a command, as sudo and xargs do: a
// wrapper of somebody's own, a task runner, a process supervisor. Nobody can list
// them all, so the words behind such a program that are a command by themselves,
// and texts it is told to run, are judged as if they ran. What is harmless by
// itself stays harmless; what a program only says is a mention (group "speakers").

// suspect runs what a program that no wrapper entry covers seems to carry.
func (sh *shell) suspect(v *invocation) {
	if len(v.argv) < 2 || slices.Contains(sh.e.groups["speakers"], v.exe) || v.dry || sh.suspects >= scan.MaxSuspects || !sh.e.budget.spend(len(v.argv)/2) {
		return
	}
	inner := *sh
	inner.suspects++
	if i := sh.e.carriedFrom(v); i > 0 {
		inner.argv(v.argv[i:], &wrapper{}, v)
	}
	inner.suspectOptions(v)
}

// carriedFrom is the word at which a carried command begins, or 0.
func (e *engine) carriedFrom(v *invocation) int {
	stranger := e.stranger(v.exe)
	begun := false // a word such as "exec" announced it
	for i := 1; i < len(v.argv); i++ {
		t := v.argv[i].Text
		switch {
		case !begun && i == 1 && slices.Contains(e.groups["prose-words"], strings.TrimSuffix(t, ":")):
			return 0
		case t == "--" || slices.Contains(e.groups["run-words"], t):
			begun = true
		case strings.HasPrefix(t, "-") || strings.Contains(t, "="):
			if slices.Contains(e.groups["text-options"], t) {
				i++ // its value is prose
			}
		case (begun || stranger && !slices.Contains(e.groups["subcommand-words"], scan.Base(t))) && e.acts(t) && i+1 < len(v.argv):
			return i
		case begun && !stranger && v.argv[i-1].Text == "--":
			return 0 // a file behind "--"
		}
	}
	return 0
}

// stranger: no table says anything about the program.
func (e *engine) stranger(exe string) bool {
	t := e.tools[exe]
	return !e.exe[exe] && e.wrappers[exe] == nil && (t == nil || t.made) && e.readonly[exe] == nil && e.dryrun[exe] == nil
}

// acts: the word names a program that a table knows as doing something.
func (e *engine) acts(word string) bool {
	name := scan.Base(word)
	return (e.exe[name] || e.wrappers[name] != nil || e.reads[name] != nil) && name != "." && name != "source"
}

// actsText: the text is a command line of such a program, or the bare name of a shell,
// which asks whoever sits there.
func (e *engine) actsText(text string) bool {
	first, _, more := strings.Cut(strings.TrimSpace(text), " ")
	return more && e.acts(first) || !more && strings.HasSuffix(first, "sh") && slices.Contains(e.groups["shells"], scan.Base(first))
}

// suspectOptions runs the texts that options hand over to be run: by their name
// ("--exec", "--pre-command", "--pager") with any program, -c, -e and -x with one
// that no table knows, and the one text behind "run".
func (sh *shell) suspectOptions(v *invocation) {
	e := sh.e
	stranger := e.stranger(v.exe)
	behind := afterDashes(v)
	prose := 0 // words that say that a text is prose
	for i := 1; i < len(v.argv); i++ {
		w := v.argv[i]
		if slices.Contains(e.groups["prose-words"], strings.TrimSuffix(w.Text, ":")) || slices.Contains(e.groups["text-options"], w.Text) {
			prose++
		}
		name, _, given := strings.Cut(w.Text, "=")
		switch {
		case strings.HasPrefix(name, "--") && commandOption(name):
		case stranger && (w.Text == "-c" || w.Text == "-e" || w.Text == "-x"):
		case slices.Contains(e.groups["run-words"], w.Text):
		case stranger && prose == 0 && w.Text[:min(1, len(w.Text))] != "-" && e.actsText(w.Text): // one word that is a command line
			sh.interpret("shell", w, v, v.exe, nil)
			continue
		default:
			continue
		}
		if given {
			w = w.tail(len(name) + 1)
		} else if i+1 < len(v.argv) && strings.HasPrefix(v.argv[i+1].Text, "-") {
			continue
		} else if i+1 < len(v.argv) {
			i++
			w = v.argv[i]
		}
		if len(behind) > 0 && e.acts(w.Text) && w.known() {
			sh.argv(append([]Word{w}, behind...), &wrapper{}, v) // --exec /bin/rm -- -rf x
		} else if e.actsText(w.Text) {
			sh.interpret("shell", w, v, v.exe+" "+name, nil)
		}
	}
}

// afterDashes are the words behind "--".
func afterDashes(v *invocation) []Word {
	for i := range v.argv { // by index: a word is large
		if v.argv[i].Text == "--" {
			return v.argv[i+1:]
		}
	}
	return nil
}

// commandOption: a part of the option's name says that its value is run.
func commandOption(name string) bool {
	for part := range strings.SplitSeq(name[2:], "-") {
		switch part {
		case "exec", "execute", "command", "commands", "cmd", "shell", "hook", "script", "scripts", "pager", "editor", "program", "filter", "run", "rsh", "viewer", "askpass", "wrap", "wrapper", "locker", "callback", "handler", "trigger", "launcher", "runner", "preexec", "postexec", "prehook", "posthook", "notifier", "opener":
			return true
		}
	}
	return false
}
