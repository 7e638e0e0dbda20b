package sql

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Truth describes for which rows of a table a condition is true.
type Truth int8

const (
	SomeRows Truth = iota // may be true for some rows and false for others
	AllRows               // true for every row, or nearly every row
	NoRows                // false for every row
)

// Not returns the Truth of the negated condition.
func (t Truth) Not() Truth {
	if t == SomeRows {
		return SomeRows
	}
	return AllRows + NoRows - t
}

// whereShape judges the WHERE clause of the statement [lo,hi): "unbounded" if there is none,
// "tautology" if it selects all rows, and "scoped" otherwise. A LIMIT of at most 100 rows also
// makes the statement scoped, except in a loop.
func (p *parser) whereShape(lo, hi int, target string) string {
	depth := p.toks[lo].depth
	if n := p.limit(lo, hi, depth); n >= 0 && n <= 100 && !p.loop {
		return "scoped"
	}
	at := p.find(lo, hi, depth, "where")
	if at < 0 && p.find(lo, hi, depth, "from") < 0 { // EdgeQL writes DELETE User FILTER …
		at = p.find(lo, hi, depth, "filter")
	}
	if at < 0 {
		return "unbounded"
	}
	end := p.clauseEnd(at+1, hi, depth, "returning", "limit", "order", "option", "output", "group", "having", "settings", "if")
	switch {
	case end == at+1:
		return "unbounded"
	case p.raw(at+1) == "current" && p.is(at+2, "of"): // WHERE CURRENT OF selects the current row of a cursor
		return "scoped"
	case p.judge(at+1, end, target) == AllRows:
		return "tautology"
	}
	return "scoped"
}

// clauseEnd returns the end of the clause that begins at token lo: the index of the first of the
// words, or of the first token at a smaller depth.
func (p *parser) clauseEnd(lo, hi int, depth int16, words ...string) int {
	for i := lo; i < hi; i++ {
		if p.toks[i].depth < depth || p.toks[i].depth == depth && p.isAny(i, words...) {
			return i
		}
	}
	return hi
}

// limit returns the number of rows in LIMIT n, TOP (n), FETCH FIRST n or FETCH NEXT n, or -1 if
// there is none.
func (p *parser) limit(lo, hi int, depth int16) int {
	for i := lo; i < hi; i++ {
		if p.toks[i].depth != depth || !p.isAny(i, "limit", "top", "first", "next") {
			continue
		}
		j := i + 1
		if p.op(j, "(") {
			j++
		}
		if j < hi && p.toks[j].kind == sqlNumber && p.raw(j+1) != "percent" && p.raw(j+2) != "percent" {
			if n, err := strconv.Atoi(p.raw(j)); err == nil {
				return n
			}
		}
	}
	return -1
}

// judge evaluates a condition. It splits the condition at OR, then at AND, then at NOT, and evaluates
// the single tests that remain.
func (p *parser) judge(lo, hi int, target string) Truth {
	p.out.Steps += hi - lo
	lo, hi = p.peel(lo, hi)
	if lo >= hi {
		return SomeRows
	}
	sign := "||" // "||" joins texts, except in MySQL, where it means OR
	if p.read == ANSI {
		sign = "or"
	}
	if parts := p.split(lo, hi, "or", sign); len(parts) > 1 {
		if p.complementary(parts) {
			return AllRows
		}
		return p.joined(parts, target, AllRows)
	}
	if parts := p.split(lo, hi, "and", "&&"); len(parts) > 1 {
		return p.joined(parts, target, NoRows)
	}
	if p.is(lo, "not") || p.op(lo, "!") {
		return p.negation(lo, hi, target)
	}
	return p.test(lo, hi, target)
}

// joined judges the parts of an OR or an AND. decides is AllRows for OR and NoRows for AND: if a
// part has this value, so has the whole condition.
func (p *parser) joined(parts [][2]int, target string, decides Truth) Truth {
	result := decides.Not()
	for _, part := range parts {
		switch p.judge(part[0], part[1], target) {
		case decides:
			return decides
		case SomeRows:
			result = SomeRows
		}
	}
	return result
}

// negation judges a condition that begins with one or more NOT.
func (p *parser) negation(lo, hi int, target string) Truth {
	negated := false
	for lo < hi && (p.is(lo, "not") || p.op(lo, "!")) {
		negated = !negated
		lo++
	}
	if lo, hi := p.peel(lo, hi); negated {
		if at, operator, _ := p.comparison(lo, hi); operator == "is" && p.is(at+1, "null") { // for example NOT id IS NULL
			if column := p.column([2]int{lo, at}); column != "" && !marksRows(column) {
				return AllRows
			}
		}
	}
	result := p.judge(lo, hi, target)
	if negated {
		return result.Not()
	}
	return result
}

// opposites maps an operator to its negation.
var opposites = sync.OnceValue(func() map[string]string {
	return map[string]string{"=": "<>", "<>": "=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in",

		"like": "not like", "not like": "like", "between": "not between", "not between": "between"}
})

