package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// at is the token n after i, or none.
func (r *inlineRun) at(i, n int) tokens.Token {
	if i+n < len(r.toks) {
		return r.toks[i+n]
	}
	return tokens.Token{}
}

// look judges what begins at token i.
func (r *inlineRun) look(i int) {
	if r.toks[i].Kind != tokens.Name {
		r.lookSign(i)
		return
	}
	_ = r.lookModule(i) || r.lookGiven(i) || r.lookCall(i)
}

// lookSign judges what begins with a string or a sign: commands in backticks, callees
// that are put together, awk's pipes, methods of strings.
func (r *inlineRun) lookSign(i int) {
	t := r.toks[i]
	switch t.Kind {
	case tokens.Command:
		r.shellText(t)
	case tokens.String, ']':
		r.lookText(i)
	case ')':
		if r.at(i, 1).Kind == '(' && r.lang == "php" {
			r.calleeInBrackets(i)
		}
	case '[':
		r.indexed(i)
	case '|', '>':
		r.awkSign(i)
	}
}

// lookText judges a template that a shell runs, $`rm -rf /`, and a method that is called on
// a text or a list.
func (r *inlineRun) lookText(i int) {
	t := r.toks[i]
	switch {
	case t.Kind == tokens.String && r.lang == "node" && i > 0 && r.toks[i-1].Kind == tokens.Name && strings.HasSuffix(r.toks[i-1].Text, "$"):
		r.shellText(t)
	case isMethod(r.toks, i+1) && r.at(i, 2).Kind == '(' && r.at(i, 3).Kind == ')':
		r.onReceiver(r.at(i, 1), nil)
	}
}

// calleeInBrackets judges ("sys"."tem")("…") of PHP; the first of them end at i.
func (r *inlineRun) calleeInBrackets(i int) {
	open := opening(r.toks, i)
	if open > 0 && r.toks[open-1].Kind == tokens.Name {
		return // arguments
	}
	name := r.toks[i]
	if name.Text = r.join(r.toks[open+1 : i]).Text; act.SyntaxName(name.Text) {
		r.call(name, r.arguments(i+1))
	}
}

// lookModule notes what modules and functions are called, and runs modules that the
// command wrote; it tells whether there was any of that.
func (r *inlineRun) lookModule(i int) bool {
	t, one := r.toks[i], r.at(i, 1)
	switch {
	case (t.Text == "import" || t.Text == "from") && r.lookImport(i):
	case t.Text == "as" && r.lang == "python" && one.Kind == tokens.Name && i > 0 && r.toks[i-1].Kind == ')':
		r.opened(i)
	case one.Kind == '=' && r.givesModule(i+2):
		r.rename(t.Text, strings.TrimPrefix(r.join(r.arguments(i+3)).Text, "node:"))
	case one.Kind == '(':
		return r.lookReflection(i)
	default:
		return r.renamed(i)
	}
	return true
}

// givesModule: a module is loaded at i, and not a member of it.
func (r *inlineRun) givesModule(i int) bool {
	return loadsModule(r.at(i, 0).Text) && r.at(i, 1).Kind == '(' && !strings.HasPrefix(r.after(closing(r.toks, i+1)), ".")
}

// opened notes the text of "with f() as x", whose "as" is at i, if it is known.
func (r *inlineRun) opened(i int) {
	open := opening(r.toks, i-1)
	if open == 0 {
		return
	}
	if text, _, known := r.knownName(r.toks, open-1); known {
		r.vars[r.toks[i+1].Text] = tokens.Token{Kind: tokens.String, Text: text, From: r.toks[i].From, To: r.toks[i].To}
	}
}

// lookReflection judges a call at i that gives a function by its name.
func (r *inlineRun) lookReflection(i int) bool {
	switch t := r.toks[i]; {
	case t.Text == "getattr":
		r.computed(i)
	case strings.HasSuffix(t.Text, ".const_get"):
		r.constant(i)
	case t.Text == "method" || t.Text == "require":
		return r.applied(i)
	default:
		return false
	}
	return true
}

