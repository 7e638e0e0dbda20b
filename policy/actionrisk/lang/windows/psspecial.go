package windows

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// psSpecials returns the functions for cmdlets whose effect depends on their arguments in a way
// that the table cannot express.
func psSpecials() map[string]func(w *winShell, c *psCall) psValue {
	return map[string]func(w *winShell, c *psCall) psValue{
		"invoke-expression":       (*winShell).invokeExpression,
		"foreach-object":          (*winShell).forEachObject,
		"where-object":            (*winShell).whereObject,
		"new-object":              (*winShell).newObject,
		"get-command":             (*winShell).getCommand,
		"get-alias":               (*winShell).getCommand,
		"set-alias":               (*winShell).setAlias,
		"new-alias":               (*winShell).setAlias,
		"set-variable":            (*winShell).setVariable,
		"new-variable":            (*winShell).setVariable,
		"get-variable":            (*winShell).getVariable,
		"set-item":                (*winShell).setItem,
		"new-item":                (*winShell).newItem,
		"get-item":                (*winShell).getItem,
		"get-childitem":           (*winShell).getItem,
		"get-content":             (*winShell).getContent,
		"remove-item":             (*winShell).removeItem,
		"start-process":           (*winShell).startProcess,
		"invoke-webrequest":       (*winShell).web,
		"invoke-restmethod":       (*winShell).web,
		"invoke-sqlcmd":           (*winShell).sqlcmd,
		"invoke-cimmethod":        (*winShell).cimMethod,
		"invoke-wmimethod":        (*winShell).cimMethod,
		"get-ciminstance":         (*winShell).cimInstance,
		"get-wmiobject":           (*winShell).cimInstance,
		"get-cimclass":            (*winShell).cimInstance,
		"invoke-command":          (*winShell).invokeCommand,
		"invoke-item":             (*winShell).invokeItem,
		"import-module":           (*winShell).importModule,
		"remove-ciminstance":      (*winShell).removeInstance,
		"remove-wmiobject":        (*winShell).removeInstance,
		"add-type":                (*winShell).addType,
		"set-location":            (*winShell).setLocation,
		"select-object":           (*winShell).selectObject,
		"select-string":           (*winShell).selectString,
		"stop-process":            (*winShell).stopProcess,
		"new-scheduledtaskaction": (*winShell).taskAction,
	}
}

// value returns a parameter, or else the first value without a name, or else the piped input.
func (w *winShell) value(c *psCall, name string) psValue {
	if v, ok := c.param(name); ok {
		return v
	}
	if len(c.args) > 0 {
		return c.args[0]
	}
	return c.input
}

func (w *winShell) invokeExpression(c *psCall) psValue {
	v := w.value(c, "command")
	if v.kind == psText && v.text == "" {
		return psValue{}
	}
	return w.runText(v, "Invoke-Expression", c)
}

func (w *winShell) forEachObject(c *psCall) psValue {
	v := c.input
	var out []psValue
	done := false
	for _, a := range c.values() {
		for _, item := range a.list() {
			switch {
			case item.kind == psBlock:
				out, done = append(out, w.each(v, item, c).list()...), true
			case item.kind == psText && !done && act.SyntaxName(item.text): // for example "% Delete", where % is ForEach-Object
				done = true
				for _, one := range v.list() {
					out = append(out, w.invoke(one, strings.ToLower(item.text), nil, c.from, c.to))
				}
			}
		}
	}
	return collect(out)
}

func (w *winShell) whereObject(c *psCall) psValue {
	v := c.input
	for _, a := range c.values() {
		if a.kind == psBlock {
			w.set("_", w.element(v))
			w.runBlock(a, &psCall{from: c.from, to: c.to})
		}
	}
	if v.kind == psObject { // the result contains only some of the objects
		v.keys, v.items = append(slices.Clone(v.keys), "filtered"), append(slices.Clone(v.items), psString("true"))
	}
	return v
}

func (w *winShell) selectObject(c *psCall) psValue {
	v := c.input
	if name, ok := c.param("expandproperty"); ok {
		return w.property(v, strings.ToLower(name.str()))
	}
	return v
}

func (w *winShell) newObject(c *psCall) psValue {
	if com, ok := c.param("comobject"); ok {
		return psThing("com:"+strings.ToLower(com.str()), 0)
	}
	name := strings.TrimPrefix(strings.ToLower(w.value(c, "typename").str()), "system.")
	t := c.taints()
	args, _ := c.param("argumentlist")
	v := psThing(name, t)
	for i, a := range args.list() {
		v.keys, v.items = append(v.keys, "arg"+string(rune('0'+i%10))), append(v.items, a)
	}
	return v
}

