// Package sql parses SQL of all common dialects and returns the effects of its statements: which
// rows they select, and what they drop, grant, run or write. The dialect is unknown, so where
// dialects differ in quotes, escapes or comments the package parses the text in several readings
// and joins the results. It contains no rules: an effect is the part of a rule id after "sql.".
package sql

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Fact is one effect of one statement.
type Fact struct {
	Effect     string
	Target     string // the table, file or other object, as written
	Start, End int    // byte range in the text that was classified
	Via        string // "execute", "prepare" … if the statement was in a literal
	Deferred   bool   // in the body of a routine that is created but not called
	RolledBack bool   // the ROLLBACK of its own transaction undoes it
}

// carried is a shell command inside SQL: the shell escape of a client, or a program that the
// server runs.
type carried struct {
	Text       string
	Via        string
	Start, End int
}

// FileUse is the use of a file by a statement or by the database client.
type FileUse struct {
	Op         act.Op
	Path       string
	Writes     string // the text that is written, if it is known
	Via        string
	Start, End int
}

// Result describes the effects of a text of SQL.
type Result struct {
	Facts    []Fact
	Shell    []carried
	Files    []FileUse
	ReadOnly bool // every statement is known and only reads
	Unknown  bool // at least one statement is not known
	TooDeep  bool
	Steps    int
	Root     bool     // the client runs as root
	Dumps    bool     // prints all rows and columns of a table
	Includes []string // files that the client reads as SQL
	Printed  string   // SQL that a SELECT of literals prints, with a name in place of unknown parts
}

// MaxSQLNesting is the largest depth of SQL inside literals inside SQL. Real programs that
// generate SQL need at most two levels.
const MaxSQLNesting = 6

// maxSQLNested is the largest total size, in bytes, of the literals that are classified as SQL.
// Without this limit EXEC in EXEC in EXEC would double the work at each level.
const maxSQLNested = 16 << 10

// maxSQLDepth is the largest depth of parentheses. It bounds the recursion of judge, which
// evaluates WHERE.
const maxSQLDepth = 64

// Classify returns the effects of a text for the given client. It parses the text under every
// reading in reads that could give a different result. It accepts any text; a text that is not SQL
// has no effects.
func Classify(text string, reads Reading, client Client) Result {
	left := maxSQLNested
	return classifyNested(text, readings(text, reads), client, 0, &left)
}

// Client describes the database client that is given a text.
type Client struct {
	Name          string
	Transactional bool // a ROLLBACK on its server undoes DDL
	Embedded      bool // the client contains the database, so server files are local files of the user
	// Apply returns the result of the text function fn in the language lang, and false if the
	// function or an argument is unknown.
	Apply func(lang, fn string, texts ...string) (string, bool)
}

// readings returns reads without the readings that give the same tokens as another one for this
// text.
func readings(text string, reads Reading) Reading {
	if reads&(reads-1) == 0 {
		return reads
	}
	if !strings.ContainsAny(text, "#\\$") && !strings.Contains(text, "--") &&
		!strings.Contains(text, "/*") && !strings.Contains(text, "//") && !strings.Contains(text, "||") {
		return reads & -reads
	}
	if reads&Slash != 0 && !strings.Contains(text, "//") && reads != Slash {
		reads &^= Slash
	}
	return reads
}

func classifyNested(text string, reads Reading, client Client, nesting int, left *int) Result {
	var merged Result
	first := true
	for _, read := range [...]Reading{ANSI, MySQL, Slash} {
		if reads&read == 0 {
			continue
		}
		p := parser{text: text, read: read, nesting: nesting, left: left, of: client}
		p.run()
		p.out.Steps += len(p.toks)
		if first {
			merged, first = p.out, false
		} else {
			merged.join(p.out)
		}
	}
	return merged
}

// join adds the results of another reading of the same text.
func (r *Result) join(other Result) {
	r.Facts = addNew(r.Facts, other.Facts)
	r.Shell = addNew(r.Shell, other.Shell)
	r.Files = addNew(r.Files, other.Files)
	r.Includes = addNew(r.Includes, other.Includes)
	r.Steps += other.Steps
	r.ReadOnly = r.ReadOnly && other.ReadOnly
	r.Dumps = r.Dumps || other.Dumps
	r.Unknown = r.Unknown || other.Unknown
	r.TooDeep = r.TooDeep || other.TooDeep
}

