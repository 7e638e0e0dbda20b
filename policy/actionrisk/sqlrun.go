package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// kindSQL items are effects of database statements; their name is the id of the
// rule that the effect has.
const kindSQL = "sql"

// sqlClients says how a client reads its text. Clients not named here get every
// reading of SQL.
var sqlClients = map[string]sql.Reading{
	"psql": sql.ANSI, "pgcli": sql.ANSI, "cockroach": sql.ANSI, "ysqlsh": sql.ANSI, "vsql": sql.ANSI, "gsql": sql.ANSI,
	"sqlite3": sql.ANSI, "sqlite": sql.ANSI, "duckdb": sql.ANSI,
	"mysql": sql.MySQL, "mariadb": sql.MySQL, "mycli": sql.MySQL,
	"sqlcmd": sql.ANSI, "osql": sql.ANSI, "isql": sql.ANSI, "sqlplus": sql.ANSI, "sqlcl": sql.ANSI,
	"cqlsh": sql.Slash | sql.ANSI, "nzsql": sql.ANSI, "usql": sql.ANSI, "mysqlsh": sql.MySQL, "mssql-cli": sql.ANSI, "litecli": sql.ANSI,
}

// embeddedSQL are the clients that hold the database themselves.
var embeddedSQL = scan.SetOf("cqlsh duckdb sqlite3 sqlite litecli clickhouse-local sqlite-utils h2 datasette dsq q textql trdsql octosql")

// transactionalDDL are the clients whose servers undo DDL on ROLLBACK.
var transactionalDDL = map[string]bool{"psql": true, "pgcli": true, "sqlite3": true, "sqlcmd": true, "duckdb": true}

// runSQL reads src as the text of a database client, or as a bare statement of
// any dialect where client is nil. What it gives back is the text that a SELECT
// of literals prints, if that is SQL again: piped into a client it runs.
func runSQL(sh *shell, src *source, _ string, client *invocation) flow {
	e := sh.e
	e.ran = true
	text := src.text
	if len(text) > scan.MaxText {
		text = text[:scan.MaxText]
		e.tooDeep = true
	}
	text = strings.ReplaceAll(text, string(scan.Hole), "_")
	name := ""
	if client != nil {
		name = client.exe
	}
	words := clientWords(client, src.text)
	if sqlClients[name] == 0 { // a bare text, or a client of many engines
		if looksMongo(text) {
			e.mongo(src, text, words)
			return flow{}
		}
		if looksRedis(text) {
			e.redis(src, text, words)
			return flow{}
		}
	}
	reads := sqlClients[name]
	if reads == 0 {
		reads = sql.AnyReading
	}
	if whole := e.expandClient(name, text, client); whole != text {
		carrier := *src
		carrier.text, carrier.at = whole, -1
		src, text = &carrier, whole
	}
	result := sql.Classify(text, reads, sql.Client{Name: name, Transactional: transactionalDDL[name], Embedded: embeddedSQL[name]})
	result.Root = client != nil && client.root
	e.statements(src, &result, words)
	e.includedSQL(src, result.Includes, client)
	if result.Printed == "" {
		if result.Dumps {
			return flow{taint: fromDump}
		}
		return flow{}
	}
	return flow{known: true, word: Word{Text: result.Printed, At: -1, Span: src.span}}
}

// statements matches the effects and hands carried shell text on.
func (e *engine) statements(src *source, r *sql.Result, words string) {
	if !e.budget.spend(r.Steps) || r.TooDeep {
		e.tooDeep = true
	}
	matched := false
	for i := range r.Facts {
		f := &r.Facts[i]
		it := item{kind: kindSQL, name: ruleOf(f.Effect), src: src, from: f.Start, to: f.End, target: printable(f.Target),
			words: words + factWords(f), undone: f.RolledBack || f.Deferred}
		if f.Via != "" {
			inner := *src
			inner.via = append(append([]string(nil), src.via...), f.Via)
			it.src = &inner
		}
		matched = e.match(&it) || matched
	}
	for _, c := range r.Shell {
		span, _ := src.where(c.Start, c.End)
		inner := source{text: c.Text, at: -1, span: span, via: append(append([]string(nil), src.via...), c.Via), depth: src.depth + 1, taint: src.taint}
		if n := strings.Index(src.text, c.Text); n >= 0 && src.at >= 0 && c.Text != "" {
			inner.at = src.at + n
		}
		in := flow{}
		if strings.HasPrefix(c.Via, "copy-program") {
			in.taint = fromDump // the table's rows are its input
		}
		if c.Via == "client-feeds" {
			in.taint = fromBuilt
		}
		e.front.script(&shell{e: e, root: r.Root && c.Via == "client-shell"}, &inner, in)
	}
	if !matched && !r.ReadOnly {
		e.unproven = true
		if r.Unknown {
			e.doubt("a statement of an unknown dialect")
			e.raise("parse.dialect-unknown", src, 0, len(src.text), "")
		}
	}
}