// lookImport notes what "import x as y" and "from x import y" at i name, and runs a module
// of Python that the command wrote.
func (r *inlineRun) lookImport(i int) bool {
	t, module, word := r.toks[i], r.at(i, 1), r.at(i, 2).Text
	switch {
	case r.lang == "python" && (t.Text == "from" || i < 2 || r.toks[i-2].Text != "from") && module.Kind == tokens.Name && len(r.sh.Env.Files) > 0 && r.imported(module):
	case t.Text == "import" && word == "as":
		r.rename(r.at(i, 3).Text, module.Text)
	case t.Text == "from" && word == "import":
		r.imports(module.Text, i+3)
	default:
		return false
	}
	return true
}

// renamed notes another name for what does something: {execSync: run}, execSync as run.
func (r *inlineRun) renamed(i int) bool {
	t, one, two := r.toks[i], r.at(i, 1), r.at(i, 2)
	if two.Kind != tokens.Name || one.Kind != ':' && one.Text != "as" {
		return false
	}
	if r.sinkOf(t.Text) == facts.Nothing && (r.at(i, 3).Kind == '(' || !facts.Says([]string{t.Text}, "money-nouns") || !r.usesService()) {
		return false
	}
	r.rename(two.Text, t.Text)
	return true
}

// loadsModule: the function gives a module by its name.
func loadsModule(name string) bool {
	return name == "require" || name == "__import__" || strings.HasSuffix(name, "import_module")
}

// lookGiven notes the text that a name is given; it tells whether one is.
func (r *inlineRun) lookGiven(i int) bool {
	t, one, two, three := r.toks[i], r.at(i, 1), r.at(i, 2).Kind, r.at(i, 3).Kind
	switch {
	case r.memberOfText(i) && r.onReceiver(t, nil):
	case one.Kind == '=':
		return r.lookAssigned(i, t)
	case two == '=':
		if one.Kind != '+' && one.Text != "." {
			return false
		}
		r.append(i, t)
	case three == '=' && (one.Kind == '[' && two == ']' || one.Kind == ',' && two == tokens.Name && !r.argument(i)):
		r.assignAt(i+3, t)
	default:
		return false
	}
	return true
}

// memberOfText: the name at i is a method without brackets, of a text or what a call gives.
func (r *inlineRun) memberOfText(i int) bool {
	return isMethod(r.toks, i) && r.at(i, 1).Kind != '(' && i > 0 && strings.IndexByte(")]s", r.toks[i-1].Kind) >= 0
}

// lookAssigned notes what is after the sign of assignment at i+1.
func (r *inlineRun) lookAssigned(i int, t tokens.Token) bool {
	switch value := r.at(i, 2).Kind; {
	case startSettings.Has(strings.ToLower(t.Text[strings.LastIndexByte(t.Text, '.')+1:])) && value != '=':
		r.startedBy(i)
	case value == tokens.Name:
		r.givenName(i, t)
	case value == tokens.String || r.opensList(i+2):
		r.assignAt(i+1, t)
	case value == '{': // by name
		if list := stringsIn(r.toks[i+2 : closing(r.toks, i+2)]); len(list) > 0 {
			r.goesThrough(strings.TrimLeft(t.Text, "$@"), list[:min(len(list), scan.MaxLoop)])
		}
	default:
		return false
	}
	return true
}

// opensList: the bracket at i opens a list, in this language.
func (r *inlineRun) opensList(i int) bool {
	switch r.at(i, 0).Kind {
	case '[':
		return true
	case '(':
		return r.lang == "perl"
	case '{':
		return r.sh.Env.In("languages-with-brace-lists", r.lang)
	}
	return false
}

// stringsIn are the strings among tokens.
func stringsIn(toks []tokens.Token) (list []tokens.Token) {
	for _, t := range toks {
		if t.Kind == tokens.String {
			list = append(list, t)
		}
	}
	return list
}

