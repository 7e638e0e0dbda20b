package actionrisk

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// runCall judges one simple command and gives what it prints: it finds out which program
// that is and how it is called, lets whoever else takes the call have it, runs what
// the program carries and holds the rest against the tables.
func runCall(sh *shell, v *invocation) flow {
	e := sh.e
	if e.invocations++; e.invocations > scan.MaxInvocations || !e.budget.spend(16+2*len(v.argv)) || sh.src.depth > scan.MaxDepth {
		e.tooDeep = true
		return flow{}
	}
	e.ran = true
	v.cwd, v.root, v.remote, v.host, v.scratch = sh.cwd, v.root || sh.root, v.remote || sh.remote, sh.host, sh.scratch
	if out, ok := sh.defined(v); ok {
		return out
	}
	if !sh.identify(v) {
		return sh.dynamic(v)
	}
	sh.arguments(v)
	if out, ok := sh.taken(v); ok {
		return out
	}
	out, carried := sh.carries(v)
	matched := sh.effective(v)
	if f, ok := sh.packageProgram(v); ok && !carried {
		out, carried = f, true
	}
	if f, ok := sh.writtenProgram(v); ok && !carried {
		out, carried = f, true
	}
	switch {
	case carried && e.changesItself(v):
		e.unproven = true
	case !carried && !e.proven(v):
		sh.suspect(v)
		sh.notFound(v)
		if !matched {
			e.unproven, e.loose = true, true
		}
	}
	if carried {
		return sh.carriedOutput(v, out)
	}
	return v.computed(e.output(sh, v))
}

// identify finds out which program runs; false if that is not known.
func (sh *shell) identify(v *invocation) bool {
	e, first := sh.e, v.argv[0]
	v.path, v.exe = first.Text, scan.Base(first.Text)
	if i := strings.IndexByte(v.exe, '@'); i > 0 && len(sh.src.via) > 0 && !first.Glob && !e.exe[v.exe] {
		v.exe = v.exe[:i] // npx name@version
	}
	if c := v.exe[:min(1, len(v.exe))]; c >= "A" && c <= "Z" && !e.exe[v.exe] && e.exe[strings.ToLower(v.exe)] && v.exe == strings.ToUpper(v.exe) {
		v.exe = strings.ToLower(v.exe) // file systems that ignore case
	}
	if strings.IndexByte(v.exe, scan.Hole) >= 0 {
		return false
	}
	if name, ok := sh.programNamed(v, first.Text); ok {
		v.exe = name
	}
	v.exe = e.twin(strings.TrimLeft(v.exe, "=!")) // zsh: =rm is the file of rm; an alias that the shell runs begins with "!"
	if first.Glob && (strings.ContainsAny(v.exe, "*?") || strings.IndexByte(v.exe, ']') > 1) {
		e.raise("obf.dynamic-executable", sh.src, v.from, v.to, printable(v.exe))
		for _, name := range [...]string{"rm", "dd", "sh", "bash", "cat", "curl", "shred", "chmod", "chown", "mkfs"} {
			if paths.GlobMatch(v.exe, name) {
				v.exe = name
				break
			}
		}
	}
	if first.Quoted && !strings.ContainsAny(v.exe, "./ ") {
		e.raise("obf.excess-quoting", sh.src, v.from, v.to, printable(v.exe))
	}
	return true
}

// arguments reads how the program is called, and runs what it runs because of its
// environment, whatever it is asked.
func (sh *shell) arguments(v *invocation) {
	e := sh.e
	sh.addOptions(v)
	v.fds = sh.fds
	e.parseArgs(v)
	sh.fromDescriptor(v)
	v.dry = e.isDryRun(v)
	if w := sh.vars["BASH_ENV"]; len(w) == 1 && slices.Contains(e.groups["shells"], v.exe) {
		sh.variableRuns(v, assign{"BASH_ENV", w[0]})
	}
	for _, a := range v.env {
		sh.variableRuns(v, a)
	}
}

