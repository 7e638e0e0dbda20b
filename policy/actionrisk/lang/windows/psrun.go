package windows

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// lookup returns the value of a variable. It is unknown if the variable is not set.
func (w *winShell) lookup(name string) psValue {
	name = unscoped(name)
	if rest, ok := strings.CutPrefix(name, "env:"); ok {
		return w.environment(rest)
	}
	if rest, ok := strings.CutPrefix(name, "function:"); ok {
		return w.funcs[rest]
	}
	if v, ok := w.vars[name]; ok {
		return v
	}
	if v, ok := psConstants[name]; ok {
		return v
	}
	if v, ok := w.vars["_"]; ok && name == "__" { // the enclosing shell replaced $_ by an unknown part
		return v
	}
	v := psUnknown(0)
	v.output = name == "_" || name == "psitem" || name == "input"
	return v
}

// environment returns the value of an environment variable.
func (w *winShell) environment(name string) psValue {
	if v, ok := w.sh.Vars[w.variable(name)]; ok && len(v) == 1 {
		return psValue{text: v[0].Text, taint: v[0].Taint}
	}
	name = strings.ToLower(name)
	if v := w.e.Windows.Env.Get(name); v != "" {
		return psString(v)
	}
	v := psUnknown(0)
	if hosts.SecretName(strings.ToUpper(name)) {
		v.taint = act.FromSecret
	}
	return v
}

func (w *winShell) set(name string, v psValue) {
	if name != "" && (len(w.vars) < scan.MaxLoop*4 || w.vars[name].text != "") {
		w.vars[name] = v
	}
}

// variable returns the name of an environment variable in the case in which it was set.
func (w *winShell) variable(name string) string {
	if _, ok := w.sh.Vars[name]; ok || !w.e.Budget.Spend(len(w.sh.Vars)/16) {
		return name
	}
	found := ""
	for set := range w.sh.Vars {
		if strings.EqualFold(set, name) && set > found {
			found = set
		}
	}
	return cmp.Or(found, name)
}

// setEnvironment sets an environment variable, which every program started later inherits.
func (w *winShell) setEnvironment(name string, v psValue) {
	if len(w.sh.Vars) >= scan.MaxLoop {
		return
	}
	delete(w.sh.Vars, w.variable(name))
	w.sh.Vars[name] = []act.Word{{Text: v.str(), At: -1, Span: w.wholeSpan(), Taint: v.taints()}}
}

// assign assigns v to the expression on the left of "=".
func (w *winShell) assign(left string, v psValue) {
	left = strings.TrimSpace(left)
	for strings.HasPrefix(left, "[") { // for example [string]$x
		end := min(matching(left, 0), len(left)-1)
		v = cast(strings.TrimPrefix(strings.ToLower(left[1:max(end, 1)]), "system."), v)
		left = strings.TrimSpace(left[end+1:])
	}
	name, ok := strings.CutPrefix(left, "$")
	switch {
	case !ok:
	case strings.Contains(name, ","): // for example $a, $b = 1, 2
		list := v.list()
		for i, one := range strings.Split(left, ",") {
			if i < len(list) {
				w.assign(one, list[i])
			}
		}
	default:
		w.assignTo(strings.Trim(name, "{}"), v)
	}
}

// assignTo sets a variable, an environment variable, a function or an element of a hash table.
func (w *winShell) assignTo(name string, v psValue) {
	if len(name) > len("env:") && strings.EqualFold(name[:len("env:")], "env:") {
		w.setEnvironment(name[len("env:"):], v)
		return
	}
	name = unscoped(strings.ToLower(name))
	table, key, indexed := strings.Cut(name, "[")
	switch rest, function := strings.CutPrefix(name, "function:"); {
	case function:
		w.funcs[rest] = w.dynamicBlock(v)
		if rest == "prompt" || rest == "psconsolehostreadline" || rest == "tabexpansion2" { // the host calls these functions
			w.runBlock(w.funcs[rest], &psCall{to: len(w.src.Text)})
		}
	case indexed && table != "": // for example $h['key'] = …
		w.setElement(table, strings.Trim(key, `[]'"`), v)
	case strings.Contains(name, "."): // a member of an object, which is not stored
	default:
		w.set(name, v)
	}
}

