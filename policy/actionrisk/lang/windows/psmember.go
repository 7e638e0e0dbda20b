package windows

import (
	"slices"
	"strings"
	"unicode"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// invoke evaluates a call of a member of v. It computes members that only process text, and judges
// members in the table as the equivalent command.
func (w *winShell) invoke(v psValue, name string, args []psValue, from, to int) psValue {
	c := &psCall{name: name, verb: name, noun: v.text, args: args, input: v, from: from, to: to}
	if v.kind == psText {
		c.noun = "text"
	}
	if out, ok := w.computed(v, name, c); ok {
		return out
	}
	matched := w.match("member", name, c)
	for _, m := range w.e.Windows.ByMember.Get(name) {
		if slices.ContainsFunc(m.On, func(on string) bool {
			return on == c.noun || strings.IndexByte(on, '*') >= 0 && paths.GlobMatch(on, c.noun)
		}) {
			return w.member(m, c)
		}
	}
	if i := slices.IndexFunc(args, func(a psValue) bool { return a.kind == psBlock }); i >= 0 { // the block is a callback
		w.set("_", w.element(v))
		return w.runBlock(args[i], &psCall{from: from, to: to})
	}
	if !matched && v.kind != psText {
		w.e.Unproven = true
	}
	out := psUnknown(v.taints() | c.taints())
	if v.kind == psType || v.kind == psObject {
		out.kind, out.text = psObject, v.text
	}
	return out
}

// computed evaluates members that only create or process values, or run script blocks. It returns
// false for other members.
func (w *winShell) computed(v psValue, name string, c *psCall) (psValue, bool) {
	if v.kind == psText || v.kind == psList {
		if out, ok := w.textMember(v, name, c.args); ok {
			return out, true
		}
	}
	if out, ok := w.blockMember(v, name, c); ok {
		return out, true
	}
	switch {
	case v.kind == psType && v.text == "array" && name == "reverse":
		w.reverse(c.from, c.to)
		return psValue{}, true
	case v.kind == psType, strings.HasPrefix(v.text, "text.encoding"):
		return w.static(v.text, name, c.args)
	}
	return psValue{}, false
}

// reverse reverses the array in the variable that text[from:to] names.
func (w *winShell) reverse(from, to int) {
	text := w.src.Text[min(from, len(w.src.Text)):min(to, len(w.src.Text))]
	_, name, ok := strings.Cut(text, "$")
	name = strings.ToLower(strings.TrimRight(name, ") \t"))
	if v, known := w.vars[name]; ok && known {
		v.items = slices.Clone(v.items)
		slices.Reverse(v.items)
		w.vars[name] = v
	}
}

// member judges a member by its row in the table, and returns its result.
func (w *winShell) member(m *facts.WinMember, c *psCall) psValue {
	c.takeInput()
	switch {
	case len(m.Run) > 0 && m.Run[0] == "rm" && len(c.args) > 0 && c.args[0].kind == psObject: // the member deletes each of many paths
		w.posix(c, words("rm", "-rf", string(scan.Hole)), act.Flow{})
	case len(m.Run) > 0:
		return w.gives(c, m.Gives, w.posix(c, w.template(c, m.Run), act.Flow{}))
	case len(m.Line) > 0:
		line := psValue{}
		for _, word := range w.template(c, m.Line) {
			line.text, line.taint = strings.TrimSpace(line.text+" "+word.Text), line.taint|word.Taint
		}
		if line.text != "" {
			w.runLine(line, c.name, c)
		}
	case m.Text == "powershell" && len(c.args) > 0:
		return w.runText(c.args[0], c.name, c)
	case m.Text != "" && len(c.args) > 0:
		w.readText("strings", c.args[0], c.name)
	case m.Write != "" && len(c.args) > 1:
		w.write(c.args[0].str(), c.args[1], m.Write)
	}
	out := w.gives(c, m.Gives, act.Flow{})
	if out.kind == psObject {
		out.text = c.noun
	}
	return out
}

// takeInput adds parameters for the call of a member: the arguments by their number, the text that
// it is called on as "self", and the members that were set on the object.
func (c *psCall) takeInput() {
	for i, a := range c.args {
		c.params = append(c.params, psParam{name: string(rune('0' + i%10)), value: a, has: true})
	}
	if c.noun == "text" {
		c.params = append(c.params, psParam{name: "self", value: c.input, has: true})
	}
	for i, k := range c.input.keys {
		c.params = append(c.params, psParam{name: k, value: c.input.items[i], has: true})
	}
}

// readText judges a text in the language lang that the command contains.
func (w *winShell) readText(lang string, v psValue, via string) {
	src := w.src.Inside(act.Word{Text: v.str(), At: -1, Span: w.wholeSpan(), Taint: v.taints()}, via)
	w.sh.Read(lang, &src, nil)
}

// blockMember evaluates members of script blocks, and members that run a script block for each
// element.
func (w *winShell) blockMember(v psValue, name string, c *psCall) (psValue, bool) {
	first := psListOf(c.args).flatFirst()
	switch name {
	case "invoke", "invokereturnasis", "invokewithcontext", "dynamicinvoke":
		if v.isBlock() {
			return w.runBlock(v, c), true
		}
	case "getnewclosure", "tostring":
		return v, v.kind == psBlock
	case "where":
		if first.kind == psBlock {
			w.each(v, first, c)
			return v, true
		}
	case "foreach":
		if first.kind == psBlock {
			return w.each(v, first, c), true
		}
		if first.kind == psText && first.text != "" { // for example .ForEach('Delete')
			return w.invoke(v, strings.ToLower(first.text), c.args[1:], c.from, c.to), true
		}
	case "create":
		if v.kind == psType && v.text == "scriptblock" {
			return w.dynamicBlock(first), true
		}
	}
	return psValue{}, false
}

// each runs a block once for each known element of v, or once if none is known. It returns the
// output of all runs.
func (w *winShell) each(v, block psValue, c *psCall) psValue {
	var out []psValue
	list := v.list()
	if len(list) == 0 {
		list = []psValue{v}
	}
	for i, item := range list {
		if i > 0 && !w.round() {
			return psUnknown(v.taints() | act.FromBuilt)
		}
		if item = w.element(item); item.kind == psText && item.text == "" {
			item = psUnknown(item.taint)
			item.output = true
		}
		w.set("_", item)
		w.set("psitem", item)
		one := w.runBlock(block, &psCall{from: c.from, to: c.to})
		out = append(out, one.list()...)
	}
	return psListOf(out)
}

// textMember evaluates the members of texts and lists. It returns false if the member is not
// known.
func (w *winShell) textMember(v psValue, name string, args []psValue) (psValue, bool) {
	if out, ok := w.ofEach("."+name, v, args); ok {
		return out, true
	}
	first := psListOf(args).flatFirst()
	switch name {
	case "split":
		return psSplit(v, psValue{text: first.str()}, true), true
	case "tochararray":
		return characters(v), true
	case "chars", "getvalue", "get":
		return psIndex(v, first), len(args) == 1 && v.known()
	}
	return psValue{}, false
}

// made evaluates a text function of the tables, and returns false if the tables do not contain it.
// The result is unknown if the arguments do not determine it.
func (w *winShell) made(fn string, args ...psValue) (psValue, bool) {
	f := w.e.TextFunction("powershell", fn)
	if f == nil {
		return psValue{}, false
	}
	all, from := psListOf(psListOf(args).flat()), act.FromBuilt
	if !scan.Functions[f.Does].Holes {
		from = act.FromDecoder
		all.taint = from
	}
	text, ok := w.e.Make(f.Does, all.texts()...)
	if from == act.FromDecoder { // decoded bytes may not be text
		ok = ok && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) })
	}
	if !ok {
		return psUnknown(all.taints() | from), true
	}
	return psValue{text: text, taint: all.taints()}, true
}