// complementary reports whether two parts of an OR are the negation of each other: id = 5 OR id <>
// 5.
func (p *parser) complementary(parts [][2]int) bool {
	if len(parts) > 8 {
		return false
	}
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			if p.opposite(a, b) {
				return true
			}
		}
	}
	return false
}

// opposite reports whether, for every row, one of two tests is true.
func (p *parser) opposite(a, b [2]int) bool {
	aleft, aop, aright := p.sides(p.peel(a[0], a[1]))
	bleft, bop, bright := p.sides(p.peel(b[0], b[1]))
	if aop == "" || bop == "" || !p.sameExpr(aleft, bleft) {
		return false
	}
	if aop == "is" && bop == "is" {
		return p.is(aright[0], "not") != p.is(bright[0], "not")
	}
	return (opposites()[aop] == bop || aop == "=" && bop == "!=") && p.sameExpr(aright, bright)
}

// sides returns the operator of the single test [lo,hi) and the expressions to its left and right.
// The operator is "" if there is none.
func (p *parser) sides(lo, hi int) (left [2]int, operator string, right [2]int) {
	at, operator, width := p.comparison(lo, hi)
	return [2]int{lo, at}, operator, [2]int{at + width, hi}
}

// outside iterates over the indexes in [lo,hi) that are not inside parentheses of that range.
func (p *parser) outside(lo, hi int) iter.Seq[int] {
	return func(yield func(int) bool) {
		open := 0
		for i := lo; i < hi; i++ {
			switch {
			case p.op(i, "("):
				open++
			case p.op(i, ")"):
				open--
			case open == 0 && !yield(i):
				return
			}
		}
	}
}

// peel returns [lo,hi) without the parentheses that enclose the whole range.
func (p *parser) peel(lo, hi int) (int, int) {
	for hi-lo >= 2 && p.op(lo, "(") && p.closes(lo, hi) == hi-1 {
		lo, hi = lo+1, hi-1
	}
	return lo, hi
}

// closes returns the index below hi of the parenthesis that closes the one at token i, or -1.
func (p *parser) closes(i, hi int) int {
	if i < 0 || i >= len(p.closing) || p.closing[i] >= hi {
		return -1
	}
	return p.closing[i]
}

// split cuts [lo,hi) at each connective: the keyword in the parameter "word" or the operator in
// "sign". It ignores connectives inside parentheses and CASE, and the AND of BETWEEN. It returns
// nil if there is none.
func (p *parser) split(lo, hi int, word, sign string) [][2]int {
	var parts [][2]int
	cases, between, from := 0, false, lo
	for i := range p.outside(lo, hi) {
		switch {
		case p.is(i, "case"):
			cases++
		case p.is(i, "end"):
			cases = max(0, cases-1)
		case cases > 0:
		case p.is(i, "between"):
			between = true
		case p.is(i, "and") && between:
			between = false
		case p.is(i, word) || p.op(i, sign):
			parts = append(parts, [2]int{from, i})
			from = i + 1
		}
	}
	if parts == nil {
		return nil
	}
	return append(parts, [2]int{from, hi})
}

// test judges one comparison or another single condition.
func (p *parser) test(lo, hi int, target string) Truth {
	if p.is(lo, "exists") {
		return p.subquery(lo+1, hi, "")
	}
	left, operator, right := p.sides(lo, hi)
	if operator == "" {
		return p.alone(lo, hi)
	}
	if left[0] >= left[1] || right[0] >= right[1] { // one side is missing
		return SomeRows
	}
	switch operator {
	case "is":
		return p.isTest(left, right)
	case "like", "ilike", "similar", "regexp", "rlike", "~", "~*", "glob", "not like", "not ilike":
		return p.pattern(left, right, operator)
	case "in":
		return p.member(left, right, target)
	case "not in":
		return p.notMember(left, right)
	case "between":
		return p.between(left, right)
	}
	if p.isAny(right[0], "all", "any", "some") && p.op(right[0]+1, "(") {
		return p.quantified(left, right, operator, target)
	}
	return p.compare(left, right, operator)
}

// quantified judges = ANY (…), which means the same as IN, and comparisons with ALL (…).
func (p *parser) quantified(left, right [2]int, operator, target string) Truth {
	open := right[0] + 1
	switch all := p.is(right[0], "all"); {
	case !all && p.raw(open+1) == "array" && p.op(open+2, "("):
		return p.subquery(open+2, right[1]-1, target)
	case !all && p.is(open+1, "select"):
		return p.subquery(open, right[1], target)
	}
	return p.compare(left, [2]int{open, right[1]}, operator)
}

