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

// param is what a parameter expansion becomes.
func param(sh *interp.Process, p *syntax.ParamExp) []act.Word {
	if p.Param == nil && p.NestedParam == nil && p.Exp != nil { // zsh: ${:-text}
		return []act.Word{wordText(sh, p.Exp.Word)}
	}
	if p.Param == nil || p.Names != 0 {
		return []act.Word{unknown(sh, "", p)}
	}
	return namedParam(sh, p)
}

// namedParam is what an expansion of one variable becomes.
func namedParam(sh *interp.Process, p *syntax.ParamExp) []act.Word {
	name := p.Param.Value
	list, set := lookup(sh, name, p)
	if !set && absolute[name] && (p.Slice != nil || p.Exp != nil && p.Exp.Word != nil) {
		if w, ok := rootOf(sh, p); ok {
			return []act.Word{w}
		}
	}
	list = elements(sh, list, p)
	switch {
	case p.Length:
		if set && list[0].Known() {
			return []act.Word{{Text: strconv.Itoa(utf8.RuneCountInString(list[0].Text)), At: -1, Span: list[0].Span}}
		}
		return []act.Word{{Text: string(scan.Hole), At: -1, Span: spanOf(sh, p)}}
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

// elements are those of an array that are meant, by flags of zsh too, or all as one word.
func elements(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	indexed := p.Index != nil && !p.Excl && !p.Length
	if indexed {
		list = index(sh, list, p)
	}
	if p.Flags != nil {
		list = flagged(sh, list, p)
	}
	if len(list) > 1 && (p.Param.Value == "*" || indexed && p.Exp == nil && p.Slice == nil && allAsOne(sh, p.Index)) {
		return joined(sh, list)
	}
	return list
}

// sliced is ${name:from:length} of a value, of each one or of the list.
func sliced(sh *interp.Process, list []act.Word, p *syntax.ParamExp) []act.Word {
	params := p.Param.Value == "@" || p.Param.Value == "*"
	if params || p.Index != nil && len(list) > 1 {
		return sliceList(sh, list, p.Slice, params)
	}
	for i := range list {
		list[i] = slice(sh, list[i], p.Slice)
	}
	return list
}

// replaced is ${name/text/other} of each value.
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

// wellKnown are variables whose value every shell has; home stays "~".
var wellKnown = map[string]string{"HOME": "~", "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp",
	"IFS": " ", "SHELL": "sh", "BASH": "bash", "PWD": ".", "EDITOR": "vi", "VISUAL": "vi", "PAGER": "less",
	"OLDPWD": "./-", "PYTHON": "python3", "RUNNER_TEMP": "/tmp", "XDG_CACHE_HOME": "~/.cache", "XDG_CONFIG_HOME": "~/.config"}

// absolute are variables whose value begins with a slash in every shell.
var absolute = scan.SetOf("PWD HOME OLDPWD SHELL BASH")

// rootOf: what is cut out of an absolute path whose rest is not known, if that is the
// root: ${PWD:0:1}, ${HOME%%[!/]*}.
func rootOf(sh *interp.Process, p *syntax.ParamExp) (act.Word, bool) {
	w := act.Word{Text: "/a/b", At: -1, Span: spanOf(sh, p)}
	if p.Slice != nil {
		w = slice(sh, w, p.Slice)
	} else {
		switch p.Exp.Op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			w.Text = trimOrCase(w.Text, wordText(sh, p.Exp.Word).Text, p.Exp.Op)
		}
	}
	return w, w.Text == "/"
}

// lookup is the value of a variable and whether the text itself sets it.
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
	switch name {
	case "@", "*":
		if sh.Params != nil {
			return append([]act.Word(nil), sh.Params...), len(sh.Params) > 0
		}
		return []act.Word{unknown(sh, name, n)}, false
	case "0":
		if sh.Zero.Text != "" {
			return []act.Word{sh.Zero}, true
		}
		return []act.Word{{Text: "sh", At: -1, Span: spanOf(sh, n)}}, true
	}
	if i, err := strconv.Atoi(name); err == nil && sh.Params != nil && i > 0 {
		if i <= len(sh.Params) {
			return []act.Word{sh.Params[i-1]}, true
		}
		return []act.Word{{At: -1, Span: spanOf(sh, n)}}, false
	}
	if v, ok := wellKnown[name]; ok {
		if name == "PWD" && sh.Cwd != "" {
			v = sh.Cwd
		}
		return []act.Word{{Text: v, At: -1, Span: spanOf(sh, n)}}, false
	}
	return []act.Word{unknown(sh, name, n)}, false
}