// setElement sets an element of a hash table.
func (w *winShell) setElement(name, key string, v psValue) {
	table := w.vars[name]
	if table.kind == psHash || name == "psdefaultparametervalues" {
		table.kind = psHash
		table.keys, table.items = append(slices.Clone(table.keys), key), append(slices.Clone(table.items), v)
		w.set(name, table)
	}
}

// round counts a round of a loop, and returns false if the limit is reached.
func (w *winShell) round() bool {
	w.e.Rounds++
	return w.e.Rounds <= scan.MaxRounds*2
}

// element returns v as one element of a command's output.
func (w *winShell) element(v psValue) psValue {
	if v.kind == psText && !v.known() {
		v.output = true
	}
	return v
}

// property returns the value of a member without arguments.
func (w *winShell) property(v psValue, name string) psValue {
	if m, ok := v.member(name); ok {
		return m
	}
	switch {
	case name == "length" || name == "count":
		return psNumber(v.length())
	case v.kind == psHash && name == "values":
		return psListOf(v.items)
	case v.kind == psText && textProperties.Has(name):
		return v
	case v.kind == psType:
		return psThing(v.text+"."+name, 0)
	case v.kind == psObject:
		return w.ofObject(v, name)
	case v.kind == psList:
		out := make([]psValue, len(v.items))
		for i, item := range v.items {
			out[i] = w.property(item, name)
		}
		return psListOf(out)
	}
	u := psUnknown(v.taints())
	u.output = v.output
	return u
}

// ofObject returns a member of an object: a path from the table, the object itself for its path,
// or a part of the object.
func (w *winShell) ofObject(v psValue, name string) psValue {
	if file := w.e.Windows.Paths.Get(v.text + "." + name); file != "" {
		return psString(file)
	}
	if pathProperties.Has(name) && len(v.keys) > 0 { // the path of a listed file is still that file
		return v
	}
	return psValue{kind: psObject, text: v.text, taint: v.taint, output: v.output, keys: []string{"." + name}, items: []psValue{{}}}
}

// textProperties lists members that return the text itself, if they are used on a text.
var textProperties = scan.SetOf("source path definition name fullname value scriptblock allusersallhosts currentuserallhosts currentuser")

// pathProperties lists members that return the path of an object.
var pathProperties = scan.SetOf("fullname name path pspath directory directoryname basename versioninfo")

// runBlock evaluates a script block and returns its output.
func (w *winShell) runBlock(b psValue, c *psCall) psValue {
	if w.running >= scan.MaxDepth || b.kind != psBlock {
		if b.kind == psBlock {
			w.e.TooDeep = true
		}
		return w.unknownBlock(b, c)
	}
	w.running++
	saved := w.src
	src := *b.block
	w.src = &src
	if len(c.items) > 0 || len(c.args) > 0 {
		w.set("args", psListOf(c.values()))
	}
	if c.piped || c.input.kind != psText || c.input.text != "" {
		w.set("input", c.input)
	}
	r := psReader{w: w, text: src.Text[:b.to], i: b.from}
	out := r.statements(0)
	w.src = saved
	w.running--
	return out
}

// unknownBlock reports that a script block runs whose code was created at run time and is not
// known.
func (w *winShell) unknownBlock(b psValue, c *psCall) psValue {
	if b.taints()&act.FromNetwork != 0 {
		w.see(act.RunsNetworkText, c)
		return psUnknown(0)
	}
	if b.kind == psObject {
		w.e.Doubt("text that is interpreted is not known")
		w.see(act.RunsUnknownText, c)
	}
	return psUnknown(0)
}