// includedSQL runs the files that a client is told to read, if the command itself
// wrote them.
func (e *engine) includedSQL(src *source, names []string, client *invocation) {
	cwd := e.context.cwd
	if client != nil {
		cwd = client.cwd
	}
	for _, name := range names {
		f, ok := e.files[paths.FileKey(cwd, name)]
		if !ok || src.depth >= scan.MaxDepth || !e.budget.spend(4) {
			continue
		}
		if !f.known {
			if f.taint&fromNetwork != 0 {
				e.raise("sql.dynamic", src, 0, len(src.text), name)
			}
			continue
		}
		inner := src.inside(f.word, "include")
		e.read("sql", &inner, client)
	}
}

// ruleOf is the rule id of an effect; those of SQL go without their domain.
func ruleOf(effect string) string {
	if strings.HasPrefix(effect, "nosql.") || strings.HasPrefix(effect, "orm.") || strings.HasPrefix(effect, "secret.") {
		return effect
	}
	return "sql." + effect
}

// factWords are the names in a target that say where it is: a database or a
// schema. A table called test_results is not a test.
func factWords(f *sql.Fact) string {
	switch f.Effect {
	case "drop.database", "drop.schema", "nosql.database-drop":
		return " " + f.Target
	}
	if n := strings.LastIndexByte(f.Target, '.'); n > 0 {
		return " " + f.Target[:n]
	}
	return ""
}

// clientWords are the client's operands and options that say where it connects:
// everything but the text it runs.
func clientWords(v *invocation, text string) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	for _, w := range v.operands {
		if w.Text != text && !strings.ContainsAny(w.Text, " \n") && !strings.Contains(w.Text, "/dev/") {
			b.WriteString(" " + w.Text)
		}
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.given && o.value.Text != text && !strings.ContainsAny(o.value.Text, " \n") && !strings.HasPrefix(o.value.Text, "/") {
			b.WriteString(" " + o.value.Text)
		}
	}
	for _, a := range v.env {
		if strings.HasPrefix(a.name, "PG") || strings.HasSuffix(a.name, "_ENV") || strings.HasSuffix(a.name, "URL") {
			b.WriteString(" " + a.value.Text)
		}
	}
	if v.has("--local") && localStore(v.exe) {
		b.WriteString(" local")
	}
	b.WriteString(" " + v.host)
	return b.String()
}

