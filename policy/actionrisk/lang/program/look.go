package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// at returns the token n after token i, or an empty token.
func (r *inlineRun) at(i, n int) tokens.Token {
	if i+n < len(r.toks) {
		return r.toks[i+n]
	}
	return tokens.Token{}
}

// look judges the expression or statement that begins at token i.
func (r *inlineRun) look(i int) {
	if r.toks[i].Kind != tokens.Name {
		r.lookSign(i)
		return
	}
	_ = r.lookModule(i) || r.lookGiven(i) || r.lookCall(i)
}

// lookSign judges an expression that begins with a string or a sign: a command in backticks, a
// function name that is built from strings, a pipe of awk, a method of a string.
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

// lookText judges a template that a shell runs, $`rm -rf /`, and a method that is called on a
// string or a list.
func (r *inlineRun) lookText(i int) {
	t := r.toks[i]
	switch {
	case t.Kind == tokens.String && r.lang == "node" && i > 0 && r.toks[i-1].Kind == tokens.Name && strings.HasSuffix(r.toks[i-1].Text, "$"):
		r.shellText(t)
	case isMethod(r.toks, i+1) && r.at(i, 2).Kind == '(' && r.at(i, 3).Kind == ')':
		r.onReceiver(r.at(i, 1), nil)
	}
}

// calleeInBrackets judges ("sys"."tem")("…") in PHP. Token i closes the first brackets.
func (r *inlineRun) calleeInBrackets(i int) {
	open := opening(r.toks, i)
	if open > 0 && r.toks[open-1].Kind == tokens.Name {
		return // the brackets contain the arguments of a call
	}
	name := r.toks[i]
	if name.Text = r.join(r.toks[open+1 : i]).Text; act.SyntaxName(name.Text) {
		r.call(name, r.arguments(i+1))
	}
}

// lookModule records the names of imported modules and functions, and judges modules that the
// command itself wrote. It reports whether token i begins such an import or an indirect call.
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

// givesModule reports whether a call that loads a module begins at token i and its result is the
// module, not a member of it.
func (r *inlineRun) givesModule(i int) bool {
	return loadsModule(r.at(i, 0).Text) && r.at(i, 1).Kind == '(' && !strings.HasPrefix(r.after(closing(r.toks, i+1)), ".")
}

// opened records the text of x in "with f() as x", if it is known. Token i is "as".
func (r *inlineRun) opened(i int) {
	open := opening(r.toks, i-1)
	if open == 0 {
		return
	}
	if text, _, known := r.knownName(r.toks, open-1); known {
		r.vars[r.toks[i+1].Text] = tokens.Token{Kind: tokens.String, Text: text, From: r.toks[i].From, To: r.toks[i].To}
	}
}

// lookReflection judges a call at token i that looks up a function by the function's name, such as
// getattr. It reports whether the token begins such a call.
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

// lookImport records the names in "import x as y" and "from x import y" at token i, and judges a
// Python module that the command itself wrote. It reports whether it found one of these.
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

// renamed records a new name for a function that has an effect: {execSync: run}, execSync as run.
// It reports whether token i begins that.
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

// loadsModule reports whether the function returns a module by its name.
func loadsModule(name string) bool {
	return name == "require" || name == "__import__" || strings.HasSuffix(name, "import_module")
}

// lookGiven records the text that is assigned to the name at token i, and reports whether there is
// an assignment. It also judges methods that are called without brackets.
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

// memberOfText reports whether the name at token i is a method without brackets that is called on
// a string or on the result of a call.
func (r *inlineRun) memberOfText(i int) bool {
	return isMethod(r.toks, i) && r.at(i, 1).Kind != '(' && i > 0 && strings.IndexByte(")]s", r.toks[i-1].Kind) >= 0
}

// lookAssigned records the value after the "=" at token i+1. It reports whether it knows this kind
// of value.
func (r *inlineRun) lookAssigned(i int, t tokens.Token) bool {
	switch value := r.at(i, 2).Kind; {
	case startSettings.Has(strings.ToLower(t.Text[strings.LastIndexByte(t.Text, '.')+1:])) && value != '=':
		r.startedBy(i)
	case value == tokens.Name:
		r.givenName(i, t)
	case value == tokens.String || r.opensList(i+2):
		r.assignAt(i+1, t)
	case value == '{': // the value is an object with named values
		if list := stringsIn(r.toks[i+2 : closing(r.toks, i+2)]); len(list) > 0 {
			r.goesThrough(strings.TrimLeft(t.Text, "$@"), list[:min(len(list), scan.MaxLoop)])
		}
	default:
		return false
	}
	return true
}

// opensList reports whether token i opens a list in this language.
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

// stringsIn returns the strings among the tokens.
func stringsIn(toks []tokens.Token) (list []tokens.Token) {
	for _, t := range toks {
		if t.Kind == tokens.String {
			list = append(list, t)
		}
	}
	return list
}

// givenName records a variable whose value is another name or the result of a call.
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

// lookCall judges a call, with or without brackets, and reports whether token i begins one.
func (r *inlineRun) lookCall(i int) bool {
	if r.at(i, 1).Kind != '(' {
		return r.lookBareCall(i)
	}
	switch {
	case i > 1 && r.toks[i-1].Kind == '>' && r.toks[i-2].Kind == '|':
		r.piped(i)
	case i > 0 && definers.Has(r.toks[i-1].Text):
		// the name is defined here, not called
	default:
		r.call(r.toks[i], r.arguments(i+1))
	}
	return true
}

