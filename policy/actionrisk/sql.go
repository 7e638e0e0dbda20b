package actionrisk

import (
	"cmp"
	"slices"
	"strings"
)

// sqlFact is one effect of one statement: the part of a rule id after "sql.".
type sqlFact struct {
	effect     string
	target     string // what it acts on, as written
	start, end int    // bytes of the text that was classified
	via        string // "execute", "prepare" … when the statement stood in a literal
	deferred   bool   // stands in a routine's body that is only created
	rolledBack bool   // undone by the ROLLBACK of its own transaction
}

// sqlCarried is text of another language inside SQL: a client's shell escape or
// a program the server runs.
type sqlCarried struct {
	text       string
	via        string
	start, end int
}

// sqlResult is what a text of SQL does.
type sqlResult struct {
	facts    []sqlFact
	shell    []sqlCarried
	readOnly bool // every statement was recognised and only reads
	unknown  bool // at least one statement was not recognised
	tooDeep  bool
	steps    int
	root     bool     // the client runs as root
	dumps    bool     // all rows and columns of a table are printed
	includes []string // files that are read as SQL
	printed  string   // SQL that a SELECT of literals gives out, holes filled with a name
}

// maxSQLNesting bounds SQL inside literals inside SQL. Real generators stop at
// two; each level shrinks the text.
const maxSQLNesting = 6

// maxSQLNested bounds the text of all literals together that are classified as
// SQL: without it EXEC in EXEC in EXEC doubles the work at each level.
const maxSQLNested = 16 << 10

// maxSQLDepth bounds parentheses, which the WHERE judge follows recursively.
const maxSQLDepth = 64

// classifySQL names the effects of a text under every reading in reads that can
// differ for it, as the client that is given it would take it. It is total: text
// that is no SQL has no effects.
func classifySQL(text string, reads sqlReading, client sqlClient) sqlResult {
	left := maxSQLNested
	return classifyNested(text, sqlReadings(text, reads), client, 0, &left)
}

// sqlClient is what is known of the client that is given a text.
type sqlClient struct {
	name          string
	transactional bool // its server undoes DDL on ROLLBACK
	embedded      bool // it is the database itself: server files are the user's
}

// sqlReadings drops the readings that cannot differ from another for the text.
func sqlReadings(text string, reads sqlReading) sqlReading {
	if reads == 0 {
		reads = sqlAnyReading
	}
	if reads&(reads-1) == 0 {
		return reads
	}
	if !strings.ContainsAny(text, "#\\$") && !strings.Contains(text, "--") &&
		!strings.Contains(text, "/*") && !strings.Contains(text, "//") && !strings.Contains(text, "||") {
		return reads & -reads
	}
	if reads&sqlSlash != 0 && !strings.Contains(text, "//") && reads != sqlSlash {
		reads &^= sqlSlash
	}
	return reads
}

func classifyNested(text string, reads sqlReading, client sqlClient, nesting int, left *int) sqlResult {
	var merged sqlResult
	first := true
	for _, read := range [...]sqlReading{sqlANSI, sqlMySQL, sqlSlash} {
		if reads&read == 0 {
			continue
		}
		p := sqlParser{text: text, read: read, nesting: nesting, left: left, of: client}
		p.run()
		merged.steps += len(p.toks) + p.out.steps
		if first {
			steps := merged.steps
			merged, first = p.out, false
			merged.steps = steps
			continue
		}
		for _, f := range p.out.facts {
			if !slices.Contains(merged.facts, f) {
				merged.facts = append(merged.facts, f)
			}
		}
		for _, c := range p.out.shell {
			if !slices.Contains(merged.shell, c) {
				merged.shell = append(merged.shell, c)
			}
		}
		for _, name := range p.out.includes {
			if !slices.Contains(merged.includes, name) {
				merged.includes = append(merged.includes, name)
			}
		}
		merged.readOnly = merged.readOnly && p.out.readOnly
		merged.dumps = merged.dumps || p.out.dumps
		merged.unknown = merged.unknown || p.out.unknown
		merged.tooDeep = merged.tooDeep || p.out.tooDeep
	}
	return merged
}

// sqlParser walks the significant tokens of one reading.
type sqlParser struct {
	text    string
	read    sqlReading
	nesting int
	toks    []sqlToken // white space and comments left out
	closing []int      // for each "(" the index of its ")", -1 if there is none
	left    *int       // bytes of nested text that may still be classified
	out     sqlResult

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
	of         sqlClient
}

