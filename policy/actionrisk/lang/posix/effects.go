package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// effects judges what the invocation does to its words besides what its own rules
// say. It proves nothing about the rest of the invocation.
func effects(sh *interp.Process, v *act.Invocation) {
	for _, f := range sh.Env.Program(v.Exe).Effects {
		if v.Dry || !f.Holds(v) {
			continue
		}
		words := f.Words(v)
		if len(words) == 0 && f.As[0] != "@assign" || !sh.Env.Budget.Spend(4+len(words)) {
			continue
		}
		inner := *sh
		if folder, ok := v.Value(f.In...); ok {
			inner.Enter(folder)
		}
		takeEffect(&inner, f.As, words, v)
	}
}

// fromStore: the program prints what others wrote into a store, a queue or a service.
func fromStore(e *interp.Env, v *act.Invocation) bool {
	for _, f := range e.Program(v.Exe).Effects {
		if f.As[0] == "@store" && f.Holds(v) {
			return true
		}
	}
	return false
}

// takeEffect does to the words what an effect says: to all of them, or to each.
func takeEffect(sh *interp.Process, as []string, words []act.Word, v *act.Invocation) {
	switch as[0] {
	case "@bind": // who deletes it there deletes it
		seenAlso(sh, words, words[0].Text)
	case "@mount": // a file system of its own, whose place may look like something that a build makes again
		seenAlso(sh, words, "/media/volume")
	case "@mix":
		mixes(sh, v, words)
	case "@send":
		sends(sh, v, words)
	case "@assign":
		assigned(sh, v, words)
	case "@options":
		options(sh, v, words)
	case "@listed":
		listed(sh, as[1:], words, v)
	default:
		if as[0][0] != '@' && as[0] != ">" && as[0] != ">>" {
			sh.Plain(as, words, v)
			return
		}
		for _, w := range words {
			takeEach(sh, as, w, v)
		}
	}
}

// takeEach does to one word what an effect says.
func takeEach(sh *interp.Process, as []string, w act.Word, v *act.Invocation) {
	switch as[0] {
	case "@sendat":
		if i := strings.LastIndexByte(w.Text, '@'); i >= 0 {
			sends(sh, v, []act.Word{w.Tail(i + 1)})
		}
	case "@puts":
		puts(sh, v, w)
	case "@putsfile":
		puts(sh, v, sh.Env.ReadFile(sh, w).Word)
	case "@load":
		loads(sh, v, w)
	case "@split":
		sh.Plain(as[1:], splitWords(w), v)
	case "@address":
		sh.Interpret("socat", w, v, v.Exe, nil)
	case "@fetched":
		fetched(sh, v, w)
	case "@option":
		sh.Plain([]string{v.Exe}, settingsAsOptions(w), v)
	case "@config":
		configured(sh.Env, sh, as[1], sh.Env.ReadFile(sh, w))
	case ">", ">>":
		sh.WritesTo(as[0], w, v)
	}
}

// seenAlso: a folder is seen at another place as well, the last of the words.
func seenAlso(sh *interp.Process, words []act.Word, folder string) {
	if len(words) >= 2 {
		sh.Env.SeenAt(sh, words[len(words)-1], folder)
	}
}

// mixes: what the program reads goes into the files that it writes. It may name them
// after "<=", "=" or "@".
func mixes(sh *interp.Process, v *act.Invocation, words []act.Word) {
	var t act.Taint
	for _, w := range v.Argv[1:] {
		if i := max(strings.LastIndexByte(w.Text, '='), strings.LastIndexByte(w.Text, '@')); i >= 0 && i+1 < len(w.Text) {
			w = w.Tail(i + 1)
		}
		t |= sh.Env.ReadFile(sh, w).Taint & (act.FromSecret | act.FromDump | act.FromEnviron)
	}
	for _, w := range words {
		if t != 0 {
			sh.Env.Remember(sh, w, act.Flow{Taint: t, Via: v.Exe}, true)
		}
	}
}

// assigned: make takes NAME=text as a variable, whose text it may run.
func assigned(sh *interp.Process, v *act.Invocation, words []act.Word) {
	all := slices.Clone(v.Env)
	for _, w := range words {
		if name, _, ok := strings.Cut(w.Text, "="); ok && act.SyntaxName(name) {
			value := w.Tail(len(name) + 1)
			all = append(all, act.Assign{Name: name, Value: value})
			variableActs(sh, v, name, value)
		}
	}
	for _, a := range all {
		if strings.Contains(a.Value.Text, "$(shell ") {
			sh.Interpret("make", a.Value, v, v.Exe, nil)
		}
	}
}

// loads: the program starts what the word names, or runs it as text.
func loads(sh *interp.Process, v *act.Invocation, w act.Word) {
	if facts.WorldWritable(w.Text) {
		sh.Env.See(act.LoadsLibrary, v.Src, v.From, v.To, act.Printable(w.Text))
	}
	sh.Interpret("shell", w, v, v.Exe, nil)
}

// puts: the commands of a file transfer program, "put file".
func puts(sh *interp.Process, v *act.Invocation, w act.Word) {
	for command := range strings.FieldsFuncSeq(w.Text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if words := strings.Fields(command); len(words) > 1 && (words[0] == "put" || words[0] == "mput" || words[0] == "reput") {
			sends(sh, v, []act.Word{{Text: words[1], At: -1, Span: w.Span}})
		}
	}
}

// sends: the files go to another machine, whatever the program calls it.
func sends(sh *interp.Process, v *act.Invocation, words []act.Word) {
	for _, w := range words {
		if w.Text != "-" {
			sh.Plain([]string{"curl", "https://elsewhere.invalid/", "-T"}, []act.Word{w}, v)
		}
	}
}
