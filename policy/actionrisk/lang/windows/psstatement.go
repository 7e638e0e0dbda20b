package windows

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// statements runs what stands before the closing bracket, or before the end.
func (r *psReader) statements(end byte) psValue {
	var out []psValue
	for r.w.e.Budget.Spend(2) {
		r.blank(true)
		c := r.peek()
		if c == 0 || c == end {
			break
		}
		from := r.i
		if c != '}' && c != ')' && c != ']' && c != ',' {
			if v := r.statement(); v.kind != psText || v.text != "" {
				out = append(out, v)
			}
		}
		r.i = max(r.i, from+1)
	}
	return collect(out)
}

// psKeywords begin a statement; what they stand for.
var psKeywords = map[string]string{
	"if": "condition", "elseif": "condition", "while": "condition", "until": "condition", "switch": "switch", "foreach": "each", "for": "condition",
	"else": "block", "try": "block", "catch": "block", "finally": "block", "do": "block", "begin": "block", "process": "block", "end": "block", "trap": "block", "dynamicparam": "block", "clean": "block", "parallel": "block", "sequence": "block",
	"function": "function", "filter": "function", "workflow": "function", "class": "class", "enum": "skip", "param": "param", "using": "line",
	"return": "value", "throw": "value", "exit": "value", "break": "value", "continue": "value",
}

// statement runs one statement and gives its value.
func (r *psReader) statement() psValue {
	r.blank(true)
	word := r.word()
	kind := psKeywords[word]
	from := r.i
	after := psReader{w: r.w, text: r.text, i: r.i + len(word)}
	if kind != "" {
		after.blank(kind != "value")
	}
	next := after.peek()
	if kind == "value" {
		if r.i = after.i; next == '\n' || next == ';' || next == '}' {
			return psValue{}
		}
		return r.pipeline()
	}
	if kind == "" || !r.construct(kind, after.i, next) {
		r.i = from
		return r.pipeline()
	}
	return psValue{}
}

// construct runs what a keyword begins, whose rest begins at i with that byte; false if
// the word is no keyword there.
func (r *psReader) construct(kind string, i int, next byte) bool {
	switch kind {
	case "condition", "param":
		if next != '(' {
			return false
		}
		r.i = i + 1
		r.statements(')')
		r.step(1)
		r.bodies()
	case "each":
		if next != '(' {
			return false
		}
		r.i = i
		r.foreach()
	case "switch":
		if next != '(' && next != '-' {
			return false
		}
		r.i = i
		r.switches()
	case "block":
		if next != '{' && next != '[' {
			return false
		}
		for r.i = i; r.peek() == '['; r.blank(true) {
			r.i = min(matching(r.text, r.i)+1, len(r.text))
		}
		r.bodies()
	case "function", "class":
		if kind == "class" && next == 0 {
			return false
		}
		r.i = i
		r.function(kind)
	case "skip":
		brace := strings.IndexByte(r.text[i:], '{')
		if brace <= 0 {
			return false
		}
		r.i = min(matching(r.text, i+brace)+1, len(r.text))
	case "line":
		if next == 0 {
			return false
		}
		for r.i < len(r.text) && r.text[r.i] != '\n' && r.text[r.i] != ';' {
			r.step(1)
		}
	}
	return true
}

// bodies runs the block that comes next, if there is one.
func (r *psReader) bodies() {
	r.blank(true)
	if r.peek() == '{' {
		r.step(1)
		r.statements('}')
		r.step(1)
	}
}

// foreach runs the block for each value that is known, or once.
func (r *psReader) foreach() {
	end := matching(r.text, r.i)
	head := psReader{w: r.w, text: r.text[:min(end, len(r.text))], i: r.i + 1}
	head.blank(true)
	name := ""
	if head.peek() == '$' {
		head.step(1)
		name = strings.ToLower(head.name())
	}
	head.blank(true)
	if head.word() == "in" {
		head.step(2)
	}
	list := head.pipeline()
	r.i = min(end+1, len(r.text))
	r.blank(true)
	body := r.i
	values := list.list()
	if len(values) == 0 {
		values = []psValue{psUnknown(list.taint)}
	}
	for i, v := range values {
		if i > 0 && !r.w.round() {
			break
		}
		if v.kind != psText && v.kind != psObject || v.output {
			v = r.w.element(v)
		}
		r.w.set(name, v)
		r.i = body
		r.bodies()
	}
}

