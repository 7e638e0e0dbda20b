package posix

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// param returns the words that a parameter expansion expands to.
func param(sh *interp.Process, p *syntax.ParamExp) []act.Word {
	if p.Param == nil && p.NestedParam == nil && p.Exp != nil { // zsh allows ${:-text}
		return []act.Word{wordText(sh, p.Exp.Word)}
	}
	if p.Param == nil || p.Names != 0 {
		return []act.Word{unknown(sh, "", p)}
	}
	list, set := lookup(sh, p.Param.Value, p)
	if !set {
		if w, ok := rootOf(sh, p); ok {
			return []act.Word{w}
		}
	}
	return namedParam(sh, elements(sh, list, p), set, p)
}

// namedParam applies the operators of a parameter expansion to the values of its variable. set
// means that the text itself sets the variable.
func namedParam(sh *interp.Process, list []act.Word, set bool, p *syntax.ParamExp) []act.Word {
	switch {
	case p.Length:
		length := act.Word{Text: string(scan.Hole), At: -1, Span: spanOf(sh, p)}
		if set && list[0].Known() {
			length = act.Word{Text: strconv.Itoa(utf8.RuneCountInString(list[0].Text)), At: -1, Span: list[0].Span}
		}
		return []act.Word{length}
	case p.Excl:
		if set && list[0].Known() {
			list, _ = lookup(sh, list[0].Text, p)
		}
	case p.Exp != nil:
		return operator(sh, list, set, p)
	case p.Slice != nil:
		return sliced(sh, list, p)
	case p.Repl != nil:
		return replaced(sh, list, p.Repl)
	}
	return list
}

// elements returns the elements of an array that the index and the flags select, all joined to one
// word for an index such as ${a[*]}.
func elements(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	indexed := p.Index != nil && !p.Excl && !p.Length
	if indexed {
		list = index(sh, list, p)
	}
	if p.Flags != nil {
		list = flagged(sh, list, p)
	}
	if len(list) > 1 && (p.Param.Value == "*" || indexed && p.Exp == nil && p.Slice == nil && allAsOne(p.Index)) {
		return joined(sh, list)
	}
	return list
}

// sliced evaluates ${name:from:length}. For a list it returns all elements, because any of them
// may be in the slice.
func sliced(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	if p.Param.Value == "@" || p.Param.Value == "*" || p.Index != nil && len(list) > 1 {
		return list
	}
	for i := range list {
		list[i] = slice(sh, list[i], p.Slice)
	}
	return list
}

// replaced evaluates ${name/text/other} for each value.
func replaced(sh *interp.Process, list []act.Word, r *syntax.Replace) []act.Word {
	orig, with := wordText(sh, r.Orig), wordText(sh, r.With)
	out := make([]act.Word, len(list))
	for i, w := range list {
		out[i] = w
		if w.Known() && orig.Known() && orig.Text != "" && sh.Env.Budget.Spend(1+len(w.Text)/64) {
			out[i].Text, out[i].At = replace(w.Text, orig.Text, with.Text, r.All), -1
		}
	}
	return out
}

// wellKnown maps variables that most environments set to a typical value. The home folder is "~".
var wellKnown = map[string]string{"HOME": "~", "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp",
	"IFS": " ", "SHELL": "sh", "BASH": "bash", "PWD": ".", "EDITOR": "vi", "VISUAL": "vi", "PAGER": "less",
	"OLDPWD": "./-", "PYTHON": "python3", "RUNNER_TEMP": "/tmp", "XDG_CACHE_HOME": "~/.cache", "XDG_CONFIG_HOME": "~/.config"}

// absolute lists variables whose value begins with a slash in every shell.
var absolute = scan.SetOf("PWD HOME OLDPWD SHELL BASH")

