package posix

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Call judges one simple command and gives what it prints: it finds out which program
// that is and how it is called, lets whoever else takes the call have it, runs what
// the program carries and holds the rest against the tables.
func Call(sh *interp.Process, v *act.Invocation) act.Flow {
	e := sh.Env
	if e.Invocations++; e.Invocations > scan.MaxInvocations || !e.Budget.Spend(16+2*len(v.Argv)) || sh.Src.Depth > scan.MaxDepth {
		e.TooDeep = true
		return act.Flow{}
	}
	e.Ran = true
	v.Cwd, v.Root, v.Remote, v.Host, v.Scratch = sh.Cwd, v.Root || sh.Root, v.Remote || sh.Remote, sh.Host, sh.Scratch
	if out, ok := defined(sh, v); ok {
		return out
	}
	if !identify(sh, v) {
		return dynamic(sh, v)
	}
	arguments(sh, v)
	if out, ok := taken(sh, v); ok {
		return out
	}
	out, carried := carries(sh, v)
	matched := effective(sh, v)
	if f, ok := packageProgram(sh, v); ok && !carried {
		out, carried = f, true
	}
	if f, ok := writtenProgram(sh, v); ok && !carried {
		out, carried = f, true
	}
	switch {
	case carried && changesItself(e, v):
		e.Unproven = true
	case !carried && !proven(e, v):
		suspect(sh, v)
		notFound(sh, v)
		if !matched {
			e.Unproven, e.Loose = true, true
		}
	}
	if carried {
		return carriedOutput(sh, v, out)
	}
	return computed(v, output(e, sh, v))
}

// identify finds out which program runs; false if that is not known.
func identify(sh *interp.Process, v *act.Invocation) bool {
	e, first := sh.Env, v.Argv[0]
	v.Path, v.Exe = first.Text, scan.Base(first.Text)
	if i := strings.IndexByte(v.Exe, '@'); i > 0 && len(sh.Src.Via) > 0 && !first.Glob && !e.Program(v.Exe).Judged {
		v.Exe = v.Exe[:i] // npx name@version
	}
	if c := v.Exe[:min(1, len(v.Exe))]; c >= "A" && c <= "Z" && !e.Program(v.Exe).Judged && e.Program(strings.ToLower(v.Exe)).Judged && v.Exe == strings.ToUpper(v.Exe) {
		v.Exe = strings.ToLower(v.Exe) // file systems that ignore case
	}
	if strings.IndexByte(v.Exe, scan.Hole) >= 0 {
		return false
	}
	if name, ok := programNamed(sh, v, first.Text); ok {
		v.Exe = name
	}
	v.Exe = twin(e, strings.TrimLeft(v.Exe, "=!")) // zsh: =rm is the file of rm; an alias that the shell runs begins with "!"
	if first.Glob && (strings.ContainsAny(v.Exe, "*?") || strings.IndexByte(v.Exe, ']') > 1) {
		e.See(act.RunsUnknownProgram, sh.Src, v.From, v.To, act.Printable(v.Exe))
		for _, name := range e.Groups["glob-programs"] {
			if paths.GlobMatch(v.Exe, name) {
				v.Exe = name
				break
			}
		}
	}
	if first.Quoted && !strings.ContainsAny(v.Exe, "./ ") {
		e.See(act.NameInPieces, sh.Src, v.From, v.To, act.Printable(v.Exe))
	}
	return true
}

// arguments reads how the program is called, and runs what it runs because of its
// environment, whatever it is asked.
func arguments(sh *interp.Process, v *act.Invocation) {
	e := sh.Env
	addOptions(sh, v)
	v.Fds = sh.Fds
	e.ReadArguments(v)
	fromDescriptor(sh, v)
	v.Dry = isDryRun(e, v)
	if w := sh.Vars["BASH_ENV"]; len(w) == 1 && slices.Contains(e.Groups["shells"], v.Exe) {
		variableRuns(sh, v, act.Assign{Name: "BASH_ENV", Value: w[0]})
	}
	for _, a := range v.Env {
		variableRuns(sh, v, a)
	}
}