// givenName notes a name that is given another one, or what a call gives.
func (r *inlineRun) givenName(i int, t tokens.Token) {
	for j := i + 2; j < min(i+12, len(r.toks)) && r.toks[j].Kind != ';'; j++ {
		if s := r.toks[j]; s.Kind == tokens.Name && r.sinkOf(s.Text) != facts.Nothing && (j+1 == len(r.toks) || r.toks[j+1].Kind != '(') {
			r.rename(t.Text, s.Text)
		}
	}
	if v, _, ok := r.value(r.toks[:r.statement(i)], i+2); ok && v.Text != "" || r.toks[i+2].Text == "array" || r.at(i, 3).Kind == '(' && r.passes(r.toks[i+2]) {
		r.assignAt(i+1, t)
	}
}

// lookCall judges a call, with brackets or without, and tells whether it is one.
func (r *inlineRun) lookCall(i int) bool {
	if r.at(i, 1).Kind != '(' {
		return r.lookBareCall(i)
	}
	switch {
	case i > 1 && r.toks[i-1].Kind == '>' && r.toks[i-2].Kind == '|':
		r.piped(i)
	case i > 0 && definers.Has(r.toks[i-1].Text):
		// a definition
	default:
		r.call(r.toks[i], r.arguments(i+1))
	}
	return true
}

// lookBareCall judges a call without brackets, in languages that know such.
func (r *inlineRun) lookBareCall(i int) bool {
	t, one := r.toks[i], r.at(i, 1).Kind
	switch {
	case r.lang == "perl" && t.Text == "unlink" && (one == '}' || one == ';' || one == 0):
		r.sweep()
	case r.lang == "perl" && t.Text == "open":
		r.pipeOpen(r.toks[i+1 : max(r.statement(i), i+1)])
	case r.beginsArguments(one):
		if r.acts(t.Text) {
			r.call(t, r.toks[i+1:r.bareEnd(i+1)])
		}
	default:
		return false
	}
	return true
}

// acts: a call of the name does something without brackets.
func (r *inlineRun) acts(name string) bool {
	kind := r.sinkOf(name)
	return kind != facts.Nothing && kind != facts.ReadsFile || strings.Contains(name, ".") && r.usesService()
}

// beginsArguments: a token of this kind may begin arguments without brackets.
func (r *inlineRun) beginsArguments(kind byte) bool {
	if !r.sh.Env.Language(r.lang).Bare {
		return false
	}
	return kind == tokens.String || kind == tokens.Name || kind == '[' && r.lang != "awk" && r.lang != "perl"
}

// piped judges x |> f(y): what is piped is the first argument.
func (r *inlineRun) piped(i int) {
	start := r.statementStart(i - 2)
	if !r.sh.Env.Budget.Spend(1 + (i-start)/2) {
		return
	}
	left := slices.Clone(r.toks[start : i-2])
	if args := r.arguments(i + 1); len(args) > 0 {
		left = append(append(left, tokens.Token{Kind: ',', Text: ","}), args...)
	}
	tokens.Pair(left)
	r.call(r.toks[i], left)
}

// bareEnd is where the arguments end that begin at i without a bracket.
func (r *inlineRun) bareEnd(i int) int {
	end := i
	for end < len(r.toks) && r.toks[end].Kind != ';' && r.toks[end].Kind != '}' && !bareEnds.Has(r.toks[end].Text) &&
		(end == i || strings.IndexByte(r.src.Text[min(r.toks[end-1].To, r.toks[end].From):r.toks[end].From], '\n') < 0) {
		end++
	}
	return end
}

// loops notes the strings that a variable goes through: for c in [...], for (const c
// of [...]), [...].forEach(c => …), %w[...].each { |c| … }, foreach ([...] as $c),
// for c in ("a", "b"), range []string{"a"}.
func (r *inlineRun) loops(i int) {
	open, before := r.toks[i].Kind, ""
	if i > 0 {
		before = r.toks[i-1].Text
	}
	switch {
	case open == '[':
	case open == '(' && (before == "in" || listMakers.Has(before)):
	case open == '{' && before == "string":
	default:
		return
	}
	end := closing(r.toks, i)
	if end >= len(r.toks) {
		return
	}
	if list, name := literals(r.toks[i+1:end]), r.loopName(i, end, before); name != "" && len(list) > 0 && len(list) <= scan.MaxLoop {
		r.goesThrough(name, list)
	}
}

