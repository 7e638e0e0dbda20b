package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// parallel runs GNU parallel's command once for each value.
func parallel(sh *interp.Process, rest []act.Word, v *act.Invocation) (act.Flow, bool) {
	if len(rest) > 0 && (v.Has("--pipe") || v.Has("--pipepart")) { // each reads a part of the input
		return argv(sh, rest, &facts.Wrapper{}, v), true
	}
	command, values := rest, []act.Word(nil)
	if i := slices.IndexFunc(rest, func(w act.Word) bool { return strings.HasPrefix(w.Text, ":::") }); i >= 0 {
		command, values = rest[:i], rest[i+1:]
	} else if v.Stdin.Known {
		for line := range strings.Lines(v.Stdin.Word.Text) {
			if line = strings.TrimSpace(line); line != "" && len(values) < scan.MaxLoop {
				values = append(values, act.Word{Text: line, At: -1, Span: v.Stdin.Word.Span, Taint: v.Stdin.Taint})
			}
		}
	} else {
		values = []act.Word{{Text: string(scan.Hole), At: -1, Span: v.Argv[0].Span, Var: "input", Lone: true, Taint: v.Stdin.Taint | act.FromStdin}}
	}
	var out act.Flow
	for _, value := range values[:min(len(values), scan.MaxLoop)] {
		w := value
		if len(command) > 0 {
			w = act.JoinWords(command, sh.Src)
			if slices.Contains(sh.Env.Groups["shells"], scan.Base(command[0].Text)) {
				words := slices.Clone(command) // what was meant; joined, the quotes are lost
				for i := range words {
					words[i].Text, words[i].At = strings.ReplaceAll(words[i].Text, "{}", value.Text), -1
				}
				if len(command) < 3 {
					words = append(words, value)
				}
				argv(sh, words, &facts.Wrapper{}, v)
			}
			if strings.Contains(w.Text, "{}") {
				w.Text = strings.ReplaceAll(w.Text, "{}", value.Text)
			} else {
				w.Text += " " + value.Text
			}
			w.At, w.Taint, w.Var = -1, w.Taint|value.Taint, value.Var
		}
		out = sh.Interpret("shell", w, v, v.Exe, nil)
	}
	return out, true
}

// appendInput gives xargs' command its operands: the known words of the input,
// or one unknown word.
func appendInput(argv []act.Word, v *act.Invocation) []act.Word {
	var more []act.Word
	if v.Stdin.Known {
		for _, f := range strings.Fields(v.Stdin.Word.Text) {
			if len(more) < scan.MaxLoop {
				more = append(more, act.Word{Text: f, Span: v.Stdin.Word.Span, At: -1, Glob: strings.ContainsAny(f, "*?["), Taint: v.Stdin.Taint})
			}
		}
	} else {
		more = []act.Word{{Text: string(scan.Hole), At: -1, Span: v.Argv[0].Span, Var: "input", Lone: true, Taint: v.Stdin.Taint | act.FromStdin}}
	}
	mark, ok := v.Value("-I", "-i", "--replace", "-J")
	if !ok && (v.Has("--replace") || v.Has("-i")) {
		mark, ok = act.Word{Text: "{}"}, true
	}
	if ok && mark.Text == "" {
		mark.Text = "{}"
	}
	if ok && len(more) > 0 && v.Stdin.Known && !v.Stdin.Word.Glob {
		if line, _, _ := strings.Cut(strings.Trim(v.Stdin.Word.Text, "\n"), "\n"); line != "" {
			more[0].Text = line // the whole line takes the place of the mark
		}
	}
	if ok && len(more) > 0 {
		for i := range argv {
			if strings.Contains(argv[i].Text, mark.Text) {
				argv[i].Text, argv[i].At = strings.ReplaceAll(argv[i].Text, mark.Text, more[0].Text), -1
				argv[i].Glob, argv[i].Taint, argv[i].Var = argv[i].Glob || more[0].Glob, argv[i].Taint|more[0].Taint, more[0].Var
			}
		}
		return argv
	}
	return append(argv, more...)
}

// afterWord runs the commands that begin after -exec, "--" and their kind.
func afterWord(sh *interp.Process, inner *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	var out act.Flow
	done := false
	for i := 1; i < len(v.Argv); i++ {
		if name, _, ok := strings.Cut(v.Argv[i].Text, "="); ok && w.Lang != "" && slices.Contains(w.After, name+"=") { // --execute=text
			out, done = inner.Interpret(w.Lang, v.Argv[i].Tail(len(name)+1), v, v.Exe, nil), true
			continue
		}
		if !slices.Contains(w.After, v.Argv[i].Text) {
			continue
		}
		end := i + 1
		for end < len(v.Argv) && !slices.Contains(w.Until, v.Argv[end].Text) {
			end++
		}
		if end == i+1 {
			continue
		}
		words := slices.Clone(v.Argv[i+1 : end])
		if sh.Env.In("file-finders", v.Exe) {
			hit := foundBy(v)
			for j := range words {
				if strings.Contains(words[j].Text, "{}") {
					words[j].Text, words[j].At = strings.ReplaceAll(words[j].Text, "{}", hit.Text), -1
					words[j].Glob = words[j].Glob || hit.Glob
				}
			}
		}
		if w.Lang != "" {
			out, done = inner.Interpret(w.Lang, act.JoinWords(words, sh.Src), v, v.Exe, nil), true
		} else {
			out, done = argv(inner, words, w, v), true
		}
		i = end
	}
	return out, done
}

