// Package sql reads SQL of all dialects at once and says what its statements do: which
// rows they pick, what they drop, grant, run or write. It has one lexer without a
// dialect; where quotes and escapes are read differently somewhere, both readings are
// taken. It knows no rule: an effect is the part of a rule's id after "sql.".
package sql

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Fact is one effect of one statement: the part of a rule id after "sql.".
type Fact struct {
	Effect     string
	Target     string // what it acts on, as written
	Start, End int    // bytes of the text that was classified
	Via        string // "execute", "prepare" … when the statement stood in a literal
	Deferred   bool   // is in a routine's body that is only created
	RolledBack bool   // undone by the ROLLBACK of its own transaction
}

// Carried is text of another language inside SQL: a client's shell escape or
// a program the server runs.
type carried struct {
	Text       string
	Via        string
	Start, End int
}

// FileUse is what a statement, or the client that is given it, does to a file.
type FileUse struct {
	Op         act.Op
	Path       string
	Writes     string // what it writes, if the text says so
	Via        string
	Start, End int
}

// Result is what a text of SQL does.
type Result struct {
	Facts    []Fact
	Shell    []carried
	Files    []FileUse
	ReadOnly bool // every statement was recognised and only reads
	Unknown  bool // at least one statement was not recognised
	TooDeep  bool
	Steps    int
	Root     bool     // the client runs as root
	Dumps    bool     // all rows and columns of a table are printed
	Includes []string // files that are read as SQL
	Printed  string   // SQL that a SELECT of literals gives out, holes filled with a name
}

// MaxSQLNesting bounds SQL inside literals inside SQL. Real generators stop at
// two; each level shrinks the text.
const MaxSQLNesting = 6

// maxSQLNested bounds the text of all literals together that are classified as
// SQL: without it EXEC in EXEC in EXEC doubles the work at each level.
const maxSQLNested = 16 << 10

// maxSQLDepth bounds parentheses, which the WHERE judge follows recursively.
const maxSQLDepth = 64

// Classify names the effects of a text under every reading in reads that can
// differ for it, as the client that is given it would take it. It is total: text
// that is no SQL has no effects.
func Classify(text string, reads Reading, client Client) Result {
	left := maxSQLNested
	return classifyNested(text, readings(text, reads), client, 0, &left)
}

// Client is what is known of the client that is given a text.
type Client struct {
	Name          string
	Transactional bool // its server undoes DDL on ROLLBACK
	Embedded      bool // it is the database itself: server files are the user's
	// Apply is the text that the function which a language calls so makes of texts.
	Apply func(lang, fn string, texts ...string) (string, bool)
}

// Readings drops the readings that cannot differ from another for the text.
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

// join adds what another reading of the same text found.
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

// addNew adds those of more that are not there yet.
func addNew[T comparable](have, more []T) []T {
	for _, v := range more {
		if !slices.Contains(have, v) {
			have = append(have, v)
		}
	}
	return have
}

