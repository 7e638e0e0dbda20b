package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Variable returns the value of an environment variable of a program, if the command sets it.
func (sh *Process) Variable(v *act.Invocation, name string) act.Word {
	for _, a := range v.Env {
		if a.Name == name {
			return a.Value
		}
	}
	if w := sh.Vars[name]; len(w) == 1 {
		return w[0]
	}
	return act.Word{}
}

// Interpret runs a text in a language that was found inside the command.
func (sh *Process) Interpret(lang string, w act.Word, v *act.Invocation, via string, params []act.Word) act.Flow {
	e := sh.Env
	src := sh.Src.Inside(w, via)
	if w.Taint&act.FromDecoder != 0 {
		src.Layers++
	}
	if !e.Budget.Spend(1) || src.Depth > scan.MaxDepth {
		e.TooDeep = true
		return act.Flow{}
	}
	if !w.Known() {
		if strings.Trim(w.Text, " \n\t"+string(scan.Hole)) == "" {
			return sh.UnknownText(lang, w, v)
		}
		if lang == "shell" {
			name := "_"
			if act.SyntaxName(w.Var) {
				name = w.Var
			}
			src.Text, src.At = strings.ReplaceAll(w.Text, string(scan.Hole), "${"+name+"}"), -1
		}
	}
	e.Ran = true
	if lang == "shell" {
		return e.Front.Shell(sh, &src, v, via, params)
	}
	e.texted(lang, src.Text)
	inner := *sh
	inner.Params, inner.Carrier = params, v
	out := inner.Read(lang, &src, v)
	out.Taint |= v.Stdin.Taint
	return out
}

// Read passes a text to the front-ends for its language. If there are several, all add their
// findings, and the output is that of the first one.
func (sh *Process) Read(lang string, src *act.Source, v *act.Invocation) (out act.Flow) {
	list := sh.Env.Front.Languages[lang]
	if list == nil {
		form, _, _ := strings.Cut(lang, " ")
		if list = sh.Env.Front.Languages[form]; form == lang || list == nil {
			list = sh.Env.Front.Languages["program"]
		}
	}
	for i, reads := range list {
		if f := reads(sh, src, lang, v); i == 0 {
			out = f
		}
	}
	return out
}

// Read reads a text outside of any known shell process.
func (e *Env) Read(lang string, src *act.Source, v *act.Invocation) act.Flow {
	return (&Process{Env: e, Src: src}).Read(lang, src, v)
}

// UnknownText judges an interpreter whose text is unknown.
func (sh *Process) UnknownText(lang string, w act.Word, v *act.Invocation) act.Flow {
	e := sh.Env
	e.Unproven = true
	if name, ok := strings.CutPrefix(w.Var, "$("); ok && slices.Contains(e.Groups.Get("shell-setup"), strings.TrimSuffix(name, ")")) {
		return act.Flow{}
	}
	if act.StoreLanguage(lang) {
		if w.Taint&(act.FromNetwork|act.FromDecoder|act.FromBuilt) != 0 {
			e.See(act.UnknownStatement, sh.Src, v.From, v.To, "")
		}
		return act.Flow{}
	}
	if w.Taint&(act.FromNetwork|act.FromDecoder) != 0 {
		return act.Flow{} // rules such as rce.* and obf.decode-exec describe it better
	}
	e.Doubt("text that is interpreted is not known")
	if lang == "shell" {
		e.See(act.RunsUnknownText, sh.Src, v.From, v.To, "")
	}
	return act.Flow{}
}

// Plain runs a command with further words. Its findings have the range of v in the text.
func (sh *Process) Plain(command []string, words []act.Word, v *act.Invocation) {
	inner := sh.Behalf(v.Src, v.Exe)
	argv := make([]act.Word, 0, len(command)+len(words))
	for _, name := range command {
		argv = append(argv, act.Word{Text: name, At: -1, Span: v.Argv[0].Span})
	}
	inner.Run(&act.Invocation{Src: inner.Src, Direct: true, Argv: append(argv, words...), Stdin: act.Flow{Known: true}, From: v.From, To: v.To})
}

// WritesTo judges a program's own write to a file like a redirection to it.
func (sh *Process) WritesTo(op string, w act.Word, v *act.Invocation) {
	if w.Text == "" || w.Text == "-" {
		return
	}
	r := &act.Invocation{Exe: op, Operands: []act.Word{w}, Argv: []act.Word{{Text: op}, w}, After: -1, Cwd: sh.Cwd, Remote: sh.Remote,
		Root: v.Root, Stdin: act.Flow{Taint: act.FromStdin}, Src: v.Src, From: v.From, To: v.To}
	sh.Env.Match(&act.Item{Kind: act.KindRedir, Name: op, Inv: r, Src: v.Src, From: v.From, To: v.To})
}

// EachLine calls f with the bounds of each non-empty piece between the separators.
func (e *Env) EachLine(text, separators string, f func(from, to int)) {
	for from := 0; from < len(text); {
		to := len(text)
		if i := strings.IndexAny(text[from:], separators); i >= 0 {
			to = from + i
		}
		if to > from && e.Budget.Spend(1) {
			f(from, to)
		}
		from = to + 1
	}
}

// Carried runs Text[from:to] of the source in a shell. text is the same without quotes or escapes.
func (sh *Process) Carried(from, to int, text, via string) {
	sh.CarriedAs("shell", from, to, text, via)
}

// CarriedAs is like Carried for any language.
func (sh *Process) CarriedAs(lang string, from, to int, text, via string) {
	span, _ := sh.Src.Where(from, to)
	w := act.Word{Text: text, Span: span, At: -1}
	if sh.Src.At >= 0 && text == sh.Src.Text[from:to] {
		w.At = span.Start
	}
	sh.Interpret(lang, w, &act.Invocation{Exe: via, Src: sh.Src, From: from, To: to, Stdin: act.Flow{Known: true}}, via, nil)
}

// Stranger reports whether no table has a property of the program.
func (e *Env) Stranger(exe string) bool {
	p := e.Program(exe)
	return !p.Known() && (p.Options == nil || p.Options.Made) && p.Proves == nil && p.Dry == nil
}

// Acts reports whether a word is the name of a program with known effects.
func (e *Env) Acts(word string) bool {
	name := scan.Base(word)
	return (e.Program(name).Known() || e.Program(name).Reads != nil) && name != "." && name != "source"
}

// ActsText reports whether a text is a command line of a program with known effects, or only the
// name of a shell, which is then interactive.
func (e *Env) ActsText(text string) bool {
	first, _, more := strings.Cut(strings.TrimSpace(text), " ")
	return more && e.Acts(first) || !more && strings.HasSuffix(first, "sh") && slices.Contains(e.Groups.Get("shells"), scan.Base(first))
}
