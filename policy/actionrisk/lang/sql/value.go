package sql

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// What one side of a test is worth: a constant, a column, or something that does
// not depend on the row.

// Const is a value known from the text.
type sqlConst struct {
	kind   constKind
	number float64
	text   string
}

type constKind uint8

const (
	constNone constKind = iota
	constNumber
	constText
	constTrue
	constFalse
	constNull
)

// constant evaluates [lo,hi) if it is a literal, maybe signed, cast or a sum.
func (p *parser) constant(lo, hi int) sqlConst {
	lo, hi = p.peel(lo, hi)
	if lo >= hi {
		return sqlConst{}
	}
	if p.op(hi-2, "::") && hi-2 > lo {
		hi -= 2
	}
	if p.is(lo, "select") && !p.has(lo, hi, "from", "where") { // (SELECT 1)
		return p.constant(lo+1, hi)
	}
	if p.read == ANSI && hi-lo >= 3 && p.op(lo+1, "||") {
		return p.joinedStrings(lo, hi)
	}
	if p.is(lo, "cast") && p.op(lo+1, "(") {
		if as := p.find(lo+2, hi, p.toks[lo].depth+1, "as"); as > 0 {
			return p.constant(lo+2, as)
		}
	}
	if hi-lo == 1 {
		if c := p.literalToken(p.toks[lo]); c.kind != 0 {
			return c
		}
	}
	if hi-lo == 3 && (p.op(lo+1, "*") && (p.raw(hi-1) == "0" || p.raw(lo) == "0") || p.op(lo+1, "%") && p.raw(hi-1) == "1") {
		return sqlConst{kind: constNumber} // whatever the column is
	}
	if n, ok := p.sum(lo, hi); ok {
		return sqlConst{kind: constNumber, number: n}
	}
	return sqlConst{}
}

// joinedStrings is 'a' || 'b', if there is nothing else.
func (p *parser) joinedStrings(lo, hi int) sqlConst {
	joined := sqlConst{kind: constText}
	for i := lo; i < hi; i += 2 {
		if p.toks[i].kind != sqlString || i > lo && !p.op(i-1, "||") {
			return sqlConst{}
		}
		joined.text += stringText(p.text[p.toks[i].Start:p.toks[i].End])
	}
	return joined
}

// literalToken is a token that stands for a value that is no number.
func (p *parser) literalToken(t sqlToken) sqlConst {
	switch {
	case t.kind == sqlString:
		return sqlConst{kind: constText, text: stringText(p.text[t.Start:t.End])}
	case t.word == "true":
		return sqlConst{kind: constTrue, number: 1}
	case t.word == "false":
		return sqlConst{kind: constFalse}
	case t.word == "null":
		return sqlConst{kind: constNull}
	case t.kind == sqlName && p.read == MySQL && p.text[t.Start] == '"':
		return sqlConst{kind: constText, text: unquote(p.text[t.Start:t.End])}
	}
	return sqlConst{}
}

// sum evaluates numbers joined by + - * from left to right, which is enough to
// see through "2-1".
func (p *parser) sum(lo, hi int) (float64, bool) {
	value, op, have := 0.0, byte('+'), false
	for i := lo; i < hi; i++ {
		t := p.toks[i]
		if t.kind == sqlNumber {
			n, err := strconv.ParseFloat(p.text[t.Start:t.End], 64)
			if err != nil {
				if u, uerr := strconv.ParseUint(p.raw(i), 0, 63); uerr == nil {
					n, err = float64(u), nil
				}
			}
			if err != nil || have && op == 0 {
				return 0, false
			}
			switch op {
			case '-':
				value -= n
			case '*':
				value *= n
			default:
				value += n
			}
			op, have = 0, true
			continue
		}
		if t.kind != sqlOp || t.End-t.Start != 1 || !strings.Contains("+-*", p.text[t.Start:t.End]) || (have && op != 0) {
			return 0, false
		}
		op = p.text[t.Start]
	}
	return value, have && op == 0 && !math.IsNaN(value)
}

