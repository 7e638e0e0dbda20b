package posix

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// This file judges text that a shell runs although it looks like data: subscripts of names, values
// that are expanded again, tables of aliases, callbacks of builtins. It also handles other names
// of programs.

// subscripts judges the substitutions in the subscript of a quoted name that is an argument of a
// builtin: printf -v 'a[$(x)]'.
func subscripts(sh *interp.Process, v *act.Invocation) {
	switch v.Exe {
	case "test", "[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile", "readarray", "wait", "getopts", "let":
	default:
		return
	}
	for _, w := range v.Argv[1:] {
		name, subscript, ok := strings.Cut(w.Text, "[")
		if ok && (act.SyntaxName(name) || v.Exe == "let") && (strings.HasPrefix(subscript, "$(") || strings.HasPrefix(subscript, "`")) {
			expandAgain(sh, w, v, v.Exe)
		}
	}
}

// expandAgain judges the substitutions in a value that the shell expands again: ${p@P}, ${(e)p}, a
// subscript. It returns the expanded text.
func expandAgain(sh *interp.Process, w act.Word, v *act.Invocation, via string) act.Flow {
	if strings.IndexByte(w.Text, '`') < 0 && !strings.Contains(w.Text, "$(") && !strings.Contains(w.Text, "${") {
		return act.Flow{Word: w, Known: w.Known()}
	}
	w.Text, w.At = "echo \""+strings.ReplaceAll(w.Text, `"`, `\"`)+"\"", -1
	return sh.Interpret("shell", w, v, via, nil)
}

// inArithmetic judges the value of a variable that is used as an arithmetic expression, whose
// subscripts are expanded.
func inArithmetic(sh *interp.Process, name string, n syntax.Node) {
	if w := sh.Vars[name]; len(w) == 1 && sh.Running < scan.MaxDepth {
		v := &act.Invocation{Src: sh.Src, From: int(n.Pos().Offset()), To: int(n.End().Offset())}
		inner := *sh
		inner.Running++
		expandAgain(&inner, w[0], v, "arithmetic")
	}
}

// textOps maps the operators of ${p@U} and similar expansions that only need the text to their
// functions.
var textOps = map[string]func(string) string{"E": scan.Unescape, "Q": scan.Quote, "U": strings.ToUpper, "L": strings.ToLower,
	"u": func(t string) string { return cased(t, syntax.UpperFirst) }}

// transformed evaluates ${p@P} and similar expansions, which expand, unquote or quote a value
// again.
func transformed(sh *interp.Process, list []act.Word, op string, p *syntax.ParamExp) []act.Word {
	v := &act.Invocation{Src: sh.Src, From: int(p.Pos().Offset()), To: int(p.End().Offset())}
	out := make([]act.Word, len(list))
	for i, w := range list {
		out[i] = w
		if f := textOps[op]; f != nil {
			out[i].Text = f(w.Text)
		} else if op == "P" {
			if f := expandAgain(sh, w, v, "@P"); f.Known {
				out[i].Text = strings.TrimSuffix(f.Word.Text, "\n")
			} else {
				out[i].Text = string(scan.Hole)
			}
		}
		if out[i].Text != w.Text {
			out[i].At = -1
		}
	}
	return out
}

// flagged evaluates ${(flags)name} of zsh.
func flagged(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	flags := p.Flags.Value
	if strings.ContainsRune(flags, 'P') && len(list) == 1 && list[0].Known() {
		list, _ = lookup(sh, list[0].Text, p)
	}
	if strings.ContainsRune(flags, 'e') {
		list = transformed(sh, list, "P", p)
	}
	return list
}

// commandTable reports whether an array maps names to commands, like BASH_ALIASES, and if so
// records the new command.
func commandTable(sh *interp.Process, array, key string, w act.Word) bool {
	switch array {
	case "BASH_ALIASES", "aliases", "galiases", "functions", "BASH_CMDS", "commands":
	case "saliases":
		key = "*." + key
	default:
		return false
	}
	setAlias(sh, key, w)
	return true
}

// aliasOf returns the text of the alias for a word, and false if there is none. zsh also has
// aliases for file extensions.
func aliasOf(sh *interp.Process, first act.Word) (act.Word, bool) {
	if len(sh.Aliases) == 0 {
		return act.Word{}, false
	}
	if a, ok := sh.Aliases[first.Text]; ok {
		return a, true
	}
	if i := strings.LastIndexByte(first.Text, '.'); i > 0 {
		if a, ok := sh.Aliases["*"+first.Text[i:]]; ok {
			a.Text, a.At = a.Text+" "+scan.Quote(first.Text), -1
			return a, true
		}
	}
	return act.Word{}, false
}

// callbacks judges commands that completion, key bindings and line readers call.
func callbacks(sh *interp.Process, v *act.Invocation) {
	switch v.Exe {
	case "compgen", "complete":
		if w, ok := act.WordAfter(v, "-C"); ok {
			interpretHere(sh, w, v, v.Exe+" -C")
		}
		if w, ok := act.WordAfter(v, "-W"); ok {
			expandAgain(sh, w, v, v.Exe+" -W")
		}
	case "bind":
		if w, ok := act.WordAfter(v, "-x"); ok {
			if _, text, ok := strings.Cut(w.Text, ":"); ok {
				w.Text, w.At = strings.Trim(text, ` "`), -1
				interpretHere(sh, w, v, "bind -x")
			}
		}
	case "enable":
		if w, ok := act.WordAfter(v, "-f"); ok {
			sh.Env.See(act.LoadsLibrary, v.Src, v.From, v.To, act.Printable(w.Text))
		}
	case "mapfile", "readarray":
		callsForLines(sh, v)
	}
}

// callsForLines judges the callback of mapfile -C, which gets the index and the text of each line
// as arguments.
func callsForLines(sh *interp.Process, v *act.Invocation) {
	call, ok := v.Value("-C")
	for i := range v.Opts {
		ok = ok && !strings.HasPrefix(v.Opts[i].Name, "--") // mapfile has no long options
	}
	if !ok {
		return
	}
	lines := []string{string(scan.Hole)}
	if v.Stdin.Known {
		lines = strings.Split(strings.TrimSpace(v.Stdin.Word.Text), "\n")
	}
	for _, line := range lines[:min(len(lines), scan.MaxLoop)] {
		w := call
		w.Text, w.At = call.Text+" 0 "+scan.Quote(line), -1
		interpretHere(sh, w, v, v.Exe+" -C")
	}
}

// twin returns the usual name of a program that is installed under another name: zf_rm of zsh, or
// grm and gshred of the GNU tools on other systems.
func twin(e *interp.Env, name string) string {
	for _, prefix := range [...]string{"zf_", "g", "uu_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && e.In("coreutils", rest) && !e.Program(name).Known() {
			return rest
		}
	}
	return name
}

// fromFish converts substitutions of fish to the syntax of other shells.
func fromFish(text string) string {
	var b strings.Builder
	quoted := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '(' && (i == 0 || text[i-1] != '$'):
			b.WriteByte('$')
		}
		b.WriteByte(c)
	}
	out := b.String()
	for _, word := range [...]string{"and ", "or ", "not ", "begin;", "end"} {
		out = strings.ReplaceAll(out, "; "+word, "; ")
	}
	return out
}
