package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// call judges one call of a function or method.
func (r *inlineRun) call(name tokens.Token, args []tokens.Token) {
	if !r.sh.Env.Budget.Spend(1 + len(args)/16) {
		return
	}
	name = r.callee(name)
	if r.callsEach(name, args) {
		return
	}
	if other, rest, ok := r.reflected(name, args); ok {
		name, args = other, rest
	}
	if r.lang == "perl" && name.Text == "open" {
		r.pipeOpen(args)
	}
	r.money(name, args, name.Computed)
	if r.scriptsRedis(name, args) || r.database(name, args) || r.onReceiver(name, args) {
		return
	}
	kind := r.kindOf(name, args)
	if kind == facts.Nothing {
		r.handsOn(name, args)
		return
	}
	if one, other, ok := alternatives(args); ok && r.sh.Env.Budget.Spend(1+len(args)/2) {
		r.call(name, one)
		r.call(name, other)
		return
	}
	r.perform(kind, name, args)
}

// perform judges a call of a known kind. It uses the strings among the arguments, or an unknown
// string if the call has arguments but no string.
func (r *inlineRun) perform(kind facts.Doing, name tokens.Token, args []tokens.Token) {
	list := r.strings(args)
	switch {
	case len(list) > 0 || len(args) == 0 && kind == facts.DropsIndex:
		r.act(kind, name, args, list)
	case len(args) > 0:
		r.act(kind, name, args, []tokens.Token{{Kind: tokens.String, Text: string(scan.Hole), From: args[0].From, To: args[0].To}})
	case kind == facts.DeletesFile || kind == facts.DeletesTree:
		r.sweep()
	case kind == facts.Unpacks:
		r.emit(act.Unpack, tokens.Token{Kind: tokens.String, Text: ".", From: name.From, To: name.To})
	}
}

// scriptsRedis judges a command that a Lua script inside Redis runs, and reports whether the call
// is one.
func (r *inlineRun) scriptsRedis(name tokens.Token, args []tokens.Token) bool {
	if r.lang != "lua" || name.Text != "redis.call" && name.Text != "redis.pcall" && name.Text != "server.call" {
		return false
	}
	list := slices.DeleteFunc(r.strings(args), func(t tokens.Token) bool { // KEYS[1] is one key, not a pattern
		return strings.Trim(t.Text, string(scan.Hole)) == ""
	})
	if len(list) > 0 {
		r.run(append([]tokens.Token{{Text: "redis-cli"}}, list...))
	}
	return true
}

// callee returns the name of the function that is called, after the text's own aliases and
// function variables are replaced.
func (r *inlineRun) callee(name tokens.Token) tokens.Token {
	if other, ok := r.names[name.Text]; ok {
		name.Text = other
	} else if first, rest, ok := strings.Cut(name.Text, "."); ok && r.names[first] != "" {
		name.Text = r.names[first] + "." + rest
	}
	if v, ok := r.vars[strings.TrimLeft(name.Text, "$")]; ok && strings.HasPrefix(name.Text, "$") {
		name.Text = v.Text // PHP calls the function that a variable names
	}
	return name
}

// callsEach judges a call once for each value of a loop variable in its first argument: rmtree(d),
// rmtree(root / d). It reports whether the argument has such a variable.
func (r *inlineRun) callsEach(name tokens.Token, args []tokens.Token) bool {
	if len(r.each) == 0 || r.sinkOf(name.Text) == facts.Nothing {
		return false
	}
	at := r.loopVariable(name, args)
	if at < 0 {
		return false
	}
	variable := strings.TrimLeft(args[at].Text, "$@")
	list := r.each[variable]
	delete(r.each, variable)
	if len(args) > 1 && args[1].Kind == '[' {
		args = args[:1]
	}
	for _, t := range list {
		one := slices.Clone(args)
		one[at] = t
		r.call(name, one)
	}
	return true
}

