package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// effects judges what the call does to its words according to the table, in addition to the rules.
// An effect does not prove that the rest of the call is harmless.
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

// fromStore reports whether the program prints data that others wrote into a store, a queue or a
// service.
func fromStore(e *interp.Env, v *act.Invocation) bool {
	for _, f := range e.Program(v.Exe).Effects {
		if f.As[0] == "@store" && f.Holds(v) {
			return true
		}
	}
	return false
}

// takeEffect judges one effect, with all words together or with each word alone.
func takeEffect(sh *interp.Process, as []string, words []act.Word, v *act.Invocation) {
	switch as[0] {
	case "@bind": // deleting in the new place deletes in the old one
		seenAlso(sh, words, words[0].Text)
	case "@mount": // a mounted file system; its path may look like build output, which is harmless to delete
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

// takeEach judges one effect on one word.
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

// seenAlso records that a folder is also visible at the path in the last of the words.
func seenAlso(sh *interp.Process, words []act.Word, folder string) {
	if len(words) >= 2 {
		sh.Env.SeenAt(sh, words[len(words)-1], folder)
	}
}

// mixes records that output files, which words names, contain secrets or dumps, if the program
// reads files that do. The name of such an input file may follow a "=" or "@" in a word.
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

// assigned judges the NAME=text words of make, which sets variables whose text it may run.
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

// loads judges a word that names a file the program loads, or contains text that it runs.
func loads(sh *interp.Process, v *act.Invocation, w act.Word) {
	if facts.WorldWritable(w.Text) {
		sh.Env.See(act.LoadsLibrary, v.Src, v.From, v.To, act.Printable(w.Text))
	}
	sh.Interpret("shell", w, v, v.Exe, nil)
}

// puts judges the uploads in the commands of a file transfer program: "put file".
func puts(sh *interp.Process, v *act.Invocation, w act.Word) {
	for command := range strings.FieldsFuncSeq(w.Text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if words := strings.Fields(command); len(words) > 1 && (words[0] == "put" || words[0] == "mput" || words[0] == "reput") {
			sends(sh, v, []act.Word{{Text: words[1], At: -1, Span: w.Span}})
		}
	}
}

// sends judges files that a program sends to another machine, as an upload of curl.
func sends(sh *interp.Process, v *act.Invocation, words []act.Word) {
	for _, w := range words {
		if w.Text != "-" {
			sh.Plain([]string{"curl", "https://elsewhere.invalid/", "-T"}, []act.Word{w}, v)
		}
	}
}
