package posix

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// parallel judges the command of GNU parallel once for each value.
func parallel(sh *interp.Process, rest []act.Word, v *act.Invocation) (out act.Flow) {
	if len(rest) > 0 && (v.Has("--pipe") || v.Has("--pipepart")) { // each process reads a part of the input
		return argv(sh, rest, &facts.Wrapper{}, v)
	}
	command, values := rest, []act.Word(nil)
	if i := slices.IndexFunc(rest, func(w act.Word) bool { return strings.HasPrefix(w.Text, ":::") }); i >= 0 {
		command, values = rest[:i], rest[i+1:]
	} else {
		values = inputWords(v, strings.Split(v.Stdin.Word.Text, "\n"))
	}
	for _, value := range values[:min(len(values), scan.MaxLoop)] {
		w := value
		if len(command) > 0 {
			w = parallelText(sh, command, value, v)
		}
		out = sh.Interpret("shell", w, v, v.Exe, nil)
	}
	return out
}

// parallelText returns the text that parallel builds from its command and a value. If the command
// is a shell with a text, parallelText also judges it with its words unchanged, because joining
// them loses the quotes.
func parallelText(sh *interp.Process, command []act.Word, value act.Word, v *act.Invocation) act.Word {
	if sh.Env.In("shells", scan.Base(command[0].Text)) {
		words := slices.Clone(command)
		for i := range words {
			words[i].Text, words[i].At = strings.ReplaceAll(words[i].Text, "{}", value.Text), -1
		}
		if len(command) < 3 {
			words = append(words, value)
		}
		argv(sh, words, &facts.Wrapper{}, v)
	}
	w := act.JoinWords(command, sh.Src)
	if strings.Contains(w.Text, "{}") {
		w.Text = strings.ReplaceAll(w.Text, "{}", value.Text)
	} else {
		w.Text += " " + value.Text
	}
	w.At, w.Taint, w.Var = -1, w.Taint|value.Taint, value.Var
	return w
}

// inputWords returns the known parts of the input as words, or one unknown word.
func inputWords(v *act.Invocation, parts []string) []act.Word {
	if !v.Stdin.Known {
		return []act.Word{{Text: string(scan.Hole), At: -1, Span: v.Argv[0].Span, Var: "input", Lone: true, Taint: v.Stdin.Taint | act.FromStdin}}
	}
	var out []act.Word
	for _, t := range parts {
		if t = strings.TrimSpace(t); t != "" && len(out) < scan.MaxLoop {
			out = append(out, act.Word{Text: t, Span: v.Stdin.Word.Span, At: -1, Glob: strings.ContainsAny(t, "*?["), Taint: v.Stdin.Taint})
		}
	}
	return out
}

// appendInput adds the operands that xargs reads to its command: the known words of the input, or
// one unknown word. With -I the input replaces the mark, such as {}.
func appendInput(argv []act.Word, v *act.Invocation) []act.Word {
	more := inputWords(v, strings.Fields(v.Stdin.Word.Text))
	mark, ok := inputMark(v)
	if !ok || len(more) == 0 {
		return append(argv, more...)
	}
	if line, _, _ := strings.Cut(strings.Trim(v.Stdin.Word.Text, "\n"), "\n"); v.Stdin.Known && !v.Stdin.Word.Glob && line != "" {
		more[0].Text = line // the whole line replaces the mark
	}
	for i := range argv {
		if w := &argv[i]; strings.Contains(w.Text, mark) {
			w.Text, w.At = strings.ReplaceAll(w.Text, mark, more[0].Text), -1
			w.Glob, w.Taint, w.Var = w.Glob || more[0].Glob, w.Taint|more[0].Taint, more[0].Var
		}
	}
	return argv
}

// inputMark returns the text, such as {}, that xargs replaces by its input, and reports whether an
// option asks for this.
func inputMark(v *act.Invocation) (string, bool) {
	mark, ok := v.Value("-I", "-i", "--replace", "-J")
	return cmp.Or(mark.Text, "{}"), ok || v.Has("--replace") || v.Has("-i")
}

// afterWord judges the commands that begin after a word such as -exec or "--".
func afterWord(sh *interp.Process, inner *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	var out act.Flow
	done := false
	for i := 1; i < len(v.Argv); i++ {
		if name, _, ok := strings.Cut(v.Argv[i].Text, "="); ok && w.Lang != "" && slices.Contains(w.After, name+"=") { // for example --execute=text
			out, done = inner.Interpret(w.Lang, v.Argv[i].Tail(len(name)+1), v, v.Exe, nil), true
			continue
		}
		words := v.Argv[i+1:]
		if n := slices.IndexFunc(words, func(a act.Word) bool { return slices.Contains(w.Until, a.Text) }); n >= 0 {
			words = words[:n]
		}
		if !slices.Contains(w.After, v.Argv[i].Text) || len(words) == 0 {
			continue
		}
		i += 1 + len(words)
		if words = found(sh.Env, slices.Clone(words), v); w.Lang != "" {
			out, done = inner.Interpret(w.Lang, act.JoinWords(words, sh.Src), v, v.Exe, nil), true
		} else {
			out, done = argv(inner, words, w, v), true
		}
	}
	return out, done
}

// found replaces {} in the command of find by a pattern for the files that find finds.
func found(e *interp.Env, words []act.Word, v *act.Invocation) []act.Word {
	if !e.In("file-finders", v.Exe) {
		return words
	}
	hit := foundBy(v)
	for i := range words {
		if w := &words[i]; strings.Contains(w.Text, "{}") {
			w.Text, w.At, w.Glob = strings.ReplaceAll(w.Text, "{}", hit.Text), -1, w.Glob || hit.Glob
		}
	}
	return words
}