// taken: the call is one of the shell itself, asks for help only, or is another call
// by its nature: of another shell, an alias, a packed program, a module.
func taken(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	e := sh.Env
	if out, ok := builtin(sh, v); ok {
		return out, true
	}
	if isHelp(v) || scriptHelp(sh, v) {
		notFound(sh, v)
		return act.Flow{Known: true}, true
	}
	for _, takes := range e.Front.Takes {
		if out, ok := takes(sh, v); ok {
			return out, true
		}
	}
	if v.Exe == "git" {
		gitSettings(sh, v)
	}
	if out, ok := packedProgram(sh, v); ok {
		return out, true
	}
	if out, ok := hostAlias(sh, v); ok {
		return out, true
	}
	if module, ok := v.Value("-m"); ok && slices.Contains(e.Groups["pythons"], v.Exe) {
		if _, written := e.WrittenFile(sh, module.Text); written {
			return file(sh, &facts.Wrapper{Lang: "python"}, v, module), true
		}
		if e.Acts(module.Text) {
			return argv(sh, moduleWords(v, module), &facts.Wrapper{}, v), true // python -m pip
		}
	}
	return act.Flow{}, false
}

// carries runs what the wrappers carry that know the program.
func carries(sh *interp.Process, v *act.Invocation) (out act.Flow, carried bool) {
	e := sh.Env
	runsUnpacked(e, v)
	for _, w := range e.Program(v.Exe).Carries {
		if len(w.Sub) > 0 && !v.UnderAny(w.Sub) || slices.ContainsFunc(w.Unless, v.Has) || len(w.Only) > 0 && !slices.ContainsFunc(w.Only, v.HasLike) {
			continue
		}
		if f, ok := unwrap(sh, w, v); ok && !w.Beside {
			out, carried = f, true
		}
	}
	return out, carried
}

// effective judges what the program does by itself, and tells whether a rule holds.
func effective(sh *interp.Process, v *act.Invocation) bool {
	e := sh.Env
	effects(sh, v)
	matched := matchCall(sh, v)
	for _, judges := range e.Front.Calls {
		matched = judges(sh, v) || matched
	}
	unpacksArchive(e, v)
	editsInPlace(sh, v)
	readsWritten(sh, v)
	return matched
}

// carriedOutput is what a program prints that carried out.
func carriedOutput(sh *interp.Process, v *act.Invocation, out act.Flow) act.Flow {
	e := sh.Env
	if out.Known {
		return computed(v, noted(v, out))
	}
	if e.In("remote-shells", v.Exe) { // what another machine prints
		return act.Flow{Taint: out.Taint | act.FromNetwork, Via: v.Exe}
	}
	if fromStore(e, v) {
		out.Taint |= act.FromStore
	}
	if f, ok := filter(e, sh, v); ok {
		return f
	}
	if (e.In("awks", v.Exe) || hasProgramOption(v)) && !e.In("shells", v.Exe) && prints(e, v.Exe) {
		out.Taint |= act.FromBuilt
	}
	return computed(v, noted(v, out))
}

// hasProgramOption: the program's text stands among its words.
func hasProgramOption(v *act.Invocation) bool {
	return slices.ContainsFunc([]string{"-c", "-e", "-r", "-E", "-p", "--print", "--eval"}, v.Has)
}

// moduleWords are the module that "python -m" starts and all that stands behind it.
func moduleWords(v *act.Invocation, module act.Word) []act.Word {
	for i, w := range v.Argv {
		if w.Text == "-m" && i+1 < len(v.Argv) {
			return v.Argv[i+1:]
		}
		if strings.HasPrefix(w.Text, "-m") && w.Text[2:] == module.Text {
			return append([]act.Word{module}, v.Argv[i+1:]...)
		}
	}
	return append([]act.Word{module}, v.Operands...)
}

// fromDescriptor: an interpreter that is given /dev/fd/3 as its file reads what is
// open there, as if it were its input.
func fromDescriptor(sh *interp.Process, v *act.Invocation) {
	if len(sh.Fds) == 0 || len(v.Operands) == 0 || !sh.Env.In("file-runners", v.Exe) {
		return
	}
	if fd, ok := act.Descriptor(v.Operands[0].Text); ok {
		if f, ok := sh.Fds[fd]; ok {
			v.Stdin = sh.Env.ReadFile(sh, f.File)
			v.Operands[0].Text, v.Operands[0].At = "/dev/stdin", -1
		}
	}
}