// looksSQL is the router's cheap test: do the first words begin a statement of
// some database? Words that are also programs need the words that follow them.
func looksSQL(text string) bool {
	text = skipSQLSpace(text)
	if text == "" {
		return false
	}
	if text[0] == '(' {
		return strings.HasPrefix(strings.ToLower(strings.TrimLeft(text, "( ")), "select ")
	}
	if text[0] == '\\' {
		return sqlMetaStart(text)
	}
	word, rest := sqlWordAt(text)
	next, after := sqlWordAt(skipSQLSpace(rest))
	switch word {
	case "":
		return false
	case "db":
		return looksMongo(text)
	case "select", "insert", "merge", "upsert", "with", "explain", "values":
		return sqlSecond(word, next, rest)
	case "delete":
		third, _ := sqlWordAt(skipSQLSpace(after))
		return next == "from" || next == "top" || third == "from" || third == "where" || deletesByName(rest)
	case "update":
		return hasSQLWord(strings.ToLower(after), "set") && strings.Contains(after, "=") && !strings.HasPrefix(strings.TrimSpace(rest), "-")
	case "drop", "create", "alter", "truncate":
		return sqlObject(word, next, rest, after)
	case "grant", "revoke", "deny":
		low := strings.ToLower(rest)
		return hasSQLWord(low, "to", "from", "on")
	case "if", "begin", "while", "declare":
		if word == "declare" && strings.HasPrefix(strings.TrimLeft(rest, " "), "-") { // bash's
			return false
		}
		if low := strings.ToLower(rest); sql.HoldsSQL(low) && !strings.Contains(low, "; then") && !strings.Contains(low, ";then") && !strings.Contains(low, "; do") && !strings.Contains(low, "\ndo") && !strings.Contains(low, "\nthen") {
			return true
		}
	case "for": // FOR x IN c REMOVE x IN c, where a shell has "; do"
		low := strings.ToLower(rest)
		return hasSQLWord(low, "in") && hasSQLWord(low, "remove") && !strings.Contains(low, ";") && !hasSQLWord(low, "do")
	case "exec", "execute", "call":
		name := procedureName(rest)
		return strings.HasPrefix(name, "sp_") || strings.HasPrefix(name, "xp_") || next == "immediate" || next == "master" ||
			strings.HasPrefix(strings.TrimSpace(rest), "(") || strings.Contains(text, "xp_cmdshell") || word == "call" && strings.Contains(rest, "(")
	}
	return sqlPair(word, next, rest)
}

// procedureName is the last part of a dotted name in front of its arguments, in lower
// case: msdb.dbo.sp_add_job, [master]..[xp_cmdshell].
func procedureName(rest string) string {
	rest = strings.TrimLeft(rest, " \t\n")
	end := 0
	for end < len(rest) && (sql.IsWordByte(rest[end]) || strings.IndexByte(".[]\"", rest[end]) >= 0) {
		end++
	}
	name := rest[:end]
	return strings.Trim(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]), "[]\"")
}

// deletesByName: DELETE with MySQL's modifiers, or of tables that FROM names again
// ("DELETE o.*, i FROM …").
func deletesByName(rest string) bool {
	words := strings.Fields(strings.ToLower(rest[:min(len(rest), 256)]))
	for i, w := range words {
		switch {
		case w == "from":
			return i > 0 && (strings.Contains(words[i-1], ".*") || i > 1)
		case w == "low_priority" || w == "quick" || w == "ignore", strings.HasSuffix(w, ","), i+1 < len(words) && words[i+1] == "from" && strings.HasSuffix(w, ".*"):
		case i > 0 && strings.HasSuffix(words[i-1], ","):
		default:
			return false
		}
	}
	return false
}

// laterSQL: a text that begins with a statement some shell would take too (SET x =
// 1, EXEC p, PRINT 'x') and goes on with one that only a database knows.
func laterSQL(text string) bool {
	word, rest := sqlWordAt(skipSQLSpace(text))
	second, third := sqlWordAt(skipSQLSpace(rest))
	switch word {
	case "set":
		if third = strings.TrimLeft(third, " "); second == "" || !strings.HasPrefix(third, "=") && !strings.HasPrefix(third, ":=") && !hasSQLWord(strings.ToLower(third[:min(len(third), 64)]), "to", "on", "off") {
			return false
		}
	case "go":
		if line := strings.TrimLeft(skipSQLSpace(text)[2:], " \t;"); line == "" || line[0] != '\n' {
			return false
		}
	case "exec", "execute", "call", "print", "use", "begin", "declare", "start", "savepoint", "prepare", "show", "commit", "rollback", "deallocate", "raiserror":
		if second == "" && word != "begin" && word != "commit" && word != "rollback" {
			return false
		}
	default:
		return false
	}
	for n := 0; n < scan.MaxLaterSQL; n++ {
		at := strings.IndexAny(rest, ";\n")
		if at < 0 {
			return false
		}
		if rest = skipSQLSpace(rest[at+1:]); looksSQL(rest) {
			return true
		}
	}
	return false
}