// taken: the call is one of the shell itself, asks for help only, or is another call
// by its nature: of another shell, an alias, a packed program, a module.
func (sh *shell) taken(v *invocation) (flow, bool) {
	e := sh.e
	if out, ok := sh.builtin(v); ok {
		return out, true
	}
	if isHelp(v) || sh.scriptHelp(v) {
		sh.notFound(v)
		return flow{known: true}, true
	}
	for _, takes := range e.front.takes {
		if out, ok := takes(sh, v); ok {
			return out, true
		}
	}
	if v.exe == "git" {
		sh.gitSettings(v)
	}
	if out, ok := sh.packedProgram(v); ok {
		return out, true
	}
	if out, ok := sh.hostAlias(v); ok {
		return out, true
	}
	if module, ok := v.value("-m"); ok && slices.Contains(e.groups["pythons"], v.exe) {
		if _, written := e.writtenFile(sh, module.Text); written {
			return sh.file(&wrapper{Lang: "python"}, v, module), true
		}
		if e.acts(module.Text) {
			return sh.argv(moduleWords(v, module), &wrapper{}, v), true // python -m pip
		}
	}
	return flow{}, false
}

// carries runs what the wrappers carry that know the program.
func (sh *shell) carries(v *invocation) (out flow, carried bool) {
	e := sh.e
	e.runsUnpacked(v)
	for _, w := range e.wrappers[v.exe] {
		if len(w.sub) > 0 && !v.underAny(w.sub) || slices.ContainsFunc(w.Unless, v.has) || len(w.Only) > 0 && !slices.ContainsFunc(w.Only, v.hasLike) {
			continue
		}
		if f, ok := sh.unwrap(w, v); ok && !w.Beside {
			out, carried = f, true
		}
	}
	return out, carried
}

// effective judges what the program does by itself, and tells whether a rule holds.
func (sh *shell) effective(v *invocation) bool {
	e := sh.e
	sh.effects(v)
	matched := e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
	for _, judges := range e.front.calls {
		matched = judges(sh, v) || matched
	}
	e.unpacks(v)
	sh.editsInPlace(v)
	sh.readsWritten(v)
	return matched
}

// carriedOutput is what a program prints that carried out.
func (sh *shell) carriedOutput(v *invocation, out flow) flow {
	e := sh.e
	if out.known {
		return v.computed(v.noted(out))
	}
	if v.exe == "ssh" || v.exe == "mosh" { // what another machine prints
		return flow{taint: out.taint | fromNetwork, via: v.exe}
	}
	if e.fromStore(v) {
		out.taint |= fromStore
	}
	if f, ok := e.filter(sh, v); ok {
		return f
	}
	if (v.exe == "awk" || v.exe == "gawk" || hasProgramOption(v)) && !slices.Contains(e.groups["shells"], v.exe) && e.prints(v.exe) {
		out.taint |= fromBuilt
	}
	return v.computed(v.noted(out))
}

// hasProgramOption: the program's text stands among its words.
func hasProgramOption(v *invocation) bool {
	return slices.ContainsFunc([]string{"-c", "-e", "-r", "-E", "-p", "--print", "--eval"}, v.has)
}

// moduleWords are the module that "python -m" starts and all that stands behind it.
func moduleWords(v *invocation, module Word) []Word {
	for i, w := range v.argv {
		if w.Text == "-m" && i+1 < len(v.argv) {
			return v.argv[i+1:]
		}
		if strings.HasPrefix(w.Text, "-m") && w.Text[2:] == module.Text {
			return append([]Word{module}, v.argv[i+1:]...)
		}
	}
	return append([]Word{module}, v.operands...)
}

// fromDescriptor: an interpreter that is given /dev/fd/3 as its file reads what is
// open there, as if it were its input.
func (sh *shell) fromDescriptor(v *invocation) {
	if len(sh.fds) == 0 || len(v.operands) == 0 || v.exe != "source" && v.exe != "." && !slices.Contains(sh.e.groups["interpreters"], v.exe) {
		return
	}
	if fd, ok := descriptor(v.operands[0].Text); ok {
		if f, ok := sh.fds[fd]; ok {
			v.stdin = sh.e.readFile(sh, f.file)
			v.operands[0].Text, v.operands[0].At = "/dev/stdin", -1
		}
	}
}

// addOptions puts the options that a program takes from its variables among its own.
func (sh *shell) addOptions(v *invocation) {
	dashes(v)
	if v.exe == "curl" {
		sh.curlConfig(v)
		return
	}
	spec := sh.e.tools[v.exe]
	if spec == nil {
		return
	}
	for _, entry := range spec.Vars {
		name, option, named := strings.Cut(entry, "=")
		if prefix, ok := strings.CutSuffix(name, "*"); ok { // one for each subcommand
			for _, w := range v.argv[1:] {
				v.argv = append(v.argv[:len(v.argv):len(v.argv)], listedOptions(sh.variable(v, prefix+w.Text))...)
			}
			continue
		}
		name, flag := strings.CutSuffix(name, "?")
		value := sh.variable(v, name)
		switch {
		case value.Text == "":
			continue
		case flag && (value.Text == "0" || value.Text == "false"):
			continue
		case flag:
			v.argv = slices.Insert(slices.Clone(v.argv), 1, Word{Text: option, At: -1, Span: value.Span})
		case named:
			v.argv = slices.Insert(slices.Clone(v.argv), 1, Word{Text: option, At: -1, Span: value.Span}, value)
		default:
			v.argv = slices.Insert(slices.Clone(v.argv), 1, listedOptions(value)...)
		}
	}
}