func unknown(sh *interp.Process, name string, n syntax.Node) act.Word {
	w := act.Word{Text: string(scan.Hole), At: -1, Span: spanOf(sh, n), Var: name}
	if name == "" {
		w.Var = "?"
	}
	return w
}

// allAsOne: the index of ${a[*]}.
func allAsOne(sh *interp.Process, x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && w.Lit() == "*"
}

// joined is all elements as one word, where the text itself says what stands between
// them: "${a[*]}" with another IFS.
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

// index is ${a[i]}: one element of a known array, or all of them.
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

// operator applies ${a:-b}, ${a#b}, ${a^^} and their kind.
func operator(sh *interp.Process, list []act.Word, set bool, p *syntax.ParamExp) []act.Word {
	arg := wordText(sh, p.Exp.Word)
	empty := len(list) == 1 && list[0].Text == ""
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if set && !empty || !set && len(list) == 1 && list[0].Known() && !empty {
			return list
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			setVariable(sh, p.Param.Value, arg)
		}
		return []act.Word{arg}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if set && empty {
			return []act.Word{{At: -1, Span: arg.Span}}
		}
		return []act.Word{arg}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return list
	case syntax.OtherParamOps:
		return transformed(sh, list, arg.Text, p)
	}
	out := make([]act.Word, len(list))
	for i, w := range list {
		out[i] = w
		if w.Known() && arg.Known() && !(strings.IndexByte(arg.Text, '*') >= 0 && !sh.Env.Budget.Spend(1+len(w.Text)*len(w.Text)/64)) {
			out[i].Text, out[i].At = trimOrCase(w.Text, arg.Text, p.Exp.Op), -1
		}
	}
	return out
}

func trimOrCase(s, pattern string, op syntax.ParExpOperator) string {
	switch op {
	case syntax.RemSmallPrefix:
		for i := 0; i <= len(s); i++ {
			if paths.GlobMatch(pattern, s[:i]) {
				return s[i:]
			}
		}
	case syntax.RemLargePrefix:
		for i := len(s); i >= 0; i-- {
			if paths.GlobMatch(pattern, s[:i]) {
				return s[i:]
			}
		}
	case syntax.RemSmallSuffix:
		for i := len(s); i >= 0; i-- {
			if paths.GlobMatch(pattern, s[i:]) {
				return s[:i]
			}
		}
	case syntax.RemLargeSuffix:
		for i := 0; i <= len(s); i++ {
			if paths.GlobMatch(pattern, s[i:]) {
				return s[:i]
			}
		}
	case syntax.UpperFirst:
		return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
	case syntax.UpperAll:
		return strings.ToUpper(s)
	case syntax.LowerFirst:
		return strings.ToLower(s[:min(1, len(s))]) + s[min(1, len(s)):]
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

// slice is ${a:offset:length} with literal numbers.
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

// sliceList is ${a[@]:1:2}; parameters count from 1.
func sliceList(sh *interp.Process, list []act.Word, s *syntax.Slice, params bool) []act.Word {
	from, ok1 := number(sh, s.Offset, 0)
	length, ok2 := number(sh, s.Length, len(list))
	if !ok1 || !ok2 || length < 0 {
		return list
	}
	if from < 0 {
		from += len(list)
	} else if params {
		from--
	}
	from = min(max(from, 0), len(list))
	return list[from:min(from+length, len(list))]
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