// sqlSecond: what follows a verb that begins nothing else than SQL.
func sqlSecond(word, next, rest string) bool {
	low := strings.ToLower(rest)
	switch word {
	case "select":
		// bash has "select x in …; do"
		return !(strings.Contains(low, " in ") && strings.Contains(low, "; do") && !strings.Contains(low, " from "))
	case "insert", "merge", "upsert":
		if word == "merge" {
			return hasSQLWord(low, "using")
		}
		return next == "into" || next == "overwrite" || next == "ignore" || next == "or" || hasSQLWord(low, "using", "values")
	case "with":
		return strings.Contains(low, " as (") || strings.Contains(low, " as(") || strings.Contains(low, " as materialized")
	case "explain":
		return next != "" || strings.HasPrefix(strings.TrimSpace(rest), "(")
	}
	return strings.HasPrefix(strings.TrimSpace(rest), "(")
}

// sqlObject: DROP, CREATE, ALTER and TRUNCATE of something a database has.
func sqlObject(word, next, rest, after string) bool {
	if word == "truncate" {
		return next == "table" || next == "only" || truncates(strings.TrimSpace(skipSQLSpace(rest)))
	}
	if _, ok := sql.ObjectWords[next]; !ok {
		return false
	}
	return strings.TrimSpace(after) != "" || word == "drop"
}

// truncates: what follows TRUNCATE without TABLE must be names and the few words
// that may follow them; coreutils' truncate and plain English go on differently.
func truncates(rest string) bool {
	rest = strings.ToLower(strings.TrimRight(rest, "; \n"))
	if rest == "" || rest[0] == '-' {
		return false
	}
	for part := range strings.SplitSeq(rest, ",") {
		words := strings.Fields(part)
		if len(words) == 0 || strings.ContainsAny(words[0], "/-") {
			return false
		}
		for _, w := range words[1:] {
			switch w {
			case "cascade", "restrict", "restart", "continue", "identity", "drop", "reuse", "storage":
			default:
				return strings.HasPrefix(w, "--") || strings.HasPrefix(w, "/*") || strings.Contains(rest, ";")
			}
		}
	}
	return true
}

// sqlPairs are verbs that are also programs or words, with what must follow.
var sqlPairs = map[string]string{
	"show": "* ", "describe": "* ", "use": "* ", "analyze": "table|verbose", "vacuum": "*retain|full|analyze|verbose|freeze|;| ", "optimize": "table", "reindex": "table|index|database|schema|system|concurrently",
	"cluster": "* using", "refresh": "materialized|table", "rename": "table", "replace": "into", "lock": "table|tables", "flush": "tables|privileges|logs|hosts|table|binary|status", "purge": "binary|master|recyclebin|table",
	"kill": "query|connection", "shutdown": "abort|immediate|transactional|normal|nowait", "set": "global|persist|session|password|role|search_path|@|local", "reset": "master|slave|replica|query|all|binary",
	"begin": ";|transaction|work|tran|immediate|try|isolation| ", "start": "transaction|slave|replica", "commit": ";", "rollback": ";", "do": "$|language", "declare": "@", "prepare": "*from|*as|transaction",
	"copy": "*from '|*from s|*to '|*to p|*from p|into|(|*to s", "load": "data|xml|csv", "bulk": "insert", "import": "foreign", "comment": "on", "reassign": "owned", "pragma": "*", "attach": "database|'", "detach": "database|table",
	"backup": "database|log", "restore": "database|log", "stop": "slave|replica", "change": "master|replication", "install": "plugin|component", "dbcc": "*", "match": "(",
	"exchange": "tables", "undrop": "table|database|schema", "security": "label", "discard": "all", "notify": "*;", "system": "drop|stop|start|reload|flush|shutdown|kill", "if": "exists (|object_id",
	"remove": "database|namespace|table|ns |db ", "runscript": "from", "flashback": "database|table", "while": "1=1|1 = 1|(1=1|exists", "delimiter": "*", "go": "", "flushall": "", "flushdb": "", "config": "set ", "msck": "repair", "xp_cmdshell": "'", "sp_executesql": "n'|'", "sp_configure": "'", "unload": "(", "waitfor": "delay", "handler": "*open", "savepoint": "*;", "table": "*;"}

