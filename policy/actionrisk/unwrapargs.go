package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// parallel runs GNU parallel's command once for each value.
func (sh *shell) parallel(rest []Word, v *invocation) (flow, bool) {
	if len(rest) > 0 && (v.has("--pipe") || v.has("--pipepart")) { // each reads a part of the input
		return sh.argv(rest, &wrapper{}, v), true
	}
	command, values := rest, []Word(nil)
	if i := slices.IndexFunc(rest, func(w Word) bool { return strings.HasPrefix(w.Text, ":::") }); i >= 0 {
		command, values = rest[:i], rest[i+1:]
	} else if v.stdin.known {
		for line := range strings.Lines(v.stdin.word.Text) {
			if line = strings.TrimSpace(line); line != "" && len(values) < scan.MaxLoop {
				values = append(values, Word{Text: line, At: -1, Span: v.stdin.word.Span, Taint: v.stdin.taint})
			}
		}
	} else {
		values = []Word{{Text: string(scan.Hole), At: -1, Span: v.argv[0].Span, Var: "input", Lone: true, Taint: v.stdin.taint | fromStdin}}
	}
	var out flow
	for _, value := range values[:min(len(values), scan.MaxLoop)] {
		w := value
		if len(command) > 0 {
			w = joinWords(command, sh.src)
			if slices.Contains(sh.e.groups["shells"], scan.Base(command[0].Text)) {
				words := slices.Clone(command) // what was meant; joined, the quotes are lost
				for i := range words {
					words[i].Text, words[i].At = strings.ReplaceAll(words[i].Text, "{}", value.Text), -1
				}
				if len(command) < 3 {
					words = append(words, value)
				}
				sh.argv(words, &wrapper{}, v)
			}
			if strings.Contains(w.Text, "{}") {
				w.Text = strings.ReplaceAll(w.Text, "{}", value.Text)
			} else {
				w.Text += " " + value.Text
			}
			w.At, w.Taint, w.Var = -1, w.Taint|value.Taint, value.Var
		}
		out = sh.interpret("shell", w, v, v.exe, nil)
	}
	return out, true
}

// appendInput gives xargs' command its operands: the known words of the input,
// or one unknown word.
func appendInput(argv []Word, v *invocation) []Word {
	var more []Word
	if v.stdin.known {
		for _, f := range strings.Fields(v.stdin.word.Text) {
			if len(more) < scan.MaxLoop {
				more = append(more, Word{Text: f, Span: v.stdin.word.Span, At: -1, Glob: strings.ContainsAny(f, "*?["), Taint: v.stdin.taint})
			}
		}
	} else {
		more = []Word{{Text: string(scan.Hole), At: -1, Span: v.argv[0].Span, Var: "input", Lone: true, Taint: v.stdin.taint | fromStdin}}
	}
	mark, ok := v.value("-I", "-i", "--replace", "-J")
	if !ok && (v.has("--replace") || v.has("-i")) {
		mark, ok = Word{Text: "{}"}, true
	}
	if ok && mark.Text == "" {
		mark.Text = "{}"
	}
	if ok && len(more) > 0 && v.stdin.known && !v.stdin.word.Glob {
		if line, _, _ := strings.Cut(strings.Trim(v.stdin.word.Text, "\n"), "\n"); line != "" {
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
func (sh *shell) afterWord(inner *shell, w *wrapper, v *invocation) (flow, bool) {
	var out flow
	done := false
	for i := 1; i < len(v.argv); i++ {
		if name, _, ok := strings.Cut(v.argv[i].Text, "="); ok && w.Lang != "" && slices.Contains(w.After, name+"=") { // --execute=text
			out, done = inner.interpret(w.Lang, v.argv[i].tail(len(name)+1), v, v.exe, nil), true
			continue
		}
		if !slices.Contains(w.After, v.argv[i].Text) {
			continue
		}
		end := i + 1
		for end < len(v.argv) && !slices.Contains(w.Until, v.argv[end].Text) {
			end++
		}
		if end == i+1 {
			continue
		}
		words := slices.Clone(v.argv[i+1 : end])
		if v.exe == "find" || v.exe == "fd" || v.exe == "fdfind" {
			hit := foundBy(v)
			for j := range words {
				if strings.Contains(words[j].Text, "{}") {
					words[j].Text, words[j].At = strings.ReplaceAll(words[j].Text, "{}", hit.Text), -1
					words[j].Glob = words[j].Glob || hit.Glob
				}
			}
		}
		if w.Lang != "" {
			out, done = inner.interpret(w.Lang, joinWords(words, sh.src), v, v.exe, nil), true
		} else {
			out, done = inner.argv(words, w, v), true
		}
		i = end
	}
	return out, done
}

// foundBy is a pattern for the files that find would find.
func foundBy(v *invocation) Word {
	root := Word{Text: ".", At: -1}
	if len(v.argv) > 1 && !strings.HasPrefix(v.argv[1].Text, "-") {
		root = v.argv[1]
	}
	name := "*"
	for i := 1; i+1 < len(v.argv); i++ {
		if before := v.argv[i-1].Text; before == "!" || before == "-not" || i+3 < len(v.argv) && v.argv[i+2].Text == "-prune" && v.argv[i+3].Text == "-o" {
			continue // all but those
		}
		switch v.argv[i].Text {
		case "-name", "-iname":
			name = v.argv[i+1].Text
		case "-path", "-ipath", "-wholename":
			if t := strings.Trim(v.argv[i+1].Text, "*/"); t != "" {
				name = t
			}
		}
	}
	root.Text, root.At, root.Glob = strings.TrimSuffix(root.Text, "/")+"/"+name, -1, strings.ContainsAny(name, "*?[")
	return root
}

// joinWords is words as one text, verbatim if they stand so in the command.
func joinWords(words []Word, src *source) Word {
	out := words[0]
	if len(words) == 1 {
		return out
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.Text
		out.Taint |= w.Taint
		out.Span.End = max(out.Span.End, w.Span.End)
	}
	out.Text, out.At, out.Lone = strings.Join(parts, " "), -1, false
	if first := words[0].At; first >= 0 && src.at >= 0 && first >= src.at {
		if from := first - src.at; from+len(out.Text) <= len(src.text) && src.text[from:from+len(out.Text)] == out.Text {
			out.At = first
		}
	}
	return out
}