// addNew appends the elements of the second list that the first one does not contain.
func addNew[T comparable](have, more []T) []T {
	for _, v := range more {
		if !slices.Contains(have, v) {
			have = append(have, v)
		}
	}
	return have
}

// parser holds the significant tokens of one reading, and the state of the statement that is being
// parsed.
type parser struct {
	text    string
	read    Reading
	nesting int
	toks    []sqlToken // the tokens without white space and comments
	closing []int      // for each "(" the index of its ")", or -1
	left    *int       // bytes of nested text that may still be classified
	out     Result

	head       string            // verb of the current statement
	via        string            // kind of the literal that contains the text, "" for the outer text
	routine    string            // name of the routine whose body is being parsed, or ""
	bodies     []string          // names of the routines that this text creates
	vars       map[string]string // known texts of variables and prepared statements, by name
	temporary  []string          // temporary tables that this text creates
	unscoped   []string          // CTEs that select whole tables
	loop       bool              // inside WHILE, LOOP or \watch, where LIMIT does not limit the total
	txStart    int               // index of the first fact of the open transaction, or -1
	selfJoined bool              // the statement joins a table with itself
	of         Client
}

func (p *parser) run() {
	p.txStart = -1
	p.cut()
	p.glue()
	p.pair()
	p.out.ReadOnly = len(p.toks) > 0
	for lo := 0; lo < len(p.toks); {
		hi := p.segmentEnd(lo)
		if hi > lo {
			p.segment(lo, hi)
		}
		for lo = hi; lo < len(p.toks) && (p.toks[lo].kind == sqlEnd || p.toks[lo].kind == sqlMeta); lo++ {
			p.client(lo)
		}
	}
	if p.nesting == 0 {
		p.callBodies()
		p.clientLines(lineCommands()[cmp.Or(sameLines[p.of.Name], p.of.Name)])
	}
	if len(p.out.Facts) > 0 || len(p.out.Shell) > 0 || len(p.out.Files) > 0 || p.out.Unknown {
		p.out.ReadOnly = false
	}
}

// cut sets toks to the tokens of the text without white space and comments.
func (p *parser) cut() {
	for _, t := range tokensOf(p.text, p.read) {
		if t.kind == sqlSpace || t.kind == sqlComment {
			continue
		}
		if int(t.depth) > maxSQLDepth {
			p.out.TooDeep = true
			t.depth = maxSQLDepth
		}
		p.toks = append(p.toks, t)
	}
}

// pair sets closing: for each "(" the index of the matching ")".
func (p *parser) pair() {
	p.closing = make([]int, len(p.toks))
	var open []int
	for i := range p.toks {
		p.closing[i] = -1
		switch {
		case p.op(i, "("):
			open = append(open, i)
		case p.op(i, ")") && len(open) > 0:
			p.closing[open[len(open)-1]] = i
			open = open[:len(open)-1]
		case p.toks[i].kind == sqlEnd:
			open = open[:0]
		}
	}
}

// glue joins a verb that a comment cuts in two (DR/**/OP). Some filters remove comments before the
// server reads the text.
func (p *parser) glue() {
	for i := 0; i+1 < len(p.toks); i++ {
		a, b := p.toks[i], p.toks[i+1]
		if a.kind != sqlWord || b.kind != sqlWord || a.End == b.Start || !strings.HasPrefix(p.text[a.End:], "/*") {
			continue
		}
		if gap := p.text[a.End:b.Start]; strings.ContainsAny(gap[:2], " ") || !strings.HasSuffix(gap, "*/") {
			continue
		}
		w := sqlKeyword(p.text[a.Start:a.End] + p.text[b.Start:b.End])
		if w != "" && (a.word == "" || !Verbs.Has(a.word)) && Verbs.Has(w) {
			p.toks[i].word, p.toks[i].End = w, b.End
			p.toks = slices.Delete(p.toks, i+1, i+2)
		}
	}
}

// segmentEnd returns the index of the token that ends the statement at token lo. Semicolons inside
// the BEGIN … END body of a routine do not end it.
func (p *parser) segmentEnd(lo int) int {
	body := p.is(lo, "create") && p.createsRoutine(lo)
	blocks := 0
	for i := lo; i < len(p.toks); i++ {
		t := p.toks[i]
		if t.kind == sqlMeta || t.kind == sqlEnd && (blocks == 0 || p.text[t.Start] != ';') {
			return i
		}
		if body {
			blocks = max(0, blocks+p.opensBlock(i))
		}
	}
	return len(p.toks)
}