// lookBareCall judges a call without brackets, in languages that allow this. It reports whether
// token i begins one.
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

// acts reports whether a call of the name without brackets has an effect.
func (r *inlineRun) acts(name string) bool {
	kind := r.sinkOf(name)
	return kind != facts.Nothing && kind != facts.ReadsFile || strings.Contains(name, ".") && r.usesService()
}

// beginsArguments reports whether a token of this kind can begin arguments without brackets.
func (r *inlineRun) beginsArguments(kind byte) bool {
	if !r.sh.Env.Language(r.lang).Bare {
		return false
	}
	return kind == tokens.String || kind == tokens.Name || kind == '[' && r.lang != "awk" && r.lang != "perl"
}

// piped judges x |> f(y), which calls f(x, y).
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

// bareEnd returns the index after the arguments without brackets that begin at token i.
func (r *inlineRun) bareEnd(i int) int {
	end := i
	for end < len(r.toks) && r.toks[end].Kind != ';' && r.toks[end].Kind != '}' && !bareEnds.Has(r.toks[end].Text) &&
		(end == i || strings.IndexByte(r.src.Text[min(r.toks[end-1].To, r.toks[end].From):r.toks[end].From], '\n') < 0) {
		end++
	}
	return end
}

// loops records the strings over which a variable iterates: for c in [...], for (const c of
// [...]), [...].forEach(c => …), %w[...].each { |c| … }, foreach ([...] as $c), for c in ("a",
// "b"), range []string{"a"}. Token i opens the list.
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

// listMakers lists Kotlin functions that create a list.
var listMakers = scan.SetOf("listOf arrayOf")

// literals returns the strings of a list, or nil if the list also has other elements.
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

// loopName returns the variable that iterates over the list between the brackets at i and end, or
// "". before is the token before the list.
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

// goesThrough records the strings over which a variable iterates.
func (r *inlineRun) goesThrough(name string, list []tokens.Token) {
	if r.each == nil {
		r.each = map[string][]tokens.Token{}
	}
	r.each[strings.TrimLeft(name, "$@")] = list
}

// bareEnds lists keywords that end the arguments of a call without brackets.
var bareEnds = scan.SetOf("end do if unless or and then else rescue while until in")

// argument reports whether token i is in a list of names that follows an opening bracket or a
// string, so that it is an argument of a call.
func (r *inlineRun) argument(i int) bool {
	for i > 0 && (r.toks[i-1].Kind == ',' || r.toks[i-1].Kind == tokens.Name && r.toks[i].Kind == ',') {
		i--
	}
	return i > 0 && (r.toks[i-1].Kind == '(' || r.toks[i-1].Kind == '[' || r.toks[i-1].Kind == tokens.String)
}

// place returns the index of a name among the names before the "=" at token i, and reports whether
// there are several names.
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

// passes reports whether the function returns its argument, or a path made from it.
func (r *inlineRun) passes(t tokens.Token) bool {
	return r.sh.Env.Named(facts.AsThrough, t.Text, r.lang) != nil
}

// startSettings lists properties that name the program which an object starts.
var startSettings = scan.SetOf("launchpath executableurl filename")

// after returns the text of the token after token i, or "".
func (r *inlineRun) after(i int) string {
	if i+1 < len(r.toks) {
		return r.toks[i+1].Text
	}
	return ""
}

// imported judges a module that the command itself wrote, and reports whether it did.
func (r *inlineRun) imported(name tokens.Token) bool {
	if _, ok := r.sh.Env.WrittenFile(r.sh, name.Text); !ok {
		return false
	}
	r.module(name, name.Text)
	return true
}

// assignAt records the text that the "=" at token i assigns to the variable t.
func (r *inlineRun) assignAt(i int, t tokens.Token) {
	toks := r.toks[i+1 : max(r.statement(i), i+1)]
	if values := splitArguments(toks); len(values) > 1 { // for example a, b = "x", "y"
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

// known reports whether the tokens begin with an expression whose text is known.
func (r *inlineRun) known(toks []tokens.Token) bool {
	_, _, ok := r.value(toks, 0)
	return ok
}

// isList reports whether the tokens are a list in this language.
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

// append adds text to the known text of a variable: c += " -rf".
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

// imports records the names in "from subprocess import run, call as c". i is the index of the
// first name.
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

// computed judges getattr(os, "sys"+"tem")("…"), which calls the function that its string names.
// Token i is getattr.
func (r *inlineRun) computed(i int) {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	comma := slices.IndexFunc(args, func(t tokens.Token) bool { return t.Kind == ',' })
	if comma < 0 || end+1 >= len(r.toks) {
		return
	}
	name := r.toks[i]
	if next := r.toks[end+1]; next.Kind == tokens.Name && strings.HasPrefix(next.Text, ".") && end+2 < len(r.toks) && r.toks[end+2].Kind == '(' { // for example getattr(stripe, "Pay"+"out").create(…)
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

// applied judges method(:system).call("…") and require("rimraf")("…"). It reports whether
// token i begins such a call.
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

// rename records the new name that the program text uses for a function.
func (r *inlineRun) rename(to, from string) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[to] = from
}