// foundBy is a pattern for the files that find would find.
func foundBy(v *act.Invocation) act.Word {
	root := act.Word{Text: ".", At: -1}
	if len(v.Argv) > 1 && !strings.HasPrefix(v.Argv[1].Text, "-") {
		root = v.Argv[1]
	}
	name := "*"
	for i := 1; i+1 < len(v.Argv); i++ {
		if before := v.Argv[i-1].Text; before == "!" || before == "-not" || i+3 < len(v.Argv) && v.Argv[i+2].Text == "-prune" && v.Argv[i+3].Text == "-o" {
			continue // all but those
		}
		switch v.Argv[i].Text {
		case "-name", "-iname":
			name = v.Argv[i+1].Text
		case "-path", "-ipath", "-wholename":
			if t := strings.Trim(v.Argv[i+1].Text, "*/"); t != "" {
				name = t
			}
		}
	}
	root.Text, root.At, root.Glob = strings.TrimSuffix(root.Text, "/")+"/"+name, -1, strings.ContainsAny(name, "*?[")
	return root
}

// A program that no table knows may carry a command, as sudo and xargs do: a
// wrapper of somebody's own, a task runner, a process supervisor. Nobody can list
// them all, so the words behind such a program that are a command by themselves,
// and texts it is told to run, are judged as if they ran. What is harmless by
// itself stays harmless; what a program only says is a mention (group "speakers").

// suspect runs what a program that no wrapper entry covers seems to carry.
func suspect(sh *interp.Process, v *act.Invocation) {
	if len(v.Argv) < 2 || slices.Contains(sh.Env.Groups["speakers"], v.Exe) || v.Dry || sh.Suspects >= scan.MaxSuspects || !sh.Env.Budget.Spend(len(v.Argv)/2) {
		return
	}
	inner := *sh
	inner.Suspects++
	if i := carriedFrom(sh.Env, v); i > 0 {
		argv(&inner, v.Argv[i:], &facts.Wrapper{}, v)
	}
	suspectOptions(&inner, v)
}

// carriedFrom is the word at which a carried command begins, or 0.
func carriedFrom(e *interp.Env, v *act.Invocation) int {
	stranger := e.Stranger(v.Exe)
	begun := false // a word such as "exec" announced it
	for i := 1; i < len(v.Argv); i++ {
		t := v.Argv[i].Text
		switch {
		case !begun && i == 1 && slices.Contains(e.Groups["prose-words"], strings.TrimSuffix(t, ":")):
			return 0
		case t == "--" || slices.Contains(e.Groups["run-words"], t):
			begun = true
		case strings.HasPrefix(t, "-") || strings.Contains(t, "="):
			if slices.Contains(e.Groups["text-options"], t) {
				i++ // its value is prose
			}
		case (begun || stranger && !slices.Contains(e.Groups["subcommand-words"], scan.Base(t))) && e.Acts(t) && i+1 < len(v.Argv):
			return i
		case begun && !stranger && v.Argv[i-1].Text == "--":
			return 0 // a file behind "--"
		}
	}
	return 0
}

// suspectOptions runs the texts that options hand over to be run: by their name
// ("--exec", "--pre-command", "--pager") with any program, -c, -e and -x with one
// that no table knows, and the one text behind "run".
func suspectOptions(sh *interp.Process, v *act.Invocation) {
	e := sh.Env
	stranger := e.Stranger(v.Exe)
	behind := afterDashes(v)
	prose := 0 // words that say that a text is prose
	for i := 1; i < len(v.Argv); i++ {
		w := v.Argv[i]
		if slices.Contains(e.Groups["prose-words"], strings.TrimSuffix(w.Text, ":")) || slices.Contains(e.Groups["text-options"], w.Text) {
			prose++
		}
		name, _, given := strings.Cut(w.Text, "=")
		switch {
		case strings.HasPrefix(name, "--") && commandOption(name):
		case stranger && (w.Text == "-c" || w.Text == "-e" || w.Text == "-x"):
		case slices.Contains(e.Groups["run-words"], w.Text):
		case stranger && prose == 0 && w.Text[:min(1, len(w.Text))] != "-" && e.ActsText(w.Text): // one word that is a command line
			sh.Interpret("shell", w, v, v.Exe, nil)
			continue
		default:
			continue
		}
		if given {
			w = w.Tail(len(name) + 1)
		} else if i+1 < len(v.Argv) && strings.HasPrefix(v.Argv[i+1].Text, "-") {
			continue
		} else if i+1 < len(v.Argv) {
			i++
			w = v.Argv[i]
		}
		if len(behind) > 0 && e.Acts(w.Text) && w.Known() {
			argv(sh, append([]act.Word{w}, behind...), &facts.Wrapper{}, v) // --exec /bin/rm -- -rf x
		} else if e.ActsText(w.Text) {
			sh.Interpret("shell", w, v, v.Exe+" "+name, nil)
		}
	}
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

// afterDashes are the words behind "--".
func afterDashes(v *act.Invocation) []act.Word {
	for i := range v.Argv { // by index: a word is large
		if v.Argv[i].Text == "--" {
			return v.Argv[i+1:]
		}
	}
	return nil
}
