package windows

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// psReader parses and evaluates a PowerShell text in one pass: it computes known values, follows
// every branch, and judges each command that would run.
type psReader struct {
	w    *winShell
	text string
	i    int
}

// step advances by n bytes, at most to the end.
func (r *psReader) step(n int) { r.i = min(r.i+n, len(r.text)) }

// blank skips white space and comments, and line ends and semicolons if lines is true.
func (r *psReader) blank(lines bool) {
	for r.i < len(r.text) {
		switch c := r.text[r.i]; {
		case strings.IndexByte(" \t\r\f\v", c) >= 0, lines && (c == '\n' || c == ';'):
			r.step(1)
		case c == '`' && strings.IndexByte("\r\n", r.following()) >= 0:
			r.step(2)
		case c == '#' && (r.i == 0 || strings.IndexByte(" \t\r\n;(){}|", r.text[r.i-1]) >= 0):
			r.until("\n")
		case r.at("<#"):
			_, rest, _ := strings.Cut(r.text[r.i:], "#>")
			r.i = len(r.text) - len(rest)
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (r *psReader) peek() byte {
	if r.i < len(r.text) {
		return r.text[r.i]
	}
	return 0
}

func (r *psReader) at(s string) bool { return strings.HasPrefix(r.text[min(r.i, len(r.text)):], s) }

// name reads letters, digits and "_".
func (r *psReader) name() string {
	from := r.i
	for r.i < len(r.text) && scan.IsNameByte(r.text[r.i]) {
		r.step(1)
	}
	return r.text[from:r.i]
}

// word returns the next identifier in lower case, without reading past it.
func (r *psReader) word() string {
	j := r.i
	for j < len(r.text) && (scan.IsNameByte(r.text[j]) || r.text[j] == '-') {
		j++
	}
	return strings.ToLower(r.text[r.i:j])
}

// psOperators maps the binary operators to their precedence; a higher number binds more tightly.
var psOperators = map[string]int{
	"-and": 1, "-or": 1, "-xor": 1, "??": 1,
	"-eq": 2, "-ne": 2, "-gt": 2, "-ge": 2, "-lt": 2, "-le": 2, "-like": 2, "-notlike": 2, "-match": 2, "-notmatch": 2, "-contains": 2, "-notcontains": 2,
	"-in": 2, "-notin": 2, "-is": 2, "-isnot": 2, "-as": 2, "-replace": 2, "-split": 2, "-join": 2, "-bxor": 2, "-band": 2, "-bor": 2, "-shl": 2, "-shr": 2,
	"+": 3, "-": 3, "*": 4, "/": 4, "%": 4, "-f": 5, "..": 6,
}

// operator returns the binary operator at the current position and its length as written, or ""
// and 0.
func (r *psReader) operator() (string, int) {
	switch c, next := r.peek(), r.following(); {
	case c == '-' && isLetter(next):
		return r.wordOperator()
	case strings.IndexByte("+-*/%", c) >= 0:
		if next == '=' || next == c && (c == '+' || c == '-') {
			return "", 0
		}
		return string(c), 1
	case r.at("..") || r.at("??") && !r.at("??="):
		return r.text[r.i : r.i+2], 2
	}
	return "", 0
}

// isLetter reports whether a byte can begin a name, which a digit cannot.
func isLetter(c byte) bool { return scan.IsNameByte(c) && c > '9' }

// wordOperator returns an operator such as "-join". It accepts the prefixes c and i, which set
// whether upper and lower case are different.
func (r *psReader) wordOperator() (string, int) {
	j := r.i + 1
	for j < len(r.text) && isLetter(r.text[j]) {
		j++
	}
	op := strings.ToLower(r.text[r.i:j])
	if psOperators[op] == 0 && len(op) > 3 && (op[1] == 'c' || op[1] == 'i') {
		op = "-" + op[2:]
	}
	if psOperators[op] > 0 {
		return op, j - r.i
	}
	return "", 0
}

// expression evaluates an expression whose operators have at least the given precedence.
func (r *psReader) expression(least int) psValue {
	left := r.elements()
	for r.w.e.Budget.Spend(1) {
		r.blank(false)
		op, n := r.operator()
		if op == "" || psOperators[op] < least {
			break
		}
		r.step(n)
		r.blank(true)
		left = r.w.binary(op, left, r.expression(psOperators[op]+1))
	}
	return left
}

// binary evaluates "a op b".
func (w *winShell) binary(op string, a, b psValue) psValue {
	switch op {
	case "+":
		return psAdd(a, b)
	case "-", "*", "/", "%", "-bxor", "-band", "-bor":
		return psArithmetic(op, a, b)
	case "..":
		return psRange(a, b)
	case "-split":
		return psSplit(a, b, false)
	case "-as":
		return cast(b.text, a)
	case "??", "-or", "-and":
		return a
	}
	if op == "-join" {
		a, b = psValue{text: b.str(), taint: b.taints()}, a
	}
	if v, ok := w.ofEach(op, a, b.list()); ok {
		return v
	}
	return psUnknown(0) // a comparison, which is not evaluated
}

// elements evaluates values separated by commas. Several values are an array.
func (r *psReader) elements() psValue {
	first := r.unary()
	r.blank(false)
	if r.peek() != ',' {
		return first
	}
	out := []psValue{first}
	for r.peek() == ',' && r.w.e.Budget.Spend(1) {
		r.step(1)
		r.blank(true)
		out = append(out, r.unary())
		r.blank(false)
	}
	return psListOf(out)
}

// unary evaluates a value with or without unary operators.
func (r *psReader) unary() psValue {
	r.blank(true)
	switch c := r.peek(); {
	case c == '!' || c == '+' || c == ',':
		r.step(1)
		return r.unary()
	case c == '-':
		switch op := r.word(); op {
		case "-join":
			r.step(len(op))
			v, _ := r.w.made("-join", psValue{}, r.unary())
			return v
		case "-not", "-bnot":
			r.step(len(op))
			r.unary()
			return psUnknown(0)
		}
		r.step(1)
		if v := r.unary(); v.number {
			return psValue{text: "-" + v.text, number: true}
		}
		return psUnknown(0)
	case c == '[':
		return r.bracket()
	}
	return r.postfix(r.primary())
}

// bracket evaluates an expression that begins with [type]: a cast, a static member, or the type
// itself.
func (r *psReader) bracket() psValue {
	end := matching(r.text, r.i)
	name := strings.ToLower(strings.Trim(r.text[r.i+1:min(end, len(r.text))], " \t\r\n"))
	name = strings.ReplaceAll(strings.ReplaceAll(name, "`", ""), " ", "")
	r.i = min(end+1, len(r.text))
	t := psValue{kind: psType, text: strings.TrimPrefix(name, "system.")}
	if r.peek() == '.' || r.at("::") {
		return r.postfix(t)
	}
	if r.typeAlone() {
		return t
	}
	v := r.unary()
	if name == "scriptblock" {
		return r.w.dynamicBlock(v)
	}
	return cast(t.text, v)
}

// typeAlone reports whether the type is not followed by a value that it casts.
func (r *psReader) typeAlone() bool {
	if c := r.peek(); c == 0 || isLetter(c) || strings.IndexByte(")];,|}\n=", c) >= 0 { // or the method of a class: [void]name(
		return true
	}
	r.blank(false)
	switch op, _ := r.operator(); op {
	case "", "-join", "-", "+":
		return strings.IndexByte("=)]};|\n", r.peek()) >= 0
	}
	return true
}

// matching returns the index of the bracket that closes the one at i, or the length of the text.
// It skips quotes and comments.
func matching(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth--; depth <= 0 {
				return i
			}
		case '`':
			i++
		case '#':
			if i > 0 && text[i-1] <= ' ' {
				for i < len(text) && text[i] != '\n' {
					i++
				}
			}
		case '\'', '"':
			i = quotedEnd(text, i)
		}
	}
	return len(text)
}

// quotedEnd returns the index of the quote that closes the one at i, or the length of the text.
func quotedEnd(text string, i int) int {
	q := text[i : i+1]
	if i > 0 && text[i-1] == '@' { // the quote opens a here-string
		if n := strings.Index(text[i+1:], "\n"+q+"@"); n >= 0 {
			return i + 1 + n + 2
		}
	}
	for j := i + 1; j < len(text); j++ {
		switch {
		case text[j] == '`' && q == `"`, strings.HasPrefix(text[j:], q+q):
			j++
		case text[j] == q[0]:
			return j
		case q == `"` && strings.HasPrefix(text[j:], "$("):
			j = matching(text, j+1)
		}
	}
	return len(text)
}

// primary evaluates one value without operators and members.
func (r *psReader) primary() psValue {
	if !r.w.e.Budget.Spend(2) {
		r.i = len(r.text)
		return psUnknown(0)
	}
	c := r.peek()
	switch c {
	case '\'', '"':
		return r.quoted()
	case '$':
		return r.variable()
	case '(':
		return r.group()
	case '{':
		return r.blockValue()
	case '@':
		return r.literal()
	}
	switch {
	case isDigit(c) || c == '.' && isDigit(r.following()):
		return r.number()
	case scan.IsNameByte(c) || strings.IndexByte(`&\`, c) >= 0:
		return r.command(psValue{}, false)
	}
	return psValue{}
}

// number reads a number: 12, 0x1F, 1.5, 10MB.
func (r *psReader) number() psValue {
	from := r.i
	for r.i < len(r.text) && (scan.IsNameByte(r.text[r.i]) || r.text[r.i] == '.' && !r.at("..") && r.i+1 < len(r.text) && r.text[r.i+1] >= '0' && r.text[r.i+1] <= '9') {
		r.step(1)
	}
	t := r.text[from:r.i]
	if n, err := strconv.ParseInt(t, 0, 64); err == nil {
		return psNumber(int(n))
	}
	return psValue{text: t, number: true}
}

// literal evaluates @(…), @{…} and here-strings.
func (r *psReader) literal() psValue {
	r.step(1)
	switch r.peek() {
	case '(':
		return psListOf(r.group().list())
	case '{':
		return r.hash()
	case '\'', '"':
		q, from, end := r.peek(), r.i+1, quotedEnd(r.text, r.i)
		body := strings.TrimLeft(r.text[min(from, len(r.text)):max(min(end-1, len(r.text)), min(from, len(r.text)))], " \t\r\n")
		r.i = min(end+1, len(r.text))
		if r.peek() == '@' {
			r.step(1)
		}
		if q == '"' {
			return r.expand(body)
		}
		return psString(body)
	}
	return psValue{}
}

// hash evaluates @{ key = value; … }.
func (r *psReader) hash() psValue {
	out := psValue{kind: psHash}
	r.step(1)
	for r.w.e.Budget.Spend(2) {
		r.blank(true)
		if c := r.peek(); c == 0 || c == '}' {
			break
		}
		from := r.i
		var key psValue
		if scan.IsNameByte(r.peek()) {
			key = psString(r.name())
		} else {
			key = r.unary()
		}
		r.blank(true)
		if r.peek() != '=' {
			r.i = max(r.i, from+1)
			continue
		}
		r.step(1)
		r.blank(true)
		out.keys = append(out.keys, strings.ToLower(key.str()))
		out.items = append(out.items, r.statement())
		out.taint |= out.items[len(out.items)-1].taints()
	}
	r.step(1)
	return out
}

// blockValue reads a script block { … } without running it.
func (r *psReader) blockValue() psValue {
	end := matching(r.text, r.i)
	src := *r.w.src
	v := psValue{kind: psBlock, block: &src, from: r.i + 1, to: min(end, len(r.text))}
	v.from = min(v.from, v.to)
	v.block.Text = r.text
	if len(r.text) != len(r.w.src.Text) { // the command built this text
		v.block.At = -1
	}
	r.i = min(end+1, len(r.text))
	return v
}

// quoted evaluates a text in quotes.
func (r *psReader) quoted() psValue {
	q, from := r.peek(), r.i+1
	end := quotedEnd(r.text, r.i)
	body := r.text[min(from, len(r.text)):min(end, len(r.text))]
	r.i = min(end+1, len(r.text))
	if q == '\'' {
		return psString(strings.ReplaceAll(body, "''", "'"))
	}
	return r.expand(body)
}

// expand returns the content of "…" with variables, $(…) and escapes replaced.
func (r *psReader) expand(body string) psValue {
	if !strings.ContainsAny(body, "$`\"") {
		return psString(body)
	}
	inner := psReader{w: r.w, text: body}
	out := psValue{}
	var b strings.Builder
	for inner.i < len(body) && b.Len() < scan.MaxDecoded {
		switch c := body[inner.i]; {
		case c == '`' && inner.i+1 < len(body):
			b.WriteString(psEscape(body[inner.i+1]))
			inner.step(2)
		case c == '"' && strings.HasPrefix(body[inner.i:], `""`):
			b.WriteByte('"')
			inner.step(2)
		case c == '$' && beginsName(inner.following()):
			v := inner.dollar()
			out.taint |= v.taints()
			b.WriteString(v.str())
		default:
			b.WriteByte(c)
			inner.step(1)
		}
	}
	out.text = b.String()
	return out
}

// psEscape returns the text for the escape `c.
func psEscape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '0', 'a', 'b', 'r', 'f', 'v', '\n':
		return ""
	}
	return string(c)
}

