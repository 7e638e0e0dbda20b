package posix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// This file judges commands that run without being written as a command: a program whose file an
// interpreter runs, an editor that changes a file without a person, packages in a list of
// requirements.

// otherReading judges the words after a wrapper a second time, for the case that an option takes
// the next word although the tables say that it does not, or the reverse. A word that names a
// known program shows where the command begins.
func otherReading(sh *interp.Process, inner *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) {
	e := sh.Env
	if len(rest) > 1 && !e.Acts(rest[0].Text) && e.Acts(rest[1].Text) && rest[1].Text[0] != '-' {
		if before := v.Word(wordAt(v, rest[0]) - 1).Text; strings.HasPrefix(before, "-") && before != "--" && !strings.Contains(before, "=") {
			argv(inner, rest[1:], w, v)
		}
	}
	if at := swallowed(e, v); at > 0 && at+1 < len(v.Argv) && v.Argv[at+1].Text != rest[0].Text {
		argv(inner, v.Argv[at:], w, v)
	}
}

// swallowed returns the index of a known program that was parsed as the value of a short option,
// or -1. Such a value is unlikely to be the name of a user, a group or a file.
func swallowed(e *interp.Env, v *act.Invocation) int {
	for i := range v.Opts {
		o := &v.Opts[i]
		if name := scan.Base(o.Value.Text); len(o.Name) == 2 && o.Given && e.In("coreutils", name) && e.Program(name).Judged && !e.In("subcommand-words", o.Value.Text) {
			return wordAt(v, o.Value)
		}
	}
	return -1
}

// wordAt returns the index of a word in a call, or -1.
func wordAt(v *act.Invocation, w act.Word) int {
	return slices.IndexFunc(v.Argv, func(a act.Word) bool { return a.Text == w.Text && a.Span == w.Span })
}

// packedProgram judges a program whose file an interpreter runs: java -jar bfg-1.14.0.jar, php
// wp-cli.phar, python3 /usr/bin/ansible.
func packedProgram(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	at := 1
	if v.Exe == "java" {
		if at = 1 + slices.IndexFunc(v.Argv, func(w act.Word) bool { return w.Text == "-jar" }); at == 0 {
			return act.Flow{}, false
		}
	} else if !sh.Env.In("interpreters", v.Exe) {
		return act.Flow{}, false
	}
	if at >= len(v.Argv) || !v.Argv[at].Known() {
		return act.Flow{}, false
	}
	name, ok := programOfFile(sh.Env.Set, v.Argv[at].Text)
	if _, own := sh.Env.Files[sh.Env.Key(sh.Cwd, v.Argv[at].Text)]; !ok || own || !sh.Env.Acts(name) {
		return act.Flow{}, false
	}
	words := slices.Clone(v.Argv[at:])
	words[0].Text, words[0].At = name, -1
	return argv(sh, words, &facts.Wrapper{}, v), true
}

// programOfFile returns the name of the program in a file that an interpreter runs, without the
// version. A script may be known by its full name: rmlint.sh.
func programOfFile(c *facts.Set, file string) (string, bool) {
	name := scan.Base(file)
	if slices.Contains(c.Groups.Get("packed-scripts"), name) {
		return name, true
	}
	stem, ok := name, strings.Contains(file, "bin/") && strings.IndexByte(name, '.') < 0
	for _, end := range c.Groups.Get("packed-ends") {
		if s, cut := strings.CutSuffix(stem, end); cut {
			stem, ok = s, true
		}
	}
	if i := strings.IndexAny(stem, "0123456789"); i > 1 && stem[i-1] == '-' {
		stem = stem[:i-1]
	}
	for _, part := range c.Groups.Get("packed-parts") {
		stem = strings.TrimSuffix(stem, part)
	}
	return stem, ok && stem != ""
}