// Parser walks the significant tokens of one reading.
type parser struct {
	text    string
	read    Reading
	nesting int
	toks    []sqlToken // white space and comments left out
	closing []int      // for each "(" the index of its ")", -1 if there is none
	left    *int       // bytes of nested text that may still be classified
	out     Result

	head       string            // verb of the statement under way
	via        string            // set while a literal's text is classified
	routine    string            // name of the routine whose body is under way
	bodies     []string          // names of routines with effects in their body
	vars       map[string]string // literal text assigned to @x, x or a prepared name
	temporary  []string          // tables this text created as temporary ones
	unscoped   []string          // CTEs that select whole tables
	loop       bool              // inside WHILE, LOOP or \watch: LIMIT scopes nothing
	txStart    int               // index of the first fact of the open transaction, -1 if none
	selfJoined bool              // a table is joined with itself
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

// cut takes the tokens that mean something.
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

// pair finds the closing parenthesis of each opening one.
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

// glue joins a verb that a comment cuts in two (DR/**/OP): some filters strip
// comments before the server sees the text.
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

// segmentEnd is the index of the token that ends the statement begun at lo. The
// semicolons of a routine's BEGIN … END body end nothing.
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

// opensBlock is 1 where a block begins at token i, -1 where one ends, else 0.
func (p *parser) opensBlock(i int) int {
	switch {
	case p.is(i, "begin"), p.is(i, "case") && !p.is(i-1, "end"):
		return 1
	case p.is(i, "end") && !p.isAny(i+1, "if", "while", "loop") && p.raw(i+1) != "repeat":
		return -1
	}
	return 0
}

// createsRoutine reports whether CREATE at i makes something with a body of
// statements.
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

// raw is token i in lower case, "" outside the text.
func (p *parser) raw(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	return strings.ToLower(p.text[p.toks[i].Start:p.toks[i].End])
}

// find returns the first index in [lo,hi) of one of the keywords at the depth.
func (p *parser) find(lo, hi int, depth int16, words ...string) int {
	for i := lo; i < hi; i++ {
		if p.toks[i].depth == depth && p.isAny(i, words...) {
			return i
		}
	}
	return -1
}

// has reports whether one of the keywords is anywhere in [lo,hi).
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

// textOf is token i as written.
func (p *parser) textOf(i int) string { return p.text[p.toks[i].Start:p.toks[i].End] }

// lastPart is a name without what it is qualified with.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// namePart is one part of a name and the index after it, which is i if there is none.
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
	case p.op(i, "#"): // SQL Server's temporary tables
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

// Unquote strips the marks of a quoted name.
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

// stringText is the content of a string token.
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

// segment classifies the tokens between two statement ends, which may hold more
// than one statement: SQL Server needs no semicolon, blocks nest.
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

// bare handles a statement without a verb: an assignment, or in SQL Server the
// name of a procedure at the start of a batch.
func (p *parser) bare(lo, hi int) {
	if p.op(lo+1, ":=") {
		p.assign(p.raw(lo), lo+2, hi)
		return
	}
	if raw := p.raw(lo); p.toks[lo].kind == sqlParam && len(raw) > 1 && raw[0] == ':' { // psql puts a variable in
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

// callActs tells whether the call in [lo,hi) whose arguments begin at open has an effect.
func (p *parser) callActs(lo, open, hi int) bool {
	before := len(p.out.Facts)
	if p.op(open, "(") {
		p.functions(lo, hi)
	}
	return len(p.out.Facts) > before
}

// extent is where the statement begun at i ends: at a smaller depth, at the
// next statement next to it, or at hi.
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

// under tells whether the statement under way begins with one of the verbs.
func (p *parser) under(verbs ...string) bool { return slices.Contains(verbs, p.head) }

// Verbs may begin a statement where one is due.
var Verbs = scan.SetOf(`select with values table show describe desc explain help insert update delete merge replace upsert
		truncate drop create alter rename comment grant revoke deny reassign set reset use begin start commit end abort rollback
		savepoint release prepare execute exec deallocate do call declare fetch open close copy load unload bulk import export vacuum
		analyze analyse optimize reindex cluster refresh lock unlock flush purge kill shutdown restart restore backup
		recover attach detach pragma checkpoint discard print raiserror return if while loop reconfigure
		undrop undo move install change stop system security dump exchange handler delimiter dbcc
		source repair check exit rebuild remove cache suspend resume go into enable disable history for raise elseif elsif else match runscript flashback`)

// startsAt returns the verb if a statement begins at token i of the segment
// [lo,hi): anywhere a statement is due, or by two words that begin one only.
func (p *parser) startsAt(i, lo, hi int) string {
	word := p.toks[i].word
	switch {
	case i == lo && p.op(i, "("): // (SELECT …) UNION …
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
		if i > lo && p.op(i+1, "(") && p.isAny(i, "replace", "insert", "truncate") { // functions of these names
			return ""
		}
		return word
	case p.under("grant", "revoke", "deny", "comment", "show", "describe", "desc", "explain", "help"), !p.opens(i, hi):
		return ""
	}
	return word
}

// dueIn are words after which a statement is due in some statements only.
var dueIn = map[string][]string{
	"as":      {"create", "prepare", "alter", "declare"},
	"for":     {"declare", "prepare"},
	"instead": {"create"}, "also": {"create"}, // rules
}

// due reports whether a statement is expected at token i.
func (p *parser) due(i, lo int) bool {
	switch {
	case i == lo, p.toks[i-1].kind == sqlEnd, // inside a routine's body
		p.op(i-1, ">") && p.op(i-2, ">"): // <<label>>
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

// notBehind are words after which a verb is part of another statement.
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

// opensBefore are words before which a verb begins a statement wherever it stands.
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

// opens reports whether the words at i begin a statement wherever they stand.
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

// defines reports whether a statement about an object begins at i: DROP may also be
// part of ALTER TABLE, ALTER of CREATE OR ALTER.
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

// HoldsSQL: blocks of SQL Server and PL/SQL are known by the statements in them.
func HoldsSQL(low string) bool {
	return scan.HasAny(low, "drop table", "drop database", "drop schema", "delete from", "truncate table", "exec(", "exec (", "execute immediate", "sp_executesql", "xp_cmdshell", " set @", "dbms_", "utl_file.", "utl_http.", "insert into", "apex_", "owa_")
}