// variable evaluates $name in an expression. $?, $$ and $^ are unknown.
func (r *psReader) variable() psValue {
	if strings.IndexByte("?$^", r.following()) >= 0 {
		r.step(2)
		return psUnknown(0)
	}
	return r.dollar()
}

// dollar evaluates $name, ${name}, $scope:name and $( … ).
func (r *psReader) dollar() psValue {
	r.step(1)
	switch r.peek() {
	case '(':
		return r.group()
	case '{':
		end := strings.IndexByte(r.text[r.i:], '}')
		if end < 0 {
			end = len(r.text) - r.i
		}
		name := r.text[r.i+1 : r.i+max(end, 1)]
		r.i = min(r.i+end+1, len(r.text))
		return r.w.lookup(strings.ToLower(strings.ReplaceAll(name, "`", "")))
	}
	name := r.name()
	if r.peek() == ':' && scan.IsNameByte(r.following()) {
		r.step(1)
		name += ":" + r.name()
	}
	return r.w.lookup(strings.ToLower(name))
}

// postfix evaluates the members and indexes after a value.
func (r *psReader) postfix(v psValue) psValue {
	for r.w.e.Budget.Spend(1) {
		switch {
		case r.at("::"):
			r.step(2)
			v = r.memberOf(v)
		case r.at("?.") && v.kind != psText, r.peek() == '.' && (scan.IsNameByte(r.following()) || strings.IndexByte("$('\"`", r.following()) >= 0):
			r.step(1 + strings.IndexByte(r.text[r.i:], '.'))
			v = r.memberOf(v)
		case r.peek() == '[':
			end := matching(r.text, r.i)
			inner := psReader{w: r.w, text: r.text[:min(end, len(r.text))], i: r.i + 1}
			index := inner.expression(0)
			r.i = min(end+1, len(r.text))
			v = psIndex(v, index)
		case r.at("++") || r.at("--"):
			r.step(2)
		default:
			return v
		}
	}
	return v
}