// column is the lower-case name of a plain column reference, "" for anything else.
func (p *parser) column(part [2]int) string {
	lo, hi := p.peel(part[0], part[1])
	if p.op(hi-2, "::") && hi-2 > lo {
		hi -= 2
	}
	if lo >= hi || p.toks[lo].kind != sqlWord && p.toks[lo].kind != sqlName {
		return ""
	}
	if p.isAny(lo, "true", "false", "null") || hi-lo == 1 && p.read == MySQL && p.text[p.toks[lo].Start] == '"' {
		return ""
	}
	name, next := p.name(lo, hi)
	if next != hi {
		return ""
	}
	return strings.ToLower(name)
}

// isKeyColumn tells whether a column names the row itself, so that a test such
// as "> 0" holds for every row.
func isKeyColumn(column string) bool {
	column = column[strings.LastIndexByte(column, '.')+1:]
	switch column {
	case "id", "pk", "uid", "guid", "uuid", "oid", "ctid", "rowid", "_rowid_", "rownum", "_id", "key", "xmin":
		return true
	}
	return strings.HasSuffix(column, "_id") || strings.HasSuffix(column, "_pk") || strings.HasSuffix(column, "_uuid")
}

// alone judges a condition without comparison: a literal or a column.
func (p *parser) alone(lo, hi int) Truth {
	switch c := p.constant(lo, hi); c.kind {
	case constTrue:
		return AllRows
	case constFalse, constNull:
		return NoRows
	case constNumber:
		return Rows(c.number != 0)
	case constText:
		if n, err := strconv.ParseFloat(c.text, 64); err == nil {
			return Rows(n != 0)
		}
		return Rows(strings.EqualFold(c.text, "t") || strings.EqualFold(c.text, "true") || strings.EqualFold(c.text, "yes"))
	}
	if isKeyColumn(p.column([2]int{lo, hi})) {
		return AllRows
	}
	if p.rowless(lo, hi) {
		return AllRows
	}
	return SomeRows
}

// Rows says which rows a condition picks that is known to be true or false.
func Rows(all bool) Truth {
	if all {
		return AllRows
	}
	return NoRows
}

// rowless reports whether an expression has no column, parameter or subquery:
// what does not depend on the row is true for all of them or for none.
func (p *parser) rowless(lo, hi int) bool {
	calls := false
	for i := lo; i < hi; i++ {
		switch t := p.toks[i]; t.kind {
		case sqlParam, sqlName:
			return false
		case sqlWord:
			switch {
			case p.op(i+1, "("):
				if p.isAny(i, "exists", "select", "any", "all", "some", "in") || strings.HasPrefix(p.raw(i), "rand") {
					return false
				}
				calls = true
			case p.isAny(i, "case", "when", "then", "else", "end", "true", "false", "null", "not", "and", "or", "is", "like", "in", "between", "as"):
			case p.raw(i) == "current_timestamp" || p.raw(i) == "current_date" || p.raw(i) == "interval" || p.raw(i) == "date":
				calls = true
			default:
				return false
			}
		}
	}
	return calls || hi > lo
}

func (p *parser) isTest(left, right [2]int) Truth {
	negated := p.is(right[0], "not")
	if negated {
		right[0]++
	}
	c := p.constant(left[0], left[1])
	if p.is(right[0], "null") {
		if c.kind != constNone {
			return Rows((c.kind == constNull) != negated)
		}
		column := p.column(left)
		if negated && column != "" && !marksRows(column) {
			return AllRows
		}
		return SomeRows
	}
	if p.is(right[0], "distinct") && p.is(right[0]+1, "from") {
		return RowsIf(negated && p.sameExpr(left, [2]int{right[0] + 2, right[1]}))
	}
	if p.isAny(right[0], "true", "false") && (c.kind == constTrue || c.kind == constFalse) {
		return Rows((p.is(right[0], "true") == (c.kind == constTrue)) != negated)
	}
	return SomeRows
}

// marksRows tells whether a column is filled only for some rows by its very
// name (deleted_at, revoked_by): IS NOT NULL then picks rows.
func marksRows(column string) bool {
	column = column[strings.LastIndexByte(column, '.')+1:]
	for _, suffix := range [...]string{"_at", "_on", "_by", "_date", "_time", "_ts", "_until", "_reason", "_error"} {
		if strings.HasSuffix(column, suffix) && !strings.HasPrefix(column, "created") && !strings.HasPrefix(column, "updated") &&
			!strings.HasPrefix(column, "inserted") {
			return true
		}
	}
	return column == "error" || column == "deleted" || strings.HasSuffix(column, "edat")
}