// rootOf returns "/" if the expansion cuts the root out of an absolute path whose rest is not
// known: ${PWD:0:1}, ${HOME%%[!/]*}. It returns false for other expansions.
func rootOf(sh *interp.Process, p *syntax.ParamExp) (act.Word, bool) {
	w := act.Word{Text: "/a/b", At: -1, Span: spanOf(sh, p)}
	switch {
	case !absolute.Has(p.Param.Value):
		return w, false
	case p.Slice != nil:
		w = slice(sh, w, p.Slice)
	case p.Exp != nil && p.Exp.Word != nil && trims(p.Exp.Op):
		w.Text = trimmed(w.Text, wordText(sh, p.Exp.Word).Text, p.Exp.Op)
	}
	return w, w.Text == "/"
}

// lookup returns the value of a variable, and reports whether the text itself sets it.
func lookup(sh *interp.Process, name string, n syntax.Node) ([]act.Word, bool) {
	if to, ok := sh.Refs[name]; ok {
		name = to
	}
	if list, ok := sh.Vars[name]; ok {
		if len(list) == 0 {
			return []act.Word{{At: -1, Span: spanOf(sh, n)}}, true
		}
		return append([]act.Word(nil), list...), true
	}
	if list, set, ok := parameters(sh, name, n); ok {
		return list, set
	}
	if v, ok := wellKnown[name]; ok {
		if name == "PWD" && sh.Cwd != "" {
			v = sh.Cwd
		}
		return []act.Word{{Text: v, At: -1, Span: spanOf(sh, n)}}, false
	}
	return []act.Word{unknown(sh, name, n)}, false
}

// parameters returns the values of $@, $*, $0, $1 and similar. ok is false if the name is not one
// of them, or its value is not known.
func parameters(sh *interp.Process, name string, n syntax.Node) (list []act.Word, set, ok bool) {
	i, err := strconv.Atoi(name)
	switch {
	case name == "0" && sh.Zero.Text != "":
		return []act.Word{sh.Zero}, true, true
	case name == "0", name == "BASH_SOURCE": // the name of the script itself
		return []act.Word{{Text: "sh", At: -1, Span: spanOf(sh, n)}}, true, true
	case sh.Params == nil:
		return nil, false, false
	case name == "@" || name == "*":
		return append([]act.Word(nil), sh.Params...), len(sh.Params) > 0, true
	case err == nil && i > 0 && i <= len(sh.Params):
		return []act.Word{sh.Params[i-1]}, true, true
	}
	return []act.Word{{At: -1, Span: spanOf(sh, n)}}, false, err == nil && i > 0
}

func unknown(sh *interp.Process, name string, n syntax.Node) act.Word {
	w := act.Word{Text: string(scan.Hole), At: -1, Span: spanOf(sh, n), Var: name}
	if name == "" {
		w.Var = "?"
	}
	return w
}

// allAsOne reports whether the index is that of ${a[*]}.
func allAsOne(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && w.Lit() == "*"
}

// joined returns all elements as one word, with the first character of IFS between them:
// "${a[*]}". If the text does not set IFS, it returns the list unchanged.
func joined(sh *interp.Process, list []act.Word) []act.Word {
	ifs, ok := sh.Vars["IFS"]
	if !ok || len(ifs) != 1 || !ifs[0].Known() {
		return list
	}
	out := list[0]
	for _, w := range list[1:] {
		out.Text, out.At, out.Taint = out.Text+ifs[0].Text[:min(1, len(ifs[0].Text))]+w.Text, -1, out.Taint|w.Taint
	}
	return []act.Word{out}
}

// index evaluates ${a[i]}: one element of a known array, or all of them.
func index(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	key, ok := indexText(sh, p.Index)
	if !ok || len(list) == 0 {
		return []act.Word{unknown(sh, p.Param.Value, p)}
	}
	if el, ok := sh.Vars[p.Param.Value+"["+key+"]"]; ok {
		return append([]act.Word(nil), el...)
	}
	i, err := strconv.Atoi(key)
	if i < 0 {
		i += len(list)
	}
	switch {
	case key == "@" || key == "*":
		return list
	case err == nil && i >= 0 && i < len(list):
		return list[i : i+1]
	}
	return []act.Word{unknown(sh, p.Param.Value, p)}
}