// comparison returns the position, name and width in tokens of the operator of a single test. It
// ignores operators in parentheses. The position is -1 if there is none.
func (p *parser) comparison(lo, hi int) (at int, operator string, width int) {
	for i := range p.outside(lo, hi) {
		switch word := p.toks[i].word; {
		case p.toks[i].kind == sqlOp:
			switch s := p.textOf(i); s {
			case "=", "==", "<>", "!=", "<", ">", "<=", ">=", "<=>", "~", "~*":
				return i, s, 1
			}
		case p.isAny(i, "is", "like", "ilike", "similar", "regexp", "rlike", "in", "between"):
			if i > lo && p.is(i-1, "not") {
				return i - 1, "not " + word, 2
			}
			return i, word, 1
		case i > lo && p.raw(i) == "glob":
			return i, "glob", 1
		}
	}
	return -1, "", 0
}

// member judges IN (list) and IN (subquery).
func (p *parser) member(left, right [2]int, target string) Truth {
	if !p.op(right[0], "(") {
		return SomeRows
	}
	if p.isAny(right[0]+1, "select", "table", "with") {
		return p.subquery(right[0], right[1], target)
	}
	for _, item := range p.list(right[0]+1, right[1]-1) {
		if p.sameExpr(left, item) {
			return AllRows
		}
	}
	return SomeRows
}

// notMember judges NOT IN (list). If all values in the list are impossible keys, the condition is
// true for every row.
func (p *parser) notMember(left, right [2]int) Truth {
	if !isKeyColumn(p.column(left)) || !p.op(right[0], "(") || p.isAny(right[0]+1, "select", "with") {
		return SomeRows
	}
	for _, item := range p.list(right[0]+1, right[1]-1) {
		c := p.constant(item[0], item[1])
		if (c.kind != constNumber || c.number > 0) && (c.kind != constText || c.text != "") {
			return SomeRows
		}
	}
	return AllRows
}

// list cuts [lo,hi) at the commas outside parentheses.
func (p *parser) list(lo, hi int) [][2]int {
	var items [][2]int
	from := lo
	for i := range p.outside(lo, hi) {
		if p.op(i, ",") {
			items = append(items, [2]int{from, i})
			from = i + 1
		}
	}
	if from < hi {
		items = append(items, [2]int{from, hi})
	}
	return items
}

// callsOnly reports whether [lo,hi) is a subquery that selects name(…) from a whole table.
func (p *parser) callsOnly(lo, hi int, name string) bool {
	lo, hi = p.peel(lo, hi)
	return p.is(lo, "select") && p.raw(lo+1) == name && !p.has(lo, hi, "where", "limit")
}

// subquery judges EXISTS (…) and IN (…). If the subquery selects a whole table, the condition
// is true for every row; for IN that table must be the target of the statement.
func (p *parser) subquery(lo, hi int, target string) Truth {
	lo, hi = p.peel(lo, hi)
	from := p.find(lo, hi, p.toks[min(lo, len(p.toks)-1)].depth, "from")
	if from < 0 {
		return p.rowlessSubquery(lo, hi, target)
	}
	if p.selectsNothing(lo, hi) {
		return NoRows
	}
	table, next := p.name(from+1, hi)
	if target != "" && !sameTable(table, target) && !slices.Contains(p.unscoped, strings.ToLower(table)) {
		return SomeRows
	}
	if p.wholeTable(next, hi) {
		return AllRows
	}
	return SomeRows
}

// rowlessSubquery judges EXISTS (SELECT 1 WHERE …), which reads no table.
func (p *parser) rowlessSubquery(lo, hi int, target string) Truth {
	if !p.is(lo, "select") || target != "" {
		return SomeRows
	}
	at := p.find(lo, hi, p.toks[lo].depth, "where")
	if at < 0 {
		return AllRows // for example EXISTS (SELECT 1)
	}
	return p.judge(at+1, hi, "")
}

// selectsNothing reports whether the SELECT at token lo returns no rows, because of LIMIT 0 or a
// condition that is never true. A table that is replaced by its result becomes empty.
func (p *parser) selectsNothing(lo, hi int) bool {
	if lo < 0 || !p.is(lo, "select") {
		return false
	}
	depth := p.toks[lo].depth
	if p.limit(lo, hi, depth) == 0 {
		return true
	}
	at := p.find(lo, hi, depth, "where")
	if at < 0 || p.find(lo, hi, depth, "union") >= 0 {
		return false
	}
	return p.judge(at+1, p.clauseEnd(at+1, hi, depth, "group", "having", "order", "limit", "fetch"), "") == NoRows
}

// wholeTable reports whether no clause after the table name in FROM restricts the rows.
func (p *parser) wholeTable(lo, hi int) bool {
	if lo >= len(p.toks) || lo >= hi {
		return true
	}
	depth := p.toks[lo].depth
	if p.find(lo, hi, depth, "limit", "join", "group", "having", "fetch", "intersect", "except", "union") >= 0 {
		return false
	}
	at := p.find(lo, hi, depth, "where")
	return at < 0 || p.judge(at+1, hi, "") == AllRows
}

// sameTable reports whether two table names are equal without their schemas and in any case of
// letters.
func sameTable(a, b string) bool { return strings.EqualFold(lastPart(a), lastPart(b)) }