// switches runs every block of a switch.
func (r *psReader) switches() {
	for r.peek() == '-' && r.w.e.Budget.Spend(1) {
		r.step(1)
		r.name()
		r.blank(true)
	}
	if r.peek() == '(' {
		r.step(1)
		r.w.set("_", r.w.element(r.statements(')')))
		r.step(1)
	}
	r.blank(true)
	if r.peek() != '{' {
		return
	}
	r.step(1)
	for r.w.e.Budget.Spend(2) {
		r.blank(true)
		if c := r.peek(); c == 0 || c == '}' {
			break
		}
		from := r.i
		if r.peek() == '{' {
			r.bodies()
		} else if scan.IsNameByte(r.peek()) {
			r.bare()
		} else {
			r.unary()
		}
		r.blank(true)
		r.bodies()
		r.i = max(r.i, from+1)
	}
	r.step(1)
}

// function remembers a function; the methods of a class are run at once.
func (r *psReader) function(kind string) {
	from := r.i
	for r.i < len(r.text) && strings.IndexByte(" \t\r\n({", r.text[r.i]) < 0 {
		r.step(1)
	}
	name := strings.ToLower(r.text[from:r.i])
	if i := strings.IndexByte(name, ':'); i >= 0 { // global:name
		name = name[i+1:]
	}
	r.blank(true)
	var params psValue
	if r.peek() == '(' {
		params = psValue{from: r.i + 1, to: matching(r.text, r.i)}
		r.i = min(params.to+1, len(r.text))
		r.blank(true)
	}
	for kind == "class" && r.peek() != '{' && r.peek() != 0 {
		r.step(1)
	}
	if r.peek() != '{' {
		return
	}
	body := r.blockValue()
	if kind == "class" {
		inner := psReader{w: r.w, text: r.text[:body.to], i: body.from}
		for inner.i < len(inner.text) && r.w.e.Budget.Spend(1) {
			if inner.peek() == '{' {
				inner.bodies()
			}
			inner.step(1)
		}
		return
	}
	if params.to > params.from { // the values that its parameters have if none are given
		inner := psReader{w: r.w, text: r.text[:min(params.to, len(r.text))], i: params.from}
		inner.statements(0)
	}
	if len(r.w.funcs) < scan.MaxFiles*8 {
		r.w.funcs[name] = body
	}
}

// pipeline runs a pipeline, or an assignment, and gives its value.
func (r *psReader) pipeline() psValue {
	in, piped := psValue{}, false
	for r.w.e.Budget.Spend(2) {
		r.blank(piped)
		from := r.i
		v := r.stage(in, piped)
		if r.i == from {
			return v
		}
		r.blank(false)
		switch {
		case r.peek() == '>':
			r.redirect(v)
			return psValue{}
		case r.at("&&") || r.at("||"):
			r.step(2)
			return v
		case r.peek() == '|':
			r.step(1)
			in, piped = v, true
			continue
		case r.peek() == '&':
			r.step(1)
		}
		if r.nextIsPipe() { // the next line begins with it
			r.blank(true)
			r.step(1)
			in, piped = v, true
			continue
		}
		return v
	}
	return psUnknown(0)
}

func (r *psReader) nextIsPipe() bool {
	if r.peek() != '\n' && r.peek() != '\r' {
		return false
	}
	look := *r
	look.blank(true)
	return look.peek() == '|' && !look.at("||")
}

// redirect writes what a stage prints to a file.
func (r *psReader) redirect(v psValue) {
	for r.peek() == '>' {
		r.step(1)
	}
	if r.peek() == '&' { // >&1
		r.step(2)
		return
	}
	r.blank(false)
	r.w.write(r.argument().str(), v, ">", r.i)
}

// stage runs one stage of a pipeline.
func (r *psReader) stage(in psValue, piped bool) psValue {
	switch c := r.peek(); {
	case r.callsOperator():
		return r.command(in, piped)
	case strings.IndexByte("$('\"[{!,+", c) >= 0 && c != 0, c == '@' && strings.IndexByte("({'\"", r.following()) >= 0:
		return r.valueOrAssignment(in)
	case c == '-' && (r.following() >= '0' && r.following() <= '9' || r.word() == "-join" || r.word() == "-split" || r.word() == "-not"):
		return r.expression(0)
	case c >= '0' && c <= '9':
		look := *r
		look.number()
		if look.i >= len(r.text) || strings.IndexByte(" \t\r\n;|)}.,+*/%-", look.text[look.i]) >= 0 {
			return r.expression(0)
		}
	}
	return r.command(in, piped)
}

