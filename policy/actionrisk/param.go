package actionrisk

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// param is what a parameter expansion becomes.
func (sh *shell) param(p *syntax.ParamExp) []Word {
	if p.Param == nil && p.NestedParam == nil && p.Exp != nil { // zsh: ${:-text}
		return []Word{sh.text(p.Exp.Word)}
	}
	if p.Param == nil || p.Names != 0 {
		return []Word{sh.unknown("", p)}
	}
	name := p.Param.Value
	list, set := sh.lookup(name, p)
	if !set && absolute[name] && (p.Slice != nil || p.Exp != nil && p.Exp.Word != nil) {
		if w, ok := sh.rootOf(p); ok {
			return []Word{w}
		}
	}
	if p.Index != nil && !p.Excl && !p.Length {
		list = sh.index(list, p)
	}
	if p.Flags != nil {
		list = sh.flagged(list, p)
	}
	if len(list) > 1 && (name == "*" || p.Index != nil && !p.Excl && !p.Length && p.Exp == nil && p.Slice == nil && sh.allAsOne(p.Index)) {
		list = sh.joined(list)
	}
	switch {
	case p.Length:
		if set && list[0].known() {
			return []Word{{Text: strconv.Itoa(utf8.RuneCountInString(list[0].Text)), At: -1, Span: list[0].Span}}
		}
		return []Word{{Text: string(scan.Hole), At: -1, Span: sh.spanOf(p)}}
	case p.Excl:
		if set && list[0].known() {
			list, _ = sh.lookup(list[0].Text, p)
		}
	case p.Exp != nil:
		list = sh.operator(list, set, p)
	case p.Slice != nil && (name == "@" || name == "*" || p.Index != nil && len(list) > 1):
		list = sh.sliceList(list, p.Slice, name == "@" || name == "*")
	case p.Slice != nil:
		for i := range list {
			list[i] = sh.slice(list[i], p.Slice)
		}
	case p.Repl != nil:
		orig, with := sh.text(p.Repl.Orig), sh.text(p.Repl.With)
		out := make([]Word, len(list))
		for i, w := range list {
			out[i] = w
			if w.known() && orig.known() && orig.Text != "" && sh.e.budget.spend(1+len(w.Text)/64) {
				out[i].Text, out[i].At = replace(w.Text, orig.Text, with.Text, p.Repl.All), -1
			}
		}
		return out
	}
	return list
}

// wellKnown are variables whose value every shell has; home stays "~".
var wellKnown = map[string]string{"HOME": "~", "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp",
	"IFS": " ", "SHELL": "sh", "BASH": "bash", "PWD": ".", "EDITOR": "vi", "VISUAL": "vi", "PAGER": "less",
	"OLDPWD": "./-", "PYTHON": "python3", "RUNNER_TEMP": "/tmp", "XDG_CACHE_HOME": "~/.cache", "XDG_CONFIG_HOME": "~/.config"}

// absolute are variables whose value begins with a slash in every shell.
var absolute = scan.SetOf("PWD HOME OLDPWD SHELL BASH")

// rootOf: what is cut out of an absolute path whose rest is not known, if that is the
// root: ${PWD:0:1}, ${HOME%%[!/]*}.
func (sh *shell) rootOf(p *syntax.ParamExp) (Word, bool) {
	w := Word{Text: "/a/b", At: -1, Span: sh.spanOf(p)}
	if p.Slice != nil {
		w = sh.slice(w, p.Slice)
	} else {
		switch p.Exp.Op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			w.Text = trimOrCase(w.Text, sh.text(p.Exp.Word).Text, p.Exp.Op)
		}
	}
	return w, w.Text == "/"
}

// lookup is the value of a variable and whether the text itself sets it.
func (sh *shell) lookup(name string, n syntax.Node) ([]Word, bool) {
	if to, ok := sh.refs[name]; ok {
		name = to
	}
	if list, ok := sh.vars[name]; ok {
		if len(list) == 0 {
			return []Word{{At: -1, Span: sh.spanOf(n)}}, true
		}
		return append([]Word(nil), list...), true
	}
	switch name {
	case "@", "*":
		if sh.params != nil {
			return append([]Word(nil), sh.params...), len(sh.params) > 0
		}
		return []Word{sh.unknown(name, n)}, false
	case "0":
		if sh.zero.Text != "" {
			return []Word{sh.zero}, true
		}
		return []Word{{Text: "sh", At: -1, Span: sh.spanOf(n)}}, true
	}
	if i, err := strconv.Atoi(name); err == nil && sh.params != nil && i > 0 {
		if i <= len(sh.params) {
			return []Word{sh.params[i-1]}, true
		}
		return []Word{{At: -1, Span: sh.spanOf(n)}}, false
	}
	if v, ok := wellKnown[name]; ok {
		if name == "PWD" && sh.cwd != "" {
			v = sh.cwd
		}
		return []Word{{Text: v, At: -1, Span: sh.spanOf(n)}}, false
	}
	return []Word{sh.unknown(name, n)}, false
}

