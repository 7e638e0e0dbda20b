package sql

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file evaluates one side of a comparison: a constant, a column, or an expression that does
// not depend on the row.

// sqlConst is a value that the text itself determines.
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

// constant evaluates [lo,hi) if it is a literal, with or without a sign or cast, or a sum of
// numbers. The result has the kind constNone for other expressions.
func (p *parser) constant(lo, hi int) sqlConst {
	lo, hi = p.uncast(lo, hi)
	switch {
	case lo >= hi:
		return sqlConst{}
	case p.is(lo, "select") && !p.has(lo, hi, "from", "where"): // for example (SELECT 1)
		return p.constant(lo+1, hi)
	case p.read == ANSI && hi-lo >= 3 && p.op(lo+1, "||"):
		return p.joinedStrings(lo, hi)
	case p.is(lo, "cast"):
		if as := p.find(lo+2, hi, p.toks[lo].depth+1, "as"); as > 0 {
			return p.constant(lo+2, as)
		}
	case hi-lo == 1:
		if c := p.literalToken(p.toks[lo]); c.kind != constNone {
			return c
		}
	}
	if n, ok := p.sum(lo, hi); ok || p.vanishes(lo, hi) {
		return sqlConst{kind: constNumber, number: n}
	}
	return sqlConst{}
}

// uncast returns [lo,hi) without the parentheses around it and the cast after it.
func (p *parser) uncast(lo, hi int) (int, int) {
	lo, hi = p.peel(lo, hi)
	if p.op(hi-2, "::") && hi-2 > lo {
		hi -= 2
	}
	return lo, hi
}

// vanishes reports whether [lo,hi) is x * 0 or x % 1, which are zero for every x.
func (p *parser) vanishes(lo, hi int) bool {
	return hi-lo == 3 && (p.op(lo+1, "*") && (p.raw(hi-1) == "0" || p.raw(lo) == "0") || p.op(lo+1, "%") && p.raw(hi-1) == "1")
}

// joinedStrings evaluates 'a' || 'b' if [lo,hi) contains only strings and "||".
func (p *parser) joinedStrings(lo, hi int) sqlConst {
	joined := sqlConst{kind: constText}
	for i := lo; i < hi; i += 2 {
		if p.toks[i].kind != sqlString || i > lo && !p.op(i-1, "||") {
			return sqlConst{}
		}
		joined.text += stringText(p.textOf(i))
	}
	return joined
}

// literalToken returns the value of a string, TRUE, FALSE or NULL. The result has the kind
// constNone for other tokens.
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

// sum evaluates numbers joined by + - * from left to right, without precedence. That is enough to
// recognize tricks such as "2-1".
func (p *parser) sum(lo, hi int) (float64, bool) {
	value, op, have := 0.0, byte('+'), false
	for i := lo; i < hi; i++ {
		switch n, number := p.number(i); {
		case number && op != 0:
			value, op, have = calculate(value, op, n), 0, true
		case (op == 0 || !have) && (p.op(i, "+") || p.op(i, "-") || p.op(i, "*")):
			op = p.textOf(i)[0]
		default:
			return 0, false
		}
	}
	return value, have && op == 0 && !math.IsNaN(value)
}

// number returns the value of token i, and false if it is not a number.
func (p *parser) number(i int) (float64, bool) {
	if p.toks[i].kind != sqlNumber {
		return 0, false
	}
	if n, err := strconv.ParseFloat(p.textOf(i), 64); err == nil {
		return n, true
	}
	u, err := strconv.ParseUint(p.raw(i), 0, 63)
	return float64(u), err == nil
}

func calculate(a float64, op byte, b float64) float64 {
	switch op {
	case '-':
		return a - b
	case '*':
		return a * b
	}
	return a + b
}

// column returns the name of a plain column reference in lower case, or "" for other expressions.
func (p *parser) column(part [2]int) string {
	lo, hi := p.uncast(part[0], part[1])
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

// isKeyColumn reports whether a column is probably a key of its table, by its name. Then a test
// such as "> 0" is true for every row.
func isKeyColumn(column string) bool {
	column = lastPart(column)
	switch column {
	case "id", "pk", "uid", "guid", "uuid", "oid", "ctid", "rowid", "_rowid_", "rownum", "_id", "key", "xmin":
		return true
	}
	return scan.HasAnySuffix(column, "_id", "_pk", "_uuid")
}

// alone judges a condition without a comparison: a literal or a column.
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
	return RowsIf(isKeyColumn(p.column([2]int{lo, hi})) || p.rowless(lo, hi))
}

// Rows returns the Truth of a condition with a known value: AllRows for true, NoRows for false.
func Rows(all bool) Truth {
	if all {
		return AllRows
	}
	return NoRows
}