func (p *sqlParser) run() {
	p.txStart = -1
	for _, t := range sqlTokens(p.text, p.read) {
		if t.kind == sqlSpace || t.kind == sqlComment {
			continue
		}
		if int(t.depth) > maxSQLDepth {
			p.out.tooDeep = true
			t.depth = maxSQLDepth
		}
		p.toks = append(p.toks, t)
	}
	p.glue()
	p.pair()
	p.out.readOnly = len(p.toks) > 0
	lo := 0
	for lo < len(p.toks) {
		hi := p.segmentEnd(lo)
		if hi > lo {
			p.segment(lo, hi)
		}
		lo = hi
		for lo < len(p.toks) && (p.toks[lo].kind == sqlEnd || p.toks[lo].kind == sqlMeta) {
			p.client(lo)
			lo++
		}
	}
	p.callBodies()
	if list := lineCommands[cmp.Or(sameLines[p.of.name], p.of.name)]; p.nesting == 0 && len(list) > 0 {
		p.clientLines(list)
	}
	if len(p.out.facts) > 0 || len(p.out.shell) > 0 || p.out.unknown {
		p.out.readOnly = false
	}
}

// pair finds the closing parenthesis of each opening one.
func (p *sqlParser) pair() {
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
func (p *sqlParser) glue() {
	for i := 0; i+1 < len(p.toks); i++ {
		a, b := p.toks[i], p.toks[i+1]
		if a.kind != sqlWord || b.kind != sqlWord || a.end == b.start || !strings.HasPrefix(p.text[a.end:], "/*") {
			continue
		}
		if gap := p.text[a.end:b.start]; strings.ContainsAny(gap[:2], " ") || !strings.HasSuffix(gap, "*/") {
			continue
		}
		w := sqlKeyword(p.text[a.start:a.end] + p.text[b.start:b.end])
		if w != "" && (a.word == "" || !sqlVerbs[a.word]) && sqlVerbs[w] {
			p.toks[i].word, p.toks[i].end = w, b.end
			p.toks = slices.Delete(p.toks, i+1, i+2)
		}
	}
}

// segmentEnd is the index of the token that ends the statement begun at lo. The
// semicolons of a routine's BEGIN … END body end nothing.
func (p *sqlParser) segmentEnd(lo int) int {
	body := p.is(lo, "create") && p.createsRoutine(lo)
	blocks := 0
	for i := lo; i < len(p.toks); i++ {
		t := p.toks[i]
		switch {
		case t.kind == sqlMeta:
			return i
		case t.kind == sqlEnd && (blocks == 0 || p.text[t.start] != ';'):
			return i
		case !body || t.kind != sqlWord:
		case t.word == "begin", t.word == "case" && !p.is(i-1, "end"):
			blocks++
		case t.word == "end" && !p.is(i+1, "if") && !p.is(i+1, "while") && p.raw(i+1) != "loop" && p.raw(i+1) != "repeat":
			blocks = max(0, blocks-1)
		}
	}
	return len(p.toks)
}

// createsRoutine reports whether CREATE at i makes something with a body of
// statements.
func (p *sqlParser) createsRoutine(i int) bool {
	switch sqlObjectOf(p, i+1, len(p.toks)) {
	case "routine", "trigger", "event":
		return true
	}
	return false
}

// is reports whether token i is the keyword w.
func (p *sqlParser) is(i int, w string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlWord && p.toks[i].word == w
}

// isAny reports whether token i is one of the keywords.
func (p *sqlParser) isAny(i int, words ...string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlWord && p.toks[i].word != "" && slices.Contains(words, p.toks[i].word)
}

// op reports whether token i is the operator s.
func (p *sqlParser) op(i int, s string) bool {
	return i >= 0 && i < len(p.toks) && p.toks[i].kind == sqlOp && p.text[p.toks[i].start:p.toks[i].end] == s
}

// raw is token i in lower case, "" outside the text.
func (p *sqlParser) raw(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	return strings.ToLower(p.text[p.toks[i].start:p.toks[i].end])
}

// find returns the first index in [lo,hi) of one of the keywords at the depth.
func (p *sqlParser) find(lo, hi int, depth int16, words ...string) int {
	for i := lo; i < hi; i++ {
		if p.toks[i].depth == depth && p.isAny(i, words...) {
			return i
		}
	}
	return -1
}

// has reports whether one of the keywords stands anywhere in [lo,hi).
func (p *sqlParser) has(lo, hi int, words ...string) bool {
	for i := lo; i < hi; i++ {
		if p.isAny(i, words...) {
			return true
		}
	}
	return false
}

// name returns the dotted name at i, unquoted, and the index behind it.
func (p *sqlParser) name(i, hi int) (string, int) {
	var parts []string
	for i < hi {
		t := p.toks[i]
		text := p.text[t.start:t.end]
		switch t.kind {
		case sqlWord, sqlParam, sqlNumber:
		case sqlName:
			text = sqlUnquote(text)
		case sqlString:
			text = sqlStringText(text)
		case sqlOp:
			if text != "*" && text != "#" {
				return strings.Join(parts, "."), i
			}
			if text == "#" && i+1 < hi { // SQL Server's temporary tables
				i++
				if p.op(i, "#") {
					i++
				}
				text = "#" + p.raw(i)
			}
		default:
			return strings.Join(parts, "."), i
		}
		parts = append(parts, text)
		i++
		if !p.op(i, ".") {
			break
		}
		for p.op(i, ".") {
			i++
		}
	}
	return strings.Join(parts, "."), i
}

// add records an effect of the tokens [lo,hi).
func (p *sqlParser) add(effect, target string, lo, hi int) {
	hi = min(max(hi, lo+1), len(p.toks))
	p.out.facts = append(p.out.facts, sqlFact{effect: effect, target: target,
		start: p.toks[lo].start, end: p.toks[hi-1].end, via: p.via, deferred: p.routine != ""})
}

// sqlUnquote strips the marks of a quoted name.
func sqlUnquote(s string) string {
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

// sqlStringText is the content of a string token.
func sqlStringText(s string) string {
	if strings.HasPrefix(s, "$") {
		n := strings.IndexByte(s[1:], '$') + 2
		return strings.TrimSuffix(s[min(n, len(s)):], s[:min(n, len(s))])
	}
	open := strings.IndexByte(s, '\'')
	if open < 0 {
		return s
	}
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
func (p *sqlParser) segment(lo, hi int) {
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
		p.out.steps++
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
func (p *sqlParser) bare(lo, hi int) {
	if p.op(lo+1, ":=") {
		p.assign(p.raw(lo), lo+2, hi)
		return
	}
	if raw := p.raw(lo); p.toks[lo].kind == sqlParam && len(raw) > 1 && raw[0] == ':' { // psql puts a variable in
		p.add("dynamic", raw, lo, hi)
		return
	}
	name, next := p.name(lo, hi)
	before := len(p.out.facts)
	if p.op(next, "(") {
		p.functions(lo, hi)
	}
	if len(p.out.facts) > before {
		return
	}
	name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	if strings.HasPrefix(name, "sp_executesql") || strings.HasPrefix(name, "sp_msforeach") {
		p.dynamic(next, hi, lo)
		return
	}
	if !strings.HasPrefix(name, "sp_") && !strings.HasPrefix(name, "xp_") || !p.procedure(name, lo, next, hi) {
		p.out.unknown = true
	}
}

// extent is where the statement begun at i ends: at a smaller depth, at the
// next statement beside it, or at hi.
func (p *sqlParser) extent(i, lo, hi int) int {
	head := p.head
	defer func() { p.head = head }()
	p.head = p.toks[i].word
	if p.head == "with" || p.head == "explain" || p.head == "create" || p.head == "prepare" {
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

// sqlVerbs may begin a statement where one is due.
var sqlVerbs = func() map[string]bool {
	m := map[string]bool{}
	for v := range strings.FieldsSeq(`select with values table show describe desc explain help insert update delete merge replace upsert
		truncate drop create alter rename comment grant revoke deny reassign set reset use begin start commit end abort rollback
		savepoint release prepare execute exec deallocate do call declare fetch open close copy load unload bulk import vacuum
		analyze analyse optimize reindex cluster refresh lock unlock flush purge kill shutdown restart restore backup
		recover attach detach pragma checkpoint discard listen notify print raiserror return if while loop reconfigure
		undrop undo move install change stop system security dump exchange handler batch delimiter waitfor dbcc put get
		list ls source repair check exit quit rebuild export clear remove msck cache uncache suspend resume go into enable disable history for raise perform elseif elsif else match runscript flashback`) {
		m[v] = true
	}
	return m
}()

// startsAt returns the verb if a statement begins at token i of the segment
// [lo,hi): anywhere a statement is due, or by two words that begin one only.
func (p *sqlParser) startsAt(i, lo, hi int) string {
	t := p.toks[i]
	if t.kind != sqlWord || t.word == "" {
		if i == lo && t.kind == sqlOp && p.op(i, "(") { // (SELECT …) UNION …
			for i < hi && p.op(i, "(") {
				i++
			}
			if p.isAny(i, "select", "with", "values") {
				return "select"
			}
		}
		return ""
	}
	if !sqlVerbs[t.word] || p.op(i-1, ".") {
		return ""
	}
	if p.due(i, lo) {
		if p.op(i+1, "(") && (t.word == "replace" || t.word == "insert" || t.word == "truncate") && i > lo {
			return "" // functions of these names
		}
		return t.word
	}
	switch p.head {
	case "grant", "revoke", "deny", "comment", "show", "describe", "desc", "explain", "help":
		return ""
	}
	if p.opens(i, hi) {
		return t.word
	}
	return ""
}

// due reports whether a statement is expected at token i.
func (p *sqlParser) due(i, lo int) bool {
	if i == lo {
		return true
	}
	if p.op(i-1, "(") {
		return p.isAny(i-2, "as", "materialized") && !p.isAny(i, "table")
	}
	if p.op(i-1, ">") && p.op(i-2, ">") { // <<label>>
		return true
	}
	if p.toks[i-1].kind == sqlEnd { // inside a routine's body
		return true
	}
	prev := p.toks[i-1]
	if prev.kind != sqlWord {
		return false
	}
	switch prev.word {
	case "begin", "loop", "tran", "transaction":
		return !p.isAny(i, "read", "isolation")
	case "then", "else":
		return p.head != "merge" && !p.inCase(i, lo)
	case "do":
		return p.head != "insert"
	case "as":
		return p.head == "create" || p.head == "prepare" || p.head == "alter" || p.head == "declare"
	case "instead", "also":
		return p.head == "create" // rules
	case "for":
		return p.head == "declare" || p.head == "prepare"
	}
	return false
}

// inCase reports whether a CASE expression is open at token i.
func (p *sqlParser) inCase(i, lo int) bool {
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

// opens reports whether the words at i begin a statement wherever they stand.
func (p *sqlParser) opens(i, hi int) bool {
	next := i + 1
	switch p.toks[i].word {
	case "drop":
		switch sqlObjectOf(p, next, hi) {
		case "", "column", "partition": // parts of ALTER TABLE
			return false
		}
		return p.head != "alter" || p.isAny(next, "table", "database", "schema") && !p.is(i-1, "or")
	case "truncate":
		return p.is(next, "table")
	case "delete":
		if p.isAny(i-1, "on", "before", "after", "of", "or", "then", "for") {
			return false
		}
		return p.isAny(next, "from", "top") || p.is(next+1, "from") && p.head != "grant"
	case "update":
		if p.isAny(i-1, "for", "on", "key", "then", "do", "before", "after", "of", "or") {
			return false
		}
		set := p.find(next, min(hi, next+12), p.toks[i].depth, "set")
		return set > next
	case "insert":
		return p.isAny(next, "into", "overwrite") && !p.isAny(i-1, "then")
	case "merge":
		return p.is(next, "into")
	case "exec", "execute":
		if p.isAny(i-1, "on", "grant", "row", "statement", "with") || p.isAny(next, "function", "procedure", "on", "as") {
			return false
		}
		return next < hi && p.head != "create"
	case "create", "alter":
		if p.head == "create" && p.is(i-1, "or") {
			return false
		}
		return sqlObjectOf(p, next, hi) != "" && !p.isAny(i-1, "on", "instance")
	case "select":
		return p.toks[i].depth == 0 && (p.head == "with" || p.head == "if" || p.head == "declare" || p.head == "use")
	case "commit", "rollback":
		return next >= hi || p.isAny(next, "tran", "transaction", "work")
	case "begin":
		return p.isAny(next, "tran", "transaction")
	case "values", "table":
		return false
	}
	return false
}