func (sh *shell) unknown(name string, n syntax.Node) Word {
	w := Word{Text: string(scan.Hole), At: -1, Span: sh.spanOf(n), Var: name}
	if name == "" {
		w.Var = "?"
	}
	return w
}

// allAsOne: the index of ${a[*]}.
func (sh *shell) allAsOne(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && w.Lit() == "*"
}

// joined is all elements as one word, where the text itself says what stands between
// them: "${a[*]}" with another IFS.
func (sh *shell) joined(list []Word) []Word {
	ifs, ok := sh.vars["IFS"]
	if !ok || len(ifs) != 1 || !ifs[0].known() {
		return list
	}
	out := list[0]
	for _, w := range list[1:] {
		out.Text, out.At, out.Taint = out.Text+ifs[0].Text[:min(1, len(ifs[0].Text))]+w.Text, -1, out.Taint|w.Taint
	}
	return []Word{out}
}

// index is ${a[i]}: one element of a known array, or all of them.
func (sh *shell) index(list []Word, p *syntax.ParamExp) []Word {
	key, ok := sh.indexText(p.Index)
	if !ok || len(list) == 0 {
		return []Word{sh.unknown(p.Param.Value, p)}
	}
	if el, ok := sh.vars[p.Param.Value+"["+key+"]"]; ok {
		return append([]Word(nil), el...)
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
	return []Word{sh.unknown(p.Param.Value, p)}
}

// operator applies ${a:-b}, ${a#b}, ${a^^} and their kind.
func (sh *shell) operator(list []Word, set bool, p *syntax.ParamExp) []Word {
	arg := sh.text(p.Exp.Word)
	empty := len(list) == 1 && list[0].Text == ""
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if set && !empty || !set && len(list) == 1 && list[0].known() && !empty {
			return list
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			sh.set(p.Param.Value, arg)
		}
		return []Word{arg}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if set && empty {
			return []Word{{At: -1, Span: arg.Span}}
		}
		return []Word{arg}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return list
	case syntax.OtherParamOps:
		return sh.transformed(list, arg.Text, p)
	}
	out := make([]Word, len(list))
	for i, w := range list {
		out[i] = w
		if w.known() && arg.known() && !(strings.IndexByte(arg.Text, '*') >= 0 && !sh.e.budget.spend(1+len(w.Text)*len(w.Text)/64)) {
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
func (sh *shell) slice(w Word, s *syntax.Slice) Word {
	from, ok1 := sh.number(s.Offset, 0)
	length, ok2 := sh.number(s.Length, len(w.Text))
	if !w.known() || !ok1 || !ok2 {
		w.Text, w.At = string(scan.Hole), -1
		return w
	}
	if from < 0 {
		from += len(w.Text)
	}
	from = min(max(from, 0), len(w.Text))
	to := from + length
	if length < 0 {
		to = len(w.Text) + length
	}
	w.Text, w.At = w.Text[from:min(max(to, from), len(w.Text))], -1
	return w
}

// sliceList is ${a[@]:1:2}; parameters count from 1.
func (sh *shell) sliceList(list []Word, s *syntax.Slice, params bool) []Word {
	from, ok1 := sh.number(s.Offset, 0)
	length, ok2 := sh.number(s.Length, len(list))
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

func (sh *shell) number(x syntax.ArithmExpr, absent int) (int, bool) {
	switch x := x.(type) {
	case nil:
		return absent, true
	case *syntax.Word:
		w := sh.text(x)
		if v, ok := sh.vars[w.Text]; ok && len(v) == 1 {
			w = v[0]
		}
		n, err := strconv.Atoi(w.Text)
		return n, err == nil
	case *syntax.UnaryArithm:
		n, ok := sh.number(x.X, 0)
		return -n, ok && x.Op == syntax.Minus
	case *syntax.ParenArithm:
		return sh.number(x.X, 0)
	}
	return 0, false
}
