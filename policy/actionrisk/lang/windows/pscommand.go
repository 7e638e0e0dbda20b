package windows

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// winShell is the state of a PowerShell or cmd session. Variables, functions and aliases that one
// statement sets remain set for later statements, and for texts that these run.
type winShell struct {
	e        *interp.Env
	src      *act.Source
	sh       *interp.Process // judges the equivalent POSIX commands
	vars     map[string]psValue
	funcs    map[string]psValue
	aliases  map[string]string
	specials map[string]func(*winShell, *psCall) psValue // functions for some cmdlets; nil until needed
	running  int                                         // number of nested blocks and texts
	cmdText  string                                      // the whole text of cmd, to which positions refer
}

// psItem is an argument as written: the name of a parameter, or a value.
type psItem struct {
	name  string
	value psValue
	given bool // written as -name:value
	raw   string
}

// psParam is a parameter and its value. has is false if it has no value.
type psParam struct {
	name  string
	value psValue
	has   bool
}

func (p *psParam) is(value string) bool {
	for _, t := range p.value.texts() {
		if t = strings.ToLower(t); t == value || value == `\*` && t == "*" || strings.IndexByte(value, '*') >= 0 && paths.GlobMatch(value, t) {
			return true
		}
	}
	return !p.has && value == "true"
}

// psCall is one command with its arguments.
type psCall struct {
	name     string // as written; later the canonical name
	verb     string
	noun     string
	operator byte // the call operator & or . before it, or 0
	target   psValue
	items    []psItem
	params   []psParam
	args     []psValue
	input    psValue
	piped    bool
	file     string // the file to which its output is redirected, or ""
	append   bool
	from, to int
}

// splat adds the members of a hash table as parameters, or the elements of a list as arguments.
func (c *psCall) splat(v psValue) {
	if v.kind != psHash {
		for _, item := range v.list() {
			t := item.str()
			if len(t) > 1 && t[0] == '-' && act.SyntaxName(t[1:]) && t[1] > '9' {
				c.items = append(c.items, psItem{name: strings.ToLower(t[1:]), raw: t})
				continue
			}
			c.items = append(c.items, psItem{value: item, raw: t})
		}
		return
	}
	for i, k := range v.keys {
		c.items = append(c.items, psItem{name: k, value: v.items[i], given: true})
	}
}

// param returns the value of a parameter, and false if it is not given.
func (c *psCall) param(name string) (psValue, bool) {
	for i := range c.params {
		if c.params[i].name == name {
			return c.params[i].value, true
		}
	}
	return psValue{}, false
}

// on reports whether a switch is given, and not with the value false.
func (c *psCall) on(name string) bool {
	v, ok := c.param(name)
	return ok && !strings.EqualFold(v.str(), "false")
}

// values returns the values of all arguments, with and without a parameter name.
func (c *psCall) values() []psValue {
	out := slices.Clone(c.args)
	for i := range c.params {
		if c.params[i].has {
			out = append(out, c.params[i].value)
		}
	}
	return out
}

func (c *psCall) about() act.Word {
	for _, v := range c.values() {
		if t := v.str(); t != "" && v.known() {
			return act.Word{Text: t}
		}
	}
	return act.Word{}
}

func (c *psCall) taints() act.Taint {
	t := c.input.taints()
	for _, v := range c.values() {
		t |= v.taints()
	}
	return t
}

// deepTexts returns all texts in a value, including those in lists and tables.
func (v psValue) deepTexts() []string {
	if v.kind != psList && v.kind != psHash {
		return []string{v.str()}
	}
	var out []string
	for i := range v.items {
		out = append(out, v.items[i].deepTexts()...)
	}
	return out
}

// bind assigns the arguments to parameters, as PowerShell does. spec is the entry of the cmdlet,
// or nil.
func (w *winShell) bind(c *psCall, spec *facts.Cmdlet) {
	c.args = nil
	for i := 0; i < len(c.items); i++ {
		item := &c.items[i]
		if item.name == "" {
			c.args = append(c.args, item.value)
			continue
		}
		p := psParam{value: item.value, has: item.given}
		takes := false
		p.name, takes = w.parameter(item.name, spec)
		if takes && !item.given && i+1 < len(c.items) && c.items[i+1].name == "" {
			i++
			p.value, p.has = c.items[i].value, true
		}
		c.params = append(c.params, p)
	}
	if spec != nil {
		c.place(spec.Pos)
	}
}

