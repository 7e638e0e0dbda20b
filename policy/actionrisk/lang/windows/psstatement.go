package windows

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// statements evaluates the statements up to the closing bracket end, or to the end of the text if
// end is 0.
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

// psKeywords maps the keywords that begin a statement to the kind of construct that follows.
var psKeywords = map[string]string{
	"if": "condition", "elseif": "condition", "while": "condition", "until": "condition", "switch": "switch", "foreach": "each", "for": "condition",
	"else": "block", "try": "block", "catch": "block", "finally": "block", "do": "block", "begin": "block", "process": "block", "end": "block", "trap": "block", "dynamicparam": "block", "clean": "block", "parallel": "block", "sequence": "block",
	"function": "function", "filter": "function", "workflow": "function", "class": "class", "enum": "skip", "param": "param", "using": "line",
	"return": "value", "throw": "value", "exit": "value", "break": "value", "continue": "value",
}

// statement evaluates one statement and returns its value.
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

// construct evaluates the construct that a keyword begins. i is the position after the keyword,
// and next the byte there. It returns false if the word is not a keyword in this place.
func (r *psReader) construct(kind string, i int, next byte) bool {
	if must := psFollows[kind]; next == 0 || must != "" && strings.IndexByte(must, next) < 0 {
		return false
	}
	begin := r.i
	r.i = i
	switch kind {
	case "condition", "param":
		r.group()
		r.bodies()
	case "each":
		r.foreach()
	case "switch":
		r.switches()
	case "block":
		for ; r.peek() == '['; r.blank(true) { // for example catch [type]
			r.i = min(matching(r.text, r.i)+1, len(r.text))
		}
		r.bodies()
	case "function", "class":
		r.function(kind)
	case "skip":
		brace := strings.IndexByte(r.text[i:], '{')
		if brace <= 0 {
			return false
		}
		r.i = min(matching(r.text, i+brace)+1, len(r.text))
	case "line":
		r.i = begin
		r.until("\n;")
	}
	return true
}

// until advances to the next of the bytes in ends, or to the end, and returns the text before it.
func (r *psReader) until(ends string) string {
	rest := r.text[r.i:]
	if n := strings.IndexAny(rest, ends); n >= 0 {
		rest = rest[:n]
	}
	r.step(len(rest))
	return rest
}

// group evaluates the statements in the brackets that open here, and returns their value.
func (r *psReader) group() psValue {
	r.step(1)
	v := r.statements(')')
	r.step(1)
	return v
}

// bodies evaluates the block that follows, if there is one.
func (r *psReader) bodies() {
	r.blank(true)
	if r.peek() == '{' {
		r.step(1)
		r.statements('}')
		r.step(1)
	}
}

// foreach evaluates the body of a loop once for each known value, or once with an unknown value.
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

// switches evaluates every block of a switch statement.
func (r *psReader) switches() {
	for r.peek() == '-' && r.w.e.Budget.Spend(1) {
		r.step(1)
		r.name()
		r.blank(true)
	}
	if r.peek() == '(' {
		r.w.set("_", r.w.element(r.group()))
	}
	r.blank(true)
	if r.peek() != '{' {
		return
	}
	r.step(1)
	for r.w.e.Budget.Spend(2) {
		r.blank(true)
		from := r.i
		switch c := r.peek(); {
		case c == 0 || c == '}':
			r.step(1)
			return
		case c == '{':
			r.bodies()
		case scan.IsNameByte(c):
			r.bare()
		default:
			r.unary()
		}
		r.blank(true)
		r.bodies()
		r.i = max(r.i, from+1)
	}
}

// function stores the definition of a function. It evaluates the methods of a class at once.
func (r *psReader) function(kind string) {
	name := strings.ToLower(r.until(" \t\r\n({"))
	name = name[strings.IndexByte(name, ':')+1:] // remove a scope, as in global:name
	r.blank(true)
	var params psValue
	if r.peek() == '(' {
		params = psValue{from: r.i + 1, to: matching(r.text, r.i)}
		r.i = min(params.to+1, len(r.text))
		r.blank(true)
	}
	if kind == "class" {
		r.until("{")
	}
	if r.peek() != '{' {
		return
	}
	body := r.blockValue()
	if kind == "class" {
		r.methods(body)
		return
	}
	if params.to > params.from { // evaluate the default values of the parameters
		inner := psReader{w: r.w, text: r.text[:min(params.to, len(r.text))], i: params.from}
		inner.statements(0)
	}
	if len(r.w.funcs) < scan.MaxFiles*8 {
		r.w.funcs[name] = body
	}
}

// methods evaluates the methods of a class.
func (r *psReader) methods(body psValue) {
	inner := psReader{w: r.w, text: r.text[:body.to], i: body.from}
	for inner.i < len(inner.text) && r.w.e.Budget.Spend(1) {
		if inner.peek() == '{' {
			inner.bodies()
		}
		inner.step(1)
	}
}