// getCommand evaluates Get-Command, which finds a command by a pattern.
func (w *winShell) getCommand(c *psCall) psValue {
	pattern := w.value(c, "name")
	verb, hasVerb := c.param("verb")
	noun, hasNoun := c.param("noun")
	if hasVerb || hasNoun {
		pattern = psString("*-*")
		if hasVerb {
			pattern.text = verb.str() + "-*"
		}
		if hasNoun {
			pattern.text = strings.Replace(pattern.text, "-*", "-"+noun.str(), 1)
		}
	}
	name := strings.ToLower(pattern.str())
	if !strings.ContainsAny(name, "*?[") {
		return pattern
	}
	if found := commandLike(name); found != "" {
		return psString(found)
	}
	return psThing("command", 0)
}

// commandLike returns the first of the harmful commands that matches the pattern, or "".
func commandLike(pattern string) string {
	if i := strings.IndexByte(pattern, '['); i >= 0 { // replace a range such as [a-z] by "?"
		if j := strings.IndexByte(pattern[i:], ']'); j > 0 {
			pattern = pattern[:i] + "?" + pattern[i+j+1:]
		}
	}
	for _, name := range harmful {
		if paths.GlobMatch(pattern, name) {
			return name
		}
	}
	return ""
}

// harmful lists commands that an attacker might hide with a pattern.
var harmful = strings.Fields("invoke-expression remove-item iex ri rm del rd clear-content clear-disk format-volume stop-computer restart-computer invoke-webrequest invoke-restmethod iwr irm new-object set-content invoke-command start-process stop-process remove-itemproperty")

func (w *winShell) setAlias(c *psCall) psValue {
	name, value := w.value(c, "name").str(), psValue{}
	if v, ok := c.param("value"); ok {
		value = v
	}
	if name != "" && value.known() && len(w.aliases) < scan.MaxLoop {
		w.aliases[strings.ToLower(name)] = strings.ToLower(value.str())
	}
	return psValue{}
}

func (w *winShell) setVariable(c *psCall) psValue {
	v, _ := c.param("value")
	w.set(strings.ToLower(w.value(c, "name").str()), v)
	return psValue{}
}

func (w *winShell) getVariable(c *psCall) psValue {
	name := strings.ToLower(w.value(c, "name").str())
	if strings.ContainsAny(name, "*?") {
		return psUnknown(0)
	}
	return w.lookup(name)
}

// drive splits a path such as env:x, function:x, alias:x or variable:x into the drive and the
// name. The drive is "" for other paths and for disk drives.
func drive(path string) (string, string) {
	d, name, ok := strings.Cut(path, ":")
	if !ok || len(d) < 2 {
		return "", path
	}
	return strings.ToLower(d), strings.TrimLeft(name, `\/`)
}

func (w *winShell) setItem(c *psCall) psValue {
	path := w.value(c, "path")
	value, _ := c.param("value")
	switch d, name := drive(path.str()); d {
	case "env":
		w.setEnvironment(name, value)
	case "function":
		w.funcs[strings.ToLower(name)] = w.dynamicBlock(value)
	case "alias":
		w.aliases[strings.ToLower(name)] = strings.ToLower(value.str())
	case "variable":
		w.set(strings.ToLower(name), value)
	}
	return psValue{}
}