// operator evaluates ${a:-b}, ${a#b}, ${a^^} and similar expansions.
func operator(sh *interp.Process, list []act.Word, set bool, p *syntax.ParamExp) []act.Word {
	arg := wordText(sh, p.Exp.Word)
	empty := len(list) == 1 && list[0].Text == ""
	switch op := p.Exp.Op; op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !empty && (set || len(list) == 1 && list[0].Known()) {
			return list
		}
		if op >= syntax.AssignUnset {
			setVariable(sh, p.Param.Value, arg)
		}
		return []act.Word{arg}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return []act.Word{arg}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return list
	case syntax.OtherParamOps:
		return transformed(sh, list, arg.Text, p)
	}
	return trimOrCase(sh, list, arg, p.Exp.Op)
}

// trimOrCase removes the part of each value that a pattern matches, or changes the case of its
// letters.
func trimOrCase(sh *interp.Process, list []act.Word, pattern act.Word, op syntax.ParExpOperator) []act.Word {
	out := make([]act.Word, len(list))
	for i, w := range list {
		out[i] = w
		if !w.Known() || !pattern.Known() || strings.IndexByte(pattern.Text, '*') >= 0 && !sh.Env.Budget.Spend(1+len(w.Text)*len(w.Text)/64) {
			continue
		}
		if out[i].At = -1; trims(op) {
			out[i].Text = trimmed(w.Text, pattern.Text, op)
		} else {
			out[i].Text = cased(w.Text, op)
		}
	}
	return out
}

// trims reports whether the operator is that of ${a#b}, ${a##b}, ${a%b} or ${a%%b}.
func trims(op syntax.ParExpOperator) bool {
	return op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix || op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
}

// trimmed returns a text without the shortest or longest prefix or suffix that a pattern matches.
func trimmed(s, pattern string, op syntax.ParExpOperator) string {
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	for n := range len(s) + 1 { // length of the part to remove
		if op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix {
			n = len(s) - n
		}
		switch {
		case prefix && paths.GlobMatch(pattern, s[:n]):
			return s[n:]
		case !prefix && paths.GlobMatch(pattern, s[len(s)-n:]):
			return s[:len(s)-n]
		}
	}
	return s
}

// cased returns a text with its first letter, or all letters, in upper or lower case.
func cased(s string, op syntax.ParExpOperator) string {
	first := min(1, len(s))
	switch op {
	case syntax.UpperFirst:
		return strings.ToUpper(s[:first]) + s[first:]
	case syntax.UpperAll:
		return strings.ToUpper(s)
	case syntax.LowerFirst:
		return strings.ToLower(s[:first]) + s[first:]
	case syntax.LowerAll:
		return strings.ToLower(s)
	}
	return s
}

func replace(s, from, to string, all bool) string {
	if strings.ContainsAny(from, "*?[") {
		return string(scan.Hole)
	}
	if all {
		if len(s)+strings.Count(s, from)*len(to) > scan.MaxValue {
			return string(scan.Hole)
		}
		return strings.ReplaceAll(s, from, to)
	}
	return strings.Replace(s, from, to, 1)
}

// slice evaluates ${a:offset:length} for known numbers.
func slice(sh *interp.Process, w act.Word, s *syntax.Slice) act.Word {
	from, ok1 := number(sh, s.Offset, 0)
	length, ok2 := number(sh, s.Length, len(w.Text))
	if !w.Known() || !ok1 || !ok2 {
		w.Text, w.At = string(scan.Hole), -1
		return w
	}
	w.Text, w.At = scan.Substring(w.Text, from, length), -1
	return w
}

func number(sh *interp.Process, x syntax.ArithmExpr, absent int) (int, bool) {
	switch x := x.(type) {
	case nil:
		return absent, true
	case *syntax.Word:
		w := wordText(sh, x)
		if v, ok := sh.Vars[w.Text]; ok && len(v) == 1 {
			w = v[0]
		}
		n, err := strconv.Atoi(w.Text)
		return n, err == nil
	case *syntax.UnaryArithm:
		n, ok := number(sh, x.X, 0)
		return -n, ok && x.Op == syntax.Minus
	case *syntax.ParenArithm:
		return number(sh, x.X, 0)
	}
	return 0, false
}