// opensBlock returns 1 if a block begins at token i, -1 if one ends, and 0 otherwise.
func (p *parser) opensBlock(i int) int {
	switch {
	case p.is(i, "begin"), p.is(i, "case") && !p.is(i-1, "end"):
		return 1
	case p.is(i, "end") && !p.isAny(i+1, "if", "while", "loop") && p.raw(i+1) != "repeat":
		return -1
	}
	return 0
}

// createsRoutine reports whether CREATE at token i creates an object with a body of statements.
func (p *parser) createsRoutine(i int) bool {
	switch objectOf(p, i+1, len(p.toks)) {
	case "routine", "trigger", "event":
		return true
	}
	return false
}

// is reports whether token i is the keyword w.
func (p *parser) is(i int, w string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlWord && p.toks[i].word == w
}

// isAny reports whether token i is one of the keywords.
func (p *parser) isAny(i int, words ...string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlWord && p.toks[i].word != "" && slices.Contains(words, p.toks[i].word)
}

// op reports whether token i is the operator s.
func (p *parser) op(i int, s string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlOp && p.text[p.toks[i].Start:p.toks[i].End] == s
}

// raw returns token i in lower case, or "" if there is no such token.
func (p *parser) raw(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	return strings.ToLower(p.text[p.toks[i].Start:p.toks[i].End])
}

// find returns the index of the first of the keywords in [lo,hi) at this depth of parentheses, or
// -1.
func (p *parser) find(lo, hi int, depth int16, words ...string) int {
	for i := lo; i < hi; i++ {
		if p.toks[i].depth == depth && p.isAny(i, words...) {
			return i
		}
	}
	return -1
}

// has reports whether [lo,hi) contains one of the keywords, at any depth.
func (p *parser) has(lo, hi int, words ...string) bool {
	for i := lo; i < hi; i++ {
		if p.isAny(i, words...) {
			return true
		}
	}
	return false
}

// name returns the dotted name at i, unquoted, and the index after it.
func (p *parser) name(i, hi int) (string, int) {
	var parts []string
	for i < hi {
		part, next := p.namePart(i, hi)
		if next == i {
			break
		}
		parts = append(parts, part)
		if i = next; !p.op(i, ".") {
			break
		}
		for p.op(i, ".") {
			i++
		}
	}
	return strings.Join(parts, "."), i
}

// textOf returns token i as written.
func (p *parser) textOf(i int) string { return p.text[p.toks[i].Start:p.toks[i].End] }

// lastPart returns a name without its qualifiers.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// namePart returns the part of a name at token i and the index after it. The index is i if there
// is none.
func (p *parser) namePart(i, hi int) (string, int) {
	text := p.textOf(i)
	switch p.toks[i].kind {
	case sqlWord, sqlParam, sqlNumber:
		return text, i + 1
	case sqlName:
		return unquote(text), i + 1
	case sqlString:
		return stringText(text), i + 1
	}
	switch {
	case p.op(i, "*"), p.op(i, "#") && i+1 >= hi:
		return text, i + 1
	case p.op(i, "#"): // "#" begins the name of a temporary table of SQL Server
		if i++; p.op(i, "#") {
			i++
		}
		return "#" + p.raw(i), i + 1
	}
	return "", i
}

// add records an effect of the tokens [lo,hi).
func (p *parser) add(effect, target string, lo, hi int) {
	hi = min(max(hi, lo+1), len(p.toks))
	p.out.Facts = append(p.out.Facts, Fact{Effect: effect, Target: target,
		Start: p.toks[lo].Start, End: p.toks[hi-1].End, Via: p.via, Deferred: p.routine != ""})
}

// unquote returns a quoted name without its quotes.
func unquote(s string) string {
	if len(s) < 2 {
		return s
	}
	q := s[len(s)-1]
	if q == s[0] && (q == '"' || q == '`') {
		return strings.ReplaceAll(s[1:len(s)-1], string([]byte{q, q}), string(q))
	}
	if s[0] == '[' && q == ']' {
		return strings.ReplaceAll(s[1:len(s)-1], "]]", "]")
	}
	return strings.Trim(s, "\"`[]")
}