// listMakers make the list of Kotlin that a loop goes through.
var listMakers = scan.SetOf("listOf arrayOf")

// literals are the strings between commas; none if anything else is given.
func literals(toks []tokens.Token) (list []tokens.Token) {
	for _, t := range toks {
		switch t.Kind {
		case tokens.String:
			list = append(list, t)
		case ',':
		default:
			return nil
		}
	}
	return list
}

// loopName is the variable that goes through the list between the brackets at i and end.
func (r *inlineRun) loopName(i, end int, before string) string {
	switch {
	case i > 1 && (before == "in" || before == "of"):
		return r.toks[i-2].Text
	case i > 2 && listMakers.Has(before) && r.toks[i-2].Text == "in":
		return r.toks[i-3].Text
	case i > 5 && r.toks[i].Kind == '{' && r.toks[i-4].Text == "range":
		return r.toks[i-6].Text
	}
	switch r.after(end) {
	case ".forEach", ".map", ".each", "as":
		behind := r.toks[min(end+2, len(r.toks)):min(end+5, len(r.toks))]
		if i := slices.IndexFunc(behind, func(t tokens.Token) bool { return t.Kind == tokens.Name }); i >= 0 {
			return behind[i].Text
		}
	}
	return ""
}

// goesThrough notes the strings that a name may stand for.
func (r *inlineRun) goesThrough(name string, list []tokens.Token) {
	if r.each == nil {
		r.each = map[string][]tokens.Token{}
	}
	r.each[strings.TrimLeft(name, "$@")] = list
}

// bareEnds end the arguments of a call without brackets.
var bareEnds = scan.SetOf("end do if unless or and then else rescue while until in")

// argument: the names in front of token i, with commas between them, begin after a
// bracket.
func (r *inlineRun) argument(i int) bool {
	for i > 0 && (r.toks[i-1].Kind == ',' || r.toks[i-1].Kind == tokens.Name && r.toks[i].Kind == ',') {
		i--
	}
	return i > 0 && (r.toks[i-1].Kind == '(' || r.toks[i-1].Kind == '[' || r.toks[i-1].Kind == tokens.String)
}

// place is which of the names before the sign at i a name is, and whether there are
// several.
func (r *inlineRun) place(t tokens.Token, i int) (int, bool) {
	k, n := 0, 0
	for j := i - 1; j > 0 && r.toks[j].Kind == tokens.Name; j -= 2 {
		if n++; r.toks[j].From == t.From {
			k = n
		}
		if r.toks[j-1].Kind != ',' {
			break
		}
	}
	return n - k, n > 1 && k > 0
}

// passes: the call gives the text of its argument, or a path made of it.
func (r *inlineRun) passes(t tokens.Token) bool {
	return r.sh.Env.Named(facts.AsThrough, t.Text, r.lang) != nil
}

// startSettings name the program that an object is going to start.
var startSettings = scan.SetOf("launchpath executableurl filename")

// after is the text of the token after i.
func (r *inlineRun) after(i int) string {
	if i+1 < len(r.toks) {
		return r.toks[i+1].Text
	}
	return ""
}

// imported runs a module that the command itself wrote.
func (r *inlineRun) imported(name tokens.Token) bool {
	if _, ok := r.sh.Env.WrittenFile(r.sh, name.Text); !ok {
		return false
	}
	r.module(name, name.Text)
	return true
}