// pipeline evaluates a pipeline or an assignment, and returns its value.
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
		if r.nextIsPipe() { // the next line begins with "|"
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

// redirect writes the value of a stage to the file of its redirection.
func (r *psReader) redirect(v psValue) {
	for r.peek() == '>' {
		r.step(1)
	}
	if r.peek() == '&' { // for example >&1
		r.step(2)
		return
	}
	r.blank(false)
	r.w.write(r.argument().str(), v, ">")
}

// stage evaluates one stage of a pipeline. The parameter in is the output of the stage before it.
func (r *psReader) stage(in psValue, piped bool) psValue {
	switch c := r.peek(); {
	case r.callsOperator():
		return r.command(in, piped)
	case strings.IndexByte("$('\"[{!,+", c) >= 0, c == '@' && strings.IndexByte("({'\"", r.following()) >= 0:
		return r.valueOrAssignment()
	case c == '-' && (isDigit(r.following()) || prefixOperators.Has(r.word())):
		return r.expression(0)
	case isDigit(c):
		look := *r
		look.number()
		if look.i >= len(r.text) || strings.IndexByte(" \t\r\n;|)}.,+*/%-", look.text[look.i]) >= 0 {
			return r.expression(0)
		}
	}
	return r.command(in, piped)
}

// prefixOperators lists the unary operators that are words.
var prefixOperators = scan.SetOf("-join -split -not")

// following returns the byte after the next one, or 0 if there is none.
func (r *psReader) following() byte {
	if r.i+1 < len(r.text) {
		return r.text[r.i+1]
	}
	return 0
}

// callsOperator reports whether the call operator & or . comes next.
func (r *psReader) callsOperator() bool {
	return r.peek() == '&' || r.peek() == '.' && strings.IndexByte(" \t$'\"({", r.following()) >= 0
}

// valueOrAssignment evaluates an expression, or assigns to it if "=" or a similar operator
// follows.
func (r *psReader) valueOrAssignment() psValue {
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

// command reads the name and the arguments of a command, and judges it.
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

// operatorName returns the operand of the call operator: a name, a script block or another value.
func (r *psReader) operatorName() psValue {
	switch r.peek() {
	case '\'', '"', '$', '(', '{':
		v := r.postfix(r.primary())
		if c := r.peek(); c == '\\' || c == '/' { // for example $env:TEMP\x.exe
			rest := r.bare()
			return psValue{text: v.str() + rest, taint: v.taints()}
		}
		return v
	}
	return psString(r.bare())
}

const psEnds = " \t\r\n;|&(){}<>,"

// bare reads a word without quotes around it. It evaluates escapes, variables and quoted parts
// inside the word.
func (r *psReader) bare() string {
	var b strings.Builder
	for r.i < len(r.text) {
		switch c, next := r.text[r.i], r.following(); {
		case c == '`' && next != 0:
			if r.step(1); next != '\n' {
				b.WriteByte(next)
			}
		case c == '\'' || c == '"':
			b.WriteString(r.quoted().str())
			continue
		case c == '$' && beginsName(next):
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

// beginsName reports whether a byte after "$" begins the name of a variable, ${name} or $( … ).
func beginsName(c byte) bool {
	return scan.IsNameByte(c) || c == '{' || c == '('
}

// readArguments reads the arguments and redirections after the name of a command.
func (r *psReader) readArguments(call *psCall) {
	for r.w.e.Budget.Spend(2) {
		r.blank(false)
		from := r.i
		switch c := r.peek(); {
		case c == 0 || strings.IndexByte("\n;|)}&", c) >= 0:
			return
		case c == '>' || r.following() == '>' && strings.IndexByte("123456*", c) >= 0:
			r.redirectOf(call)
		case c == '<' || c == ',':
			r.step(1)
		case r.at("-- "):
			r.step(2)
		case c == '-' && (isLetter(r.following()) || r.following() == '?'):
			r.parameter(call)
		case c == '@' && scan.IsNameByte(r.following()):
			r.step(1)
			call.splat(r.w.lookup(strings.ToLower(r.name())))
		default:
			call.items = append(call.items, psItem{value: r.argumentList(), raw: r.text[from:r.i]})
		}
		r.i = max(r.i, from+1)
	}
}

// redirectOf records the file to which an output of the command is redirected.
func (r *psReader) redirectOf(call *psCall) {
	r.i += strings.IndexByte(r.text[r.i:], '>')
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

// parameter reads -Name or -Name:value.
func (r *psReader) parameter(call *psCall) {
	from := r.i
	r.step(1)
	for r.i < len(r.text) && (scan.IsNameByte(r.text[r.i]) || strings.IndexByte("-?`", r.text[r.i]) >= 0) {
		r.step(1)
	}
	if r.i < len(r.text) && strings.IndexByte(psEnds+":", r.text[r.i]) < 0 { // -Dname=value is an option of a program
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

// argumentList evaluates one argument, or several separated by commas.
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

// argument evaluates one argument of a command.
func (r *psReader) argument() psValue {
	var v psValue
	switch c := r.peek(); {
	case c == '(' || c == '{':
		return r.postfix(r.primary())
	case c == '@' && strings.IndexByte("({'\"", r.following()) >= 0:
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
	if c := r.peek(); c != 0 && strings.IndexByte(psEnds, c) < 0 { // the word continues after the value
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

// psFollows maps the kind of a construct to the bytes that may follow its keyword.
var psFollows = map[string]string{"condition": "(", "param": "(", "each": "(", "switch": "(-", "block": "{["}
