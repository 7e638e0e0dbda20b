package posix

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// indexText returns the text of an array index, a number or a key, and false if it is not known.
func indexText(sh *interp.Process, x syntax.ArithmExpr) (string, bool) {
	w, ok := x.(*syntax.Word)
	if !ok {
		n, ok := number(sh, x, 0)
		return strconv.Itoa(n), ok
	}
	t := wordText(sh, w)
	if v, ok := sh.Vars[t.Text]; ok && len(v) == 1 && act.SyntaxName(t.Text) {
		t = v[0]
	}
	return t.Text, t.Known()
}

// setElement sets name[index] to w, or appends w to the element if more is true. A key that is not
// a small number is stored as a variable with the name "name[key]", and as one more element.
func setElement(sh *interp.Process, name string, x syntax.ArithmExpr, w act.Word, more bool) {
	key, ok := indexText(sh, x)
	if !ok {
		setVariable(sh, name, act.Word{Text: string(scan.Hole), At: -1, Span: w.Span, Var: name})
		return
	}
	if commandTable(sh, name, key, w) {
		return
	}
	list := slices.Clone(sh.Vars[name])
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= scan.MaxLoop {
		i = len(list)
		if old := sh.Vars[name+"["+key+"]"]; more && len(old) > 0 {
			w.Text, w.At = old[0].Text+w.Text, -1
		}
		setVariable(sh, name+"["+key+"]", w)
	}
	for len(list) <= i {
		list = append(list, act.Word{At: -1, Span: w.Span})
	}
	if more {
		w.Text, w.At = list[i].Text+w.Text, -1
	}
	list[i] = w
	setAll(sh, name, list)
}

// array sets a variable to the elements of (…).
func array(sh *interp.Process, a *syntax.Assign) {
	var list []act.Word
	if a.Append {
		list = slices.Clone(sh.Vars[a.Name.Value])
	}
	for _, el := range a.Array.Elems {
		if el.Value == nil {
			continue
		}
		if el.Index == nil {
			list = fields(sh, el.Value, list)
			continue
		}
		setAll(sh, a.Name.Value, list)
		setElement(sh, a.Name.Value, el.Index, wordText(sh, el.Value), false)
		list = slices.Clone(sh.Vars[a.Name.Value])
	}
	if !sh.Env.Budget.Spend(1 + len(list)/2) { // setAll copies the list
		list = nil
	}
	setAll(sh, a.Name.Value, list)
}

// refers records that after "declare -n a=b" the names a and b mean the same variable.
func refers(sh *interp.Process, args []*syntax.Assign) {
	naming := false
	for _, a := range args {
		switch {
		case a.Value == nil:
		case a.Name == nil:
			naming = naming || shortOption(wordText(sh, a.Value).Text, 'n')
		case naming:
			sh.Refs = maps.Clone(sh.Refs)
			scan.Put(&sh.Refs, a.Name.Value, wordText(sh, a.Value).Text)
		}
	}
}

// shortOption reports whether t is a group of short options that contains the letter.
func shortOption(t string, letter rune) bool {
	return len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsRune(t, letter)
}

// branches judges alternative branches, each with the variables from before the first one.
// Afterwards a variable has the value from one branch, and the values from the others are stored
// as further possible values. The parameter all means that one of the branches always runs.
func branches(sh *interp.Process, ways []func() act.Flow, all bool) act.Flow {
	before := sh.Vars
	ends := make([]map[string][]act.Word, 0, len(ways)+1)
	if !all {
		ends = append(ends, before)
	}
	var out act.Flow
	for i, way := range ways {
		sh.Vars = maps.Clone(before)
		f := way()
		if i == 0 {
			out = f
		} else {
			out = interp.Join(out, f)
		}
		ends = append(ends, sh.Vars)
	}
	last := ends[len(ends)-1]
	for _, end := range ends[:len(ends)-1] {
		for _, name := range slices.Sorted(maps.Keys(end)) {
			list := end[name]
			switch now, ok := last[name]; {
			case !ok:
				scan.Put(&last, name, list)
			case len(list) == 1 && (len(now) != 1 || now[0].Text != list[0].Text):
				also(sh, name, list[0])
			}
		}
	}
	sh.Vars = last
	return out
}

