package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// at is the token n behind i, or none.
func (r *inlineRun) at(i, n int) inlineToken {
	if i+n < len(r.toks) {
		return r.toks[i+n]
	}
	return inlineToken{}
}

// look judges what begins at token i.
func (r *inlineRun) look(i int) {
	if r.toks[i].kind != 'i' {
		r.lookSign(i)
		return
	}
	_ = r.lookModule(i) || r.lookGiven(i) || r.lookCall(i)
}

// lookSign judges what begins with a string or a sign: commands in backticks, callees
// that are put together, awk's pipes, methods of strings.
func (r *inlineRun) lookSign(i int) {
	t, next := r.toks[i], func(n int) inlineToken { return r.at(i, n) }
	switch {
	case t.kind == 'x', t.kind == 's' && i > 0 && r.toks[i-1].kind == 'i' && strings.HasSuffix(r.toks[i-1].text, "$") && r.lang == "node":
		r.shellText(t)
	case t.kind == ')' && next(1).kind == '(' && r.lang == "php":
		if open := opening(r.toks, i, '(', ')'); open == 0 || r.toks[open-1].kind != 'i' {
			name := t
			if name.text = r.join(r.toks[open+1 : i]).text; syntaxName(name.text) {
				r.call(name, r.arguments(i+1))
			}
		}
	case t.kind == '[':
		r.indexed(i)
	case r.lang == "awk" && t.kind == '|':
		r.awkPipe(i)
	case r.lang == "awk" && t.kind == '>' && next(1).kind == 's':
		r.read(t, []inlineToken{next(1), {kind: 's', text: "w"}})
		if left := r.awkPrinted(i); left.to > 0 && strings.IndexByte(left.text, scan.Hole) < 0 {
			r.sh.e.remember(r.sh, r.word(next(1)), flow{word: r.word(left), known: true}, false)
		}
	case (t.kind == 's' || t.kind == ']') && next(1).kind == 'i' && next(2).kind == '(' && next(3).kind == ')' && strings.HasPrefix(next(1).text, "."):
		r.onReceiver(next(1), nil)
	}
}

// lookModule notes what modules and functions are called, and runs modules that the
// command wrote; it tells whether there was any of that.
func (r *inlineRun) lookModule(i int) bool {
	t, next := r.toks[i], func(n int) inlineToken { return r.at(i, n) }
	switch {
	case r.lang == "python" && (t.text == "from" || t.text == "import" && (i < 2 || r.toks[i-2].text != "from")) && next(1).kind == 'i' && len(r.sh.e.files) > 0 && r.imported(next(1)):
	case t.text == "import" && next(2).text == "as":
		r.rename(next(3).text, next(1).text)
	case t.text == "from" && next(2).text == "import":
		r.imports(next(1).text, i+3)
	case t.text == "as" && r.lang == "python" && next(1).kind == 'i' && i > 0 && r.toks[i-1].kind == ')':
		if open := opening(r.toks, i-1, '(', ')'); open > 0 {
			if text, _, known := r.knownName(r.toks, open-1); known {
				r.vars[next(1).text] = inlineToken{kind: 's', text: text, from: t.from, to: t.to}
			}
		}
	case next(1).kind == '=' && loadsModule(next(2).text) && next(3).kind == '(' && !strings.HasPrefix(r.after(closing(r.toks, i+3, '(', ')')), "."):
		r.rename(t.text, strings.TrimPrefix(r.join(r.arguments(i+3)).text, "node:"))
	case t.text == "getattr" && next(1).kind == '(':
		r.computed(i)
	case strings.HasSuffix(t.text, ".const_get") && next(1).kind == '(':
		r.constant(i)
	case (t.text == "method" || t.text == "require") && next(1).kind == '(' && r.applied(i):
	case next(2).kind == 'i' && (next(1).kind == ':' || next(1).text == "as") && (sinkOf(t.text, r.lang) != 0 || next(3).kind != '(' && verbs().nouns[strings.TrimSuffix(t.text, "s")] && r.usesService()):
		r.rename(next(2).text, t.text)
	default:
		return false
	}
	return true
}

// loadsModule: the function gives a module by its name.
func loadsModule(name string) bool {
	return name == "require" || name == "__import__" || strings.HasSuffix(name, "import_module")
}