// following is the byte behind the one that comes next; 0 if there is none.
func (r *psReader) following() byte {
	if r.i+1 < len(r.text) {
		return r.text[r.i+1]
	}
	return 0
}

// callsOperator: & or . and what is called.
func (r *psReader) callsOperator() bool {
	return r.peek() == '&' || r.peek() == '.' && strings.IndexByte(" \t$'\"({", r.following()) >= 0
}

// valueOrAssignment runs an expression, or sets what stands before "=".
func (r *psReader) valueOrAssignment(in psValue) psValue {
	from := r.i
	v := r.expression(0)
	to := r.i
	r.blank(false)
	op := ""
	for _, o := range [...]string{"=", "+=", "-=", "*=", "/=", "%=", "??="} {
		if r.at(o) && !r.at("==") {
			op = o
		}
	}
	if op == "" {
		return v
	}
	r.step(len(op))
	r.blank(true)
	value := r.statement()
	if op == "+=" {
		value = psAdd(v, value)
	} else if op == "-=" || op == "*=" || op == "/=" || op == "%=" {
		value = psArithmetic(op[:1], v, value)
	}
	r.w.assign(r.text[from:to], value)
	return psValue{}
}

// command reads the name and the arguments of a command, and runs it.
func (r *psReader) command(in psValue, piped bool) psValue {
	call := psCall{from: r.i, input: in, piped: piped}
	if r.callsOperator() {
		call.operator = r.peek()
		r.step(1)
		r.blank(true)
		name := r.operatorName()
		call.target, call.name = name, name.str()
	} else {
		call.name = r.bare()
		call.target = psString(call.name)
	}
	if call.name == "" && call.target.kind == psText {
		return psValue{}
	}
	r.readArguments(&call)
	call.to = r.i
	return r.w.run(&call)
}

// operatorName is what the call operator is given: a name, a block, a value.
func (r *psReader) operatorName() psValue {
	switch r.peek() {
	case '\'', '"', '$', '(', '{', '[':
		v := r.unaryPart()
		if c := r.peek(); c == '\\' || c == '/' { // $env:TEMP\x.exe
			rest := r.bare()
			return psValue{text: v.str() + rest, taint: v.taints()}
		}
		return v
	}
	return psString(r.bare())
}

// unaryPart is a value with its members, without operators.
func (r *psReader) unaryPart() psValue {
	if r.peek() == '[' {
		return r.bracket()
	}
	return r.postfix(r.primary())
}

const psEnds = " \t\r\n;|&(){}<>,"

// bare reads a word without quotes around it: escapes, quotes inside and
// variables are resolved.
func (r *psReader) bare() string {
	var b strings.Builder
	for r.i < len(r.text) {
		c := r.text[r.i]
		switch {
		case c == '`' && r.i+1 < len(r.text):
			r.step(1)
			if r.text[r.i] != '\n' {
				b.WriteByte(r.text[r.i])
			}
		case c == '\'' || c == '"':
			b.WriteString(r.quoted().str())
			continue
		case c == '$' && r.i+1 < len(r.text) && (scan.IsNameByte(r.text[r.i+1]) || r.text[r.i+1] == '{' || r.text[r.i+1] == '('):
			b.WriteString(r.dollar().str())
			continue
		case strings.IndexByte(psEnds, c) >= 0:
			return b.String()
		default:
			b.WriteByte(c)
		}
		r.step(1)
	}
	return b.String()
}