// place assigns values without a name to the positional parameters, in the order of names. Values
// that remain are added to the first positional parameter.
func (c *psCall) place(names []string) {
	for _, name := range names {
		if _, ok := c.param(name); !ok && len(c.args) > 0 {
			c.params = append(c.params, psParam{name: name, value: c.args[0], has: true})
			c.args = c.args[1:]
		}
	}
	for i := range c.params {
		if p := &c.params[i]; len(c.args) > 0 && len(names) > 0 && p.name == names[0] {
			p.value = psListOf(append(slices.Clone(p.value.list()), c.args...))
		}
	}
}

// parameter returns the full name of an abbreviated parameter, and reports whether it takes a
// value.
func (w *winShell) parameter(name string, spec *facts.Cmdlet) (string, bool) {
	t, least := &w.e.Windows, 3
	if spec != nil {
		least = 0
		for _, list := range [...][]string{spec.Pos, spec.Params} {
			if i := slices.IndexFunc(list, func(full string) bool {
				return full == name || strings.HasPrefix(full, name) && !t.IsSwitch.Get(name)
			}); i >= 0 {
				return list[i], true
			}
		}
	}
	if full, ok := abbreviated(t.Options, name, 6); ok {
		return full, true
	}
	if full, ok := abbreviated(t.Switches, name, least); ok {
		return full, false
	}
	return name, spec == nil
}