// lookGiven notes the text that a name is given; it tells whether one is.
func (r *inlineRun) lookGiven(i int) bool {
	t, next := r.toks[i], func(n int) inlineToken { return r.at(i, n) }
	switch {
	case t.text[0] == '.' && next(1).kind != '(' && i > 0 && strings.IndexByte(")]s", r.toks[i-1].kind) >= 0 && r.onReceiver(t, nil):
	case next(1).kind == '=' && startSettings[strings.ToLower(t.text[strings.LastIndexByte(t.text, '.')+1:])] && next(2).kind != '=':
		r.startedBy(i)
	case (next(1).kind == '+' || next(1).text == ".") && next(2).kind == '=':
		r.append(i, t)
	case next(1).kind == '[' && next(2).kind == ']' && next(3).kind == '=', next(1).kind == ',' && next(2).kind == 'i' && next(3).kind == '=' && !r.argument(i):
		r.assignAt(i+3, t)
	case next(1).kind == '=' && next(2).kind == 'i':
		r.givenName(i, t)
	case next(1).kind == '=' && (next(2).kind == 's' || next(2).kind == '[' || next(2).kind == '(' && r.lang == "perl" || next(2).kind == '{' && braceLists[r.lang]):
		r.assign(i, t)
	case next(1).kind == '=' && next(2).kind == '{': // by name
		var list []inlineToken
		for _, v := range r.toks[i+2 : min(closing(r.toks, i+2, '{', '}'), len(r.toks))] {
			if v.kind == 's' && len(list) < scan.MaxLoop {
				list = append(list, v)
			}
		}
		if len(list) > 0 {
			r.goesThrough(strings.TrimLeft(t.text, "$@"), list)
		}
	default:
		return false
	}
	return true
}

// givenName notes a name that is given another one, or what a call gives.
func (r *inlineRun) givenName(i int, t inlineToken) {
	for j := i + 2; j < min(i+12, len(r.toks)) && r.toks[j].kind != ';'; j++ {
		if s := r.toks[j]; s.kind == 'i' && sinkOf(s.text, r.lang) != 0 && (j+1 == len(r.toks) || r.toks[j+1].kind != '(') {
			r.rename(t.text, s.text)
		}
	}
	if v, _, ok := r.value(r.toks[:r.statement(i)], i+2); ok && v.text != "" || r.toks[i+2].text == "array" || r.at(i, 3).kind == '(' && r.passes(r.toks[i+2]) {
		r.assign(i, t)
	}
}

// lookCall judges a call, with brackets or without, and tells whether it is one.
func (r *inlineRun) lookCall(i int) bool {
	t, next := r.toks[i], func(n int) inlineToken { return r.at(i, n) }
	switch {
	case next(1).kind == '(' && i > 1 && r.toks[i-1].kind == '>' && r.toks[i-2].kind == '|': // what is piped is the first argument
		start := r.statementStart(i - 2)
		if !r.sh.e.budget.spend(1 + (i-start)/2) {
			return true
		}
		left := slices.Clone(r.toks[start : i-2])
		if args := r.arguments(i + 1); len(args) > 0 {
			left = append(append(left, inlineToken{kind: ',', text: ","}), args...)
		}
		pair(left)
		r.call(t, left)
	case next(1).kind == '(' && i > 0 && definers[r.toks[i-1].text]:
		// a definition
	case next(1).kind == '(':
		r.call(t, r.arguments(i+1))
	case r.lang == "perl" && t.text == "unlink" && (next(1).kind == '}' || next(1).kind == ';' || next(1).kind == 0):
		r.sweep()
	case t.text == "open" && r.lang == "perl" && next(1).kind != '(':
		r.pipeOpen(r.toks[i+1 : max(r.statement(i), i+1)])
	case ruleset().code.language(r.lang).Bare && (next(1).kind == 's' || next(1).kind == 'i' || next(1).kind == '[' && r.lang != "awk" && r.lang != "perl"):
		if k := sinkOf(t.text, r.lang); k != 0 && k != 'r' || strings.Contains(t.text, ".") && r.usesService() {
			r.call(t, r.toks[i+1:r.bareEnd(i+1)])
		}
	default:
		return false
	}
	return true
}

// bareEnd is where the arguments end that begin at i without a bracket.
func (r *inlineRun) bareEnd(i int) int {
	end := i
	for end < len(r.toks) && r.toks[end].kind != ';' && r.toks[end].kind != '}' && !bareEnds[r.toks[end].text] &&
		(end == i || strings.IndexByte(r.src.text[min(r.toks[end-1].to, r.toks[end].from):r.toks[end].from], '\n') < 0) {
		end++
	}
	return end
}