// addOptions puts the options that a program takes from its variables among its own.
func addOptions(sh *interp.Process, v *act.Invocation) {
	dashes(sh.Env, v)
	if v.Exe == "curl" {
		curlConfig(sh, v)
		return
	}
	spec := sh.Env.Program(v.Exe).Options
	if spec == nil {
		return
	}
	for _, entry := range spec.Vars {
		name, option, named := strings.Cut(entry, "=")
		if prefix, ok := strings.CutSuffix(name, "*"); ok { // one for each subcommand
			for _, w := range v.Argv[1:] {
				v.Argv = append(v.Argv[:len(v.Argv):len(v.Argv)], listedOptions(sh.Variable(v, prefix+w.Text))...)
			}
			continue
		}
		name, flag := strings.CutSuffix(name, "?")
		value := sh.Variable(v, name)
		switch {
		case value.Text == "":
			continue
		case flag && (value.Text == "0" || value.Text == "false"):
			continue
		case flag:
			v.Argv = slices.Insert(slices.Clone(v.Argv), 1, act.Word{Text: option, At: -1, Span: value.Span})
		case named:
			v.Argv = slices.Insert(slices.Clone(v.Argv), 1, act.Word{Text: option, At: -1, Span: value.Span}, value)
		default:
			v.Argv = slices.Insert(slices.Clone(v.Argv), 1, listedOptions(value)...)
		}
	}
}

// listedOptions are the words of a variable that holds options.
func listedOptions(value act.Word) []act.Word {
	if !value.Known() {
		return nil
	}
	var out []act.Word
	for _, t := range scan.OptionWords(value.Text) {
		out = append(out, act.Word{Text: t, At: -1, Span: value.Span, Taint: value.Taint})
	}
	return out
}

// dashes writes the options of tar that have no dash, as in "tar czf", with one.
func dashes(e *interp.Env, v *act.Invocation) {
	if !e.In("tars", v.Exe) {
		return
	}
	if t := v.Word(1).Text; t != "" && t[0] != '-' && strings.Trim(t, "ctxruvzjJpkfhaOUWSPAdmow") == "" && strings.ContainsAny(t, "ctxru") {
		v.Argv = slices.Clone(v.Argv)
		v.Argv[1].At = -1
		if v.Argv[1].Text = "-" + strings.ReplaceAll(t, "f", ""); strings.ContainsRune(t, 'f') {
			v.Argv[1].Text += "f" // its value is the next word, wherever the letter stands
		}
	}
}

// packageProgram runs the program of a project that "yarn hardhat run …", "pnpm exec x"
// and their kind start.
func packageProgram(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if len(v.Operands) == 0 || !slices.Contains(sh.Env.Groups["js-pm"], v.Exe) {
		return act.Flow{}, false
	}
	n := 0
	if first := v.Operands[0].Text; first == "exec" || first == "workspace" && len(v.Operands) > 2 {
		n = map[string]int{"exec": 1, "workspace": 2}[first]
	} else if v.Exe == "npm" {
		return act.Flow{}, false
	}
	if n >= len(v.Operands) || sh.Env.In("package-manager-words", v.Operands[n].Text) || !sh.Env.Acts(v.Operands[n].Text) {
		return act.Flow{}, false
	}
	i := slices.IndexFunc(v.Argv, func(w act.Word) bool { return w.Text == v.Operands[n].Text && w.Span == v.Operands[n].Span })
	if i < 1 {
		return act.Flow{}, false
	}
	return argv(sh, v.Argv[i:], &facts.Wrapper{}, v), true
}