// abbreviated returns the first of the names that is equal to a given name, or that begins with
// it. An abbreviation must have at least the number of letters in the parameter "least".
func abbreviated(names []string, name string, least int) (string, bool) {
	i := slices.IndexFunc(names, func(full string) bool {
		return full == name || len(name) >= least && strings.HasPrefix(full, name)
	})
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// mayRun counts a command and spends its cost. It returns false if a limit is reached.
func (w *winShell) mayRun(cost int) bool {
	w.e.Invocations++
	if w.e.Invocations > scan.MaxInvocations || !w.e.Budget.Spend(cost) {
		w.e.TooDeep = true
		return false
	}
	return true
}

// canonical returns the name of a command after aliases are resolved, in lower case and without
// its folder.
func (w *winShell) canonical(name string) string {
	name = strings.ToLower(scan.Base(strings.TrimSpace(name)))
	for range 4 {
		to, ok := w.aliases[name]
		if !ok {
			if to = w.e.Windows.Aliases.Get(name); to == "" {
				break
			}
		}
		name = strings.ToLower(scan.Base(to))
	}
	return name
}

// run judges one command and returns its output.
func (w *winShell) run(c *psCall) psValue {
	if !w.mayRun(16 + 2*len(c.items)) {
		return psUnknown(0)
	}
	w.e.Ran = true
	if c.target.isBlock() {
		return w.runBlock(c.target, c)
	}
	if strings.IndexByte(scan.Base(c.name), scan.Hole) >= 0 || c.target.kind == psObject {
		return w.dynamic(c)
	}
	name := w.canonical(c.name)
	if f, ok := w.funcs[name]; ok && w.running < scan.MaxDepth {
		w.bind(c, nil)
		return w.runBlock(f, c)
	}
	if name == "rem" || strings.HasPrefix(name, "::") {
		return psValue{}
	}
	spec := w.e.Windows.ByCmdlet.Get(name)
	verb, noun, _ := strings.Cut(name, "-")
	if w.meansProgram(c, spec) || spec == nil && (noun == "" || !w.e.Windows.IsVerb.Get(verb)) {
		return w.finish(c, w.native(c))
	}
	c.name, c.verb, c.noun = name, verb, noun
	w.bind(c, spec)
	if c.on("whatif") || c.on("?") {
		return psThing(name, 0)
	}
	return w.finish(c, w.cmdlet(c, spec))
}

// meansProgram reports whether a command means a program and not the cmdlet with the same name or
// alias, because its options are those of the program: rm -rf.
func (w *winShell) meansProgram(c *psCall, spec *facts.Cmdlet) bool {
	if spec == nil || !w.e.In("programs-that-powershell-renames", strings.ToLower(c.name)) {
		return false
	}
	return slices.ContainsFunc(c.items, func(item psItem) bool {
		if item.name == "" {
			return len(item.raw) > 2 && strings.HasPrefix(item.raw, "--")
		}
		name, takes := w.parameter(item.name, spec)
		if takes && name != item.name { // matches a parameter and a switch, which PowerShell rejects as ambiguous
			_, both := abbreviated(w.e.Windows.Switches, item.name, 0)
			return both
		}
		return !takes && name == item.name && !w.e.Windows.IsSwitch.Get(name)
	})
}

// finish writes the output of a command to the file of its redirection, or returns the output.
func (w *winShell) finish(c *psCall, out psValue) psValue {
	if c.file != "" {
		op := ">"
		if c.append {
			op = ">>"
		}
		w.write(c.file, out, op)
		return psValue{}
	}
	return out
}

// cmdlet judges a cmdlet and returns its output.
func (w *winShell) cmdlet(c *psCall, spec *facts.Cmdlet) psValue {
	if w.specials == nil {
		w.specials = psSpecials()
	}
	special := w.specials[c.name]
	if special == nil {
		w.blocks(c)
	}
	w.defaults(c)
	matched := w.match("cmdlet", c.verb, c)
	switch {
	case special != nil:
		return special(w, c)
	case spec == nil:
		if !matched && !quietVerbs.Has(c.verb) {
			w.e.Unproven, w.e.Loose = true, true
		}
		return w.gives(c, "", act.Flow{})
	case spec.Write != "":
		w.writeBy(c, spec)
		return psValue{}
	case len(spec.Run) > 0:
		return w.gives(c, spec.Gives, w.posix(c, w.template(c, spec.Run), w.inputFlow(c)))
	}
	return w.gives(c, spec.Gives, act.Flow{})
}

// quietVerbs lists the verbs of cmdlets that change nothing, whatever their noun.
var quietVerbs = scan.SetOf("get test format select measure sort")

// givenTaints maps the word in the table for the output of a cmdlet to its taint.
var givenTaints = map[string]act.Taint{"network": act.FromNetwork, "secret": act.FromSecret, "environ": act.FromEnviron}

// defaults adds the parameters that $PSDefaultParameterValues sets.
func (w *winShell) defaults(c *psCall) {
	d, ok := w.vars["psdefaultparametervalues"]
	if !ok {
		return
	}
	for i, k := range d.keys {
		if name, param, ok := strings.Cut(k, ":"); ok && paths.GlobMatch(name, c.name) {
			if _, given := c.param(param); !given {
				c.params = append(c.params, psParam{name: param, value: d.items[i], has: true})
			}
		}
	}
}

// match judges a cmdlet or a member by the rule tables, and reports whether a rule matched.
func (w *winShell) match(kind, name string, c *psCall) bool {
	if w.e.Other.Get(kind+" "+name) == nil && w.e.Other.Get(kind+" *") == nil {
		return false
	}
	var words []string
	for _, v := range append(c.values(), c.input.items...) {
		words = append(words, v.deepTexts()...)
	}
	return w.e.Match(&act.Item{Kind: kind, Name: name, Src: w.src, From: c.from, To: c.to, Fact: c, Words: strings.Join(words, " "), Target: act.Printable(c.about().Text)})
}

// gives returns the output of a command. The table describes the output with a word, which is the
// parameter what. out is the output of the equivalent POSIX command.
func (w *winShell) gives(c *psCall, what string, out act.Flow) psValue {
	switch what {
	case "input":
		return c.input
	case "args":
		return psListOf(c.values())
	case "joined":
		return psValue{text: strings.Join(psListOf(c.values()).texts(), "/"), taint: c.taints()}
	case "temp":
		return psString("C:/Temp/x/tmp.tmp")
	case "path":
		if vs := c.values(); len(vs) > 0 {
			return psValue{text: vs[0].str(), taint: vs[0].taints()}
		}
	case "nothing":
		return psValue{}
	}
	t := out.Taint | out.Word.Taint | givenTaints[what]
	if out.Known {
		return psValue{text: out.Word.Text, taint: t}
	}
	v := psThing(c.name, t|c.taints()&(act.FromSecret|act.FromEnviron|act.FromDump|act.FromNetwork|act.FromDecoder))
	v.output = true
	if c.verb == "get" && len(c.values()) > 0 { // remember which object Get-X returns
		v.keys, v.items = []string{"identity"}, []psValue{c.values()[0]}
	}
	return v
}

// blocks judges the script blocks among the arguments.
func (w *winShell) blocks(c *psCall) {
	for _, v := range c.values() {
		for _, item := range v.list() {
			if item.kind == psBlock {
				w.runBlock(item, &psCall{input: c.input, from: c.from, to: c.to})
			}
		}
	}
}

// template returns the words of the equivalent POSIX command. A word such as "{name}" is replaced
// by the value of that parameter.
func (w *winShell) template(c *psCall, words []string) []act.Word {
	var out []act.Word
	for _, t := range words {
		if t[0] != '{' {
			out = append(out, act.Word{Text: t, At: -1})
			continue
		}
		name := strings.Trim(t, "{}")
		name, flag, isFlag := strings.Cut(name, "?")
		name, option, isOption := strings.Cut(name, ":")
		v, ok := c.param(name)
		if name == "input" {
			v, ok = c.input, c.piped
		}
		switch {
		case !ok:
		case isFlag:
			if c.on(name) {
				out = append(out, act.Word{Text: flag, At: -1})
			}
		case isOption:
			out = append(out, act.Word{Text: option, At: -1}, w.argWord(v.str(), v.taints()))
		default:
			for _, one := range v.texts() {
				out = append(out, w.argWord(one, v.taints()))
			}
		}
	}
	return out
}

// argWord converts a value to a word, with paths in POSIX form.
func (w *winShell) argWord(text string, t act.Taint) act.Word {
	if strings.EqualFold(text, "nul") {
		text = "/dev/null"
	}
	if strings.Contains(text, `\`) && !strings.ContainsAny(text, "\n\"'<>|") {
		text = strings.ReplaceAll(text, `\`, "/")
	}
	return act.Word{Text: text, At: -1, Glob: strings.ContainsAny(text, "*?"), Taint: t}
}

// inputFlow returns the piped input of a command in the form in which a program reads it.
func (w *winShell) inputFlow(c *psCall) act.Flow {
	if !c.piped {
		return act.Flow{}
	}
	t := c.input.taints()
	if c.input.kind == psText && c.input.known() || c.input.kind == psList && c.input.known() {
		return act.Flow{Known: true, Word: act.Word{Text: strings.Join(c.input.texts(), "\n"), At: -1, Taint: t}, Taint: t}
	}
	return act.Flow{Taint: t | act.FromStdin, Via: "pipe"}
}

// posix judges a command as if a POSIX shell had run it.
func (w *winShell) posix(c *psCall, argv []act.Word, in act.Flow) act.Flow {
	if len(argv) == 0 || w.src.Depth >= scan.MaxDepth {
		return act.Flow{}
	}
	span, _ := w.src.Where(c.from, min(max(c.to, c.from), len(w.src.Text)))
	for i := range argv {
		argv[i].Span = span
	}
	at := *w.src
	at.Depth++
	w.sh.Src = &at
	return w.sh.Run(&act.Invocation{Src: w.src, From: c.from, To: c.to, Argv: argv, Stdin: in})
}

// words converts texts to words.
func words(texts ...string) []act.Word {
	out := make([]act.Word, len(texts))
	for i, t := range texts {
		out[i] = act.Word{Text: t, At: -1, Glob: strings.ContainsAny(t, "*?")}
	}
	return out
}

// see reports a finding about a command.
func (w *winShell) see(what act.Sight, c *psCall) { w.e.See(what, w.src, c.from, c.to, "") }

// dynamic judges a command whose name is not known.
func (w *winShell) dynamic(c *psCall) psValue {
	w.e.Unproven = true
	w.bind(c, nil)
	w.blocks(c)
	switch t := c.target.taints() | c.input.taints(); {
	case c.target.kind == psObject && c.target.text == "command" && len(c.values()) == 0:
		return psUnknown(t)
	case t&act.FromNetwork != 0:
		w.see(act.RunsNetworkText, c)
	default:
		w.e.Doubt("which program runs is not known")
		w.see(act.RunsUnknownProgram, c)
	}
	return psUnknown(0)
}

// native judges a program, a script, or a command of cmd, and returns its output.
func (w *winShell) native(c *psCall) psValue {
	argv := []act.Word{{Text: c.name, At: -1, Taint: c.target.taints()}}
	for i := range c.items {
		item := &c.items[i]
		switch {
		case item.name != "":
			text := "-" + item.name
			if item.raw != "" {
				text = item.raw
			}
			argv = append(argv, act.Word{Text: text, At: -1})
			if item.given {
				argv[len(argv)-1].Text += ":" + item.value.str()
			}
		case item.value.kind == psBlock:
			w.runBlock(item.value, &psCall{input: c.input, from: c.from, to: c.to})
			argv = append(argv, act.Word{Text: item.value.str(), At: -1})
		case item.value.kind == psHash:
			argv = append(argv, act.Word{Text: item.raw, At: -1})
		default:
			for _, t := range item.value.texts() {
				argv = append(argv, act.Word{Text: t, At: -1, Glob: strings.ContainsAny(t, "*?"), Taint: item.value.taints()})
			}
		}
	}
	out := w.start(c, argv, w.inputFlow(c))
	if out.Known {
		return psValue{text: out.Word.Text, taint: out.Taint | out.Word.Taint}
	}
	v := psUnknown(out.Taint)
	v.output = true
	if slices.Contains(w.e.Windows.Locators, strings.ToLower(scan.Base(c.name))) { // assume that it prints the name it searches for
		return psString(argv[len(argv)-1].Text)
	}
	if slices.Contains(w.e.Groups.Get("shell-setup"), scan.Base(c.name)) || strings.HasPrefix(scan.Base(c.name), "oh-my-") {
		v.text = ""
	}
	return v
}

// start judges the start of a program, or of a script that the command itself wrote.
func (w *winShell) start(c *psCall, argv []act.Word, in act.Flow) act.Flow {
	name := strings.ReplaceAll(argv[0].Text, `\`, "/")
	f, written := act.Flow{}, false
	for _, suffix := range [...]string{"", ".cmd", ".bat", ".exe", ".ps1"} {
		if f, written = w.e.Files[w.e.Key(w.sh.Cwd, name+suffix)]; written {
			name += suffix
			break
		}
	}
	argv[0].Text = name
	if lang := scriptSuffixes[strings.ToLower(path.Ext(name))]; lang != "" && f.Known {
		f.Word.Taint |= f.Taint
		src := w.src.Inside(f.Word, name)
		src.At = -1
		runLanguage(w.sh, &src, lang)
		return act.Flow{}
	}
	switch {
	case hosts.ForeignShare(name), f.Taint&act.FromNetwork != 0:
		w.see(act.RunsDownload, c)
	case f.Taint&act.FromDecoder != 0:
		w.see(act.RunsDecoded, c)
	}
	for i, a := range argv {
		if i > 0 && strings.Contains(a.Text, `:\`) || strings.HasPrefix(a.Text, `.\`) || strings.HasPrefix(a.Text, `~\`) {
			argv[i] = w.argWord(a.Text, a.Taint)
		}
	}
	return w.posix(c, argv, in)
}

// scriptSuffixes maps file extensions to the language of the script.
var scriptSuffixes = map[string]string{".ps1": "powershell", ".psm1": "powershell", ".bat": "cmd", ".cmd": "cmd", ".vbs": "strings", ".js": "strings", ".wsf": "strings", ".hta": "strings"}

// runLanguage judges a script in the language lang. Environment variables that a PowerShell or cmd
// script sets remain set after it.
func runLanguage(sh *interp.Process, src *act.Source, lang string) {
	switch {
	case src.Depth > scan.MaxDepth:
		sh.Env.TooDeep = true
	case lang == "strings" || sh.Vars == nil:
		sh.Read(lang, src, nil)
	default:
		run(sh.Env, src, lang, sh.Vars)
	}
}

// write writes a value to a file. op is ">" or ">>".
func (w *winShell) write(file string, v psValue, op string) {
	if file == "" || strings.EqualFold(file, "null") || strings.EqualFold(file, "nul") || file[0] == '&' {
		return
	}
	f := act.Flow{Taint: v.taints()}
	if strings.HasPrefix(file, `\\`) && f.Taint&(act.FromSecret|act.FromEnviron|act.FromDump) != 0 { // the file is on another machine
		w.e.See(act.SendsSecret, w.src, 0, len(w.src.Text), act.Printable(file))
	}
	if v.kind != psObject && v.known() {
		f.Known, f.Word = true, act.Word{Text: strings.Join(v.texts(), "\n"), At: -1, Taint: f.Taint}
	}
	at := *w.src
	w.sh.Src = &at
	w.sh.Write(act.Redir{Op: op, File: w.argWord(file, 0)}, f)
}

// writeBy writes the text that a cmdlet such as Set-Content writes to its files.
func (w *winShell) writeBy(c *psCall, spec *facts.Cmdlet) {
	v, ok := c.param(spec.Text)
	if !ok {
		v = c.input
	}
	op := spec.Write
	if c.on("append") {
		op = ">>"
	}
	for _, name := range [...]string{spec.Pos[0], "literalpath"} {
		if file, ok := c.param(name); ok {
			for _, t := range file.texts() {
				w.write(t, v, op)
			}
		}
	}
}