// stringText returns the value of a string token, without quotes and escapes.
func stringText(s string) string {
	if strings.HasPrefix(s, "$") {
		n := strings.IndexByte(s[1:], '$') + 2
		return strings.TrimSuffix(s[min(n, len(s)):], s[:min(n, len(s))])
	}
	open := strings.IndexByte(s, '\'')
	escapes := open > 0 && (s[0] == 'e' || s[0] == 'E')
	s = strings.TrimSuffix(s[open+1:], "'")
	s = strings.ReplaceAll(s, "''", "'")
	if escapes {
		s = strings.NewReplacer(`\'`, "'", `\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
	}
	return s
}

// segment classifies the tokens between two statement ends. They may contain several statements,
// because SQL Server needs no semicolon and blocks contain statements.
func (p *parser) segment(lo, hi int) {
	p.head, p.routine = "", ""
	if p.nesting == 0 {
		p.unscoped = p.unscoped[:0]
	}
	known := false
	for i := lo; i < hi; i++ {
		verb := p.startsAt(i, lo, hi)
		if verb == "" {
			continue
		}
		p.out.Steps++
		end := p.extent(i, lo, hi)
		p.head = verb
		p.statement(verb, i, end)
		known = true
	}
	if !known && hi > lo {
		p.bare(lo, hi)
	}
	p.routine = ""
}

// bare handles a statement without a verb: an assignment, or in SQL Server the name of a procedure
// at the start of a batch.
func (p *parser) bare(lo, hi int) {
	if p.op(lo+1, ":=") {
		p.assign(p.raw(lo), lo+2, hi)
		return
	}
	if raw := p.raw(lo); p.toks[lo].kind == sqlParam && len(raw) > 1 && raw[0] == ':' { // psql replaces the variable by a statement
		p.add("dynamic", raw, lo, hi)
		return
	}
	name, next := p.name(lo, hi)
	if p.callActs(lo, next, hi) {
		return
	}
	name = lastPart(strings.ToLower(name))
	if runsText(name) {
		p.dynamic(next, hi, lo)
		return
	}
	if !strings.HasPrefix(name, "sp_") && !strings.HasPrefix(name, "xp_") || !p.procedure(name, lo, next, hi) {
		p.out.Unknown = true
	}
}

// callActs judges the call in [lo,hi), and reports whether it has an effect. The arguments begin
// at the index "open".
func (p *parser) callActs(lo, open, hi int) bool {
	before := len(p.out.Facts)
	if p.op(open, "(") {
		p.functions(lo, hi)
	}
	return len(p.out.Facts) > before
}

// extent returns the end of the statement at token i: the first token of a smaller depth, the
// start of the next statement at the same depth, or hi.
func (p *parser) extent(i, lo, hi int) int {
	head := p.head
	defer func() { p.head = head }()
	p.head = p.toks[i].word
	if p.under("with", "explain", "create", "prepare") {
		return hi
	}
	for j := i + 1; j < hi; j++ {
		if p.toks[j].depth < p.toks[i].depth {
			return j
		}
		if p.toks[j].depth == p.toks[i].depth && p.startsAt(j, lo, hi) != "" {
			return j
		}
	}
	return hi
}

// under reports whether the current statement begins with one of the verbs.
func (p *parser) under(verbs ...string) bool { return slices.Contains(verbs, p.head) }

// Verbs lists the words that can begin a statement.
var Verbs = scan.SetOf(`select with values table show describe desc explain help insert update delete merge replace upsert
		truncate drop create alter rename comment grant revoke deny reassign set reset use begin start commit end abort rollback
		savepoint release prepare execute exec deallocate do call declare fetch open close copy load unload bulk import export vacuum
		analyze analyse optimize reindex cluster refresh lock unlock flush purge kill shutdown restart restore backup
		recover attach detach pragma checkpoint discard print raiserror return if while loop reconfigure
		undrop undo move install change stop system security dump exchange handler delimiter dbcc
		source repair check exit rebuild remove cache suspend resume go into enable disable history for raise elseif elsif else match runscript flashback`)

// startsAt returns the verb of the statement that begins at token i of the segment [lo,hi), or "".
// A verb begins a statement where one is expected (see due), or anywhere else if the next words
// show that it does (see opens).
func (p *parser) startsAt(i, lo, hi int) string {
	word := p.toks[i].word
	switch {
	case i == lo && p.op(i, "("): // for example (SELECT …) UNION …
		for i < hi && p.op(i, "(") {
			i++
		}
		if p.isAny(i, "select", "with", "values") {
			return "select"
		}
		return ""
	case p.toks[i].kind != sqlWord, !Verbs.Has(word), p.op(i-1, "."):
		return ""
	case p.due(i, lo):
		if i > lo && p.op(i+1, "(") && p.isAny(i, "replace", "insert", "truncate") { // there are functions with these names
			return ""
		}
		return word
	case p.under("grant", "revoke", "deny", "comment", "show", "describe", "desc", "explain", "help"), !p.opens(i, hi):
		return ""
	}
	return word
}

// dueIn maps a word to the verbs of the statements in which this word is followed by another
// statement.
var dueIn = map[string][]string{
	"as":      {"create", "prepare", "alter", "declare"},
	"for":     {"declare", "prepare"},
	"instead": {"create"}, "also": {"create"}, // in CREATE RULE … DO INSTEAD and DO ALSO
}

// due reports whether a statement is expected at token i.
func (p *parser) due(i, lo int) bool {
	switch {
	case i == lo, p.toks[i-1].kind == sqlEnd, // inside the body of a routine
		p.op(i-1, ">") && p.op(i-2, ">"): // after a label such as <<label>>
		return true
	case p.op(i-1, "("):
		return p.isAny(i-2, "as", "materialized") && !p.is(i, "table")
	case p.isAny(i-1, "begin", "loop", "tran", "transaction"):
		return !p.isAny(i, "read", "isolation")
	case p.isAny(i-1, "then", "else"):
		return p.head != "merge" && !p.inCase(i, lo)
	case p.is(i-1, "do"):
		return p.head != "insert"
	}
	return p.under(dueIn[p.toks[i-1].word]...)
}

// inCase reports whether a CASE expression is open at token i.
func (p *parser) inCase(i, lo int) bool {
	open := 0
	for j := lo; j < i; j++ {
		if p.is(j, "case") {
			open++
		} else if p.is(j, "end") && open > 0 {
			open--
		}
	}
	return open > 0
}

// notBehind maps a verb to words after which the verb does not begin a statement, but is a part of
// another one.
var notBehind = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"delete":  {"on", "before", "after", "of", "or", "then", "for"},
		"update":  {"for", "on", "key", "then", "do", "before", "after", "of", "or"},
		"insert":  {"then"},
		"exec":    {"on", "grant", "row", "statement", "with"},
		"execute": {"on", "grant", "row", "statement", "with"},
		"create":  {"on", "instance"},
		"alter":   {"on", "instance"},
	}
})

// opensBefore maps a verb to the words that identify it as the beginning of a statement if they
// follow it.
var opensBefore = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"truncate": {"table"},
		"delete":   {"from", "top"},
		"insert":   {"into", "overwrite"},
		"merge":    {"into"},
		"begin":    {"tran", "transaction"},
		"commit":   {"tran", "transaction", "work"},
		"rollback": {"tran", "transaction", "work"},
	}
})

// opens reports whether the words at token i begin a statement even where no statement is
// expected.
func (p *parser) opens(i, hi int) bool {
	next, verb := i+1, p.toks[i].word
	if p.isAny(i-1, notBehind()[verb]...) {
		return false
	}
	if p.isAny(next, opensBefore()[verb]...) {
		return true
	}
	switch verb {
	case "drop", "create", "alter":
		return p.defines(verb, i, hi)
	case "delete":
		return p.is(next+1, "from")
	case "update":
		return p.find(next, min(hi, next+12), p.toks[i].depth, "set") > next
	case "exec", "execute":
		return next < hi && p.head != "create" && !p.isAny(next, "function", "procedure", "on", "as")
	case "select":
		return p.toks[i].depth == 0 && p.under("with", "if", "declare", "use")
	case "commit", "rollback":
		return next >= hi
	}
	return false
}

// defines reports whether a DROP, CREATE or ALTER of an object begins at token i. DROP can also be
// part of ALTER TABLE, and ALTER part of CREATE OR ALTER.
func (p *parser) defines(verb string, i, hi int) bool {
	kind := objectOf(p, i+1, hi)
	switch {
	case kind == "":
		return false
	case verb != "drop":
		return p.head != "create" || !p.is(i-1, "or")
	case kind == "column" || kind == "partition":
		return false
	}
	return p.head != "alter" || p.isAny(i+1, "table", "database", "schema") && !p.is(i-1, "or")
}

// HoldsSQL reports whether a text in lower case contains a typical phrase of SQL. It recognizes
// blocks of SQL Server and PL/SQL by the statements in them.
func HoldsSQL(low string) bool {
	return scan.HasAny(low, "drop table", "drop database", "drop schema", "delete from", "truncate table", "exec(", "exec (", "execute immediate", "sp_executesql", "xp_cmdshell", " set @", "dbms_", "utl_file.", "utl_http.", "insert into", "apex_", "owa_")
}