// loops notes the strings that a variable goes through: for c in [...], for (const c
// of [...]), [...].forEach(c => …), %w[...].each { |c| … }, foreach ([...] as $c),
// for c in ("a", "b"), range []string{"a"}.
func (r *inlineRun) loops(i int) {
	open := r.toks[i].kind
	if open != '[' && open != '(' && open != '{' {
		return
	}
	before := ""
	if i > 0 {
		before = r.toks[i-1].text
	}
	if open == '(' && before != "in" && before != "listOf" && before != "arrayOf" || open == '{' && before != "string" {
		return
	}
	end := closing(r.toks, i, open, map[byte]byte{'[': ']', '(': ')', '{': '}'}[open])
	if end >= len(r.toks) {
		return
	}
	var list []inlineToken
	for _, t := range r.toks[i+1 : end] {
		switch {
		case t.kind == 's':
			list = append(list, t)
		case t.kind != ',':
			return
		}
	}
	name := ""
	switch {
	case i > 1 && (before == "in" || before == "of"):
		name = r.toks[i-2].text
	case i > 2 && (before == "listOf" || before == "arrayOf") && r.toks[i-2].text == "in":
		name = r.toks[i-3].text
	case i > 5 && open == '{' && r.toks[i-4].text == "range":
		name = r.toks[i-6].text
	}
	if end+1 < len(r.toks) {
		after := r.toks[end+1].text
		for j := end + 2; j < min(end+5, len(r.toks)) && name == "" && (after == ".forEach" || after == ".map" || after == ".each" || after == "as"); j++ {
			if r.toks[j].kind == 'i' {
				name = r.toks[j].text
			}
		}
	}
	if name == "" || len(list) == 0 || len(list) > scan.MaxLoop {
		return
	}
	r.goesThrough(name, list)
}

// goesThrough notes the strings that a name may stand for.
func (r *inlineRun) goesThrough(name string, list []inlineToken) {
	if r.each == nil {
		r.each = map[string][]inlineToken{}
	}
	r.each[strings.TrimLeft(name, "$@")] = list
}

// braceLists are the languages in which a brace begins a list.
var braceLists = scan.SetOf("lua c java csharp go")

// bareEnds end the arguments of a call without brackets.
var bareEnds = scan.SetOf("end do if unless or and then else rescue while until in")

// argument: the names in front of token i, with commas between them, begin behind a
// bracket.
func (r *inlineRun) argument(i int) bool {
	for i > 0 && (r.toks[i-1].kind == ',' || r.toks[i-1].kind == 'i' && r.toks[i].kind == ',') {
		i--
	}
	return i > 0 && (r.toks[i-1].kind == '(' || r.toks[i-1].kind == '[' || r.toks[i-1].kind == 's')
}

// place is which of the names before the sign at i a name is, and whether there are
// several.
func (r *inlineRun) place(t inlineToken, i int) (int, bool) {
	k, n := 0, 0
	for j := i - 1; j > 0 && r.toks[j].kind == 'i'; j -= 2 {
		if n++; r.toks[j].from == t.from {
			k = n
		}
		if r.toks[j-1].kind != ',' {
			break
		}
	}
	return n - k, n > 1 && k > 0
}

// passes: the call gives the text of its argument, or a path made of it.
func (r *inlineRun) passes(t inlineToken) bool {
	_, ok := named(ruleset().code.through, t.text, r.lang)
	return ok
}

// startSettings name the program that an object is going to start.
var startSettings = scan.SetOf("launchpath executableurl filename")

// after is the text of the token behind i.
func (r *inlineRun) after(i int) string {
	if i+1 < len(r.toks) {
		return r.toks[i+1].text
	}
	return ""
}

// imported runs a module that the command itself wrote.
func (r *inlineRun) imported(name inlineToken) bool {
	if _, ok := r.sh.e.writtenFile(r.sh, name.text); !ok {
		return false
	}
	r.module(name, name.text)
	return true
}

// assign notes the text that a variable is given at token i.
func (r *inlineRun) assign(i int, t inlineToken) { r.assignAt(i+1, t) }

