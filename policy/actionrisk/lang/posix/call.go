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

// Call judges one simple command and returns its output. It identifies the program and its
// arguments, and passes the call to another front-end if one accepts it. Otherwise it judges the
// commands that the program runs (as sudo, xargs or find do), and matches the call against the
// rule tables.
func Call(sh *interp.Process, v *act.Invocation) act.Flow {
	e := sh.Env
	if e.Invocations++; e.Invocations > scan.MaxInvocations || !e.Budget.Spend(16+2*len(v.Argv)) || sh.Src.Depth > scan.MaxDepth {
		e.TooDeep = true
		return act.Flow{}
	}
	e.Ran = true
	v.Root, v.Remote = v.Root || sh.Root, v.Remote || sh.Remote
	v.Cwd, v.Host, v.Scratch = sh.Cwd, sh.Host, sh.Scratch
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
	out, carried, matched := runs(sh, v)
	if e.Trace != nil {
		e.Used(v, proven(e, v), carried && !changesItself(e, v))
	}
	if carried {
		return carriedOutput(sh, v, out)
	}
	if !proven(e, v) {
		suspect(sh, v)
		notFound(sh, v)
		if v.Remote && v.Host != "" {
			if production, _ := facts.Environments(v.Host); production {
				e.See(act.ChangesProduction, sh.Src, v.From, v.To, act.Printable(v.Host))
			}
		}
		if !matched {
			e.Unproven, e.Loose = true, true
		}
	}
	return computed(v, output(e, sh, v))
}

// runs judges the effects of the program itself, and the commands that it runs. A row of the table
// describes these commands, or the program is a package manager or a file that the command itself
// wrote. runs returns the output, and reports whether the program runs a command (carried) and
// whether a rule matched.
func runs(sh *interp.Process, v *act.Invocation) (out act.Flow, carried, matched bool) {
	out, carried = carries(sh, v)
	matched = effective(sh, v)
	for _, other := range [...]func(*interp.Process, *act.Invocation) (act.Flow, bool){packageProgram, writtenProgram} {
		if f, ok := other(sh, v); ok && !carried {
			out, carried = f, true
		}
	}
	return out, carried, matched
}

// identify sets the program of the call, and returns false if it is not known.
func identify(sh *interp.Process, v *act.Invocation) bool {
	e, first := sh.Env, v.Argv[0]
	v.Path, v.Exe = first.Text, programName(sh, first)
	if strings.IndexByte(v.Exe, scan.Hole) >= 0 {
		return false
	}
	if name, ok := programNamed(sh, v, first.Text); ok {
		v.Exe = name
	}
	v.Exe = twin(e, strings.TrimLeft(v.Exe, "=!")) // in zsh, =rm is the file of rm; an alias for the shell begins with "!"
	if first.Glob && (strings.ContainsAny(v.Exe, "*?") || strings.IndexByte(v.Exe, ']') > 1) {
		e.See(act.RunsUnknownProgram, sh.Src, v.From, v.To, act.Printable(v.Exe))
		if i := slices.IndexFunc(e.Groups.Get("glob-programs"), func(name string) bool { return paths.GlobMatch(v.Exe, name) }); i >= 0 {
			v.Exe = e.Groups.Get("glob-programs")[i]
		}
	}
	if first.Quoted && !strings.ContainsAny(v.Exe, "./ ") {
		e.See(act.NameInPieces, sh.Src, v.From, v.To, act.Printable(v.Exe))
	}
	return true
}

// programName returns the name of the program that a word names. It removes a version after the
// name, as in npx name@version. It converts a name in capitals to lower case if only that name is
// known, because some file systems ignore case.
func programName(sh *interp.Process, first act.Word) string {
	e, name := sh.Env, scan.Base(first.Text)
	if i := strings.IndexByte(name, '@'); i > 0 && len(sh.Src.Via) > 0 && !first.Glob && !e.Program(name).Judged {
		name = name[:i]
	}
	if low := strings.ToLower(name); name != "" && scan.Upper(name[0]) && name == strings.ToUpper(name) && !e.Program(name).Judged && e.Program(low).Judged {
		return low
	}
	return name
}