// memberOf reads the name and the arguments of a member of v, and returns its value.
func (r *psReader) memberOf(v psValue) psValue {
	from := r.i
	name := ""
	switch c := r.peek(); {
	case c == '\'' || c == '"':
		name = r.quoted().str()
	case c == '$':
		name = r.dollar().str()
	case c == '(':
		name = r.group().str()
	default:
		for r.i < len(r.text) && (scan.IsNameByte(r.text[r.i]) || r.text[r.i] == '`') {
			r.step(1)
		}
		name = strings.ReplaceAll(r.text[from:r.i], "`", "")
	}
	name = strings.ToLower(name)
	var args []psValue
	called := false
	switch r.peek() {
	case '(':
		called = true
		args = r.arguments()
	case '{': // for example .ForEach{ … }
		called = true
		args = []psValue{r.blockValue()}
	}
	if !called {
		return r.w.property(v, name)
	}
	return r.w.invoke(v, name, args, from, r.i)
}

// arguments evaluates the arguments in (a, b).
func (r *psReader) arguments() []psValue {
	r.step(1)
	var out []psValue
	for r.w.e.Budget.Spend(1) {
		r.blank(true)
		if c := r.peek(); c == 0 || c == ')' {
			break
		}
		if r.peek() == ',' {
			r.step(1)
			continue
		}
		from := r.i
		v := r.argumentValue()
		out = append(out, v)
		if r.i == from {
			r.step(1)
		}
	}
	r.step(1)
	return out
}

// argumentValue evaluates one argument of a method call.
func (r *psReader) argumentValue() psValue {
	left := r.unary()
	for r.w.e.Budget.Spend(1) {
		r.blank(true)
		op, n := r.operator()
		if op == "" {
			return left
		}
		r.step(n)
		r.blank(true)
		left = r.w.binary(op, left, r.unary())
	}
	return left
}