// loopVariable returns the index of a loop variable with known values in the first argument, or
// -1. The variable must be the whole argument, or a part of a path that the call deletes.
func (r *inlineRun) loopVariable(name tokens.Token, args []tokens.Token) int {
	first := firstArgument(args)
	at := slices.IndexFunc(first, func(t tokens.Token) bool {
		return t.Kind == tokens.Name && r.each[strings.TrimLeft(t.Text, "$@")] != nil
	})
	switch {
	case at == 0 && (len(args) == 1 || args[1].Kind == ',' || args[1].Kind == '['):
	case at > 0 && r.sh.Env.In("languages-with-loops-over-parts", r.lang) && r.sinkOf(name.Text).Deletes() && r.loopsOver(first[at].Text) == 1:
	default:
		return -1
	}
	return at
}

// loopsOver returns the number of loops whose variable has this name.
func (r *inlineRun) loopsOver(name string) (n int) {
	for i, t := range r.toks {
		if t.Text == name && r.after(i) == "in" {
			n++
		}
	}
	return n
}

// act judges the effect of a call of a known kind. list contains the strings among the arguments.
func (r *inlineRun) act(kind facts.Doing, name tokens.Token, args, list []tokens.Token) {
	switch kind {
	case facts.RunsText, facts.RunsWords:
		r.starts(kind, name, args, commandTexts(kind, name, args, list))
	case facts.Evaluates:
		r.evaluate(name, args, list)
	case facts.Loads:
		for _, what := range list {
			r.loads(name, args, what)
		}
	case facts.Saves:
		r.saves(list)
	case facts.Unpickles:
		r.unknown(name, args)
	case facts.DropsIndex:
		r.sh.Env.See(act.RemovesIndex, r.src, name.From, name.To, "")
	case facts.Queries:
		r.queries(list[0])
	case facts.Signals:
		r.signals(args)
	default:
		r.actOnFile(kind, name, args, list)
	}
}

// commandTexts returns the texts of the command that a call starts.
func commandTexts(kind facts.Doing, name tokens.Token, args, list []tokens.Token) []tokens.Token {
	if text, ok := formatted(args); ok && kind == facts.RunsText {
		return []tokens.Token{text}
	}
	if kind == facts.RunsWords && len(list) > 1 && list[0].Text == string(scan.Hole) && strings.Contains(name.Text, "spawn") {
		return list[1:] // skip the mode, as in spawnlp(os.P_WAIT, …)
	}
	return list
}

// queries judges a string as an SQL statement, and reports whether it looks like one.
func (r *inlineRun) queries(t tokens.Token) bool {
	if !stores.LooksSQL(t.Text) {
		return false
	}
	r.readAs("sql", t, nil)
	return true
}

// readAs judges a string of the program text as a text in the language lang.
func (r *inlineRun) readAs(lang string, t tokens.Token, v *act.Invocation) {
	if src := r.src.Inside(r.word(t), r.lang); src.Depth <= scan.MaxDepth {
		r.sh.Read(lang, &src, v)
	}
}

// signals judges a signal that is sent to process -1, that is, to all processes.
func (r *inlineRun) signals(args []tokens.Token) {
	for i, t := range args {
		if t.Kind == '-' && i+1 < len(args) && args[i+1].Text == "1" {
			r.sh.Emit(r.src, r.lang, act.Effect{Op: act.KillAll, From: t.From, To: t.To})
		}
	}
}

// actOnFile judges the effect of a call on a file or a folder.
func (r *inlineRun) actOnFile(kind facts.Doing, name tokens.Token, args, list []tokens.Token) {
	switch kind {
	case facts.DeletesTree, facts.DeletesFile:
		r.deletes(kind, args, list)
	case facts.WritesFile:
		if list[0].Text != string(scan.Hole) {
			r.read(name, []tokens.Token{list[0], {Kind: tokens.String, Text: "w"}})
			r.keeps(list[0], args, list[1:])
		}
	case facts.ReadsFile:
		r.read(name, list)
	case facts.MovesFile, facts.CopiesFile, facts.CopiesTree, facts.LinksFile:
		if len(list) > 1 {
			r.emit(placing[kind], list[:2]...)
		}
	case facts.Enters:
		r.sh.Enter(r.word(list[0]))
	case facts.Unpacks:
		r.emit(act.Unpack, list[len(list)-1])
	case facts.ChangesMode:
		r.changesMode(octal(args), list)
	}
}