// arguments parses the options and operands of the call, and judges the programs that its
// environment variables make it run.
func arguments(sh *interp.Process, v *act.Invocation) {
	e := sh.Env
	addOptions(sh, v)
	v.Fds = sh.Fds
	e.ReadArguments(v)
	if e.In("shells", v.Exe) && slices.ContainsFunc(v.Argv, func(w act.Word) bool { return w.Text == "+n" || w.Text == "noexec" }) { // the words +n and noexec switch "-n" off
		v.Opts = slices.DeleteFunc(v.Opts, func(o act.Option) bool { return o.Name == "-n" })
	}
	fromDescriptor(sh, v)
	v.Dry = isDryRun(e, v)
	if w := sh.Vars["BASH_ENV"]; len(w) == 1 && e.In("shells", v.Exe) {
		variableRuns(sh, v, act.Assign{Name: "BASH_ENV", Value: w[0]})
	}
	for _, a := range v.Env {
		variableRuns(sh, v, a)
	}
}

// taken handles a call that needs no further judgement: a builtin, a request for help, or a call
// that another front-end accepts or that really is a call of another program (an alias, a packed
// program, a module).
func taken(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	e := sh.Env
	if out, ok := builtin(sh, v); ok {
		return out, true
	}
	if isHelp(e.Set, v) || scriptHelp(sh, v) {
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
	for _, runs := range [...]func(*interp.Process, *act.Invocation) (act.Flow, bool){packedProgram, hostAlias, module} {
		if out, ok := runs(sh, v); ok {
			return out, true
		}
	}
	return act.Flow{}, false
}

// module judges "python -m NAME", if NAME is a file that the command itself wrote, or a module
// that is also a known program, such as pip.
func module(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	name, ok := v.Value("-m")
	if !ok || !sh.Env.In("pythons", v.Exe) {
		return act.Flow{}, false
	}
	if _, written := sh.Env.WrittenFile(sh, name.Text); written {
		return file(sh, &facts.Wrapper{Lang: "python"}, v, name), true
	}
	if !sh.Env.Acts(name.Text) {
		return act.Flow{}, false
	}
	i := slices.IndexFunc(v.Argv, func(w act.Word) bool { return w.Span == name.Span && strings.HasSuffix(w.Text, name.Text) })
	return argv(sh, append([]act.Word{name}, v.Argv[i+1:]...), &facts.Wrapper{}, v), true
}

// carries judges the commands that the program runs according to facts.Program.Carries.
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

// effective judges the effects of the program itself, and reports whether a rule matched.
func effective(sh *interp.Process, v *act.Invocation) bool {
	e := sh.Env
	effects(sh, v)
	matched := matchCall(sh, v)
	for _, judges := range e.Front.Calls {
		matched = judges(sh, v) || matched
	}
	unpacksArchive(e, v)
	cloned(sh, v)
	editsInPlace(sh, v)
	readsWritten(sh, v)
	return matched
}

// carriedOutput returns the output of a program that ran a command. The parameter "out" is the
// output of this command.
func carriedOutput(sh *interp.Process, v *act.Invocation, out act.Flow) act.Flow {
	e := sh.Env
	if changesItself(e, v) {
		e.Unproven = true
	}
	if out.Known {
		return computed(v, noted(e, v, out))
	}
	if e.In("remote-shells", v.Exe) { // the output comes from another machine
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
	return computed(v, noted(e, v, out))
}

// hasProgramOption reports whether an option contains a program text.
func hasProgramOption(v *act.Invocation) bool {
	return slices.ContainsFunc([]string{"-c", "-e", "-r", "-E", "-p", "--print", "--eval"}, v.Has)
}

// fromDescriptor sets the input of an interpreter that runs a file such as /dev/fd/3 to the file
// that is open there.
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

// addOptions adds the options that a program reads from its environment variables.
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
		if prefix, ok := strings.CutSuffix(name, "*"); ok { // there is one variable for each subcommand
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

// listedOptions returns the words of a variable that contains options.
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

// dashes adds the dash to options of tar that are written without one, as in "tar czf".
func dashes(e *interp.Env, v *act.Invocation) {
	if !e.In("tars", v.Exe) {
		return
	}
	if t := v.Word(1).Text; t != "" && t[0] != '-' && strings.Trim(t, "ctxruvzjJpkfhaOUWSPAdmow") == "" && strings.ContainsAny(t, "ctxru") {
		v.Argv = slices.Clone(v.Argv)
		v.Argv[1].At = -1
		if v.Argv[1].Text = "-" + strings.ReplaceAll(t, "f", ""); strings.ContainsRune(t, 'f') {
			v.Argv[1].Text += "f" // the next word is its value, wherever the letter is
		}
	}
}

// packageProgram judges a program that a JavaScript package manager starts: "yarn hardhat run
// …", "pnpm exec x".
func packageProgram(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if len(v.Operands) == 0 || !sh.Env.In("js-pm", v.Exe) {
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
	i := wordAt(v, v.Operands[n])
	if i < 1 {
		return act.Flow{}, false
	}
	return argv(sh, v.Argv[i:], &facts.Wrapper{}, v), true
}

// scriptHelp reports whether a call only asks a script for its help: manage.py flush --help. A
// script that the command itself wrote or downloaded could do anything, so it does not count.
func scriptHelp(sh *interp.Process, v *act.Invocation) bool {
	if len(v.Operands) == 0 || v.Argv[len(v.Argv)-1].Text != "--help" || !sh.Env.In("interpreters", v.Exe) || hasProgramOption(v) || v.Has("-s") {
		return false
	}
	script := v.Operands[0]
	if !script.Known() || strings.Contains(script.Text, "://") || strings.HasPrefix(script.Text, "-") || strings.HasPrefix(script.Text, "/dev/") || strings.HasPrefix(script.Text, "/tmp/") {
		return false
	}
	_, written := sh.Env.Files[sh.Env.Key(sh.Cwd, script.Text)]
	return !written
}

// notFound judges the function that the shell calls if it does not find a program.
func notFound(sh *interp.Process, v *act.Invocation) {
	for _, name := range [...]string{"command_not_found_handle", "command_not_found_handler"} {
		if _, ok := sh.Funcs[name]; ok && sh.Env.Stranger(v.Exe) && sh.Running < scan.MaxDepth {
			again := *v
			again.Argv = append([]act.Word{{Text: name, At: -1}}, v.Argv...)
			defined(sh, &again)
		}
	}
}

// defined judges a call of a function or alias that the text itself defines. It returns false for
// other calls.
func defined(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	first := v.Argv[0]
	if v.Direct {
		return act.Flow{}, false
	}
	if a, ok := aliasOf(sh, first); ok && sh.Running < scan.MaxDepth && !first.Quoted {
		return aliased(sh, v, a), true
	}
	f, ok := sh.Funcs[first.Text]
	switch {
	case !ok:
		return act.Flow{}, false
	case sh.Running >= scan.MaxDepth:
		return act.Flow{}, true
	case sh.Behind && slices.Contains(sh.Calls, first.Text): // it starts itself again in the background
		sh.Env.See(act.CallsItself, sh.Src, v.From, v.To, act.Printable(first.Text))
		return act.Flow{}, true
	}
	inner := *sh
	inner.Running++
	inner.Calls = append(slices.Clip(sh.Calls), first.Text)
	inner.Params, inner.Src, inner.Saved = v.Argv[1:], f.Src, map[string][]act.Word{}
	out := stmt(&inner, f.Body, v.Stdin)
	restore(&inner, inner.Saved)
	return out, true
}

// aliased judges the text of an alias, followed by the other words of the call.
func aliased(sh *interp.Process, v *act.Invocation, a act.Word) act.Flow {
	inner := *sh
	inner.Running++
	inner.Aliases = nil
	text := a
	for i, w := range v.Argv[1:] {
		if next, ok := aliasOf(sh, w); ok && i == 0 && strings.HasSuffix(a.Text, " ") { // after an alias that ends with a space, the shell expands the next word, too
			text.Text, text.At = text.Text+next.Text, -1
			continue
		}
		text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
	}
	return inner.Interpret("shell", text, v, "alias", nil)
}

// dynamic judges a command whose program is not known.
func dynamic(sh *interp.Process, v *act.Invocation) act.Flow {
	e := sh.Env
	if w := v.Argv[0]; len(v.Argv) > 1 && unset(w) && e.In("wrapper-variables", w.Var) { // the variable may hold a wrapper and its options, or nothing
		v.Exe = w.Var
		return argv(sh, v.Argv[1:], &facts.Wrapper{}, v)
	}
	if name, ok := standsFor(sh, v); ok {
		meant := *v
		meant.Argv = slices.Clone(v.Argv)
		meant.Argv[0].Text, meant.Argv[0].At, meant.Argv[0].Var, meant.Argv[0].Lone = name, -1, "", false
		return sh.Run(&meant)
	}
	if namedRunner(sh, v) {
		return sh.Interpret("shell", v.Argv[2], v, "$"+v.Argv[0].Var+" -c", nil)
	}
	e.Unproven = true
	e.Doubt("which program runs is not known")
	v.Exe = "?"
	e.ReadArguments(v)
	if w := v.Argv[0]; !(w.Lone && (benignProgram(w.Var) || plainUse(sh, v) || ofMake(sh, w) || sh.Env.Sourced && w.Taint == 0 && w.Text == string(scan.Hole) && act.SyntaxName(w.Var))) && !asksOnly(sh, v) {
		e.See(act.RunsUnknownProgram, sh.Src, v.From, v.To, "")
	}
	matchCall(sh, v)
	return act.Flow{Taint: v.Stdin.Taint}
}

// standsFor returns the program that a variable names by convention, if the command never sets the
// variable: $RM file, "$ADB" devices.
func standsFor(sh *interp.Process, v *act.Invocation) (string, bool) {
	w := v.Argv[0]
	name := strings.ToLower(w.Var)
	return name, unset(w) && sh.Env.In("variable-programs", name)
}

// namedRunner reports whether the program is a variable that, by its name, contains a shell, and
// the only arguments are -c and a text: $USER_EXEC_CMD -c 'npm test'. Then the text decides.
func namedRunner(sh *interp.Process, v *act.Invocation) bool {
	return len(v.Argv) == 3 && v.Argv[1].Text == "-c" && unset(v.Argv[0]) &&
		slices.ContainsFunc(sh.Env.Groups.Get("shell-variables"), func(pattern string) bool { return act.MatchWord(pattern, v.Argv[0].Var) })
}

// unset reports whether the word is a single variable with a name in capitals that the command
// never sets.
func unset(w act.Word) bool {
	return w.Text == string(scan.Hole) && strings.ToUpper(w.Var) == w.Var && w.Taint == 0 && act.SyntaxName(w.Var)
}

// asksOnly reports whether a program whose name is partly unknown is only asked about itself, for
// example for its version, and its name comes from a variable, not from the output of a command.
func asksOnly(sh *interp.Process, v *act.Invocation) bool {
	w := v.Argv[0]
	return len(v.Argv) == 2 && sh.Env.In("asks", v.Argv[1].Text) && act.SyntaxName(w.Var) && w.Taint == 0 &&
		!v.Stdin.Known && v.Stdin.Taint == 0 && !strings.ContainsAny(w.Text, " ;|&<>`()")
}

// plainUse reports whether a variable that the command never sets names the program, as in
// scripts, and all other words are known and harmless: $ADB devices. An attacker who hides a
// program in a variable must set it in the command, or give the program something to do.
func plainUse(sh *interp.Process, v *act.Invocation) bool {
	w := v.Argv[0]
	return len(w.Var) > 1 && strings.ToUpper(w.Var) == w.Var && scan.Upper(w.Var[0]) && w.Taint == 0 && !v.Stdin.Known && v.Stdin.Taint == 0 &&
		len(sh.Src.Via) == 0 && len(v.Argv) > 1 && !slices.ContainsFunc(v.Argv[1:], func(w act.Word) bool { return !harmlessWord(sh.Env, w) })
}

// ofMake reports whether a make recipe names its program with a variable or function of make that
// the makefile does not set. An included file or the environment sets it.
func ofMake(sh *interp.Process, w act.Word) bool {
	return w.Taint == 0 && w.Var != "" && strings.ToUpper(w.Var) == w.Var && slices.Contains(sh.Src.Via, "make")
}

// harmlessWord reports whether a word is known, and is not a known program, a path on the machine
// or a word for a destructive action.
func harmlessWord(e *interp.Env, w act.Word) bool {
	return w.Known() && !w.Glob && w.Text != "-c" && w.Text != "-e" && !strings.HasPrefix(w.Text, "/") && !strings.Contains(w.Text, "..") &&
		!strings.ContainsAny(w.Text, " ;|&<>$`(){}~\\'\"") && !e.Program(scan.Base(w.Text)).Judged && !dangerousWord(w.Text)
}

// dangerousWord reports whether the word contains a word for a destructive or far-reaching action.
func dangerousWord(w string) bool {
	low := strings.ToLower(w)
	return scan.HasAny(low, "rf", "force", "delete", "destroy", "remove", "drop", "purge", "wipe", "prune", "apply", "push", "publish", "send", "transfer", "exec", "eval", "prod", "all", "secret", "token", "key", "password", "://") || low == "rm" || low == "-r" || low == "-f"
}

// benignProgram reports whether the variable, by its name, contains a tool that the user's setup
// chooses. Such a name shows nothing about the effect of the command.
func benignProgram(name string) bool {
	switch name {
	case "CC", "CXX", "GO", "MAKE", "NODE", "NPM", "PIP", "PYTHON", "PYTHON3", "BROWSER", "JAVA", "CARGO", "GIT", "DOCKER", "KUBECTL":
		return true
	}
	return false
}

// aboutItself lists words that ask a program for its version or help.
var aboutItself = scan.SetOf("--version -version -V --help -help help version")

// isHelp reports whether the call only asks the program for its version or help.
func isHelp(c *facts.Set, v *act.Invocation) bool {
	last := v.Argv[len(v.Argv)-1].Text
	switch {
	case last == "/?", len(v.Argv) == 2 && aboutItself.Has(last), gitUsage(v):
		return true
	case len(v.Argv) == 2 && (last == "-h" || last == "-v"):
		return v.Exe != "shutdown" && v.Exe != "sh"
	}
	return slices.ContainsFunc(v.Opts, func(o act.Option) bool {
		return !o.Given && (o.Name == "--help" || o.Name == "-help" && c.In("long-options-with-one-dash", v.Exe))
	})
}

// gitUsage reports whether a Git command is called with -h, which prints its usage wherever the
// option is.
func gitUsage(v *act.Invocation) bool {
	return v.Exe == "git" && gitCommands.Has(v.Operand(0)) && v.Operand(0) != "grep" && v.Has("-h")
}

// argv judges the command that another program runs, such as the words after sudo, time or xargs.
func argv(sh *interp.Process, words []act.Word, w *facts.Wrapper, v *act.Invocation) act.Flow {
	if len(words) > 1 && words[0].Text == "-c" { // for example flock FILE -c TEXT, su USER -- -c TEXT
		return sh.Interpret("shell", words[1], v, v.Exe+" -c", nil)
	}
	inner := sh.Behalf(sh.Src, v.Exe)
	call := act.Invocation{Src: inner.Src, Direct: v.Exe != "time" || len(v.Env) > 0, Argv: slices.Clone(words), Stdin: v.Stdin, Env: v.Env, Redirs: v.Redirs, From: v.From, To: v.To}
	if w.Append {
		call.Stdin = act.Flow{Known: true}
		last := linesOfInput(sh, v, func(line *act.Invocation) {
			one, each := call, *inner
			one.Direct, one.Argv = true, appendInput(slices.Clone(words), line)
			each.Run(&one)
		})
		call.Argv = appendInput(call.Argv, last)
	}
	out := inner.Run(&call)
	switch v.Exe {
	case "builtin", "command", "time", "exec": // these run in the shell itself, so its state changes
		sh.Cwd, sh.Vars, sh.Funcs, sh.Aliases = inner.Cwd, inner.Vars, inner.Funcs, inner.Aliases
	}
	return out
}

// linesOfInput returns the call of xargs with the whole input. If xargs runs its command once for
// each line, linesOfInput calls the function run with every line except the last one, and returns
// the call with the last line.
func linesOfInput(sh *interp.Process, v *act.Invocation, run func(*act.Invocation)) *act.Invocation {
	one := *v
	if file, ok := v.Value("-a", "--arg-file"); ok && v.Exe != "parallel" {
		one.Stdin = sh.Env.ReadFile(sh, file)
	}
	if !one.Stdin.Known || !slices.ContainsFunc([]string{"-I", "-i", "--replace", "-L"}, v.Has) {
		return &one
	}
	lines := strings.Split(strings.TrimSpace(one.Stdin.Word.Text), "\n")
	lines = lines[:min(len(lines), scan.MaxLoop)]
	for i, line := range lines {
		if len(lines) > 1 {
			one.Stdin.Word.Text, one.Stdin.Word.At = line, -1
		}
		if i+1 < len(lines) {
			run(&one)
		}
	}
	return &one
}

// Interpret judges a text that a program passes to a separate shell, or the text of an alias,
// which runs in this shell.
func Interpret(sh *interp.Process, src *act.Source, v *act.Invocation, via string, params []act.Word) act.Flow {
	e := sh.Env
	if v.Exe == "fish" {
		src.Text, src.At = fromFish(src.Text), -1
	}
	inner := *sh
	if via != "alias" && len(sh.Vars) > 0 && e.Budget.Spend(len(sh.Vars)/4) { // only an alias shares the variables of this shell
		inner.Vars = maps.Clone(sh.Vars)
	}
	inner.Params, inner.Zsh = params, sh.Zsh || v.Exe == "zsh"
	if via != "alias" && len(v.Env) > 0 && (len(sh.Vars) == 0 || !e.Budget.Spent) { // apply the assignments NAME=value before the command
		for _, a := range v.Env {
			setVariable(&inner, a.Name, a.Value)
		}
	}
	return Script(&inner, src, v.Stdin)
}

// file judges a file that a program runs, if the command itself wrote it.
func file(sh *interp.Process, w *facts.Wrapper, v *act.Invocation, name act.Word) act.Flow {
	if fd, ok := act.Descriptor(name.Text); name.Text == "-" || name.Text == "/dev/stdin" || ok && fd == "0" {
		out, _ := fromInput(sh, w, v)
		return out
	}
	if found := sh.Env.Matching(sh.Env.Key(sh.Cwd, name.Text)); len(found) > 1 && strings.ContainsAny(name.Text, "*?[") {
		for _, one := range found {
			name.Text, name.At = one, -1
			file(&interp.Process{Env: sh.Env, Src: sh.Src, Params: sh.Params}, w, v, name)
		}
		return act.Flow{}
	}
	f, ok := sh.Env.WrittenFile(sh, name.Text)
	if text, data := facts.DataAddress(name.Text); data {
		f, ok = act.Flow{Word: name, Known: true}, true
		f.Word.Text, f.Word.At = text, -1
	}
	if !ok || !f.Known {
		sh.Env.Unproven = true
		if f.Taint&act.FromStore != 0 && w.Lang == "shell" {
			sh.Env.See(act.RunsUnknownText, sh.Src, v.From, v.To, act.Printable(name.Text))
		}
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

// fromInput judges text that is piped into an interpreter.
func fromInput(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	saved, in := v.Stdin, v.Stdin
	if unknown := sh.Env.Front.Unknown[w.Lang]; unknown != nil && !in.Known {
		unknown(sh, in, v)
	}
	switch {
	case !in.Known && !act.PartlyKnown(in.Word):
		return unknownInput(sh, w, v)
	case in.Word.Text == "":
		return act.Flow{}, false
	}
	in.Word.Taint |= in.Taint
	via := v.Exe
	if in.Via != "" {
		via = in.Via + " | " + v.Exe
	}
	v.Stdin = act.Flow{Known: true}
	out := sh.Interpret(w.Lang, in.Word, v, via, nil)
	v.Stdin = saved
	return out, true
}

// unknownInput judges an interpreter that reads unknown text, by the origin of that text.
func unknownInput(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	in := v.Stdin
	sh.Env.Fed()
	if in.Taint == 0 && in.Via == "" {
		return act.Flow{}, false
	}
	sh.Env.Unproven = true
	if in.Taint&(act.FromBuilt|act.FromStore) != 0 && w.Lang == "shell" {
		sh.Env.Doubt("text that is interpreted is not known")
		sh.Env.See(act.RunsUnknownText, sh.Src, v.From, v.To, "")
	}
	if act.StoreLanguage(w.Lang) && (in.Taint&act.FromDecoder != 0 && decodesText(in.Via) || in.Taint&act.FromBuilt != 0 && buildsStatements(sh.Src.Text)) {
		sh.Env.See(act.UnknownStatement, sh.Src, v.From, v.To, "")
	}
	return act.Flow{Taint: in.Taint &^ act.FromStdin}, true
}

// proven reports whether a call is known to change nothing. Only a program with a bare name or in
// a standard directory is known: ./sed may be any program.
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

// changesItself reports whether a program that runs a text also has an option with which it
// changes something itself: sed -i.
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

// isDryRun reports whether the call only shows what it would do.
func isDryRun(e *interp.Env, v *act.Invocation) bool {
	for _, p := range e.Program(v.Exe).Dry {
		if p.Holds(v) {
			return true
		}
	}
	return false
}
