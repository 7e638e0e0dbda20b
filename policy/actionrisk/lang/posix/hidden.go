package posix

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// Places where a shell runs text that looks like data: the subscript of a name, a
// value expanded once more, the tables of aliases, the callbacks of builtins, and
// names of other shells for the same things.

// subscripts runs the substitutions in the subscript of a name that a builtin is
// given in quotes: printf -v 'a[$(x)]'.
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

// expandAgain runs the substitutions that are in a value: ${p@P}, ${(e)p}, a
// subscript.
func expandAgain(sh *interp.Process, w act.Word, v *act.Invocation, via string) act.Flow {
	if strings.IndexByte(w.Text, '`') < 0 && !strings.Contains(w.Text, "$(") && !strings.Contains(w.Text, "${") {
		return act.Flow{Word: w, Known: w.Known()}
	}
	w.Text, w.At = "echo \""+strings.ReplaceAll(w.Text, `"`, `\"`)+"\"", -1
	return sh.Interpret("shell", w, v, via, nil)
}

// inArithmetic: the value of a variable is arithmetic itself, with subscripts that
// are expanded.
func inArithmetic(sh *interp.Process, name string, n syntax.Node) {
	if w := sh.Vars[name]; len(w) == 1 && sh.Running < scan.MaxDepth {
		v := &act.Invocation{Src: sh.Src, From: int(n.Pos().Offset()), To: int(n.End().Offset())}
		inner := *sh
		inner.Running++
		expandAgain(&inner, w[0], v, "arithmetic")
	}
}

// textOps are the operators of ${p@U} and its kind that need the text alone.
var textOps = map[string]func(string) string{"E": scan.Unescape, "Q": scan.Quote, "U": strings.ToUpper, "L": strings.ToLower,
	"u": func(t string) string { return cased(t, syntax.UpperFirst) }}

// transformed is ${p@P} and its kind: a value that is expanded, unquoted or quoted
// once more.
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

// flagged is zsh's ${(flags)name}.
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

// commandTable tells whether an array is a table of commands by their names, as
// BASH_ALIASES is, and then keeps the new command.
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

// aliasOf is the text that an alias puts in the place of a word; zsh has some for
// the ends of file names.
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

// callbacks runs what completion, key bindings and the line reader call.
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

// callsForLines: mapfile calls the text of -C with the number and the text of a line
// after it.
func callsForLines(sh *interp.Process, v *act.Invocation) {
	call, ok := v.Value("-C")
	for i := range v.Opts {
		ok = ok && !strings.HasPrefix(v.Opts[i].Name, "--") // none is long
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

// twin gives programs that are under another name for what they are: zsh's zf_rm,
// grm and gshred of people whose own rm is another.
func twin(e *interp.Env, name string) string {
	for _, prefix := range [...]string{"zf_", "g", "uu_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && e.In("coreutils", rest) && !e.Program(name).Known() {
			return rest
		}
	}
	return name
}

// fromFish writes fish's substitutions the way other shells do.
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