// variable is the value that the program finds in its environment, as far as the
// command itself sets it.
func (sh *shell) variable(v *invocation, name string) Word {
	for _, a := range v.env {
		if a.name == name {
			return a.value
		}
	}
	if w := sh.vars[name]; len(w) == 1 {
		return w[0]
	}
	return Word{}
}

// listedOptions are the words of a variable that holds options.
func listedOptions(value Word) []Word {
	if !value.known() {
		return nil
	}
	var out []Word
	for _, t := range scan.OptionWords(value.Text) {
		out = append(out, Word{Text: t, At: -1, Span: value.Span, Taint: value.Taint})
	}
	return out
}

// dashes writes the options of tar that have no dash, as in "tar czf", with one.
func dashes(v *invocation) {
	if v.exe != "tar" && v.exe != "gtar" && v.exe != "bsdtar" {
		return
	}
	if t := v.word(1).Text; t != "" && t[0] != '-' && strings.Trim(t, "ctxruvzjJpkfhaOUWSPAdmow") == "" && strings.ContainsAny(t, "ctxru") {
		v.argv = slices.Clone(v.argv)
		v.argv[1].At = -1
		if v.argv[1].Text = "-" + strings.ReplaceAll(t, "f", ""); strings.ContainsRune(t, 'f') {
			v.argv[1].Text += "f" // its value is the next word, wherever the letter stands
		}
	}
}

// ownCommands are the commands of the package managers of Node themselves; any other
// first word is a program of the project's.
var ownCommands = scan.SetOf("install i add remove rm un uninstall unlink link update up upgrade run exec set config publish unpublish dlx why version info list ls init node audit cache global workspace workspaces import login logout patch rebuild prune store env deploy start test stop restart create bin pack root view search star team token help ci outdated approve doctor fund owner access deprecate pkg plugin plugins dedupe constraints npm x repl build upgrade-interactive licenses server setup fetch recursive m c get t tst ln r rb pm completion query sbom profile ping whoami shrinkwrap docs repo bugs edit explore find-dupes")

// packageProgram runs the program of a project that "yarn hardhat run …", "pnpm exec x"
// and their kind start.
func (sh *shell) packageProgram(v *invocation) (flow, bool) {
	if len(v.operands) == 0 || !slices.Contains(sh.e.groups["js-pm"], v.exe) {
		return flow{}, false
	}
	n := 0
	if first := v.operands[0].Text; first == "exec" || first == "workspace" && len(v.operands) > 2 {
		n = map[string]int{"exec": 1, "workspace": 2}[first]
	} else if v.exe == "npm" {
		return flow{}, false
	}
	if n >= len(v.operands) || ownCommands[v.operands[n].Text] || !sh.e.acts(v.operands[n].Text) {
		return flow{}, false
	}
	i := slices.IndexFunc(v.argv, func(w Word) bool { return w.Text == v.operands[n].Text && w.Span == v.operands[n].Span })
	if i < 1 {
		return flow{}, false
	}
	return sh.argv(v.argv[i:], &wrapper{}, v), true
}

// scriptHelp: a script of the project that is asked about itself: manage.py flush
// --help. One that the command itself wrote or fetched may do anything then, too.
func (sh *shell) scriptHelp(v *invocation) bool {
	if len(v.operands) == 0 || v.argv[len(v.argv)-1].Text != "--help" || !slices.Contains(sh.e.groups["interpreters"], v.exe) || hasProgramOption(v) || v.has("-s") {
		return false
	}
	script := v.operands[0]
	if strings.HasPrefix(script.Text, "-") || strings.Contains(script.Text, "://") || !script.known() || strings.HasPrefix(script.Text, "/dev/") || script.Text == "-" || strings.HasPrefix(script.Text, "/tmp/") {
		return false
	}
	_, written := sh.e.files[paths.FileKey(sh.cwd, script.Text)]
	return !written
}