// scriptHelp: a script of the project that is asked about itself: manage.py flush
// --help. One that the command itself wrote or fetched may do anything then, too.
func scriptHelp(sh *interp.Process, v *act.Invocation) bool {
	if len(v.Operands) == 0 || v.Argv[len(v.Argv)-1].Text != "--help" || !slices.Contains(sh.Env.Groups["interpreters"], v.Exe) || hasProgramOption(v) || v.Has("-s") {
		return false
	}
	script := v.Operands[0]
	if strings.HasPrefix(script.Text, "-") || strings.Contains(script.Text, "://") || !script.Known() || strings.HasPrefix(script.Text, "/dev/") || script.Text == "-" || strings.HasPrefix(script.Text, "/tmp/") {
		return false
	}
	_, written := sh.Env.Files[paths.FileKey(sh.Cwd, script.Text)]
	return !written
}

// notFound: the shell calls a function of this name for a program it does not find.
func notFound(sh *interp.Process, v *act.Invocation) {
	for _, name := range [...]string{"command_not_found_handle", "command_not_found_handler"} {
		if _, ok := sh.Funcs[name]; ok && sh.Env.Stranger(v.Exe) && sh.Running < scan.MaxDepth {
			again := *v
			again.Argv = append([]act.Word{{Text: name, At: -1}}, v.Argv...)
			defined(sh, &again)
		}
	}
}

// defined runs functions and aliases that the text itself defines.
func defined(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if v.Direct {
		return act.Flow{}, false
	}
	first := v.Argv[0]
	if a, ok := aliasOf(sh, first); ok && sh.Running < scan.MaxDepth && !first.Quoted {
		inner := *sh
		inner.Running++
		inner.Aliases = nil
		text := a
		for i, w := range v.Argv[1:] {
			if next, ok := aliasOf(sh, w); ok && i == 0 && strings.HasSuffix(a.Text, " ") { // such an alias is followed by another
				text.Text, text.At = text.Text+next.Text, -1
				continue
			}
			text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
		}
		return inner.Interpret("shell", text, v, "alias", nil), true
	}
	f, ok := sh.Funcs[first.Text]
	if !ok {
		return act.Flow{}, false
	}
	if sh.Running >= scan.MaxDepth {
		return act.Flow{}, true
	}
	inner := *sh
	inner.Running++
	if sh.Behind && slices.Contains(sh.Calls, first.Text) { // it starts itself beside itself
		sh.Env.See(act.CallsItself, sh.Src, v.From, v.To, act.Printable(first.Text))
		return act.Flow{}, true
	}
	inner.Calls = append(slices.Clip(sh.Calls), first.Text)
	inner.Params, inner.Src, inner.Saved = v.Argv[1:], f.Src, map[string][]act.Word{}
	if inner.Params == nil {
		inner.Params = []act.Word{}
	}
	out := stmt(&inner, f.Body, v.Stdin)
	restore(&inner, inner.Saved)
	return out, true
}

// dynamic is a command whose executable is not known.
func dynamic(sh *interp.Process, v *act.Invocation) act.Flow {
	e := sh.Env
	if name, ok := standsFor(sh, v); ok {
		meant := *v
		meant.Argv = slices.Clone(v.Argv)
		meant.Argv[0].Text, meant.Argv[0].At, meant.Argv[0].Var, meant.Argv[0].Lone = name, -1, "", false
		return sh.Run(&meant)
	}
	if namedRunner(sh, v) {
		return sh.Interpret("shell", v.Argv[2], v, "$"+v.Argv[0].Var+" -c", nil)
	}
	if w := v.Argv[0]; len(v.Argv) > 1 && unset(w) && e.In("wrapper-variables", w.Var) {
		v.Exe = w.Var
		return argv(sh, v.Argv[1:], &facts.Wrapper{}, v)
	}
	e.Unproven = true
	e.Doubt("which program runs is not known")
	v.Exe = "?"
	e.ReadArguments(v)
	if w := v.Argv[0]; !(w.Lone && (benignProgram(w.Var) || plainUse(sh, v))) && !asksOnly(sh, v) {
		e.See(act.RunsUnknownProgram, sh.Src, v.From, v.To, "")
	}
	matchCall(sh, v)
	return act.Flow{Taint: v.Stdin.Taint}
}

// standsFor: a variable that the command never sets and that is named as one of the
// programs people name variables after is that program: $RM file, "$ADB" devices.
func standsFor(sh *interp.Process, v *act.Invocation) (string, bool) {
	w := v.Argv[0]
	name := strings.ToLower(w.Var)
	return name, unset(w) && sh.Env.In("variable-programs", name)
}