// rowless reports whether an expression has no column, parameter or subquery. Such an expression
// has the same value for every row, so as a condition it selects all rows or none.
func (p *parser) rowless(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		switch p.toks[i].kind {
		case sqlParam, sqlName:
			return false
		case sqlWord:
			if p.op(i+1, "(") {
				if p.isAny(i, "exists", "select", "any", "all", "some", "in") || strings.HasPrefix(p.raw(i), "rand") {
					return false
				}
			} else if !rowlessWords.Has(p.raw(i)) {
				return false
			}
		}
	}
	return hi > lo
}

// rowlessWords lists words in expressions that are not names of columns.
var rowlessWords = scan.SetOf(`case when then else end true false null not and or is like in between as
	current_timestamp current_date interval date`)

func (p *parser) isTest(left, right [2]int) Truth {
	negated := p.is(right[0], "not")
	if negated {
		right[0]++
	}
	c := p.constant(left[0], left[1])
	truth := c.kind == constTrue
	switch {
	case p.is(right[0], "null"):
		return p.nullTest(left, c, negated)
	case p.is(right[0], "distinct") && p.is(right[0]+1, "from"):
		return RowsIf(negated && p.sameExpr(left, [2]int{right[0] + 2, right[1]}))
	case p.isAny(right[0], "true", "false") && (truth || c.kind == constFalse):
		return Rows((p.is(right[0], "true") == truth) != negated)
	}
	return SomeRows
}

// nullTest judges IS NULL or, if negated, IS NOT NULL. Most columns are never null, so IS NOT NULL
// usually selects all rows.
func (p *parser) nullTest(left [2]int, c sqlConst, negated bool) Truth {
	if c.kind != constNone {
		return Rows((c.kind == constNull) != negated)
	}
	column := p.column(left)
	return RowsIf(negated && column != "" && !marksRows(column))
}

// marksRows reports whether, by its name, a column is null in some rows (deleted_at, revoked_by).
// Then IS NOT NULL selects only some rows.
func marksRows(column string) bool {
	column = lastPart(column)
	for _, suffix := range [...]string{"_at", "_on", "_by", "_date", "_time", "_ts", "_until", "_reason", "_error"} {
		if strings.HasSuffix(column, suffix) && !strings.HasPrefix(column, "created") && !strings.HasPrefix(column, "updated") &&
			!strings.HasPrefix(column, "inserted") {
			return true
		}
	}
	return column == "error" || column == "deleted" || strings.HasSuffix(column, "edat")
}

// pattern judges LIKE and the regular expression operators. A pattern that matches every text
// selects all rows.
func (p *parser) pattern(left, right [2]int, operator string) Truth {
	c := p.constant(right[0], right[1])
	if strings.HasPrefix(operator, "not ") {
		return RowsIf(c.kind == constText && c.text == "")
	}
	if c.kind != constText {
		if n := p.find(right[0], right[1], p.toks[right[0]].depth, "escape"); n < 0 {
			return SomeRows
		}
		c = p.constant(right[0], right[0]+1)
	}
	l := p.constant(left[0], left[1])
	return RowsIf(matchesAll(operator, c.text) || l.kind == constText && l.text == c.text)
}

// matchesAll reports whether a pattern matches every text, or every text that such a column
// normally has, as '%@%' does for e-mail addresses.
func matchesAll(operator, pattern string) bool {
	switch operator {
	case "like", "ilike", "similar":
		return strings.Trim(pattern, "%_") == "" && strings.Contains(pattern, "%") || pattern == "%@%" || pattern == "%.%"
	case "glob":
		return strings.Trim(pattern, "*?") == "" && strings.Contains(pattern, "*")
	}
	return slices.Contains([]string{"", ".", ".*", ".+", "^", "$", "^.*", "^.*$", ".*$", "^.+$", "^.", "(.*)", ".?"}, pattern)
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
			return false // two question marks are two different parameters
		}
		if unquote(p.raw(a[0]+i)) != unquote(p.raw(b[0]+i)) || strings.HasPrefix(p.raw(a[0]+i), "rand") {
			return false
		}
	}
	return true
}

// plain returns an expression without its parentheses and without operations that do not change
// the value: + 0, - 0, * 1, / 1.
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

// compareConst compares two constants. ok is false if they cannot be compared.
func compareConst(a, b sqlConst) (order int, ok bool) {
	if a.kind == constText && b.kind == constText {
		return strings.Compare(a.text, b.text), true
	}
	x, okx := a.value()
	y, oky := b.value()
	return cmp.Compare(x, y), okx && oky
}