func (w *winShell) newItem(c *psCall) psValue {
	path := w.value(c, "path")
	if name, ok := c.param("name"); ok {
		path = psString(strings.TrimSuffix(path.str(), `\`) + `\` + name.str())
	}
	if d, _ := drive(path.str()); d != "" && d != "hkcu" && d != "hklm" {
		return w.setItem(c)
	}
	if kind, ok := c.param("itemtype"); ok && strings.Contains(strings.ToLower(kind.str()), "link") {
		if to, ok := c.param("target"); ok {
			w.posix(c, append(words("ln", "-s"), w.argWord(to.str(), 0), w.argWord(path.str(), 0)), act.Flow{})
		}
		return path
	}
	if value, ok := c.param("value"); ok {
		w.write(path.str(), value, ">")
	}
	return path
}

// getItem evaluates Get-Item and Get-ChildItem, which return files. The files are judged only when
// a later command uses them.
func (w *winShell) getItem(c *psCall) psValue {
	path, ok := c.path()
	switch {
	case ok:
	case c.piped:
		path = c.input
	default:
		path = psString(".")
	}
	switch d, name := drive(path.str()); d {
	case "env":
		if strings.Trim(name, "*") != "" {
			return w.environment(name)
		}
		w.posix(c, words("env"), act.Flow{})
		v := psThing("env", act.FromEnviron)
		v.output = true
		return v
	case "function", "alias", "variable":
		return w.lookup(strings.ToLower(name))
	}
	if c.name == "get-item" && path.kind == psText && !strings.ContainsAny(path.text, "*?") {
		return path
	}
	w.find(c, path)
	v := psThing("get-childitem", path.taints())
	v.output = true
	v.keys, v.items = []string{"root"}, []psValue{path}
	for _, name := range [...]string{"filter", "include", "exclude"} {
		if f, ok := c.param(name); ok {
			v.keys, v.items = append(v.keys, name), append(v.items, f)
		}
	}
	if c.on("recurse") {
		v.keys, v.items = append(v.keys, "recurse"), append(v.items, psString("true"))
	}
	return v
}

// find judges a search for files by a filter, or in all subfolders.
func (w *winShell) find(c *psCall, path psValue) {
	filter, ok := c.param("filter")
	if !ok && !c.on("recurse") {
		return
	}
	if inc, given := c.param("include"); given {
		filter = inc
	}
	argv := words("find")
	for _, p := range path.texts() {
		argv = append(argv, w.argWord(p, 0))
	}
	for _, f := range filter.texts() {
		argv = append(argv, words("-name", f)...)
	}
	w.posix(c, argv, act.Flow{})
}

func (w *winShell) getContent(c *psCall) psValue {
	path := w.value(c, "path")
	if given, ok := c.path(); ok {
		path = given
	}
	if root, ok := path.member("root"); ok {
		path = root
	}
	if d, name := drive(path.str()); d == "env" || d == "function" || d == "variable" {
		return w.lookup(strings.ToLower(name))
	}
	argv := words("cat")
	for _, p := range path.texts() {
		argv = append(argv, w.argWord(p, path.taints()))
	}
	out := w.posix(c, argv, act.Flow{})
	if out.Known {
		return psValue{text: out.Word.Text, taint: out.Taint | out.Word.Taint}
	}
	v := psUnknown(out.Taint)
	v.output = true
	return v
}

// startProcess judges Start-Process, which starts a program with its arguments.
func (w *winShell) startProcess(c *psCall) psValue {
	file := w.value(c, "filepath")
	args, _ := c.param("argumentlist")
	line := psValue{text: file.str(), taint: file.taints() | args.taints()}
	if strings.Contains(line.text, " ") && line.text[0] != '"' {
		line.text = `"` + line.text + `"`
	}
	if verb, ok := c.param("verb"); ok && strings.EqualFold(verb.str(), "runas") {
		w.sh.Root = true
		defer func() { w.sh.Root = false }()
	}
	for _, a := range args.texts() {
		line.text += " " + a
	}
	w.runLine(line, "Start-Process", c)
	return psThing("process", 0)
}

func (w *winShell) sqlcmd(c *psCall) psValue {
	if q, ok := c.param("query"); ok {
		w.readText("sql", psString(q.str()), "Invoke-Sqlcmd")
	}
	return psThing("rows", 0)
}

// cimInstance evaluates Get-CimInstance and similar cmdlets. The result names the WMI class and
// whether a condition selects instances.
func (w *winShell) cimInstance(c *psCall) psValue {
	name := w.value(c, "classname")
	for _, other := range [...]string{"class", "path"} {
		if v, ok := c.param(other); ok {
			name = v
		}
	}
	text := strings.ToLower(name.str())
	if q, ok := c.param("query"); ok {
		if _, rest, ok := strings.Cut(strings.ToLower(q.str()), " from "); ok {
			text, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
			text += strings.TrimRight(" "+rest[:min(len(rest), len("where"))], " ")
		}
	}
	filter, ok := c.param("filter")
	if ok {
		text += " where"
	}
	v := psThing("wmi:"+text, 0)
	v.output = true
	if q, ok := c.param("query"); ok {
		filter = q
	}
	v.keys, v.items = []string{"filter"}, []psValue{filter}
	return v
}

// removeInstance judges the deletion of WMI instances that its arguments select. The rules have
// already judged piped instances.
func (w *winShell) removeInstance(c *psCall) psValue {
	if !c.piped {
		c.input = w.cimInstance(c)
		w.match("cmdlet", c.verb, c)
	}
	return psValue{}
}

// cimMethod judges a call of a WMI method.
func (w *winShell) cimMethod(c *psCall) psValue {
	on := w.cimInstance(c)
	if in := c.input; c.piped && in.kind == psObject {
		on = in
	}
	if v, ok := c.param("inputobject"); ok {
		on = v
	}
	name := w.value(c, "methodname")
	if v, ok := c.param("name"); ok {
		name = v
	}
	args, ok := c.param("arguments")
	if !ok {
		args, _ = c.param("argumentlist")
	}
	list := args.list()
	if args.kind == psHash {
		list = args.items
	}
	return w.invoke(on, strings.ToLower(name.str()), list, c.from, c.to)
}

// invokeCommand judges a script block that runs on this machine or on others.
func (w *winShell) invokeCommand(c *psCall) psValue {
	var out psValue
	if _, remote := c.param("computername"); remote {
		saved := *w.sh
		w.sh.Remote = true
		defer func() { *w.sh = saved }()
	}
	for _, v := range c.values() {
		if v.isBlock() {
			inner := &psCall{from: c.from, to: c.to, input: c.input, piped: c.piped}
			if args, ok := c.param("argumentlist"); ok {
				inner.args = args.list()
			}
			out = w.runBlock(v, inner)
		}
	}
	if file, ok := c.param("filepath"); ok {
		w.start(c, []act.Word{w.argWord(file.str(), file.taints())}, act.Flow{})
	}
	return out
}

// addType judges the source code that Add-Type compiles.
func (w *winShell) addType(c *psCall) psValue {
	for _, name := range [...]string{"typedefinition", "memberdefinition"} {
		if v, ok := c.param(name); ok {
			if v.taints()&act.FromNetwork != 0 {
				w.see(act.RunsNetworkText, c)
			} else if v.known() {
				w.readText("strings", v, "Add-Type")
			}
		}
	}
	return psValue{}
}

func (w *winShell) setLocation(c *psCall) psValue {
	if path, ok := c.param("path"); ok {
		w.posix(c, append(words("cd"), w.argWord(path.str(), 0)), act.Flow{})
	}
	return psValue{}
}

// stopProcess judges Stop-Process. By number it stops one process, by name all processes with that
// name, and with the output of Get-Process all or some processes.
func (w *winShell) stopProcess(c *psCall) psValue {
	if name, ok := c.param("name"); ok {
		argv := words("pkill")
		if strings.Trim(name.str(), "*") == "" {
			argv = words("kill", "-9", "-1")
		} else {
			argv = append(argv, words(name.texts()...)...)
		}
		w.posix(c, argv, act.Flow{})
		return psValue{}
	}
	if c.piped && c.input.text == "get-process" {
		argv := words("kill", "-9", "-1")
		if len(c.input.keys) > 0 { // the input contains only some processes
			argv = words("pkill", "x")
		}
		w.posix(c, argv, act.Flow{})
	}
	return psValue{}
}

// invokeItem judges Invoke-Item, which starts a program, or opens a file with the program for its
// type.
func (w *winShell) invokeItem(c *psCall) psValue {
	path := w.value(c, "path")
	w.start(c, []act.Word{{Text: path.str(), At: -1, Taint: path.taints()}}, act.Flow{})
	return psValue{}
}

// importModule judges the code in a module file.
func (w *winShell) importModule(c *psCall) psValue {
	for _, t := range w.value(c, "name").texts() {
		scriptFile(w.sh, act.Word{Text: t, At: -1}, &act.Invocation{Src: w.src, From: c.from, To: c.to, Exe: "Import-Module"})
	}
	return psThing("module", 0)
}

// selectString judges Select-String, which searches texts, files, or the files of a listing.
func (w *winShell) selectString(c *psCall) psValue {
	argv := words("grep")
	root, listed := c.input.member("root")
	if c.on("recurse") || listed {
		argv = words("grep", "-r")
	}
	if v, ok := c.param("pattern"); ok {
		argv = append(argv, w.argWord(strings.Join(v.texts(), "|"), 0))
	}
	if v, ok := c.path(); ok {
		root, listed = v, true
	}
	if !listed { // the input is text, not a listing of files
		v := c.input
		v.output = true
		return v
	}
	for _, t := range root.texts() {
		argv = append(argv, w.argWord(t, root.taints()))
	}
	out := w.posix(c, argv, act.Flow{})
	return w.gives(c, "", out)
}

// taskAction judges the command line that a scheduled task will run.
func (w *winShell) taskAction(c *psCall) psValue {
	line, _ := c.param("execute")
	if args, ok := c.param("argument"); ok {
		line = psValue{text: line.str() + " " + args.str(), taint: line.taints() | args.taints()}
	}
	w.runLine(line, "scheduled task", c)
	return psThing("task", 0)
}