// namedRunner: a variable that by its name holds what runs commands is given the text of
// one: $USER_EXEC_CMD -c 'npm test'. What the text does is what counts.
func namedRunner(sh *interp.Process, v *act.Invocation) bool {
	return len(v.Argv) == 3 && v.Argv[1].Text == "-c" && unset(v.Argv[0]) &&
		slices.ContainsFunc(sh.Env.Groups["shell-variables"], func(pattern string) bool { return act.MatchWord(pattern, v.Argv[0].Var) })
}

// unset: the word is one variable of the user's own that the command never sets.
func unset(w act.Word) bool {
	return w.Text == string(scan.Hole) && strings.ToUpper(w.Var) == w.Var && w.Taint == 0 && act.SyntaxName(w.Var)
}

// asksOnly: a program of a name that is partly not known is asked about itself, and
// nothing says that the name is more than the user's own variable.
func asksOnly(sh *interp.Process, v *act.Invocation) bool {
	w := v.Argv[0]
	return len(v.Argv) == 2 && slices.Contains(sh.Env.Groups["asks"], v.Argv[1].Text) && act.SyntaxName(w.Var) && w.Taint == 0 &&
		!v.Stdin.Known && v.Stdin.Taint == 0 && !strings.ContainsAny(w.Text, " ;|&<>`()")
}

// plainUse: a tool that is named by a variable the command never sets, as scripts are
// written, and whose words are all known and harmless: $ADB devices. Whoever wants to
// hide a program has to set the variable in the command, or hand it something to do.
func plainUse(sh *interp.Process, v *act.Invocation) bool {
	if w := v.Argv[0]; len(w.Var) < 2 || strings.ToUpper(w.Var) != w.Var || w.Var[0] < 'A' || w.Taint != 0 || v.Stdin.Known || v.Stdin.Taint != 0 || len(sh.Src.Via) > 0 || len(v.Argv) < 2 {
		return false
	}
	for _, w := range v.Argv[1:] {
		if !w.Known() || w.Glob || strings.ContainsAny(w.Text, " ;|&<>$`(){}~\\'\"") || strings.HasPrefix(w.Text, "/") || strings.Contains(w.Text, "..") || w.Text == "-c" || w.Text == "-e" {
			return false
		}
		if name := scan.Base(w.Text); sh.Env.Program(name).Judged || dangerousWord(w.Text) {
			return false
		}
	}
	return true
}

// dangerousWord: the word, or a part of it, says that something goes.
func dangerousWord(w string) bool {
	low := strings.ToLower(w)
	for _, d := range [...]string{"rf", "force", "delete", "destroy", "remove", "drop", "purge", "wipe", "prune", "apply", "push", "publish", "send", "transfer", "exec", "eval", "prod", "all", "secret", "token", "key", "password"} {
		if strings.Contains(low, d) {
			return true
		}
	}
	return low == "rm" || low == "-r" || low == "-f" || low == "-R" || strings.Contains(low, "://")
}

// benignProgram: variables that by their name hold a tool chosen by the user's
// setup, which says nothing about what the command does.
func benignProgram(name string) bool {
	switch name {
	case "CC", "CXX", "GO", "MAKE", "NODE", "NPM", "PIP", "PYTHON", "PYTHON3", "BROWSER", "JAVA", "CARGO", "GIT", "DOCKER", "KUBECTL":
		return true
	}
	return false
}

// noShortHelp are the tools whose long options have one dash.
var noShortHelp = []string{"terraform", "tofu", "terragrunt", "packer", "vault", "consul", "nomad", "go", "java"}

// isHelp: asking a program about itself runs nothing.
func isHelp(v *act.Invocation) bool {
	if len(v.Argv) == 2 {
		switch v.Argv[1].Text {
		case "--version", "-version", "-V", "--help", "-help", "help", "version", "-h", "-v":
			return v.Argv[1].Text != "-h" && v.Argv[1].Text != "-v" || !slices.Contains([]string{"shutdown", "sh"}, v.Exe)
		}
	}
	if v.Argv[len(v.Argv)-1].Text == "/?" {
		return true
	}
	if v.Exe == "git" && len(v.Operands) > 0 && gitCommands[v.Operands[0].Text] && v.Operands[0].Text != "grep" && v.Has("-h") {
		return true // every command of Git prints its usage, wherever the option stands
	}
	for _, o := range v.Opts {
		if (o.Name == "--help" || o.Name == "-help" && slices.Contains(noShortHelp, v.Exe)) && !o.Given {
			return true
		}
	}
	return false
}

