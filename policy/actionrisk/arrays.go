package actionrisk

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// indexText is the text of an array's index: a number or a key.
func (sh *shell) indexText(x syntax.ArithmExpr) (string, bool) {
	w, ok := x.(*syntax.Word)
	if !ok {
		n, ok := sh.number(x, 0)
		return strconv.Itoa(n), ok
	}
	t := sh.text(w)
	if v, ok := sh.vars[t.Text]; ok && len(v) == 1 && syntaxName(t.Text) {
		t = v[0]
	}
	return t.Text, t.known()
}

// setElement sets name[index]. A key that is no small number is kept as a
// variable of that name, and as one more element.
func (sh *shell) setElement(name string, x syntax.ArithmExpr, w Word, more bool) {
	key, ok := sh.indexText(x)
	if !ok {
		sh.set(name, Word{Text: string(scan.Hole), At: -1, Span: w.Span, Var: name})
		return
	}
	if sh.commandTable(name, key, w) {
		return
	}
	list := slices.Clone(sh.vars[name])
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= scan.MaxLoop {
		i = len(list)
		if old := sh.vars[name+"["+key+"]"]; more && len(old) > 0 {
			w.Text, w.At = old[0].Text+w.Text, -1
		}
		sh.set(name+"["+key+"]", w)
	}
	for len(list) <= i {
		list = append(list, Word{At: -1, Span: w.Span})
	}
	if more {
		w.Text, w.At = list[i].Text+w.Text, -1
	}
	list[i] = w
	sh.setAll(name, list)
}

// array sets a variable to the elements of (…).
func (sh *shell) array(a *syntax.Assign) {
	var list []Word
	if a.Append {
		list = slices.Clone(sh.vars[a.Name.Value])
	}
	for _, el := range a.Array.Elems {
		if el.Value == nil {
			continue
		}
		if el.Index == nil {
			list = sh.fields(el.Value, list)
			continue
		}
		sh.setAll(a.Name.Value, list)
		sh.setElement(a.Name.Value, el.Index, sh.text(el.Value), false)
		list = slices.Clone(sh.vars[a.Name.Value])
	}
	if !sh.e.budget.spend(1 + len(list)/2) { // the list is copied
		list = nil
	}
	sh.setAll(a.Name.Value, list)
}

// refers: "declare -n a=b" makes a another name of b.
func (sh *shell) refers(args []*syntax.Assign) {
	naming := false
	for _, a := range args {
		if a.Naked && a.Name == nil && a.Value != nil {
			t := sh.text(a.Value).Text
			naming = naming || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsRune(t, 'n')
		}
		if naming && a.Name != nil && a.Value != nil {
			if sh.refs == nil {
				sh.refs = map[string]string{}
			}
			sh.refs = maps.Clone(sh.refs)
			sh.refs[a.Name.Value] = sh.text(a.Value).Text
		}
	}
}

// branches runs the ways a text may go, each from the same start. What a
// variable may be afterwards is kept: one value, and the others beside it.
func (sh *shell) branches(ways []func() flow, all bool) flow {
	before := sh.vars
	ends := make([]map[string][]Word, 0, len(ways)+1)
	if !all {
		ends = append(ends, before)
	}
	var out flow
	for i, way := range ways {
		sh.vars = maps.Clone(before)
		f := way()
		if i == 0 {
			out = f
		} else {
			out = join(out, f)
		}
		ends = append(ends, sh.vars)
	}
	last := ends[len(ends)-1]
	for _, end := range ends[:len(ends)-1] {
		for _, name := range slices.Sorted(maps.Keys(end)) {
			list := end[name]
			switch now, ok := last[name]; {
			case !ok:
				if last == nil {
					last = map[string][]Word{}
				}
				last[name] = list
			case len(list) == 1 && (len(now) != 1 || now[0].Text != list[0].Text):
				sh.also(name, list[0])
			}
		}
	}
	sh.vars = last
	return out
}

// also notes one more value that a variable may have.
func (sh *shell) also(name string, w Word) {
	old := sh.others[name]
	if len(old) >= 4 || slices.ContainsFunc(old, func(o Word) bool { return o.Text == w.Text }) {
		return
	}
	others := maps.Clone(sh.others)
	if others == nil {
		others = map[string][]Word{}
	}
	others[name] = append(old[:len(old):len(old)], w)
	sh.others = others
}

// readsLines: "while read …" runs its body once for each line that is known.
func (sh *shell) readsLines(c *syntax.WhileClause, in flow) ([]string, bool) {
	if len(c.Cond) != 1 || c.Until || !in.known || in.word.Glob {
		return nil, false
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "read" {
		return nil, false
	}
	lines := strings.Split(strings.TrimSpace(in.word.Text), "\n")
	return lines, len(lines) > 1 && len(lines) <= scan.MaxLoop
}

// readsInput sets variables from the input.
func (sh *shell) readsInput(v *invocation) {
	text, names := v.stdin.word.Text, v.operands
	list, whole := Word{}, v.exe != "read"
	if whole && len(names) > 0 {
		list = names[len(names)-1]
	}
	for i := 1; i < len(v.argv); i++ {
		if t := v.argv[i].Text; len(t) > 1 && t[0] == '-' && t[len(t)-1] == 'a' && !whole && i+1 < len(v.argv) {
			list = v.argv[i+1]
		}
	}
	seps := sh.separators()
	for _, a := range v.env {
		if a.name == "IFS" && a.value.known() {
			seps = a.value.Text
		}
	}
	if list.Text != "" && syntaxName(list.Text) {
		sh.readList(v, list.Text, text, seps, whole)
		return
	}
	if len(names) == 0 {
		names = []Word{{Text: "REPLY"}}
	}
	rest, _, _ := strings.Cut(text, "\n")
	for i, n := range names {
		w := Word{Text: string(scan.Hole), At: -1, Span: v.argv[0].Span, Var: n.Text, Taint: v.stdin.taint}
		if v.stdin.known {
			rest = strings.TrimSpace(rest)
			w.Text = rest
			w.Glob = v.stdin.word.Glob
			if k := strings.IndexAny(rest, seps); i+1 < len(names) && k >= 0 {
				w.Text, rest = rest[:k], rest[k+1:]
			} else if i+1 < len(names) {
				rest = ""
			}
		}
		if syntaxName(n.Text) {
			sh.set(n.Text, w)
		}
	}
}

// readList is read -a and mapfile.
func (sh *shell) readList(v *invocation, name, text, seps string, lines bool) {
	if !v.stdin.known {
		sh.set(name, Word{Text: string(scan.Hole), At: -1, Span: v.argv[0].Span, Var: name, Taint: v.stdin.taint})
		return
	}
	var parts []string
	if lines {
		parts = strings.Split(strings.TrimRight(text, "\n"), "\n")
	} else {
		line, _, _ := strings.Cut(text, "\n")
		parts = strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(seps, r) })
	}
	var list []Word
	for _, p := range parts[:min(len(parts), scan.MaxLoop)] {
		list = append(list, Word{Text: p, At: -1, Span: v.argv[0].Span, Taint: v.stdin.taint})
	}
	sh.setAll(name, list)
}