// placing maps the kinds of calls that take a source and a destination to their effects.
var placing = map[facts.Doing]act.Op{facts.MovesFile: act.MoveFile, facts.CopiesFile: act.CopyFile, facts.CopiesTree: act.CopyTree, facts.LinksFile: act.LinkFile}

// deletes judges the deletion of a file, a folder, or the listed files of a folder.
func (r *inlineRun) deletes(kind facts.Doing, args, list []tokens.Token) {
	op, lists := act.DeleteFile, slices.ContainsFunc(args, r.lists)
	if kind == facts.DeletesTree {
		op = act.DeleteTree
		for len(list) > 1 && strings.HasPrefix(list[0].Text, "-") { // skip the options before the path
			list = list[1:]
		}
	}
	if lists || kind == facts.DeletesFile && strings.IndexByte(list[0].Text, scan.Hole) >= 0 {
		r.sweep()
	}
	r.emit(op, list[0])
}

// changesMode judges a change of mode for two files, those that the last and the first string
// name, since the order of the arguments differs between languages.
func (r *inlineRun) changesMode(mode string, list []tokens.Token) {
	if mode == "" {
		return
	}
	for _, t := range []tokens.Token{list[len(list)-1], list[0]} {
		r.sh.Emit(r.src, r.lang, act.Effect{Op: act.ChangeMode, Mode: mode, On: r.words([]tokens.Token{t}), From: t.From, To: t.To})
	}
}

// strings returns the strings among the arguments, including those in lists, up to 64.
func (r *inlineRun) strings(args []tokens.Token) []tokens.Token {
	var out []tokens.Token
	if !r.sh.Env.Budget.Spend(1 + len(args)/16) {
		return nil
	}
	depth, start := 0, 0
	for i := 0; i <= len(args) && len(out) < 64; i++ {
		if i < len(args) {
			switch args[i].Kind {
			case '(', '[':
				depth++
			case ')', ']':
				depth--
			}
			if args[i].Kind != ',' || depth > 0 {
				continue
			}
		}
		if part := unnamed(args[start:i]); len(part) > 0 {
			out = append(out, r.partStrings(part, len(args))...)
		}
		start = i + 1
	}
	return out
}

// unnamed returns an argument without its name: atPath: "x", cmd="x". It removes the "*" of *list.
// It returns nil for a named argument whose name is not in textArguments.
func unnamed(part []tokens.Token) []tokens.Token {
	if len(part) > 1 && part[0].Kind == '*' { // "*" passes the elements of a list as arguments
		part = part[1:]
	}
	if len(part) < 3 || part[0].Kind != tokens.Name || part[2].Kind == part[1].Kind {
		return part
	}
	switch part[1].Kind {
	case ':':
		return part[2:]
	case '=':
		if !textArguments.Has(part[0].Text) {
			return nil
		}
		return part[2:]
	}
	return part
}

// partStrings returns the strings of one argument. It stops an endless recursion by the number of
// tokens of the whole argument list, which is the parameter all.
func (r *inlineRun) partStrings(part []tokens.Token, all int) []tokens.Token {
	if inner := listInside(part); inner != nil && len(inner) < all {
		return r.strings(inner)
	}
	if len(part) > 3 && part[0].Kind == '{' && part[1].Text == "args" && part[3].Kind == '[' { // for example {args: ["-rf"]}
		part = part[3:]
	}
	if part[0].Kind == '[' && len(part) < all+1 && !r.known(part) {
		return r.strings(part[1:closing(part, 0)])
	}
	t := r.join(part)
	if t.To == 0 {
		if t = part[0]; len(part) > 1 || t.Kind != tokens.Name || !act.SyntaxName(t.Text) || t.Text[0] <= '9' {
			return nil
		}
		t = tokens.Token{Kind: tokens.String, Text: string(scan.Hole), From: t.From, To: t.To} // a variable with a name of one letter, which join skips
	}
	return []tokens.Token{t}
}