// argv runs words that are an inner command.
func argv(sh *interp.Process, words []act.Word, w *facts.Wrapper, v *act.Invocation) act.Flow {
	if len(words) > 1 && words[0].Text == "-c" { // flock FILE -c TEXT, su USER -- -c TEXT
		return sh.Interpret("shell", words[1], v, v.Exe+" -c", nil)
	}
	src := *sh.Src
	src.Via = append(slices.Clip(src.Via), v.Exe)
	src.Depth++
	argv := slices.Clone(words)
	stdin := v.Stdin
	inner := *sh
	inner.Src = &src
	if w.Append {
		if file, ok := v.Value("-a", "--arg-file"); ok && v.Exe != "parallel" {
			one := *v
			one.Stdin = sh.Env.ReadFile(sh, file)
			v = &one
		}
		if lines := strings.Split(strings.TrimSpace(v.Stdin.Word.Text), "\n"); v.Stdin.Known && len(lines) > 1 && (v.Has("-I") || v.Has("-i") || v.Has("--replace") || v.Has("-L")) {
			for _, line := range lines[:min(len(lines), scan.MaxLoop)-1] { // the last one below
				one := *v
				one.Stdin.Word.Text, one.Stdin.Word.At = line, -1
				each := inner
				each.Run(&act.Invocation{Src: &src, Direct: true, Argv: appendInput(slices.Clone(argv), &one), Stdin: act.Flow{Known: true}, Env: v.Env, Redirs: v.Redirs, From: v.From, To: v.To})
			}
			one := *v
			one.Stdin.Word.Text, one.Stdin.Word.At = lines[min(len(lines), scan.MaxLoop)-1], -1
			v = &one
		}
		argv = appendInput(argv, v)
		stdin = act.Flow{Known: true}
	}
	out := inner.Run(&act.Invocation{Src: &src, Direct: v.Exe != "time" || len(v.Env) > 0, Argv: argv, Stdin: stdin, Env: v.Env, Redirs: v.Redirs, From: v.From, To: v.To})
	switch v.Exe {
	case "builtin", "command", "time", "exec": // in this shell itself: what is set stays
		sh.Cwd, sh.Vars, sh.Funcs, sh.Aliases = inner.Cwd, inner.Vars, inner.Funcs, inner.Aliases
	}
	return out
}

// Interpret runs a text that a program hands to a shell of its own, or that
// stands for an alias of this one.
func Interpret(sh *interp.Process, src *act.Source, v *act.Invocation, via string, params []act.Word) act.Flow {
	e := sh.Env
	if v.Exe == "fish" {
		src.Text, src.At = fromFish(src.Text), -1
	}
	inner := *sh
	if via != "alias" && len(sh.Vars) > 0 && e.Budget.Spend(len(sh.Vars)/4) { // a shell of its own
		inner.Vars = maps.Clone(sh.Vars)
	}
	inner.Params, inner.Zsh = params, sh.Zsh || v.Exe == "zsh"
	if via != "alias" && len(v.Env) > 0 && (len(sh.Vars) == 0 || !e.Budget.Spent) { // NAME=value in front of it
		for _, a := range v.Env {
			setVariable(&inner, a.Name, a.Value)
		}
	}
	return Script(&inner, src, v.Stdin)
}