// assignAt notes what the sign at i gives to a variable.
func (r *inlineRun) assignAt(i int, t tokens.Token) {
	toks := r.toks[i+1 : max(r.statement(i), i+1)]
	if values := splitArguments(toks); len(values) > 1 { // a, b = "x", "y"
		if k, several := r.place(t, i); several && k < len(values) {
			toks = values[k]
		}
	}
	name := strings.TrimLeft(t.Text, "$@")
	if r.isList(toks) && !r.known(toks) {
		at := slices.IndexFunc(toks, func(t tokens.Token) bool { return shuts[t.Kind] != 0 })
		end := max(closing(toks, at), at+1)
		if words := r.strings(toks[at+1 : end]); len(words) > 0 {
			v := r.listed(words, " ", t)
			v.List = true
			r.vars[name] = v
		}
		return
	}
	if v := r.join(toks); v.To > 0 {
		r.vars[name] = v
	}
}

// known: the text that begins the tokens is known.
func (r *inlineRun) known(toks []tokens.Token) bool {
	_, _, ok := r.value(toks, 0)
	return ok
}

// isList: the tokens are a list, written as the language writes one.
func (r *inlineRun) isList(toks []tokens.Token) bool {
	if len(toks) < 2 {
		return false
	}
	switch toks[0].Kind {
	case '[':
		return true
	case '(':
		return r.lang == "perl"
	case '{':
		return r.lang == "lua"
	}
	return toks[0].Text == "array" && toks[1].Kind == '('
}

// append notes what is put after a variable's text: c += " -rf".
func (r *inlineRun) append(i int, t tokens.Token) {
	name := strings.TrimLeft(t.Text, "$@")
	old, ok := r.vars[name]
	if !ok {
		return
	}
	more := r.join(r.toks[i+3 : max(r.statement(i), i+3)])
	if more.To == 0 || len(old.Text)+len(more.Text) > scan.MaxValue {
		more.Text = string(scan.Hole)
	}
	old.Text, old.Exact, old.List = old.Text+more.Text, false, false
	r.vars[name] = old
}

// imports: "from subprocess import run, call as c".
func (r *inlineRun) imports(module string, i int) {
	for ; i < len(r.toks) && r.toks[i].Kind == tokens.Name; i++ {
		name := r.toks[i].Text
		if i+2 < len(r.toks) && r.toks[i+1].Text == "as" {
			i += 2
		}
		r.rename(r.toks[i].Text, module+"."+name)
		if i+1 >= len(r.toks) || r.toks[i+1].Kind != ',' {
			return
		}
		i++
	}
}

// computed: getattr(os, "sys"+"tem")("…") calls what its string names.
func (r *inlineRun) computed(i int) {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	comma := slices.IndexFunc(args, func(t tokens.Token) bool { return t.Kind == ',' })
	if comma < 0 || end+1 >= len(r.toks) {
		return
	}
	name := r.toks[i]
	if next := r.toks[end+1]; next.Kind == tokens.Name && strings.HasPrefix(next.Text, ".") && end+2 < len(r.toks) && r.toks[end+2].Kind == '(' { // getattr(stripe, "Pay"+"out").create(…)
		name.Text, name.From = r.join(args[:comma]).Text+"."+r.join(args[comma+1:]).Text+next.Text, next.From
		r.money(name, r.arguments(end+2), true)
		return
	}
	if r.toks[end+1].Kind != '(' {
		r.alias(i, r.join(args[:comma]).Text, r.join(args[comma+1:]).Text, args[0])
		return
	}
	called := r.join(args[comma+1:]).Text
	if called == "" || !act.SyntaxName(called) {
		r.unknownCall(name, r.arguments(end+1))
	}
	r.named(r.src.Text[min(args[0].From, args[comma].From):args[comma].From], called)
	name.Text, name.Computed = "os."+called, true
	r.call(name, r.arguments(end+1))
}

// applied: method(:system).call("…") and require("rimraf")("…").
func (r *inlineRun) applied(i int) bool {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	if len(args) == 0 || end+1 >= len(r.toks) {
		return false
	}
	if r.toks[end+1].Kind == tokens.Name && strings.HasSuffix(r.toks[end+1].Text, "call") {
		end++
	}
	name := r.toks[i]
	name.Text = strings.TrimPrefix(args[len(args)-1].Text, ":")
	if end+1 >= len(r.toks) || r.toks[end+1].Kind != '(' || r.sinkOf(name.Text) == facts.Nothing {
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
