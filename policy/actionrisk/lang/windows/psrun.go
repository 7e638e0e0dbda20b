package windows

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// lookup is the value of a variable.
func (w *winShell) lookup(name string) psValue {
	for _, scope := range [...]string{"script:", "global:", "local:", "private:", "using:", "variable:"} {
		name = strings.TrimPrefix(name, scope)
	}
	if rest, ok := strings.CutPrefix(name, "env:"); ok {
		return w.environment(rest)
	}
	if rest, ok := strings.CutPrefix(name, "function:"); ok {
		return w.funcs[rest]
	}
	if v, ok := w.vars[name]; ok {
		return v
	}
	switch name {
	case "home", "profile":
		return psString(map[string]string{"home": "~", "profile": "~/Documents/PowerShell/Microsoft.PowerShell_profile.ps1"}[name])
	case "pwd", "psscriptroot":
		return psString(".")
	case "pshome":
		return psString("C:/Windows/System32/WindowsPowerShell/v1.0")
	case "shellid":
		return psString("Microsoft.PowerShell")
	case "verbosepreference", "warningpreference", "debugpreference":
		return psString("SilentlyContinue")
	case "true", "false":
		return psString(name)
	case "null":
		return psValue{}
	case "env":
		return psThing("env", act.FromEnviron)
	case "executioncontext", "host":
		return psThing(name, 0)
	}
	if v, ok := w.vars["_"]; ok && name == "__" { // what the shell around it took for a variable of its own
		return v
	}
	v := psUnknown(0)
	v.output = name == "_" || name == "psitem" || name == "input"
	return v
}