// edits judges the editor that a program starts on a file, if the editor works without a person.
func edits(sh *interp.Process, file string, v *act.Invocation) (act.Flow, bool) {
	if file == "@operands" && len(v.Operands) > 0 {
		file = v.Operands[len(v.Operands)-1].Text
	}
	for _, name := range [...]string{"SUDO_EDITOR", "SYSTEMD_EDITOR", "VISUAL", "EDITOR"} {
		editor := sh.Variable(v, name)
		words := strings.Fields(editor.Text)
		if len(words) == 0 {
			continue
		}
		if sh.Env.In("person-editors", scan.Base(words[0])) && !strings.Contains(editor.Text, " -c") && !strings.Contains(editor.Text, " +") {
			return act.Flow{}, false
		}
		editor.Text, editor.At = editor.Text+" "+scan.Quote(file), -1
		one := *v
		one.Env = nil
		return sh.Interpret("shell", editor, &one, name, nil), true
	}
	return act.Flow{}, false
}

// listed judges a command with the words of a list of requirements as its arguments.
func listed(sh *interp.Process, command []string, words []act.Word, v *act.Invocation) {
	for _, w := range words {
		f := readOrInput(sh, v, w)
		if !f.Known || !sh.Env.Budget.Spend(1+len(f.Word.Text)/16) {
			continue
		}
		var list []act.Word
		for line := range strings.Lines(f.Word.Text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if line == "" || line[0] == '#' || len(list) >= scan.MaxLoop {
				continue
			}
			if line[0] != '-' {
				list = append(list, act.Word{Text: line, At: -1, Span: w.Span})
				continue
			}
			list = append(list, splitWords(act.Word{Text: line, Span: w.Span})...)
		}
		sh.Plain(command, list, v)
	}
}

// arithmeticValue returns the value of an arithmetic expression of numbers.
func arithmeticValue(x syntax.ArithmExpr) (int64, bool) {
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return arithmeticValue(x.X)
	case *syntax.Word:
		return shellNumber(x.Lit())
	case *syntax.BinaryArithm:
		a, okA := arithmeticValue(x.X)
		b, okB := arithmeticValue(x.Y)
		n, ok := applied(x.Op, a, b)
		return n, ok && okA && okB
	}
	return 0, false
}

// applied returns the result of one arithmetic operation, and false if it has none.
func applied(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Add:
		return a + b, true
	case syntax.Sub:
		return a - b, true
	case syntax.Mul:
		return a * b, true
	case syntax.Quo:
		return a / max(b, 1), b > 0
	case syntax.Pow:
		out := int64(1)
		for range min(max(b, 0), 63) {
			out *= a
		}
		return out, b >= 0
	}
	return 0, false
}

// shellNumber parses 255, 0xff, 0377 and 16#ff.
func shellNumber(t string) (int64, bool) {
	if radix, digits, ok := strings.Cut(t, "#"); ok {
		base, err := strconv.Atoi(radix)
		if err != nil || base < 2 || base > 36 {
			return 0, false
		}
		n, err := strconv.ParseInt(digits, base, 64)
		return n, err == nil
	}
	n, err := strconv.ParseInt(t, 0, 64)
	return n, err == nil
}

// shows judges declare -p NAME and similar commands, which print the value of a variable.
func shows(sh *interp.Process, c *syntax.DeclClause) {
	from, to := int(c.Pos().Offset()), int(c.End().Offset())
	words := []act.Word{{Text: c.Variant.Value, At: -1, Span: spanOf(sh, c)}}
	prints := false
	for _, a := range c.Args {
		switch {
		case a.Naked && a.Name != nil:
			words = append(words, act.Word{Text: a.Name.Value, At: -1, Span: spanOf(sh, c)})
		case a.Name == nil && a.Value != nil:
			w := wordText(sh, a.Value)
			prints = prints || strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "p")
			words = append(words, w)
		default:
			return
		}
	}
	if prints && sh.Env.Budget.Spend(len(words)) {
		v := &act.Invocation{Exe: c.Variant.Value, Argv: words, Src: sh.Src, Remote: sh.Remote, From: from, To: to}
		sh.Env.ReadArguments(v)
		matchCall(sh, v)
	}
}