// pattern judges LIKE and the regular expression operators: what matches anything.
func (p *parser) pattern(left, right [2]int, operator string) Truth {
	c := p.constant(right[0], right[1])
	if c.kind != constText {
		if n := p.find(right[0], right[1], p.toks[right[0]].depth, "escape"); n < 0 {
			return SomeRows
		}
		c = p.constant(right[0], right[0]+1)
	}
	var any bool
	switch operator {
	case "like", "ilike", "similar":
		any = c.text != "" && strings.Trim(c.text, "%_") == "" && strings.Contains(c.text, "%")
		any = any || c.text == "%@%" || c.text == "%.%"
	case "glob":
		any = c.text != "" && strings.Trim(c.text, "*?") == "" && strings.Contains(c.text, "*")
	default:
		any = slices.Contains([]string{"", ".", ".*", ".+", "^", "$", "^.*", "^.*$", ".*$", "^.+$", "^.", "(.*)", ".?"}, c.text)
	}
	if any {
		return AllRows
	}
	if l := p.constant(left[0], left[1]); l.kind == constText && l.text == c.text {
		return AllRows
	}
	return SomeRows
}

func (p *parser) between(left, right [2]int) Truth {
	and := p.find(right[0], right[1], p.toks[right[0]].depth, "and")
	if and < 0 {
		return SomeRows
	}
	if isKeyColumn(p.column(left)) && p.callsOnly(right[0], and, "min") && p.callsOnly(and+1, right[1], "max") {
		return AllRows
	}
	low, high := p.constant(right[0], and), p.constant(and+1, right[1])
	if low.kind != constNumber || high.kind != constNumber {
		return SomeRows
	}
	if c := p.constant(left[0], left[1]); c.kind == constNumber {
		return Rows(c.number >= low.number && c.number <= high.number)
	}
	if isKeyColumn(p.column(left)) && low.number <= 1 && high.number >= 1e6 {
		return AllRows
	}
	return SomeRows
}

// sameExpr reports whether two expressions have the same text or the same value.
func (p *parser) sameExpr(a, b [2]int) bool {
	a, b = p.plain(a), p.plain(b)
	ca, cb := p.constant(a[0], a[1]), p.constant(b[0], b[1])
	if ca.kind != constNone || cb.kind != constNone {
		order, ok := compareConst(ca, cb)
		return ok && order == 0
	}
	if a[1]-a[0] != b[1]-b[0] || a[0] >= a[1] {
		return false
	}
	for i := range a[1] - a[0] {
		if p.toks[a[0]+i].kind == sqlParam && p.raw(a[0]+i) == "?" {
			return false // two question marks are two values
		}
		if unquote(p.raw(a[0]+i)) != unquote(p.raw(b[0]+i)) || strings.HasPrefix(p.raw(a[0]+i), "rand") {
			return false
		}
	}
	return true
}

// plain strips parentheses and what changes no value: + 0, - 0, * 1, / 1.
func (p *parser) plain(part [2]int) [2]int {
	lo, hi := p.peel(part[0], part[1])
	for hi-lo >= 3 && p.toks[hi-1].kind == sqlNumber {
		n := p.raw(hi - 1)
		if !(n == "0" && (p.op(hi-2, "+") || p.op(hi-2, "-")) || n == "1" && (p.op(hi-2, "*") || p.op(hi-2, "/"))) {
			break
		}
		lo, hi = p.peel(lo, hi-2)
	}
	return [2]int{lo, hi}
}