// environment is the value of an environment variable.
func (w *winShell) environment(name string) psValue {
	name = strings.ToLower(name)
	if v, ok := w.state().env[name]; ok {
		return v
	}
	if v, ok := w.e.Windows.Env[name]; ok {
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

// setEnvironment is seen by every program started later.
func (w *winShell) setEnvironment(name string, v psValue) {
	if len(w.state().env) < scan.MaxLoop {
		w.state().env[strings.ToLower(name)] = v
	}
}

// assign sets what stands on the left of "=".
func (w *winShell) assign(left string, v psValue) {
	left = strings.ToLower(strings.TrimSpace(left))
	for strings.HasPrefix(left, "[") { // [string]$x
		end := min(matching(left, 0), len(left)-1)
		v = cast(strings.TrimPrefix(left[1:max(end, 1)], "system."), v)
		left = strings.TrimSpace(left[end+1:])
	}
	if strings.Contains(left, ",") && left[0] == '$' { // $a, $b = 1, 2
		for i, one := range strings.Split(left, ",") {
			if list := v.list(); i < len(list) {
				w.assign(one, list[i])
			}
		}
		return
	}
	name, ok := strings.CutPrefix(left, "$")
	if !ok {
		return
	}
	name = strings.Trim(name, "{}")
	for _, scope := range [...]string{"script:", "global:", "local:", "private:", "variable:"} {
		name = strings.TrimPrefix(name, scope)
	}
	if rest, ok := strings.CutPrefix(name, "env:"); ok {
		w.setEnvironment(rest, v)
		return
	}
	if rest, ok := strings.CutPrefix(name, "function:"); ok {
		w.funcs[rest] = w.dynamicBlock(v)
		if rest == "prompt" || rest == "psconsolehostreadline" || rest == "tabexpansion2" { // the host calls these
			w.runBlock(w.funcs[rest], &psCall{to: len(w.src.Text)})
		}
		return
	}
	if i := strings.IndexByte(name, '['); i > 0 { // $h['key'] = …
		table, key := w.vars[name[:i]], strings.Trim(name[i:], `[]'"`)
		if table.kind == psHash || name[:i] == "psdefaultparametervalues" {
			table.kind = psHash
			table.keys, table.items = append(slices.Clone(table.keys), key), append(slices.Clone(table.items), v)
			w.set(name[:i], table)
		}
		return
	}
	if on, member, ok := strings.Cut(name, "."); ok {
		w.setMember(on, member, v)
		return
	}
	w.set(name, v)
}

// setMember sets a member of an object or a table.
func (w *winShell) setMember(on, member string, v psValue) {
	o, ok := w.vars[on]
	if !ok || o.kind == psText {
		return
	}
	o.keys, o.items = append(slices.Clone(o.keys), member), append(slices.Clone(o.items), v)
	w.vars[on] = o
	if o.kind == psObject {
		c := psCall{name: member, verb: member, noun: o.text, args: []psValue{v}, to: len(w.src.Text)}
		w.match("property", member, &c)
	}
}

// round tells whether a loop may go on.
func (w *winShell) round() bool {
	w.e.Rounds++
	return w.e.Rounds <= scan.MaxRounds*2
}

// element is one of the things that a command gives.
func (w *winShell) element(v psValue) psValue {
	if v.kind == psText && !v.known() {
		v.output = true
	}
	return v
}

// property is the value of a member without arguments.
func (w *winShell) property(v psValue, name string) psValue {
	for i, k := range v.keys {
		if k == name {
			return v.items[i]
		}
	}
	switch {
	case name == "length" || name == "count":
		if v.kind == psText && v.known() {
			return psNumber(len(v.text))
		}
		return psNumber(len(v.list()))
	case name == "values" && v.kind == psHash:
		return psListOf(v.items)
	case v.kind == psText && textProperties[name]:
		return v
	case v.kind == psType:
		return psThing(v.text+"."+name, 0)
	case v.kind == psObject:
		return w.ofObject(v, name)
	case v.kind == psList:
		out := make([]psValue, 0, len(v.items))
		for _, item := range v.items {
			out = append(out, w.property(item, name))
		}
		return psListOf(out)
	}
	u := psUnknown(v.taints())
	u.output = v.output
	return u
}

// ofObject is a member of an object that a table knows, or a part of it.
func (w *winShell) ofObject(v psValue, name string) psValue {
	if file := w.e.Windows.Paths[v.text+"."+name]; file != "" {
		return psString(file)
	}
	if pathProperties[name] && len(v.keys) > 0 { // still what was listed
		return v
	}
	return psValue{kind: psObject, text: v.text, taint: v.taint, output: v.output, keys: []string{"." + name}, items: []psValue{{}}}
}

// textProperties of what is known as a text give that text.
var textProperties = scan.SetOf("source path definition name fullname value scriptblock allusersallhosts currentuserallhosts currentuser")

// pathProperties name the thing itself.
var pathProperties = scan.SetOf("fullname name path pspath directory directoryname basename versioninfo")

// runBlock runs a script block and gives what it gives.
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
		w.parameters(b, c)
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

// unknownBlock: code that was made at run time, and is not known, runs.
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

// parameters gives the arguments of a call to the names in "param(…)", in order.
func (w *winShell) parameters(b psValue, c *psCall) {
	text := strings.ToLower(strings.TrimLeft(b.str(), " \t\r\n"))
	rest, ok := strings.CutPrefix(text, "param")
	if !ok {
		return
	}
	open := strings.IndexByte(rest, '(')
	if open < 0 {
		return
	}
	n := 0
	values := c.args
	if len(values) == 0 {
		values = c.values()
	}
	for part := range strings.SplitSeq(rest[open:min(len(rest), matching(rest, open))], ",") {
		i := strings.IndexByte(part, '$')
		if i < 0 {
			continue
		}
		name := part[i+1:]
		for j := 0; j < len(name); j++ {
			if !scan.IsNameByte(name[j]) {
				name = name[:j]
			}
		}
		if v, given := c.param(name); given {
			w.set(name, v)
		} else if n < len(values) {
			w.set(name, values[n])
			n++
		}
	}
}

// dynamicBlock is what [scriptblock]::Create makes of a text.
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

// runText runs a text as PowerShell, in this session.
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

// runLine runs a text as a command line of Windows, which names a program.
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