// handsOn judges a call of an unknown function: text that it writes to a started shell, functions
// among its arguments that delete files, and credential files that it lists.
func (r *inlineRun) handsOn(name tokens.Token, args []tokens.Token) {
	last, list := lastName(name.Text), r.strings(args)
	if r.lang == "ruby" && last == "open" {
		r.opensCommand(list)
	}
	if r.feeds && feedCalls.Has(last) || applyCalls.Has(last) && slices.ContainsFunc(args, r.runs) {
		for _, t := range list {
			if r.sh.Env.ActsText(t.Text) {
				r.shellText(t)
			}
		}
	}
	if slices.ContainsFunc(splitArguments(args), r.isDeleter) { // for example lapply(files, unlink)
		r.sweep()
	}
	if r.lists(name) {
		r.readSecrets(list)
	}
}

// opensCommand judges open in Ruby, which runs a command if its text begins with "|".
func (r *inlineRun) opensCommand(list []tokens.Token) {
	if len(list) == 0 || !strings.HasPrefix(list[0].Text, "|") {
		return
	}
	t := list[0]
	t.Text, t.Exact = t.Text[1:], false
	r.shellText(t)
}

// runs reports whether the token is the name of a function that runs a text.
func (r *inlineRun) runs(t tokens.Token) bool {
	if t.Kind != tokens.Name {
		return false
	}
	kind := r.sinkOf(t.Text)
	return kind == facts.RunsText || kind == facts.Evaluates
}

// isDeleter reports whether the argument is the name of a function that deletes files.
func (r *inlineRun) isDeleter(part []tokens.Token) bool {
	return len(part) == 1 && part[0].Kind == tokens.Name && r.sinkOf(part[0].Text).Deletes()
}

// readSecrets judges the reading of the credential files among the texts.
func (r *inlineRun) readSecrets(list []tokens.Token) {
	for _, t := range list {
		if r.sh.Env.Credential(r.word(t), r.sh.Cwd) {
			r.secret = true
			r.emit(act.ReadFile, t)
		}
	}
}

// applyCalls lists functions that call one of their arguments with the others.
var applyCalls = scan.SetOf("preg_replace_callback array_map array_walk array_filter iterator_apply register_shutdown_function forward_static_call do.call Map lapply sapply vapply Reduce")

// feedCalls lists methods that write to a started program.
var feedCalls = scan.SetOf("communicate write end puts sendline send sendLine print println write_all writelines")

// textArguments lists names of arguments whose value is a command, a path, a program text or an
// address.
var textArguments = scan.SetOf("args command cmd popenargs path target src source text file name filename dir directory x code expr cmdline executable prog argv url")

// listInside returns the elements of a list that is written as a call or with a type:
// List.of("rm"), []string{"rm"}, vec!["rm"], &["rm"]. It returns nil if the argument is not such a
// list.
func listInside(part []tokens.Token) []tokens.Token {
	for i, t := range part[:min(len(part), 6)] {
		switch t.Kind {
		case tokens.Name:
			if !listNames.Has(t.Text[strings.LastIndexAny(t.Text, ".:")+1:]) {
				return nil
			}
		case '&', '!', ']':
		case '(', '{', '[':
			if t.Kind == '[' && i > 0 && part[i-1].Kind == tokens.Name { // the bracket is an index
				return nil
			}
			end := closing(part, i)
			if end == i+1 { // these are the brackets of a type such as []string
				continue
			}
			if i == 0 || end+1 != len(part) {
				return nil
			}
			return part[i+1 : end]
		default:
			return nil
		}
	}
	return nil
}

// listNames lists names of functions and types that create a list.
var listNames = scan.SetOf("of asList listOf arrayOf mutableListOf List Seq Array Vector c list vec tuple array string String str new OsString object arrayListOf Vec from")