// orders maps an operator to the results of comparing its sides (-1, 0, 1) for which it is true.
var orders = map[string][]int{"=": {0}, "==": {0}, "<=>": {0}, "<>": {-1, 1}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

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

// compare judges the condition "left operator right".
func (p *parser) compare(left, right [2]int, operator string) Truth {
	l, r := p.constant(left[0], left[1]), p.constant(right[0], right[1])
	switch {
	case l.kind != constNone && r.kind != constNone, l.kind == constNull, r.kind == constNull:
		return compareConsts(l, r, operator)
	case p.boundary(left, right, operator):
		return AllRows
	case p.sameValue(left, right):
		return Rows(holds(0, operator))
	case r.kind != constNone:
		return p.compareColumn(left, r, operator)
	case l.kind != constNone:
		return p.compareColumn(right, l, cmp.Or(mirror[operator], operator))
	}
	return RowsIf(p.beforeNow(left, right, operator) || p.rowless(left[0], left[1]) && p.rowless(right[0], right[1]))
}

// compareConsts judges a comparison of two constants, or a comparison with NULL.
func compareConsts(l, r sqlConst, operator string) Truth {
	if l.kind == constNull || r.kind == constNull {
		return NoRows
	}
	if order, ok := compareConst(l, r); ok {
		return Rows(holds(order, operator))
	}
	return Rows(operator == "<>" || operator == "!=")
}

// sameValue reports whether both sides are the same expression, or the same column under two
// names.
func (p *parser) sameValue(left, right [2]int) bool {
	a, b := p.column(left), p.column(right)
	return p.sameExpr(left, right) || sameColumn(a, b) || p.selfJoined && sameKey(a, b)
}

// beforeNow reports whether the condition compares the creation time with the current time. It is
// true for every row.
func (p *parser) beforeNow(left, right [2]int, operator string) bool {
	if operator != "<" && operator != "<=" || right[1]-right[0] > 3 || !strings.HasPrefix(lastPart(p.column(left)), "created") {
		return false
	}
	switch p.raw(right[0]) {
	case "now", "current_timestamp", "current_date", "getdate", "sysdate":
		return true
	}
	return false
}

// mirror maps an operator to the operator with the same meaning for swapped sides.
var mirror = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}

// boundary reports whether the condition compares a key with its smallest or largest value: id >=
// (SELECT min(id) FROM t), id <= (SELECT max(id) FROM t).
func (p *parser) boundary(left, right [2]int, operator string) bool {
	lo, hi := p.peel(right[0], right[1])
	end := map[string]string{">=": "min", "<=": "max"}[operator]
	return end != "" && p.is(lo, "select") && p.raw(lo+1) == end && !p.has(lo, hi, "where", "limit", "group") && isKeyColumn(p.column(left))
}

// sameKey reports whether a and b are the same key column under two table names, as in u.id = v.id
// for a table that is joined with itself.
func sameKey(a, b string) bool {
	i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
	return a != "" && a[i+1:] == b[j+1:] && isKeyColumn(a)
}

// sameColumn reports whether a and b are the same column and at most one of them is qualified, as
// in u.id = id.
func sameColumn(a, b string) bool {
	i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
	return a != "" && b != "" && (i < 0 || j < 0) && a[i+1:] == b[j+1:]
}

func holds(order int, operator string) bool { return slices.Contains(orders[operator], order) }

// compareColumn judges a comparison of an expression with a constant. It returns AllRows if no row
// can fail it.
func (p *parser) compareColumn(part [2]int, c sqlConst, operator string) Truth {
	lo, hi := p.peel(part[0], part[1])
	switch {
	case p.op(lo+1, "(") && hi > lo && neverNegative.Has(p.raw(lo)):
		return RowsIf(c.kind == constNumber && p.holdsForLengths(lo+2, hi-1, c.number, operator))
	case p.rowless(lo, hi):
		return AllRows
	case !isKeyColumn(p.column(part)):
		return SomeRows
	}
	n, number := c.value()
	if !number {
		return RowsIf(c.text == "" && slices.Contains([]string{"<>", "!=", ">", ">="}, operator))
	}
	switch operator { // keys count from 1
	case ">", "<>", "!=":
		return RowsIf(n <= 0)
	case ">=":
		return RowsIf(n <= 1)
	case "<", "<=":
		return RowsIf(n >= 1e9)
	}
	return SomeRows
}

// holdsForLengths reports whether every length passes the test. A length is never negative, and
// the length of a key is never 0.
func (p *parser) holdsForLengths(lo, hi int, n float64, operator string) bool {
	return operator == ">=" && n <= 0 || operator == ">" && (n < 0 || n == 0 && isKeyColumn(p.column([2]int{lo, hi})))
}

// neverNegative lists functions whose result is never negative.
var neverNegative = scan.SetOf("length len char_length octet_length abs")

// RowsIf returns AllRows if all is true, and otherwise SomeRows.
func RowsIf(all bool) Truth {
	if all {
		return AllRows
	}
	return SomeRows
}