// also stores a further possible value of a variable. Up to four are stored.
func also(sh *interp.Process, name string, w act.Word) {
	old := sh.Others[name]
	if len(old) >= 4 || slices.ContainsFunc(old, func(o act.Word) bool { return o.Text == w.Text }) {
		return
	}
	sh.Others = maps.Clone(sh.Others)
	scan.Put(&sh.Others, name, append(old[:len(old):len(old)], w))
}

// readsLines returns the known lines of the input if the loop is "while read …", whose body runs
// once for each line.
func readsLines(c *syntax.WhileClause, in act.Flow) ([]string, bool) {
	if len(c.Cond) != 1 || c.Until || !in.Known || in.Word.Glob {
		return nil, false
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "read" {
		return nil, false
	}
	lines := strings.Split(strings.TrimSpace(in.Word.Text), "\n")
	return lines, len(lines) > 1 && len(lines) <= scan.MaxLoop
}

// readsInput sets the variables that read, mapfile or readarray fill from the input.
func readsInput(sh *interp.Process, v *act.Invocation) {
	names := v.Operands
	if list := listRead(v); act.SyntaxName(list) {
		readList(sh, v, list)
		return
	}
	if len(names) == 0 {
		names = []act.Word{{Text: "REPLY"}}
	}
	rest, _, _ := strings.Cut(v.Stdin.Word.Text, "\n")
	for i, n := range names {
		w := act.Word{Text: string(scan.Hole), At: -1, Span: v.Argv[0].Span, Var: n.Text, Taint: v.Stdin.Taint}
		if v.Stdin.Known {
			w.Text, w.Glob = strings.TrimSpace(rest), v.Stdin.Word.Glob
			rest = ""
			if k := strings.IndexAny(w.Text, inputSeparators(sh, v)); i+1 < len(names) && k >= 0 {
				w.Text, rest = w.Text[:k], w.Text[k+1:]
			}
		}
		if act.SyntaxName(n.Text) {
			setVariable(sh, n.Text, w)
		}
	}
}

// listRead returns the name of the array that read -a or mapfile fills, or "".
func listRead(v *act.Invocation) string {
	if v.Exe != "read" {
		return v.Operand(len(v.Operands) - 1)
	}
	for i, w := range v.Argv {
		if len(w.Text) > 1 && w.Text[0] == '-' && w.Text[len(w.Text)-1] == 'a' {
			return v.Word(i + 1).Text
		}
	}
	return ""
}

// inputSeparators returns the characters at which read splits its input.
func inputSeparators(sh *interp.Process, v *act.Invocation) string {
	for _, a := range v.Env {
		if a.Name == "IFS" && a.Value.Known() {
			return a.Value.Text
		}
	}
	return separators(sh)
}

// readList sets the array that read -a or mapfile fills.
func readList(sh *interp.Process, v *act.Invocation, name string) {
	if !v.Stdin.Known {
		setVariable(sh, name, act.Word{Text: string(scan.Hole), At: -1, Span: v.Argv[0].Span, Var: name, Taint: v.Stdin.Taint})
		return
	}
	parts := strings.Split(strings.TrimRight(v.Stdin.Word.Text, "\n"), "\n")
	if v.Exe == "read" {
		seps := inputSeparators(sh, v)
		parts = strings.FieldsFunc(parts[0], func(r rune) bool { return strings.ContainsRune(seps, r) })
	}
	var list []act.Word
	for _, p := range parts[:min(len(parts), scan.MaxLoop)] {
		list = append(list, act.Word{Text: p, At: -1, Span: v.Argv[0].Span, Taint: v.Stdin.Taint})
	}
	setAll(sh, name, list)
}
