package posix

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// fields appends the words that w expands to. Braces, variables, substitutions and quotes are
// resolved as far as they are known.
func fields(sh *interp.Process, w *syntax.Word, out []act.Word) []act.Word {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\{*?[`) {
			return append(out, literal(sh, lit))
		}
	}
	if !sh.Env.Budget.Spend(1 + len(w.Parts)) {
		return out
	}
	if hasBrace(w) {
		// SplitBraces changes its word, and Pos of {,} would then panic: split a copy.
		split := syntax.Word{Parts: slices.Clone(w.Parts)}
		if syntax.SplitBraces(&split) {
			n := len(out)
			for _, parts := range braces(split.Parts, min(scan.MaxWords, max(1, scan.MaxBraced-sh.Env.Braced))) {
				out = expand(sh, parts, w, out)
				if sh.Env.Braced++; len(out)-n >= scan.MaxWords {
					break
				}
			}
			return out
		}
	}
	return expand(sh, w.Parts, w, out)
}

// literal returns the word for one plain literal.
func literal(sh *interp.Process, lit *syntax.Lit) act.Word {
	from, to := int(lit.Pos().Offset()), int(lit.End().Offset())
	span, _ := sh.Src.Where(from, to)
	at := -1
	if sh.Src.At >= 0 && to-from == len(lit.Value) {
		at = span.Start
	}
	return act.Word{Text: lit.Value, Span: span, At: at, Taint: sh.Src.Taint & act.FromNetwork}
}

// wordText returns the expansion of w where it is not split into words: in an assignment, a
// here-document or a redirection.
func wordText(sh *interp.Process, w *syntax.Word) act.Word {
	if w == nil {
		return act.Word{At: -1}
	}
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(lit.Value, '\\') < 0 {
			return literal(sh, lit)
		}
	}
	return wholeWord(sh, w, false)
}

// body returns the text of a here-document, in which a backslash is taken literally before most
// characters.
func body(sh *interp.Process, w *syntax.Word) act.Word {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(lit.Value, '\\') < 0 {
			return literal(sh, lit)
		}
	}
	return wholeWord(sh, w, true)
}

func wholeWord(sh *interp.Process, w *syntax.Word, document bool) act.Word {
	b := builder{sh: sh, whole: true, document: document}
	b.span = spanOf(sh, w)
	b.parts(w.Parts, false)
	b.end()
	if len(b.out) == 0 {
		return act.Word{Span: b.span, At: -1}
	}
	return b.out[0]
}

func expand(sh *interp.Process, parts []syntax.WordPart, w *syntax.Word, out []act.Word) []act.Word {
	b := builder{sh: sh, out: out}
	b.span = spanOf(sh, w)
	b.parts(parts, false)
	b.end()
	return b.out
}

// builder joins the parts of a word and splits the result into words.
type builder struct {
	sh    *interp.Process
	out   []act.Word
	whole bool // the result is never split into words

	document bool // the text is that of a here-document
	span     act.Span

	buf     []byte
	open    bool // a word has begun, which may be empty
	at      int  // offset in the command at which buf is verbatim, or -1
	glob    bool
	quoted  bool
	taint   act.Taint
	pieces  int
	unknown string
}

// add appends text that is at the given offset in the command, or at -1 if the command does not
// contain it.
func (b *builder) add(text string, at int) {
	switch {
	case len(b.buf) == 0:
		b.at = at
	case at < 0 || b.at+len(b.buf) != at:
		b.at = -1
	}
	b.buf = append(b.buf, text...)
	b.open = true
}

func (b *builder) end() {
	if !b.open {
		return
	}
	w := act.Word{Text: string(b.buf), Span: b.span, At: b.at, Glob: b.glob, Quoted: b.quoted, Taint: b.taint, Var: b.unknown}
	w.Lone = len(w.Text) == 1 && w.Text[0] == scan.Hole && b.pieces == 1
	b.out = append(b.out, w)
	b.buf, b.open, b.glob, b.quoted, b.taint, b.at, b.pieces, b.unknown = b.buf[:0], false, false, false, 0, -1, 0, ""
}

func (b *builder) parts(parts []syntax.WordPart, quoted bool) {
	for _, p := range parts {
		b.pieces++
		switch p := p.(type) {
		case *syntax.Lit:
			b.lit(p, quoted)
		case *syntax.SglQuoted:
			b.single(p)
		case *syntax.DblQuoted:
			b.quoted = b.quoted || b.open || len(parts) > 1
			b.open = true
			b.parts(p.Parts, true)
		case *syntax.ParamExp:
			b.values(param(b.sh, p), quoted)
		case *syntax.CmdSubst:
			b.values([]act.Word{substitute(b.sh, p.Stmts, p)}, quoted)
		case *syntax.ProcSubst:
			b.values([]act.Word{process(b.sh, p)}, true)
		case *syntax.ArithmExp:
			nested(b.sh, p)
			b.values([]act.Word{{Text: arithmetic(p), At: -1}}, true)
		case *syntax.ExtGlob:
			b.glob = true
			b.add("*", -1)
		}
	}
}

// lit appends a literal with its backslashes resolved.
func (b *builder) lit(p *syntax.Lit, quoted bool) {
	at := -1
	if b.sh.Src.At >= 0 && int(p.End().Offset()-p.Pos().Offset()) == len(p.Value) {
		at = b.sh.Src.At + int(p.Pos().Offset())
	}
	v := p.Value
	if strings.IndexByte(v, '\\') >= 0 {
		b.escaped(v, at, quoted)
		return
	}
	if !quoted && len(b.buf) > 0 && strings.HasPrefix(v, "(") && strings.HasSuffix(v, ")") { // zsh: (D) selects among the files
		b.glob = true
		return
	}
	if !quoted && !b.whole && strings.ContainsAny(v, "*?[") {
		b.glob = true
	}
	b.add(v, at)
}

// escaped appends a literal byte by byte, without the backslashes that quote the next byte.
func (b *builder) escaped(v string, at int, quoted bool) {
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && b.quotes(v[i+1], quoted) {
			if i++; v[i] == '\n' {
				continue
			}
			b.quoted = b.quoted || !quoted && scan.IsNameByte(v[i])
		} else if !quoted && strings.IndexByte("*?[", v[i]) >= 0 {
			b.glob = true
		}
		if at >= 0 {
			b.add(v[i:i+1], at+i)
		} else {
			b.add(v[i:i+1], -1)
		}
	}
}

// quotes reports whether a backslash before this byte is removed.
func (b *builder) quotes(next byte, quoted bool) bool {
	if !quoted && !b.document || strings.IndexByte("\\$`\n", next) >= 0 {
		return true
	}
	return next == '"' && !b.document
}

func (b *builder) single(p *syntax.SglQuoted) {
	b.quoted = b.quoted || b.open
	b.open = true
	at := -1
	if b.sh.Src.At >= 0 {
		at = b.sh.Src.At + int(p.Left.Offset()) + 1
	}
	if p.Dollar {
		if text := scan.Unescape(p.Value); text != p.Value {
			b.quoted = true
			b.add(text, -1)
			return
		}
		at++
	}
	b.add(p.Value, at)
}

// values appends the result of an expansion, and splits it if it is not quoted.
func (b *builder) values(list []act.Word, quoted bool) {
	if e := b.sh.Env; len(list) > scan.MaxWords || !e.Budget.Spend(2*len(list)) {
		e.TooDeep = true
		list = list[:min(len(list), 1)]
	}
	for i, w := range list {
		if i > 0 && b.whole {
			b.add(" ", -1)
		} else if i > 0 {
			b.end()
		}
		b.taint |= w.Taint
		b.unknown = cmp.Or(w.Var, b.unknown)
		if quoted || b.whole {
			b.add(w.Text, w.At)
		} else {
			b.split(w)
		}
	}
}

// split appends a value and splits it into words.
func (b *builder) split(w act.Word) {
	b.glob = b.glob || w.Glob || strings.ContainsAny(w.Text, "*?[")
	rest := w.Text
	for k := strings.IndexAny(rest, separators(b.sh)); k >= 0; k = strings.IndexAny(rest, separators(b.sh)) {
		if k > 0 {
			b.add(rest[:k], -1)
		}
		t, g := b.taint, b.glob
		b.end()
		b.taint, b.glob = t, g
		rest = rest[k+1:]
	}
	if rest != "" {
		b.add(rest, w.At)
	}
}

// separators returns the characters at which an unquoted value is split: white space, and the
// value of IFS if the text sets it.
func separators(sh *interp.Process) string {
	if ifs, ok := sh.Vars["IFS"]; ok && len(ifs) == 1 && ifs[0].Known() {
		return " \t\n" + ifs[0].Text
	}
	return " \t\n"
}

// substitute judges $(…) and returns its output, as far as it is known.
func substitute(sh *interp.Process, stmts []*syntax.Stmt, n syntax.Node) act.Word {
	out := statements(sh.Fork(), stmts, act.Flow{})
	w := act.Word{Text: string(scan.Hole), At: -1, Span: spanOf(sh, n), Taint: out.Taint}
	if out.Known {
		w.Text = strings.TrimRight(out.Word.Text, "\n")
		w.Taint |= out.Word.Taint
	} else if out.Via != "" {
		w.Var = "$(" + out.Via + ")"
	}
	return w
}

// process judges <(…) or >(…), and returns the file name that replaces it in the command.
func process(sh *interp.Process, p *syntax.ProcSubst) act.Word {
	out := statements(sh.Fork(), p.Stmts, act.Flow{Taint: act.FromStdin})
	name := "/dev/fd/" + strconv.Itoa(63-len(sh.Env.Files)-len(sh.Env.Sinks))
	w := act.Word{Text: name, At: -1, Span: spanOf(sh, p), Taint: out.Taint}
	if p.Op == syntax.CmdOut {
		sinks(sh, name, p.Stmts)
	} else {
		sh.Env.Remember(sh, w, out, false)
	}
	return w
}

// arithmetic returns the value of a literal arithmetic expression, and an unknown part for others.
func arithmetic(p *syntax.ArithmExp) string {
	if n, ok := arithmeticValue(p.X); ok {
		return strconv.FormatInt(n, 10)
	}
	return string(scan.Hole)
}

// braces returns the alternatives of a word after SplitBraces, at most limit.
func braces(parts []syntax.WordPart, limit int) [][]syntax.WordPart {
	limit = max(1, min(limit, 4096/max(1, len(parts)))) // a long word costs as much as many short ones
	all := [][]syntax.WordPart{nil}
	for _, p := range parts {
		choices := [][]syntax.WordPart{{p}}
		if br, ok := p.(*syntax.BraceExp); ok {
			choices = nil
			for _, el := range sequence(br, limit) {
				choices = append(choices, braces(el.Parts, limit)...)
			}
		}
		if len(all)*len(choices) > limit {
			choices = choices[:1]
		}
		if len(choices) == 1 {
			for i := range all {
				all[i] = append(all[i], choices[0]...)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, prefix := range all {
			for _, c := range choices {
				next = append(next, append(prefix[:len(prefix):len(prefix)], c...))
			}
		}
		all = next
	}
	return all
}

// hasBrace reports whether a word contains a "{" outside quotes.
func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// sequence returns the elements of a brace expression. It evaluates {a..b} only for numbers.
func sequence(br *syntax.BraceExp, limit int) []*syntax.Word {
	if !br.Sequence {
		return br.Elems
	}
	if len(br.Elems) < 2 {
		return br.Elems
	}
	from, err1 := strconv.Atoi(br.Elems[0].Lit())
	to, err2 := strconv.Atoi(br.Elems[1].Lit())
	if err1 != nil || err2 != nil || to < from || to-from >= limit {
		return br.Elems[:1]
	}
	first := br.Elems[0].Pos()
	var out []*syntax.Word
	for i := from; i <= to; i++ {
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{
			ValuePos: first, ValueEnd: first, Value: strconv.Itoa(i)}}})
	}
	return out
}