// assignAt notes what the sign at i gives to a variable.
func (r *inlineRun) assignAt(i int, t inlineToken) {
	toks := r.toks[i+1 : max(r.statement(i), i+1)]
	if values := splitArguments(toks); len(values) > 1 { // a, b = "x", "y"
		if k, several := r.place(t, i); several && k < len(values) {
			toks = values[k]
		}
	}
	if list := len(toks) > 1 && (toks[0].kind == '[' || toks[0].text == "array" && toks[1].kind == '(' || r.lang == "perl" && toks[0].kind == '(' || r.lang == "lua" && toks[0].kind == '{'); list {
		if _, _, ok := r.value(toks, 0); !ok {
			at := slices.IndexFunc(toks, func(t inlineToken) bool { return t.kind == '[' || t.kind == '(' || t.kind == '{' })
			shut := map[byte]byte{'[': ']', '(': ')', '{': '}'}[toks[at].kind]
			end := max(min(closing(toks, at, toks[at].kind, shut), len(toks)), at+1)
			if words := r.strings(toks[at+1 : end]); len(words) > 0 {
				v := r.listed(words, " ", t)
				v.list = true
				r.vars[strings.TrimLeft(t.text, "$@")] = v
			}
			return
		}
	}
	if v := r.join(toks); v.to > 0 {
		r.vars[strings.TrimLeft(t.text, "$@")] = v
	}
}

// append notes what is put behind a variable's text: c += " -rf".
func (r *inlineRun) append(i int, t inlineToken) {
	name := strings.TrimLeft(t.text, "$@")
	old, ok := r.vars[name]
	if !ok {
		return
	}
	more := r.join(r.toks[i+3 : max(r.statement(i), i+3)])
	if more.to == 0 || len(old.text)+len(more.text) > scan.MaxValue {
		more.text = string(scan.Hole)
	}
	old.text, old.exact, old.list = old.text+more.text, false, false
	r.vars[name] = old
}

// imports: "from subprocess import run, call as c".
func (r *inlineRun) imports(module string, i int) {
	for ; i < len(r.toks) && r.toks[i].kind == 'i'; i++ {
		name := r.toks[i].text
		if i+2 < len(r.toks) && r.toks[i+1].text == "as" {
			i += 2
		}
		r.rename(r.toks[i].text, module+"."+name)
		if i+1 >= len(r.toks) || r.toks[i+1].kind != ',' {
			return
		}
		i++
	}
}

// computed: getattr(os, "sys"+"tem")("…") calls what its string names.
func (r *inlineRun) computed(i int) {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	comma := slices.IndexFunc(args, func(t inlineToken) bool { return t.kind == ',' })
	if comma < 0 || end+1 >= len(r.toks) {
		return
	}
	name := r.toks[i]
	if next := r.toks[end+1]; next.kind == 'i' && strings.HasPrefix(next.text, ".") && end+2 < len(r.toks) && r.toks[end+2].kind == '(' { // getattr(stripe, "Pay"+"out").create(…)
		name.text, name.from = r.join(args[:comma]).text+"."+r.join(args[comma+1:]).text+next.text, next.from
		r.money(name, r.arguments(end+2), true)
		return
	}
	if r.toks[end+1].kind != '(' {
		r.alias(i, r.join(args[:comma]).text, r.join(args[comma+1:]).text, args[0])
		return
	}
	called := r.join(args[comma+1:]).text
	if called == "" || !syntaxName(called) {
		r.unknownCall(name, r.arguments(end+1))
	}
	r.named(r.src.text[min(args[0].from, args[comma].from):args[comma].from], called)
	name.text, name.computed = "os."+called, true
	r.call(name, r.arguments(end+1))
}

// applied: method(:system).call("…") and require("rimraf")("…").
func (r *inlineRun) applied(i int) bool {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	if len(args) == 0 || end+1 >= len(r.toks) {
		return false
	}
	if r.toks[end+1].kind == 'i' && strings.HasSuffix(r.toks[end+1].text, "call") {
		end++
	}
	name := r.toks[i]
	name.text = strings.TrimPrefix(args[len(args)-1].text, ":")
	if end+1 >= len(r.toks) || r.toks[end+1].kind != '(' || sinkOf(name.text, r.lang) == 0 {
		return false
	}
	r.call(name, r.arguments(end+1))
	return true
}

// rename notes that the text calls a function by another name.
func (r *inlineRun) rename(to, from string) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[to] = from
}