// compareConst orders two constants; ok is false if they do not compare.
func compareConst(a, b sqlConst) (order int, ok bool) {
	if a.kind == constText && b.kind == constText {
		return strings.Compare(a.text, b.text), true
	}
	x, okx := a.value()
	y, oky := b.value()
	if !okx || !oky {
		return 0, false
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}

func (c sqlConst) value() (float64, bool) {
	switch c.kind {
	case constNumber, constTrue, constFalse:
		return c.number, true
	case constText:
		n, err := strconv.ParseFloat(strings.TrimSpace(c.text), 64)
		return n, err == nil
	}
	return 0, false
}

// compare judges left operator right.
func (p *parser) compare(left, right [2]int, operator string) Truth {
	l, r := p.constant(left[0], left[1]), p.constant(right[0], right[1])
	if l.kind == constNull || r.kind == constNull {
		return NoRows
	}
	if l.kind != constNone && r.kind != constNone {
		if order, ok := compareConst(l, r); ok {
			return Rows(holds(order, operator))
		}
		return Rows(operator == "<>" || operator == "!=")
	}
	if p.boundary(left, right, operator) {
		return AllRows
	}
	if p.sameExpr(left, right) || sameColumn(p.column(left), p.column(right)) || p.selfJoined && sameKey(p.column(left), p.column(right)) {
		return Rows(holds(0, operator))
	}
	if l.kind != constNone {
		left, r = right, l
		operator = mirrored(operator)
	}
	if r.kind != constNone {
		return p.compareColumn(left, r, operator)
	}
	if c := p.column(left); (operator == "<" || operator == "<=") && strings.HasPrefix(c[strings.LastIndexByte(c, '.')+1:], "created") {
		if f := p.raw(right[0]); right[1]-right[0] <= 3 && (f == "now" || f == "current_timestamp" || f == "current_date" || f == "getdate" || f == "sysdate") {
			return AllRows // everything was created before now
		}
	}
	if p.rowless(left[0], left[1]) && p.rowless(right[0], right[1]) {
		return AllRows
	}
	return SomeRows
}

// boundary: id >= (SELECT min(id) FROM t), id <= (SELECT max(id) FROM t).
func (p *parser) boundary(left, right [2]int, operator string) bool {
	lo, hi := p.peel(right[0], right[1])
	end := map[string]string{">=": "min", "<=": "max"}[operator]
	return end != "" && p.is(lo, "select") && p.raw(lo+1) == end && !p.has(lo, hi, "where", "limit", "group") && isKeyColumn(p.column(left))
}

// sameKey: u.id = v.id of a table that is joined with itself.
func sameKey(a, b string) bool {
	i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
	return a != "" && a[i+1:] == b[j+1:] && isKeyColumn(a)
}

// sameColumn: u.id = id is the same column if only one of them is qualified.
func sameColumn(a, b string) bool {
	i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
	return a != "" && b != "" && (i < 0 || j < 0) && a[i+1:] == b[j+1:]
}

func holds(order int, operator string) bool {
	switch operator {
	case "=", "==", "<=>":
		return order == 0
	case "<>", "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return false
}

func mirrored(operator string) string {
	switch operator {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	}
	return operator
}

// compareColumn judges a test of a column against a constant that no row fails.
func (p *parser) compareColumn(part [2]int, c sqlConst, operator string) Truth {
	lo, hi := p.peel(part[0], part[1])
	if p.op(lo+1, "(") && hi > lo && neverNegative[p.raw(lo)] {
		key := isKeyColumn(p.column([2]int{lo + 2, hi - 1}))
		return RowsIf(c.kind == constNumber && (operator == ">=" && c.number <= 0 || operator == ">" && (c.number < 0 || key && c.number == 0)))
	}
	if p.rowless(lo, hi) {
		return AllRows
	}
	if !isKeyColumn(p.column(part)) {
		return SomeRows
	}
	if c.kind == constText {
		n, err := strconv.ParseFloat(c.text, 64)
		if err != nil {
			return RowsIf(c.text == "" && (operator == "<>" || operator == "!=" || operator == ">" || operator == ">="))
		}
		c = sqlConst{kind: constNumber, number: n}
	}
	switch operator { // keys count from 1
	case ">", "<>", "!=":
		return RowsIf(c.number <= 0)
	case ">=":
		return RowsIf(c.number <= 1)
	case "<", "<=":
		return RowsIf(c.number >= 1e9)
	}
	return SomeRows
}

// neverNegative are functions that give no number below zero.
var neverNegative = map[string]bool{"length": true, "len": true, "char_length": true, "octet_length": true, "abs": true}

// RowsIf is AllRows or, if the test may leave rows out, SomeRows.
func RowsIf(all bool) Truth {
	if all {
		return AllRows
	}
	return SomeRows
}
