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

// invoke calls a member of a value: what only moves text is computed, what the
// table knows is judged as the command that does the same.
func (w *winShell) invoke(v psValue, name string, args []psValue, from, to int) psValue {
	c := &psCall{name: name, verb: name, noun: v.text, args: args, input: v, from: from, to: to}
	if v.kind == psText {
		c.noun = "text"
	}
	if v.kind == psText || v.kind == psList {
		if out, ok := w.textMember(v, name, args); ok {
			return out
		}
	}
	if out, ok := w.blockMember(v, name, c); ok {
		return out
	}
	if v.kind == psType && v.text == "array" && name == "reverse" {
		w.reverse(from, to)
		return psValue{}
	}
	if v.kind == psType || strings.HasPrefix(v.text, "text.encoding") {
		if out, ok := w.static(v.text, name, args); ok {
			return out
		}
	}
	matched := w.match("member", name, c)
	for _, m := range w.e.Windows.ByMember[name] {
		if slices.ContainsFunc(m.On, func(on string) bool {
			return on == c.noun || strings.IndexByte(on, '*') >= 0 && paths.GlobMatch(on, c.noun)
		}) {
			return w.member(m, c)
		}
	}
	for _, a := range args { // .ForEach({…}), .Where({…}), a callback
		if a.kind == psBlock {
			w.set("_", w.element(v))
			return w.runBlock(a, &psCall{from: from, to: to})
		}
	}
	if !matched && v.kind != psText {
		w.e.Unproven = true
	}
	out := psUnknown(v.taints() | c.taints())
	if v.kind == psType || v.kind == psObject {
		out = psThing(v.text, v.taints()|c.taints())
	}
	return out
}

// reverse turns the array in the variable that stands in text[from:to] around.
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

// member does what the table says about a member.
func (w *winShell) member(m *facts.WinMember, c *psCall) psValue {
	for i, a := range c.args {
		c.params = append(c.params, psParam{name: string(rune('0' + i%10)), value: a, has: true})
	}
	if c.noun == "text" {
		c.params = append(c.params, psParam{name: "self", value: c.input, has: true})
	}
	for i, k := range c.input.keys { // what was set before the call
		c.params = append(c.params, psParam{name: k, value: c.input.items[i], has: true})
	}
	switch {
	case len(m.Run) > 0 && m.Run[0] == "rm" && len(c.args) > 0 && c.args[0].kind == psObject: // each of many
		w.posix(c, words("rm", "-rf", string(scan.Hole)), act.Flow{})
	case len(m.Run) > 0:
		out := w.posix(c, w.template(c, m.Run), act.Flow{})
		return w.gives(c, m.Gives, out)
	case len(m.Line) > 0:
		line := psValue{}
		for _, word := range w.template(c, m.Line) {
			line.text, line.taint = strings.TrimSpace(line.text+" "+word.Text), line.taint|word.Taint
		}
		if line.text != "" {
			w.runLine(line, c.name, c)
		}
	case m.Text != "" && len(c.args) > 0:
		if m.Text == "powershell" {
			return w.runText(c.args[0], c.name, c)
		}
		word := act.Word{Text: c.args[0].str(), At: -1, Span: w.wholeSpan(), Taint: c.args[0].taints()}
		src := w.src.Inside(word, c.name)
		runLanguage(w.e, w.sh, &src, m.Text)
	case m.Write != "" && len(c.args) > 1:
		w.write(c.args[0].str(), c.args[1], m.Write, c.to)
	}
	out := w.gives(c, m.Gives, act.Flow{})
	if out.kind == psObject {
		out.text = c.noun
	}
	return out
}

// blockMember calls members of script blocks, and of what runs one for each.
func (w *winShell) blockMember(v psValue, name string, c *psCall) (psValue, bool) {
	switch name {
	case "invoke", "invokereturnasis", "invokewithcontext", "dynamicinvoke":
		if v.kind == psBlock || v.kind == psObject && v.text == "scriptblock" {
			return w.runBlock(v, c), true
		}
	case "getnewclosure", "tostring":
		if v.kind == psBlock {
			return v, true
		}
	case "foreach", "where":
		if len(c.args) > 0 && c.args[0].kind == psBlock {
			return w.each(v, c.args[0], c, name == "foreach"), true
		}
		if len(c.args) > 0 && name == "foreach" && c.args[0].kind == psText { // .ForEach('Delete')
			return w.invoke(v, strings.ToLower(c.args[0].text), c.args[1:], c.from, c.to), true
		}
	case "create":
		if v.kind == psType && v.text == "scriptblock" && len(c.args) > 0 {
			return w.dynamicBlock(c.args[0]), true
		}
	}
	return psValue{}, false
}