// sqlPair looks a word up in sqlPairs: alternatives that the rest must begin
// with, or with * that it must hold; "* " alone asks only for a name and an end.
func sqlPair(word, next, rest string) bool {
	alternatives, ok := sqlPairs[word]
	if !ok {
		return false
	}
	low := strings.TrimSpace(strings.ToLower(rest))
	switch {
	case alternatives == "":
		return low == "" || strings.HasPrefix(low, ";") || strings.HasPrefix(low, "async") || strings.HasPrefix(low, "sync")
	case alternatives == "*":
		return next != ""
	case word == "show" || word == "describe" || word == "use":
		return next != "" && !strings.HasPrefix(low, "-") && !strings.ContainsAny(low, "/|&$")
	}
	for _, a := range strings.Split(alternatives, "|") {
		if a == " " {
			if low == "" {
				return true
			}
			continue
		}
		if part, anywhere := strings.CutPrefix(a, "*"); anywhere && strings.Contains(" "+low, " "+strings.TrimSpace(part)) || !anywhere && strings.HasPrefix(low, a) {
			return true
		}
	}
	return false
}

// skipSQLSpace skips white space, comments, semicolons and executable marks.
func skipSQLSpace(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n;\ufeff\u00a0")
		switch {
		case strings.HasPrefix(text, "--") && (len(text) == 2 || text[2] <= ' ' || strings.Contains(text, "\n")):
			n := strings.IndexByte(text, '\n')
			if n < 0 {
				return ""
			}
			text = text[n:]
		case strings.HasPrefix(text, "/*!"):
			text = strings.TrimLeft(text[3:], "0123456789")
		case strings.HasPrefix(text, "/*"):
			n := strings.Index(text[2:], "*/")
			if n < 0 {
				return ""
			}
			text = text[n+4:]
		case strings.HasPrefix(text, "*/"):
			text = text[2:]
		default:
			return text
		}
	}
}

// sqlWordAt is the first word in lower case, joined over comments inside it,
// and what follows.
func sqlWordAt(text string) (string, string) {
	i := 0
	for i < len(text) && sql.IsWordByte(text[i]) {
		i++
	}
	w, rest := strings.ToLower(text[:i]), text[i:]
	if strings.HasPrefix(rest, "/*") && i > 0 && i < 8 && !strings.HasPrefix(rest, "/*!") {
		if n := strings.Index(rest[2:], "*/"); n >= 0 {
			tail, after := rest[n+4:], 0
			for after < len(tail) && sql.IsWordByte(tail[after]) {
				after++
			}
			if joined := w + strings.ToLower(tail[:after]); sql.Verbs[joined] && !sql.Verbs[w] {
				return joined, tail[after:]
			}
		}
	}
	return w, rest
}

// hasSQLWord reports whether one of the words stands in the lower-case text as a
// whole word.
func hasSQLWord(low string, words ...string) bool {
	for _, w := range words {
		for i := 0; ; {
			n := strings.Index(low[i:], w)
			if n < 0 {
				break
			}
			i += n
			if (i == 0 || !sql.IsWordByte(low[i-1])) && (i+len(w) == len(low) || !sql.IsWordByte(low[i+len(w)])) {
				return true
			}
			i += len(w)
		}
	}
	return false
}

// sqlMetaStart: psql's \! and its kind; a shell writes \rm.
func sqlMetaStart(text string) bool {
	for _, m := range [...]string{`\!`, `\copy `, `\gexec`, `\i `, `\o `, `\dt`, `\d `, `\d+`, `\l`, `\c `, `\du`, `\x`} {
		if strings.HasPrefix(text, m) {
			return m != `\l` && m != `\x` || len(text) == 2 || strings.HasPrefix(text[2:], "\n") || strings.HasPrefix(text[2:], "+")
		}
	}
	return false
}

// mongo judges a text for MongoDB's shell.
func (e *engine) mongo(src *source, text, words string) {
	r := mongoResult(text)
	e.statements(src, &r, words)
}

// redis judges a text for Redis.
func (e *engine) redis(src *source, text, words string) {
	r := redisResult(text)
	e.statements(src, &r, words)
}
