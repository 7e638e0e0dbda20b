package windows

import (
	"slices"
	"strings"

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
	same := func(s string) (psValue, bool) { return psValue{text: s, taint: v.taints()}, true }
	switch name {
	case "tostring", "normalize", "trim", "trimstart", "trimend", "clone", "tolist":
		if name[0] == 't' && name[1] == 'r' && v.kind == psText {
			if len(args) > 0 {
				return same(strings.Trim(v.text, strings.Join(psListOf(args).texts(), "")))
			}
			return same(strings.TrimSpace(v.text))
		}
		return v, true
	case "tolower", "tolowerinvariant":
		return same(strings.ToLower(v.str()))
	case "toupper", "toupperinvariant":
		return same(strings.ToUpper(v.str()))
	case "replace":
		return psReplace(v, psListOf([]psValue{{text: arg(0).str()}, {text: arg(1).str()}}), true), true
	case "split":
		return psSplit(v, psValue{text: arg(0).str()}, true), true
	case "tochararray":
		return characters(v), true
	case "substring", "remove", "insert", "padleft", "padright":
		return psCut(v, name, args)
	case "chars", "getvalue", "get":
		return psIndex(v, arg(0)), len(args) == 1 && v.known()
	case "contains", "startswith", "endswith", "indexof", "equals", "compareto", "gettype", "lastindexof", "gethashcode":
		return psUnknown(0), true
	}
	return psValue{}, false
}

// psCut computes the members that cut a text at a place.
func psCut(v psValue, name string, args []psValue) (psValue, bool) {
	if v.kind != psText || len(args) == 0 {
		return psValue{}, false
	}
	r := []rune(v.text)
	n, ok := args[0].int()
	if !v.known() || !ok || n < 0 || n > len(r) {
		return psUnknown(v.taint | act.FromBuilt), true
	}
	count := len(r) - n
	if len(args) > 1 {
		if m, ok := args[1].int(); ok && name != "insert" {
			count = max(0, min(m, count))
		}
	}
	out := v
	switch name {
	case "substring":
		out.text = string(r[n : n+count])
	case "remove":
		out.text = string(r[:n]) + string(r[n+count:])
	case "insert":
		if len(args) > 1 {
			out.text = string(r[:n]) + args[1].str() + string(r[n:])
		}
	}
	return out, true
}

// static computes the static members that only make or move text, or name things.
func (w *winShell) static(on, name string, args []psValue) (psValue, bool) {
	if v, ok := w.staticText(on, name, args); ok {
		return v, true
	}
	all := psListOf(args)
	switch on + "::" + name {
	case "regex::unescape", "regex::escape", "uri::unescapedatastring", "web.httputility::urldecode", "net.webutility::urldecode", "net.webutility::htmldecode", "environment::expandenvironmentvariables":
		if len(args) == 1 {
			return w.unescaped(args[0]), true
		}
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
	case "io.path::combine", "io.path::join":
		return psValue{text: strings.Join(all.texts(), "/"), taint: all.taints()}, true
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

// staticText computes the static members of texts and encodings.
func (w *winShell) staticText(on, name string, args []psValue) (psValue, bool) {
	if fewest, ok := staticTexts[on+"::"+name]; ok {
		if len(args) < fewest {
			return psValue{}, false
		}
		return w.staticTextOf(on+"::"+name, args), true
	}
	all := psListOf(args)
	switch {
	case strings.HasPrefix(on, "regex") && name == "matches":
		return psUnknown(all.taints() | act.FromBuilt), true
	case strings.HasPrefix(on, "text.encoding") && (name == "getstring" || name == "getbytes"):
		v := all.flatFirst()
		if name == "getstring" && v.kind == psList { // of numbers
			v = psJoin(cast("char[]", v), "")
		}
		return v, true
	}
	return psValue{}, false
}

// staticTexts are those members and how many arguments they have at least.
var staticTexts = map[string]int{"convert::frombase64string": 1, "string::join": 2, "string::concat": 0, "string::format": 2,
	"string::new": 1, "regex::replace": 3, "regex::split": 2}

func (w *winShell) staticTextOf(member string, args []psValue) psValue {
	switch member {
	case "convert::frombase64string":
		if text, ok := decodeUTF16(args[0].str()); ok && args[0].known() && plainText(text) && w.e.Decoded+len(text) <= scan.MaxDecodedTotal {
			w.e.Decoded += len(text)
			return psValue{text: text, taint: act.FromDecoder | args[0].taint}
		}
		return psUnknown(act.FromDecoder | args[0].taint)
	case "string::join":
		return psJoin(psListOf(psListOf(args[1:]).flat()), args[0].str())
	case "string::format":
		return psFormat(args[0], psListOf(psListOf(args[1:]).flat()))
	case "string::new":
		return psJoin(psListOf(args[0].list()), "")
	case "regex::replace":
		return psReplace(args[0], psListOf(args[1:]), false)
	case "regex::split":
		return psSplit(args[0], args[1], false)
	}
	return psJoin(psListOf(psListOf(args).flat()), "") // string::concat
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

// plainText: it holds no bytes that a text does not have.
func plainText(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' && strings.IndexByte("\t\r\n", s[i]) < 0 {
			return false
		}
	}
	return true
}