// foundBy returns a pattern for the files that find finds.
func foundBy(v *act.Invocation) act.Word {
	root := act.Word{Text: ".", At: -1}
	if len(v.Argv) > 1 && !strings.HasPrefix(v.Argv[1].Text, "-") {
		root = v.Argv[1]
	}
	name := "*"
	for i := 1; i+1 < len(v.Argv); i++ {
		if before := v.Argv[i-1].Text; before == "!" || before == "-not" || i+3 < len(v.Argv) && v.Argv[i+2].Text == "-prune" && v.Argv[i+3].Text == "-o" {
			continue // the test excludes these files
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

// A program that is not in the tables may run another command, as sudo and xargs do: a private
// wrapper, a task runner, a process supervisor. So the words after such a program that form a
// command, and the texts in options that name a command, are judged as if they ran. A harmless
// command stays harmless. Programs that only print their words are excluded (group "speakers").

// suspect judges the command that a program probably runs, although no table says so.
func suspect(sh *interp.Process, v *act.Invocation) {
	if len(v.Argv) < 2 || sh.Env.In("speakers", v.Exe) || v.Dry || sh.Suspects >= scan.MaxSuspects || !sh.Env.Budget.Spend(len(v.Argv)/2) {
		return
	}
	inner := *sh
	inner.Suspects++
	if i := carriedFrom(sh.Env, v); i > 0 {
		argv(&inner, v.Argv[i:], &facts.Wrapper{}, v)
	}
	suspectOptions(&inner, v)
}

// carriedFrom returns the index of the word at which such a command probably begins, or 0.
func carriedFrom(e *interp.Env, v *act.Invocation) int {
	if e.In("prose-words", strings.TrimSuffix(v.Word(1).Text, ":")) {
		return 0
	}
	stranger := e.Stranger(v.Exe)
	begun := false // a word such as "exec" or "--" came before
	for i := 1; i+1 < len(v.Argv); i++ {
		switch t := v.Argv[i].Text; {
		case t == "--" || e.In("run-words", t):
			begun = true
		case e.In("text-options", t):
			i++ // its value is prose
		case strings.HasPrefix(t, "-"), strings.Contains(t, "="):
		case !begun && (!stranger || e.In("subcommand-words", scan.Base(t))):
		case e.Acts(t):
			return i
		case !stranger && v.Argv[i-1].Text == "--":
			return 0 // the word after "--" is a file
		}
	}
	return 0
}

// suspectOptions judges the texts of options that probably run them. For every program these are
// options with a name such as "--exec", "--pre-command" or "--pager"; for an unknown program also
// -c, -e and -x, and single words that are a command line.
func suspectOptions(sh *interp.Process, v *act.Invocation) {
	stranger := sh.Env.Stranger(v.Exe)
	prose := false // a word showed that the texts are prose
	for i := 1; i < len(v.Argv); i++ {
		w := v.Argv[i]
		prose = prose || sh.Env.In("prose-words", strings.TrimSuffix(w.Text, ":")) || sh.Env.In("text-options", w.Text)
		switch name, _, given := strings.Cut(w.Text, "="); {
		case handsOver(sh.Env, name, w.Text, stranger):
			if given {
				suspectText(sh, v, name, w.Tail(len(name)+1))
			} else if next := v.Word(i + 1); !strings.HasPrefix(next.Text, "-") {
				i++
				suspectText(sh, v, name, next)
			}
		case stranger && !prose && !strings.HasPrefix(w.Text, "-") && sh.Env.ActsText(w.Text): // one word that is a command line
			sh.Interpret("shell", w, v, v.Exe, nil)
		}
	}
}

// handsOver reports whether the word is an option whose value, or next word, is probably run.
func handsOver(e *interp.Env, name, word string, stranger bool) bool {
	return commandOption(name) || e.In("run-words", word) || stranger && (word == "-c" || word == "-e" || word == "-x")
}

// suspectText judges the value of an option that the program probably runs: a command line, or a
// program that gets the words after "--": --exec /bin/rm -- -rf x.
func suspectText(sh *interp.Process, v *act.Invocation, name string, w act.Word) {
	if behind := afterDashes(v); len(behind) > 0 && sh.Env.Acts(w.Text) && w.Known() {
		argv(sh, append([]act.Word{w}, behind...), &facts.Wrapper{}, v)
	} else if sh.Env.ActsText(w.Text) {
		sh.Interpret("shell", w, v, v.Exe+" "+name, nil)
	}
}

// commandWords lists parts of option names that show that the value is run.
var commandWords = scan.SetOf(`exec execute command commands cmd shell hook script scripts pager editor program filter run rsh viewer askpass wrap wrapper
 locker callback handler trigger launcher runner preexec postexec prehook posthook notifier opener`)

// commandOption reports whether a part of the option's name is in commandWords.
func commandOption(name string) bool {
	if !strings.HasPrefix(name, "--") {
		return false
	}
	for part := range strings.SplitSeq(name[2:], "-") {
		if commandWords.Has(part) {
			return true
		}
	}
	return false
}

// afterDashes returns the words after "--".
func afterDashes(v *act.Invocation) []act.Word {
	for i := range v.Argv { // the loop uses an index, because copying a Word is expensive
		if v.Argv[i].Text == "--" {
			return v.Argv[i+1:]
		}
	}
	return nil
}
