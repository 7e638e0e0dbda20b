package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// Places where a shell runs text that looks like data: the subscript of a name, a
// value expanded once more, the tables of aliases, the callbacks of builtins, and
// names of other shells for the same things.

// subscripts runs the substitutions in the subscript of a name that a builtin is
// given in quotes: printf -v 'a[$(x)]'.
func (sh *shell) subscripts(v *invocation) {
	switch v.exe {
	case "test", "[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile", "readarray", "wait", "getopts", "let":
	default:
		return
	}
	for _, w := range v.argv[1:] {
		name, subscript, ok := strings.Cut(w.Text, "[")
		if ok && (syntaxName(name) || v.exe == "let") && (strings.HasPrefix(subscript, "$(") || strings.HasPrefix(subscript, "`")) {
			sh.expandAgain(w, v, v.exe)
		}
	}
}

// expandAgain runs the substitutions that stand in a value: ${p@P}, ${(e)p}, a
// subscript.
func (sh *shell) expandAgain(w Word, v *invocation, via string) flow {
	if strings.IndexByte(w.Text, '`') < 0 && !strings.Contains(w.Text, "$(") && !strings.Contains(w.Text, "${") {
		return flow{word: w, known: w.known()}
	}
	w.Text, w.At = "echo \""+strings.ReplaceAll(w.Text, `"`, `\"`)+"\"", -1
	return sh.interpret("shell", w, v, via, nil)
}

// inArithmetic: the value of a variable is arithmetic itself, with subscripts that
// are expanded.
func (sh *shell) inArithmetic(name string, n syntax.Node) {
	if w := sh.vars[name]; len(w) == 1 && sh.running < scan.MaxDepth {
		v := &invocation{src: sh.src, from: int(n.Pos().Offset()), to: int(n.End().Offset())}
		inner := *sh
		inner.running++
		inner.expandAgain(w[0], v, "arithmetic")
	}
}

// transformed is ${p@P} and its kind: a value that is expanded, unquoted or quoted
// once more.
func (sh *shell) transformed(list []Word, op string, p *syntax.ParamExp) []Word {
	v := &invocation{src: sh.src, from: int(p.Pos().Offset()), to: int(p.End().Offset())}
	out := make([]Word, len(list))
	for i, w := range list {
		out[i] = w
		switch op {
		case "P":
			if f := sh.expandAgain(w, v, "@P"); f.known {
				out[i].Text = strings.TrimSuffix(f.word.Text, "\n")
			} else {
				out[i].Text = string(scan.Hole)
			}
		case "E":
			out[i].Text = scan.Unescape(w.Text)
		case "Q":
			out[i].Text = scan.Quote(w.Text)
		case "U":
			out[i].Text = strings.ToUpper(w.Text)
		case "L":
			out[i].Text = strings.ToLower(w.Text)
		case "u":
			out[i].Text = trimOrCase(w.Text, "", syntax.UpperFirst)
		case "A", "a", "K", "k":
			out[i].Text = string(scan.Hole)
		}
		if out[i].Text != w.Text {
			out[i].At = -1
		}
	}
	return out
}

// flagged is zsh's ${(flags)name}.
func (sh *shell) flagged(list []Word, p *syntax.ParamExp) []Word {
	flags := p.Flags.Value
	if strings.ContainsRune(flags, 'P') && len(list) == 1 && list[0].known() {
		list, _ = sh.lookup(list[0].Text, p)
	}
	if strings.ContainsRune(flags, 'e') {
		list = sh.transformed(list, "P", p)
	}
	return list
}

// commandTable tells whether an array is a table of commands by their names, as
// BASH_ALIASES is, and then keeps the new command.
func (sh *shell) commandTable(array, key string, w Word) bool {
	switch array {
	case "BASH_ALIASES", "aliases", "galiases", "functions", "BASH_CMDS", "commands":
	case "saliases":
		key = "*." + key
	default:
		return false
	}
	if sh.aliases == nil {
		sh.aliases = map[string]Word{}
	}
	sh.aliases[key] = w
	return true
}

// aliasOf is the text that an alias puts in the place of a word; zsh has some for
// the ends of file names.
func (sh *shell) aliasOf(first Word) (Word, bool) {
	if len(sh.aliases) == 0 {
		return Word{}, false
	}
	if a, ok := sh.aliases[first.Text]; ok {
		return a, true
	}
	if i := strings.LastIndexByte(first.Text, '.'); i > 0 {
		if a, ok := sh.aliases["*"+first.Text[i:]]; ok {
			a.Text, a.At = a.Text+" "+scan.Quote(first.Text), -1
			return a, true
		}
	}
	return Word{}, false
}

// callbacks runs what completion, key bindings and the line reader call.
func (sh *shell) callbacks(v *invocation) {
	switch v.exe {
	case "compgen", "complete":
		if w, ok := wordAfter(v, "-C"); ok {
			sh.interpretHere(w, v, v.exe+" -C")
		}
		if w, ok := wordAfter(v, "-W"); ok {
			sh.expandAgain(w, v, v.exe+" -W")
		}
	case "bind":
		if w, ok := wordAfter(v, "-x"); ok {
			if _, text, ok := strings.Cut(w.Text, ":"); ok {
				w.Text, w.At = strings.Trim(text, ` "`), -1
				sh.interpretHere(w, v, "bind -x")
			}
		}
	case "enable":
		if w, ok := wordAfter(v, "-f"); ok {
			sh.e.raise("rce.library-preload", v.src, v.from, v.to, printable(w.Text))
		}
	case "mapfile", "readarray":
		sh.callsForLines(v)
	}
}

// callsForLines: mapfile calls the text of -C with the number and the text of a line
// behind it.
func (sh *shell) callsForLines(v *invocation) {
	call, ok := v.value("-C")
	for i := range v.opts {
		ok = ok && !strings.HasPrefix(v.opts[i].name, "--") // none is long
	}
	if !ok {
		return
	}
	lines := []string{string(scan.Hole)}
	if v.stdin.known {
		lines = strings.Split(strings.TrimSpace(v.stdin.word.Text), "\n")
	}
	for _, line := range lines[:min(len(lines), scan.MaxLoop)] {
		w := call
		w.Text, w.At = call.Text+" 0 "+scan.Quote(line), -1
		sh.interpretHere(w, v, v.exe+" -C")
	}
}

// twin gives programs that stand under another name for what they are: zsh's zf_rm,
// grm and gshred of people whose own rm is another.
func (e *engine) twin(name string) string {
	for _, prefix := range [...]string{"zf_", "g", "uu_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && coreutils[rest] && !e.exe[name] && e.wrappers[name] == nil {
			return rest
		}
	}
	return name
}

var coreutils = scan.SetOf("rm rmdir mv cp ln dd shred truncate chmod chown chgrp install tee cat tac base64 base32 split sort uniq date timeout env nohup stat tr cut head tail sed awk find xargs tar unlink mknod od nl paste join comm nice stdbuf chroot kill ls readlink realpath mktemp sync")

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