// file interprets a file that the command itself wrote.
func file(sh *interp.Process, w *facts.Wrapper, v *act.Invocation, name act.Word) act.Flow {
	if fd, ok := act.Descriptor(name.Text); name.Text == "-" || name.Text == "/dev/stdin" || ok && fd == "0" {
		out, _ := fromInput(sh, w, v)
		return out
	}
	f, ok := sh.Env.WrittenFile(sh, name.Text)
	if rest, data := strings.CutPrefix(name.Text, "data:"); data {
		f, ok = dataURL(rest, name), true
	}
	if !ok || !f.Known {
		sh.Env.Unproven = true
		if unknown := sh.Env.Front.Unknown[w.Lang]; unknown != nil {
			unknown(sh, f, v)
		}
		if act.StoreLanguage(w.Lang) && f.Taint&(act.FromNetwork|act.FromBuilt) != 0 {
			sh.Env.See(act.UnknownStatement, sh.Src, v.From, v.To, act.Printable(name.Text))
		}
		return act.Flow{}
	}
	f.Word.Taint |= f.Taint
	return sh.Interpret(w.Lang, f.Word, v, v.Exe+" file", sh.Params)
}

// dataURL is the text that an address of the form data:type;base64,text holds.
func dataURL(rest string, name act.Word) act.Flow {
	kind, text, ok := strings.Cut(rest, ",")
	if strings.HasSuffix(kind, ";base64") {
		text, ok = scan.Decode64(text)
	} else if ok {
		text, ok = scan.PercentDecoded(text)
	}
	name.Text, name.At = text, -1
	return act.Flow{Word: name, Known: ok && len(text) <= scan.MaxDecoded}
}

// fromInput interprets what is piped into an interpreter.
func fromInput(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	in := v.Stdin
	if unknown := sh.Env.Front.Unknown[w.Lang]; unknown != nil && !in.Known {
		unknown(sh, in, v)
	}
	if !in.Known && !act.PartlyKnown(in.Word) {
		if in.Taint == 0 && in.Via == "" {
			return act.Flow{}, false
		}
		sh.Env.Unproven = true
		if in.Taint&(act.FromBuilt|act.FromStore) != 0 && w.Lang == "shell" {
			sh.Env.Doubt("text that is interpreted is not known")
			sh.Env.See(act.RunsUnknownText, sh.Src, v.From, v.To, "")
		}
		if in.Taint&act.FromDecoder != 0 && act.StoreLanguage(w.Lang) && decodesText(in.Via) {
			sh.Env.See(act.UnknownStatement, sh.Src, v.From, v.To, "")
		}
		if in.Taint&act.FromBuilt != 0 && act.StoreLanguage(w.Lang) && buildsStatements(sh.Src.Text) {
			sh.Env.See(act.UnknownStatement, sh.Src, v.From, v.To, "")
		}
		return act.Flow{Taint: in.Taint &^ act.FromStdin}, true
	}
	if in.Word.Text == "" {
		return act.Flow{}, false
	}
	in.Word.Taint |= in.Taint
	via := v.Exe
	if in.Via != "" {
		via = in.Via + " | " + v.Exe
	}
	saved := v.Stdin
	v.Stdin = act.Flow{Known: true}
	out := sh.Interpret(w.Lang, in.Word, v, via, nil)
	v.Stdin = saved
	return out, true
}

// proven tells whether an invocation is known to change nothing. A program is
// known only by a bare name or in a standard directory: ./sed proves nothing.
func proven(e *interp.Env, v *act.Invocation) bool {
	if v.Dry {
		return true
	}
	if strings.Contains(v.Path, "/") && !facts.StandardDirectory(v.Path) {
		return false
	}
	for _, p := range e.Program(v.Exe).Proves {
		if p.Holds(v) {
			return true
		}
	}
	return false
}

// changesItself: a program that runs the text it is given changes something by an
// option of its own as well: sed -i.
func changesItself(e *interp.Env, v *act.Invocation) bool {
	for _, p := range e.Program(v.Exe).Proves {
		for _, o := range p.None {
			if v.Has(o) && !slices.ContainsFunc(e.Program(v.Exe).Carries, func(w *facts.Wrapper) bool {
				return slices.Contains(w.After, o) || slices.Contains(w.Options, o) || slices.Contains(w.FileOptions, o)
			}) {
				return true
			}
		}
	}
	return false
}

// isDryRun tells whether the invocation only shows what it would do.
func isDryRun(e *interp.Env, v *act.Invocation) bool {
	for _, p := range e.Program(v.Exe).Dry {
		if p.Holds(v) {
			return true
		}
	}
	return false
}