// notFound: the shell calls a function of this name for a program it does not find.
func (sh *shell) notFound(v *invocation) {
	for _, name := range [...]string{"command_not_found_handle", "command_not_found_handler"} {
		if _, ok := sh.funcs[name]; ok && sh.e.stranger(v.exe) && sh.running < scan.MaxDepth {
			again := *v
			again.argv = append([]Word{{Text: name, At: -1}}, v.argv...)
			sh.defined(&again)
		}
	}
}

// defined runs functions and aliases that the text itself defines.
func (sh *shell) defined(v *invocation) (flow, bool) {
	if v.direct {
		return flow{}, false
	}
	first := v.argv[0]
	if a, ok := sh.aliasOf(first); ok && sh.running < scan.MaxDepth && !first.Quoted {
		inner := *sh
		inner.running++
		inner.aliases = nil
		text := a
		for i, w := range v.argv[1:] {
			if next, ok := sh.aliasOf(w); ok && i == 0 && strings.HasSuffix(a.Text, " ") { // such an alias is followed by another
				text.Text, text.At = text.Text+next.Text, -1
				continue
			}
			text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
		}
		return inner.interpret("shell", text, v, "alias", nil), true
	}
	f, ok := sh.funcs[first.Text]
	if !ok {
		return flow{}, false
	}
	if sh.running >= scan.MaxDepth {
		return flow{}, true
	}
	inner := *sh
	inner.running++
	if sh.behind && slices.Contains(sh.calls, first.Text) { // it starts itself beside itself
		sh.e.raise("shell.proc.fork-bomb", sh.src, v.from, v.to, printable(first.Text))
		return flow{}, true
	}
	inner.calls = append(slices.Clip(sh.calls), first.Text)
	inner.params, inner.src, inner.saved = v.argv[1:], f.src, map[string][]Word{}
	if inner.params == nil {
		inner.params = []Word{}
	}
	out := inner.stmt(f.body, v.stdin)
	inner.restore(inner.saved)
	return out, true
}

// dynamic is a command whose executable is not known.
func (sh *shell) dynamic(v *invocation) flow {
	e := sh.e
	e.unproven = true
	e.doubt("which program runs is not known")
	v.exe = "?"
	e.parseArgs(v)
	if w := v.argv[0]; !(w.Lone && (benignProgram(w.Var) || sh.plainUse(v))) {
		id := "obf.dynamic-executable"
		e.raise(id, sh.src, v.from, v.to, "")
	}
	e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
	return flow{taint: v.stdin.taint}
}