// readArguments reads what stands behind the name of a command.
func (r *psReader) readArguments(call *psCall) {
	for r.w.e.Budget.Spend(2) {
		r.blank(false)
		from := r.i
		switch c := r.peek(); {
		case c == 0 || strings.IndexByte("\n;|)}", c) >= 0:
			return
		case c == '&':
			return
		case c == '>' || strings.IndexByte("123456*", c) >= 0 && r.i+1 < len(r.text) && r.text[r.i+1] == '>':
			if c != '>' {
				r.step(1)
			}
			r.redirectOf(call)
		case c == '<' || c == ',':
			r.step(1)
		case r.at("--%"):
			r.step(3)
			r.verbatim(call)
		case r.at("-- "):
			r.step(2)
		case c == '-' && r.i+1 < len(r.text) && (scan.IsNameByte(r.text[r.i+1]) && r.text[r.i+1] > '9' || r.text[r.i+1] == '?'):
			r.parameter(call)
		case c == '@' && r.i+1 < len(r.text) && scan.IsNameByte(r.text[r.i+1]):
			r.step(1)
			call.splat(r.w.lookup(strings.ToLower(r.name())))
		default:
			call.items = append(call.items, psItem{value: r.argumentList(), raw: r.text[from:r.i]})
		}
		r.i = max(r.i, from+1)
	}
}

// verbatim: behind --% nothing is special.
func (r *psReader) verbatim(call *psCall) {
	rest, _, _ := strings.Cut(r.text[r.i:], "\n")
	rest, _, _ = strings.Cut(rest, "|")
	for _, w := range strings.Fields(rest) {
		call.items = append(call.items, psItem{value: psString(strings.Trim(w, `"`)), raw: w})
	}
	r.step(len(rest))
}

// redirectOf notes the file that a command's output goes to.
func (r *psReader) redirectOf(call *psCall) {
	first := r.i
	for r.peek() == '>' {
		r.step(1)
	}
	call.append = r.i-first > 1
	if r.peek() == '&' {
		r.step(2)
		return
	}
	r.blank(false)
	if file := r.argument(); file.str() != "null" || file.kind != psText {
		call.file = file.str()
	}
}

// parameter reads -Name, -Name:value.
func (r *psReader) parameter(call *psCall) {
	from := r.i
	r.step(1)
	for r.i < len(r.text) && (scan.IsNameByte(r.text[r.i]) || strings.IndexByte("-?`", r.text[r.i]) >= 0) {
		r.step(1)
	}
	if r.i < len(r.text) && strings.IndexByte(psEnds+":", r.text[r.i]) < 0 { // -Dname=value of a program
		r.i = from
		call.items = append(call.items, psItem{value: r.argumentList(), raw: r.text[from:r.i]})
		return
	}
	item := psItem{name: strings.ToLower(strings.ReplaceAll(r.text[from+1:r.i], "`", "")), raw: r.text[from:r.i]}
	if r.peek() == ':' {
		r.step(1)
		r.blank(false)
		item.value, item.given = r.argumentList(), true
	}
	call.items = append(call.items, item)
}

// argumentList is an argument, or several between commas.
func (r *psReader) argumentList() psValue {
	first := r.argument()
	var out []psValue
	for r.w.e.Budget.Spend(1) {
		look := *r
		look.blank(false)
		if look.peek() != ',' {
			break
		}
		look.step(1)
		look.blank(true)
		r.i = look.i
		if out == nil {
			out = []psValue{first}
		}
		from := r.i
		out = append(out, r.argument())
		if r.i == from {
			break
		}
	}
	if out != nil {
		return psListOf(out)
	}
	return first
}

// argument is one argument of a command.
func (r *psReader) argument() psValue {
	var v psValue
	switch c := r.peek(); {
	case c == '(' || c == '{':
		return r.postfix(r.primary())
	case c == '@' && r.i+1 < len(r.text) && strings.IndexByte("({'\"", r.text[r.i+1]) >= 0:
		return r.literal()
	case c == '$':
		v = r.postfix(r.variable())
	case c == '\'' || c == '"':
		v = r.quoted()
	default:
		from := r.i
		t := r.bare()
		_, ok := psNumberOf(t)
		return psValue{text: t, number: ok && t == r.text[from:r.i]}
	}
	if c := r.peek(); c != 0 && strings.IndexByte(psEnds, c) < 0 { // more of the same word
		return psValue{text: v.str() + r.bare(), taint: v.taints()}
	}
	return v
}

func psNumberOf(t string) (int, bool) {
	if t == "" || strings.Trim(t, "0123456789") != "" && !strings.HasPrefix(t, "0x") {
		return 0, false
	}
	return psString(t).int()
}