// each runs a block for every element that is known, or once.
func (w *winShell) each(v, block psValue, c *psCall, keeps bool) psValue {
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
	if !keeps {
		return v
	}
	return psListOf(out)
}

// textMember computes the members of texts and lists.
func (w *winShell) textMember(v psValue, name string, args []psValue) (psValue, bool) {
	arg := func(i int) psValue {
		if i < len(args) {
			return args[i]
		}
		return psValue{}
	}
	if out, ok := w.ofEach("."+name, v, args); ok {
		return out, true
	}
	switch name {
	case "split":
		return psSplit(v, psValue{text: arg(0).str()}, true), true
	case "tochararray":
		return characters(v), true
	case "chars", "getvalue", "get":
		return psIndex(v, arg(0)), len(args) == 1 && v.known()
	case "contains", "startswith", "endswith", "indexof", "equals", "compareto", "gettype", "lastindexof", "gethashcode":
		return psUnknown(0), true
	}
	return psValue{}, false
}

// made is the text that a function of the table makes of values.
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
	if from == act.FromDecoder { // bytes may be no text
		ok = ok && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) })
	}
	if !ok {
		return psUnknown(all.taints() | from), true
	}
	return psValue{text: text, taint: all.taints()}, true
}

// ofEach is what a function makes of a text, or of each text of a list.
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

// static computes the static members that only make or move text, or name things.
func (w *winShell) static(on, name string, args []psValue) (psValue, bool) {
	if v, ok := w.made(on+"::"+name, args...); ok {
		return v, true
	}
	all := psListOf(args)
	if strings.HasPrefix(on, "text.encoding") && (name == "getstring" || name == "getbytes") {
		v := all.flatFirst()
		if name == "getstring" && v.kind == psList { // of numbers
			return w.made("string::new", cast("char[]", v))
		}
		return v, true
	}
	switch on + "::" + name {
	case "regex::unescape", "regex::escape", "uri::unescapedatastring", "web.httputility::urldecode", "net.webutility::urldecode", "net.webutility::htmldecode", "environment::expandenvironmentvariables":
		if len(args) == 1 {
			return w.unescaped(args[0]), true
		}
	case "regex::split":
		if len(args) > 1 {
			return psSplit(args[0], args[1], false), true
		}
	case "regex::matches":
		return psUnknown(all.taints() | act.FromBuilt), true
	case "convert::tochar", "char::convertfromutf32":
		return char(all.flatFirst()), true
	case "convert::toint32", "convert::tobyte", "convert::toint16":
		return radix(args), true
	case "type::gettypefromprogid":
		return psThing("com:"+strings.ToLower(all.flatFirst().str()), 0), true
	case "type::gettypefromclsid":
		return psThing("com:mmc20.application", 0), true
	case "activator::createinstance":
		return all.flatFirst(), true
	case "io.path::gettemppath":
		return psString("C:/Temp/x/"), true
	case "io.path::gettempfilename", "io.path::getrandomfilename":
		return psString("C:/Temp/x/tmp.tmp"), true
	case "environment::getfolderpath":
		return psString("~/AppData"), true
	case "environment::getenvironmentvariable":
		return w.environment(all.flatFirst().str()), true
	}
	return psValue{}, false
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

// radix is [Convert]::ToInt32('41',16).
func radix(args []psValue) psValue {
	if len(args) == 2 {
		prefix := map[string]string{"16": "0x", "8": "0o", "2": "0b"}[args[1].text]
		if n, ok := psString(prefix + strings.TrimPrefix(args[0].str(), "0x")).int(); ok {
			return psNumber(n)
		}
	}
	if len(args) == 1 {
		return cast("int", args[0])
	}
	return psUnknown(0)
}

// unescaped resolves %41, %NAME% and \x41.
func (w *winShell) unescaped(v psValue) psValue {
	text := v.str()
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		hex := ""
		switch {
		case text[i] == '%' && i+2 < len(text):
			hex = text[i+1 : i+3]
		case strings.HasPrefix(text[i:], `\x`) && i+3 < len(text):
			hex = text[i+2 : i+4]
		}
		if n, ok := psString("0x" + hex).int(); ok && hex != "" && strings.Trim(hex, "0123456789abcdefABCDEF") == "" {
			b.WriteByte(byte(n))
			i += 2
			if text[i-2] == '\\' {
				i++
			}
			continue
		}
		if text[i] == '%' {
			if n := strings.IndexByte(text[i+1:], '%'); n > 0 {
				b.WriteString(w.environment(text[i+1 : i+1+n]).str())
				i += n + 1
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return psValue{text: b.String(), taint: v.taints()}
}