// reflected returns the function and the arguments of an indirect call. send(:system, "…") and
// call_user_func("system", "…") call the function that the first argument names;
// array_map("unlink", …) calls it for each other argument. It returns false for other calls.
func (r *inlineRun) reflected(name tokens.Token, args []tokens.Token) (tokens.Token, []tokens.Token, bool) {
	switch last := name.Text[strings.LastIndexAny(name.Text, ".:>")+1:]; last {
	case "apply":
		if parts := splitArguments(args); r.lang == "elixir" && len(parts) > 2 && len(parts[2]) > 2 { // for example apply(File, :rm_rf!, [x])
			name.Text = strings.TrimPrefix(r.join(parts[0]).Text, ".") + "." + strings.TrimLeft(parts[1][len(parts[1])-1].Text, ":.")
			return name, parts[2][1 : len(parts[2])-1], true
		}
		return r.calledOn(name, last, args)
	case "call":
		return r.calledOn(name, last, args)
	case "send", "public_send", "__send__", "call_user_func", "call_user_func_array", "array_map", "array_walk":
		return r.calledBy(name, args)
	}
	return name, args, false
}

// calledOn returns the function and the arguments of execSync.call(null, "…") and
// Reflect.apply(execSync, null, ["…"]) in JavaScript.
func (r *inlineRun) calledOn(name tokens.Token, way string, args []tokens.Token) (tokens.Token, []tokens.Token, bool) {
	of, given := strings.TrimSuffix(name.Text, "."+way), args
	parts := splitArguments(args)
	if of == "Reflect" && len(parts) > 2 {
		of = parts[0][len(parts[0])-1].Text
		args, parts = args[len(parts[0])+1:], parts[1:]
	}
	if r.lang != "node" || r.sinkOf(of) == facts.Nothing || len(parts) < 2 || len(parts[0])+1 > len(args) {
		return name, given, false
	}
	name.Text = of
	return name, args[len(parts[0])+1:], true
}

// calledBy returns the function that the first argument names, and the other arguments.
func (r *inlineRun) calledBy(name tokens.Token, args []tokens.Token) (tokens.Token, []tokens.Token, bool) {
	parts := splitArguments(args)
	if len(parts) == 0 || len(parts[0]) == 0 {
		return name, args, false
	}
	first := parts[0]
	called := strings.TrimPrefix(r.join(first).Text, ":")
	r.built(name, first, called)
	if last := first[len(first)-1]; last.Kind == tokens.Name && (called == "" || len(parts) > 1) { // the argument is a symbol such as :delete_all
		called = last.Text
	}
	if len(parts) == 1 {
		if strings.HasSuffix(name.Text, "send") { // for example User.send("delete_all")
			r.named(name.Text[:strings.LastIndexAny(name.Text, ".:")+1], called)
		}
		return name, args, false
	}
	name.Text = name.Text[:strings.LastIndexByte(name.Text, '.')+1] + called
	return name, args[len(first)+1:], true
}

// built reports that a call runs an unknown function, if its name is built from several strings in
// a way that we cannot evaluate. Such code is usually meant to hide the name.
func (r *inlineRun) built(name tokens.Token, args []tokens.Token, method string) {
	pieces := 0
	for _, t := range args {
		if t.Kind == tokens.String {
			pieces++
		}
	}
	if pieces > 1 && (method == "" || strings.IndexByte(method, scan.Hole) >= 0) {
		r.sh.Env.See(act.RunsUnknownText, r.src, name.From, name.To, "")
	}
}

// named judges a method with a computed name as if the text contained the plain call, in case it
// is a method of an object-relational mapper.
func (r *inlineRun) named(receiver, method string) {
	if method = strings.TrimPrefix(method, ":"); method == "" || strings.IndexByte(method, scan.Hole) >= 0 {
		return
	}
	src := *r.src
	src.Span, _ = r.src.Where(0, len(r.src.Text))
	if receiver = strings.TrimRight(receiver, ".:"); receiver == "" {
		receiver = "Model" // the receiver is the result of a call
	}
	src.Text, src.At = receiver+"."+method+"()", -1
	r.sh.Read("orm", &src, nil)
}