// ofEach evaluates a text function for a text, or for each text of a list.
func (w *winShell) ofEach(fn string, v psValue, args []psValue) (psValue, bool) {
	if v.kind != psList {
		return w.made(fn, append([]psValue{v}, args...)...)
	}
	out := psValue{kind: psList, taint: v.taint}
	for _, item := range v.items {
		one, ok := w.ofEach(fn, item, args)
		if !ok {
			return psValue{}, false
		}
		out.items = append(out.items, one)
	}
	return out, len(out.items) > 0
}

// static evaluates the static members of .NET types that only process text, or return well-known
// names.
func (w *winShell) static(on, name string, args []psValue) (psValue, bool) {
	if v, ok := w.made(on+"::"+name, args...); ok {
		return v, true
	}
	first := psListOf(args).flatFirst()
	if strings.HasPrefix(on, "text.encoding") && (name == "getstring" || name == "getbytes") {
		if name == "getstring" && first.kind == psList { // the list contains character codes
			return w.made("string::new", cast("char[]", first))
		}
		return first, true
	}
	if v, ok := staticThings[on+"::"+name]; ok {
		return v, true
	}
	if of := staticsOfOne[on+"::"+name]; of != nil && len(args) > 0 {
		return of(w, first), true
	}
	switch on + "::" + name {
	case "regex::split":
		return psSplit(first, psListOf(args[min(1, len(args)):]).flatFirst(), false), len(args) > 1
	case "regex::matches":
		return psUnknown(psListOf(args).taints() | act.FromBuilt), true
	case "environment::setenvironmentvariable":
		if len(args) == 2 { // sets a variable of this process; the table has the form with three arguments
			w.setEnvironment(first.str(), args[1])
		}
	}
	return psValue{}, false
}

// staticThings maps static members that return the same value for all arguments to that value.
var staticThings = map[string]psValue{
	"type::gettypefromclsid":     psThing("com:mmc20.application", 0),
	"io.path::gettemppath":       psString("C:/Temp/x/"),
	"io.path::gettempfilename":   psString("C:/Temp/x/tmp.tmp"),
	"io.path::getrandomfilename": psString("C:/Temp/x/tmp.tmp"),
	"environment::getfolderpath": psString("~/AppData"),
}

// staticsOfOne maps static members to functions of their first argument.
var staticsOfOne = map[string]func(w *winShell, v psValue) psValue{
	"convert::tochar":                         func(_ *winShell, v psValue) psValue { return char(v) },
	"char::convertfromutf32":                  func(_ *winShell, v psValue) psValue { return char(v) },
	"activator::createinstance":               func(_ *winShell, v psValue) psValue { return v },
	"type::gettypefromprogid":                 func(_ *winShell, v psValue) psValue { return psThing("com:"+strings.ToLower(v.str()), 0) },
	"environment::getenvironmentvariable":     func(w *winShell, v psValue) psValue { return w.environment(v.str()) },
	"environment::expandenvironmentvariables": func(w *winShell, v psValue) psValue { return psValue{text: w.cmdExpand(v.str()), taint: v.taints()} },
	"regex::unescape":                         func(_ *winShell, v psValue) psValue { return psValue{text: scan.Unescape(v.str()), taint: v.taints()} },
	"regex::escape":                           func(_ *winShell, v psValue) psValue { return v },
}

func (v psValue) flat() []psValue {
	var out []psValue
	for _, item := range v.list() {
		if item.kind == psList {
			out = append(out, item.flat()...)
		} else {
			out = append(out, item)
		}
	}
	return out
}

func (v psValue) flatFirst() psValue {
	if len(v.items) > 0 {
		return v.items[0]
	}
	return psValue{}
}