// plainUse: a tool that is named by a variable the command never sets, as scripts are
// written, and whose words are all known and harmless: $ADB devices. Whoever wants to
// hide a program has to set the variable in the command, or hand it something to do.
func (sh *shell) plainUse(v *invocation) bool {
	if w := v.argv[0]; len(w.Var) < 2 || strings.ToUpper(w.Var) != w.Var || w.Var[0] < 'A' || w.Taint != 0 || v.stdin.known || v.stdin.taint != 0 || len(sh.src.via) > 0 || len(v.argv) < 2 {
		return false
	}
	for _, w := range v.argv[1:] {
		if !w.known() || w.Glob || strings.ContainsAny(w.Text, " ;|&<>$`(){}~\\'\"") || strings.HasPrefix(w.Text, "/") || strings.Contains(w.Text, "..") || w.Text == "-c" || w.Text == "-e" {
			return false
		}
		if name := scan.Base(w.Text); sh.e.exe[name] || dangerousWord(w.Text) {
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
func isHelp(v *invocation) bool {
	if len(v.argv) == 2 {
		switch v.argv[1].Text {
		case "--version", "-version", "-V", "--help", "-help", "help", "version", "-h", "-v":
			return v.argv[1].Text != "-h" && v.argv[1].Text != "-v" || !slices.Contains([]string{"shutdown", "sh"}, v.exe)
		}
	}
	if v.argv[len(v.argv)-1].Text == "/?" {
		return true
	}
	if v.exe == "git" && len(v.operands) > 0 && gitCommands[v.operands[0].Text] && v.operands[0].Text != "grep" && v.has("-h") {
		return true // every command of Git prints its usage, wherever the option stands
	}
	for _, o := range v.opts {
		if (o.name == "--help" || o.name == "-help" && slices.Contains(noShortHelp, v.exe)) && !o.given {
			return true
		}
	}
	return false
}

// argv runs words that are an inner command.
func (sh *shell) argv(words []Word, w *wrapper, v *invocation) flow {
	if len(words) > 1 && words[0].Text == "-c" { // flock FILE -c TEXT, su USER -- -c TEXT
		return sh.interpret("shell", words[1], v, v.exe+" -c", nil)
	}
	src := *sh.src
	src.via = append(slices.Clip(src.via), v.exe)
	src.depth++
	argv := slices.Clone(words)
	stdin := v.stdin
	inner := *sh
	inner.src = &src
	if w.Append {
		if file, ok := v.value("-a", "--arg-file"); ok && v.exe != "parallel" {
			one := *v
			one.stdin = sh.e.readFile(sh, file)
			v = &one
		}
		if lines := strings.Split(strings.TrimSpace(v.stdin.word.Text), "\n"); v.stdin.known && len(lines) > 1 && (v.has("-I") || v.has("-i") || v.has("--replace") || v.has("-L")) {
			for _, line := range lines[:min(len(lines), scan.MaxLoop)-1] { // the last one below
				one := *v
				one.stdin.word.Text, one.stdin.word.At = line, -1
				each := inner
				each.run(&invocation{src: &src, direct: true, argv: appendInput(slices.Clone(argv), &one), stdin: flow{known: true}, env: v.env, redirs: v.redirs, from: v.from, to: v.to})
			}
			one := *v
			one.stdin.word.Text, one.stdin.word.At = lines[min(len(lines), scan.MaxLoop)-1], -1
			v = &one
		}
		argv = appendInput(argv, v)
		stdin = flow{known: true}
	}
	out := inner.run(&invocation{src: &src, direct: v.exe != "time" || len(v.env) > 0, argv: argv, stdin: stdin, env: v.env, redirs: v.redirs, from: v.from, to: v.to})
	switch v.exe {
	case "builtin", "command", "time", "exec": // in this shell itself: what is set stays
		sh.cwd, sh.vars, sh.funcs, sh.aliases = inner.cwd, inner.vars, inner.funcs, inner.aliases
	}
	return out
}

// interpret runs a text of a language found inside the command.
func (sh *shell) interpret(lang string, w Word, v *invocation, via string, params []Word) flow {
	e := sh.e
	src := sh.src.inside(w, via)
	if w.Taint&fromDecoder != 0 {
		src.layers++
	}
	if !e.budget.spend(1) || src.depth > scan.MaxDepth {
		e.tooDeep = true
		return flow{}
	}
	if !w.known() {
		if strings.Trim(w.Text, " \n\t"+string(scan.Hole)) == "" {
			return sh.unknownText(lang, w, v)
		}
		if lang == "shell" {
			src.text, src.at = strings.ReplaceAll(w.Text, string(scan.Hole), "${_}"), -1
		}
	}
	e.ran = true
	if lang == "shell" {
		return e.front.shell(sh, &src, v, via, params)
	}
	inner := *sh
	inner.params, inner.carrier = params, v
	out := inner.read(lang, &src, v)
	out.taint |= v.stdin.taint
	return out
}

// read hands a text to whoever reads its language. Where several do, every reading
// counts, and what the first of them prints is what the text prints.
func (sh *shell) read(lang string, src *source, v *invocation) (out flow) {
	list := sh.e.front.languages[lang]
	if list == nil {
		form, _, _ := strings.Cut(lang, " ")
		if list = sh.e.front.languages[form]; form == lang || list == nil {
			list = sh.e.front.languages["program"]
		}
	}
	for i, reads := range list {
		if f := reads(sh, src, lang, v); i == 0 {
			out = f
		}
	}
	return out
}

// read is a text that no shell around it is known of.
func (e *engine) read(lang string, src *source, v *invocation) flow {
	return (&shell{e: e, src: src}).read(lang, src, v)
}

// interpretShell runs a text that a program hands to a shell of its own, or that
// stands for an alias of this one.
func interpretShell(sh *shell, src *source, v *invocation, via string, params []Word) flow {
	e := sh.e
	if v.exe == "fish" {
		src.text, src.at = fromFish(src.text), -1
	}
	inner := *sh
	if via != "alias" && len(sh.vars) > 0 && e.budget.spend(len(sh.vars)/4) { // a shell of its own
		inner.vars = maps.Clone(sh.vars)
	}
	inner.params, inner.zsh = params, sh.zsh || v.exe == "zsh"
	if via != "alias" && len(v.env) > 0 && (len(sh.vars) == 0 || !e.budget.spent) { // NAME=value in front of it
		for _, a := range v.env {
			inner.set(a.name, a.value)
		}
	}
	return inner.script(src, v.stdin)
}

// unknownText is an interpreter fed something that cannot be known.
func (sh *shell) unknownText(lang string, w Word, v *invocation) flow {
	e := sh.e
	e.unproven = true
	if name, ok := strings.CutPrefix(w.Var, "$("); ok && slices.Contains(e.groups["shell-setup"], strings.TrimSuffix(name, ")")) {
		return flow{}
	}
	if storeLanguage(lang) {
		if w.Taint&(fromNetwork|fromDecoder|fromBuilt) != 0 {
			e.raise("sql.dynamic", sh.src, v.from, v.to, "")
		}
		return flow{}
	}
	if w.Taint&(fromNetwork|fromDecoder) != 0 {
		return flow{} // the tables name it better: rce.*, obf.decode-exec
	}
	e.doubt("text that is interpreted is not known")
	if lang == "shell" {
		e.raise("obf.dynamic-structure", sh.src, v.from, v.to, "")
	}
	return flow{}
}

// file interprets a file that the command itself wrote.
func (sh *shell) file(w *wrapper, v *invocation, name Word) flow {
	if fd, ok := descriptor(name.Text); name.Text == "-" || name.Text == "/dev/stdin" || ok && fd == "0" {
		out, _ := sh.fromInput(w, v)
		return out
	}
	f, ok := sh.e.writtenFile(sh, name.Text)
	if rest, data := strings.CutPrefix(name.Text, "data:"); data {
		f, ok = dataURL(rest, name), true
	}
	if !ok || !f.known {
		sh.e.unproven = true
		if unknown := sh.e.front.unknown[w.Lang]; unknown != nil {
			unknown(sh, f, v)
		}
		if storeLanguage(w.Lang) && f.taint&(fromNetwork|fromBuilt) != 0 {
			sh.e.raise("sql.dynamic", sh.src, v.from, v.to, printable(name.Text))
		}
		return flow{}
	}
	f.word.Taint |= f.taint
	return sh.interpret(w.Lang, f.word, v, v.exe+" file", sh.params)
}

// partlyKnown: text with holes, as echo "rm -rf $x" prints.
func partlyKnown(w Word) bool {
	return strings.IndexByte(w.Text, scan.Hole) >= 0 && strings.Trim(w.Text, " \n\t"+string(scan.Hole)) != ""
}

// dataURL is the text that an address of the form data:type;base64,text holds.
func dataURL(rest string, name Word) flow {
	kind, text, ok := strings.Cut(rest, ",")
	if strings.HasSuffix(kind, ";base64") {
		text, ok = scan.Decode64(text)
	} else if ok {
		text, ok = scan.PercentDecoded(text)
	}
	name.Text, name.At = text, -1
	return flow{word: name, known: ok && len(text) <= scan.MaxDecoded}
}

// fromInput interprets what is piped into an interpreter.
func (sh *shell) fromInput(w *wrapper, v *invocation) (flow, bool) {
	in := v.stdin
	if unknown := sh.e.front.unknown[w.Lang]; unknown != nil && !in.known {
		unknown(sh, in, v)
	}
	if !in.known && !partlyKnown(in.word) {
		if in.taint == 0 && in.via == "" {
			return flow{}, false
		}
		sh.e.unproven = true
		if in.taint&(fromBuilt|fromStore) != 0 && w.Lang == "shell" {
			sh.e.doubt("text that is interpreted is not known")
			sh.e.raise("obf.dynamic-structure", sh.src, v.from, v.to, "")
		}
		if in.taint&fromDecoder != 0 && storeLanguage(w.Lang) && decodesText(in.via) {
			sh.e.raise("sql.dynamic", sh.src, v.from, v.to, "")
		}
		if in.taint&fromBuilt != 0 && storeLanguage(w.Lang) && buildsStatements(sh.src.text) {
			sh.e.raise("sql.dynamic", sh.src, v.from, v.to, "")
		}
		return flow{taint: in.taint &^ fromStdin}, true
	}
	if in.word.Text == "" {
		return flow{}, false
	}
	in.word.Taint |= in.taint
	via := v.exe
	if in.via != "" {
		via = in.via + " | " + v.exe
	}
	saved := v.stdin
	v.stdin = flow{known: true}
	out := sh.interpret(w.Lang, in.word, v, via, nil)
	v.stdin = saved
	return out, true
}