// pipeOpen judges open in Perl, which runs a command if its text begins or ends with "|", or if
// the mode before it is "-|" or "|-".
func (r *inlineRun) pipeOpen(args []tokens.Token) {
	list := r.strings(args)
	if slices.ContainsFunc(list, func(t tokens.Token) bool {
		return slices.Contains(r.sh.Env.Groups.Get("shells"), scan.Base(strings.Trim(t.Text, "| ")))
	}) {
		for _, t := range r.toks { // text that is printed to a shell
			if t.Kind == tokens.String && r.sh.Env.ActsText(t.Text) {
				r.shellText(t)
			}
		}
	}
	for i, t := range list {
		r.readSecrets(list[i : i+1])
		if i+1 < len(list) && r.opensAs(strings.Trim(t.Text, " "), t, list[i+1]) || r.opensPipe(t) {
			return
		}
	}
}

// opensAs judges open with a mode and a file or command. It reports whether mode is one of the
// modes it knows.
func (r *inlineRun) opensAs(mode string, at, what tokens.Token) bool {
	switch mode {
	case "-|", "|-":
		r.shellText(what)
	case ">", "+>":
		r.read(at, []tokens.Token{what, {Kind: tokens.String, Text: "w"}})
	case ">>":
		r.read(at, []tokens.Token{what, {Kind: tokens.String, Text: "a"}})
	default:
		return false
	}
	return true
}

// opensPipe judges open with a text whose first or last character is the mode. It reports whether
// the text is a command.
func (r *inlineRun) opensPipe(t tokens.Token) bool {
	text := strings.Trim(t.Text, " ")
	if len(text) < 2 {
		return false
	}
	switch t.Exact = false; {
	case text[0] == '>':
		t.Text = strings.TrimLeft(text, "> ")
		r.read(t, []tokens.Token{t, {Kind: tokens.String, Text: "w"}})
	case text[0] == '|' || text[len(text)-1] == '|':
		t.Text = strings.Trim(text, "|")
		r.shellText(t)
		return true
	}
	return false
}

// octal returns the digits of a file mode among the arguments, written as 0777 or 0o777, or "".
func octal(args []tokens.Token) string {
	for _, t := range args {
		if digits := strings.TrimPrefix(strings.TrimPrefix(t.Text, "0o"), "0"); t.Kind == tokens.Name && (len(digits) == 3 || len(digits) == 4 && digits[0] < '8') && strings.Trim(digits, "01234567") == "" {
			return digits
		}
	}
	return ""
}

// formatted returns the text of "…" % x and "…".format(x) in Python, or of table.concat({…})
// in Lua. An unknown argument becomes an unknown part.
func formatted(args []tokens.Token) (tokens.Token, bool) {
	if len(args) > 3 && args[0].Text == "table.concat" && args[2].Kind == '{' { // Lua joins the words of a table
		end := closing(args, 2)
		var words []string
		for _, t := range args[3:min(end, len(args))] {
			if t.Kind == tokens.String {
				words = append(words, t.Text)
			}
		}
		return tokens.Token{Kind: tokens.String, Text: strings.Join(words, " "), From: args[0].From, To: args[min(end, len(args)-1)].To}, len(words) > 0
	}
	if len(args) < 3 || args[0].Kind != tokens.String {
		return tokens.Token{}, false
	}
	mark := ""
	switch {
	case args[1].Kind == '%':
		mark = "%s"
	case args[1].Text == ".format":
		mark = "{}"
	default:
		return tokens.Token{}, false
	}
	out := args[0]
	out.Exact = false
	for _, t := range args[2:] {
		if t.Kind == tokens.String {
			out.Text = strings.Replace(out.Text, mark, t.Text, 1)
		}
	}
	out.Text = strings.ReplaceAll(out.Text, mark, string(scan.Hole))
	return out, true
}