// dynamicBlock returns the script block that [scriptblock]::Create creates from a text.
func (w *winShell) dynamicBlock(v psValue) psValue {
	if v.kind == psBlock {
		return v
	}
	if !v.known() || v.kind == psObject {
		return psValue{kind: psObject, text: "scriptblock", taint: v.taints()}
	}
	text := v.str()
	src := w.src.Inside(act.Word{Text: text, At: -1, Span: w.wholeSpan(), Taint: v.taints()}, "ScriptBlock")
	src.At = -1
	if src.Depth > scan.MaxDepth || len(text) > scan.MaxText {
		w.e.TooDeep = true
		return psUnknown(0)
	}
	if v.taints()&act.FromDecoder != 0 {
		src.Layers++
		w.e.See(act.RunsDecoded, w.src, 0, len(w.src.Text), "")
	}
	return psValue{kind: psBlock, block: &src, to: len(text), taint: v.taints()}
}

func (w *winShell) wholeSpan() act.Span {
	span, _ := w.src.Where(0, len(w.src.Text))
	return span
}

// runText evaluates a text as PowerShell in this session. via names the command that runs it.
func (w *winShell) runText(v psValue, via string, c *psCall) psValue {
	t := v.taints()
	if t&act.FromNetwork != 0 {
		w.see(act.RunsNetworkText, c)
	}
	if v.kind == psBlock {
		return w.runBlock(v, &psCall{from: c.from, to: c.to})
	}
	text := strings.Join(v.texts(), "\n")
	if strings.Trim(text, " \r\n\t;"+string(scan.Hole)) == "" {
		if text != "" && t&act.FromNetwork == 0 {
			w.e.Unproven = true
			w.e.Doubt("text that is interpreted is not known")
			w.see(act.RunsUnknownText, c)
		}
		return psUnknown(t)
	}
	b := w.dynamicBlock(psValue{text: strings.ReplaceAll(text, string(scan.Hole), "$__"), taint: t})
	if b.kind != psBlock || scan.Nesting(text) > scan.MaxNesting {
		w.e.TooDeep = true
		return psUnknown(t)
	}
	b.block.Via = append(slices.Clip(w.src.Via), via)
	return w.runBlock(b, &psCall{from: c.from, to: c.to})
}

// runLine judges a text as a Windows command line, which begins with a program. via names the
// command that runs it.
func (w *winShell) runLine(v psValue, via string, c *psCall) {
	text := v.str()
	if v.taints()&act.FromNetwork != 0 {
		w.see(act.RunsNetworkText, c)
	}
	if strings.Trim(text, " \r\n\t"+string(scan.Hole)) == "" {
		if text != "" {
			w.see(act.RunsUnknownProgram, c)
		}
		return
	}
	word := act.Word{Text: text, At: -1, Taint: v.taints()}
	word.Span, _ = w.src.Where(c.from, c.to)
	src := w.src.Inside(word, via)
	if src.Depth > scan.MaxDepth {
		w.e.TooDeep = true
		return
	}
	if v.taints()&act.FromDecoder != 0 {
		src.Layers++
		w.see(act.RunsDecoded, c)
	}
	w.sh.Read("cmd", &src, nil)
}

// psConstants maps variables that PowerShell sets to their values.
var psConstants = map[string]psValue{
	"home": psString("~"), "profile": psString("~/Documents/PowerShell/Microsoft.PowerShell_profile.ps1"), "pwd": psString("."), "psscriptroot": psString("."),
	"pshome": psString("C:/Windows/System32/WindowsPowerShell/v1.0"), "shellid": psString("Microsoft.PowerShell"),
	"verbosepreference": psString("SilentlyContinue"), "warningpreference": psString("SilentlyContinue"), "debugpreference": psString("SilentlyContinue"),
	"true": psString("true"), "false": psString("false"), "null": {}, "env": psThing("env", act.FromEnviron), "executioncontext": psThing("executioncontext", 0), "host": psThing("host", 0),
}

// unscoped returns the name of a variable without its scope, such as "global:".
func unscoped(name string) string {
	for _, scope := range [...]string{"script:", "global:", "local:", "private:", "using:", "variable:"} {
		name = strings.TrimPrefix(name, scope)
	}
	return name
}
