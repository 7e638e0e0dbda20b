package sql

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// statement records the effects of the statement [i,end), which begins with verb. It does not
// judge statements inside this one (CTEs, blocks); segment finds them separately.
func (p *parser) statement(verb string, i, end int) {
	// For every verb, record whether it can change data and where it sends rows.
	if !readVerbs.Has(verb) {
		p.out.ReadOnly = false
	}
	if to := p.sendsTo(verb, i, end); to != "" {
		p.add("server.export", to, i, end)
	}
	// Each group of verbs has a function that records the other effects.
	switch verb {
	case "select", "values", "table", "with", "show", "describe", "desc", "help", "use":
		p.query(verb, i, end)
	case "explain":
		p.explain(i, end)
	case "delete":
		p.deletion(i, end)
	case "update":
		p.update(i, end)
	case "insert", "upsert", "replace":
		p.insertion(verb, i, end)
	case "merge":
		p.mergeStatement(i, end)
	case "truncate":
		p.truncation(i, end)
	case "drop", "remove":
		p.drop(i, end)
	case "create":
		p.create(i, end)
	case "alter":
		p.alter(i, end)
	case "grant", "revoke", "deny", "reassign":
		p.grant(verb, i, end)
	case "begin", "start", "commit", "end", "abort", "rollback", "prepare":
		p.transaction(verb, i, end)
	case "execute", "exec", "call":
		p.execute(verb, i, end)
	case "do":
		p.block(i, end)
	case "declare", "set":
		p.set(verb, i, end)
	case "copy", "load", "bulk", "import", "unload", "export":
		p.transfer(verb, i, end)
	case "for":
		p.aql(i, end)
		p.loop = true
	case "while", "loop":
		p.loop = true
	case "match":
		p.cypher(i, end)
	default:
		p.administer(verb, i, end)
	}
}

// readVerbs lists the verbs of statements that change nothing by themselves.
var readVerbs = scan.SetOf("select values table with show describe desc help explain use begin start commit end abort rollback savepoint release fetch close print pragma declare open go exit")

// query records the effects of a SELECT besides reading, and the CTEs that select a whole table.
func (p *parser) query(verb string, i, end int) {
	if verb == "with" {
		p.withTables(i, end)
	}
	for j := i; j < end; j++ {
		switch {
		case p.is(j, "into"):
			p.selectsInto(verb, i, j, end)
		case p.is(j, "for") && p.isAny(j+1, "update", "share", "no", "key"):
			p.out.ReadOnly = false
		case p.is(j-1, "select") && p.toks[j].kind == sqlParam && p.op(j+1, "=") && j+2 < end:
			p.assign(p.raw(j), j+2, end)
		}
	}
	p.functions(i, end)
	if p.nesting == 0 && p.toks[i].depth == 0 {
		p.shows(verb, i, end)
	}
}

// shows records that a query prints a whole table, or a text that is SQL itself.
func (p *parser) shows(verb string, i, end int) {
	if (verb == "table" || p.op(i+1, "*") && p.is(i+2, "from")) && !p.has(i, end, "where", "limit", "top", "join") {
		p.out.Dumps = true
	}
	if verb != "select" {
		return
	}
	if text, known := p.literal(i+1, p.firstOf(i+1, end, "from", "where", "into")); known && len(text) < 400 && HoldsSQL(strings.ToLower(text)) {
		p.out.Printed = text
	}
}

// selectsInto handles SELECT … INTO at token j, which writes the result into a table, a variable
// or a file of the server.
func (p *parser) selectsInto(verb string, i, j, end int) {
	if verb == "with" && p.toks[j].depth != p.toks[i].depth || p.isAny(j-1, "insert", "merge", "replace", "copy") {
		return
	}
	p.out.ReadOnly = false
	if p.isAny(j+1, "outfile", "dumpfile") {
		p.add("server.file-write", p.stringAt(j+2), j, min(j+3, end))
	}
}

// withTables records the CTEs that select a whole table.
func (p *parser) withTables(i, end int) {
	depth := p.toks[i].depth
	for j := i + 1; j+2 < end; j++ {
		if p.toks[j].depth != depth || !p.is(j+1, "as") {
			continue
		}
		open := j + 2
		for p.isAny(open, "not", "materialized") {
			open++
		}
		if !p.op(open, "(") || !p.is(open+1, "select") {
			continue
		}
		close := p.closes(open, end)
		if close < 0 {
			return
		}
		if p.subquery(open, close+1, "") == AllRows {
			name, _ := p.name(j, end)
			p.unscoped = append(p.unscoped, strings.ToLower(name))
		}
	}
}

// cypher handles MATCH … DELETE of graph databases.
func (p *parser) cypher(i, end int) {
	at := p.firstOf(i, end, "delete")
	if at == end {
		p.out.ReadOnly = p.out.ReadOnly || !p.has(i, end, "set", "create", "merge", "remove")
		return
	}
	effect := act.DeletesAll
	for j := i; j < at; j++ {
		if p.is(j, "where") || p.op(j, "{") && p.toks[j].depth > p.toks[i].depth { // the braces are those of (n {id: 5}), not of CALL { … }
			effect = act.DeletesSome
		}
	}
	p.add(effect, "", i, end)
}

// aql handles FOR x IN c … REMOVE x IN c of ArangoDB.
func (p *parser) aql(i, end int) {
	at := p.firstOf(i, end, "remove")
	if at == end || !p.has(i, at, "in") {
		return
	}
	effect := act.DeletesAll
	if p.has(i, at, "filter", "limit", "search") {
		effect = act.DeletesSome
	}
	p.add(effect, p.raw(end-1), i, end)
}

// explain judges the statement after EXPLAIN, if the option ANALYZE runs it.
func (p *parser) explain(i, end int) {
	j, runs := i+1, false
	for j < end {
		switch {
		case p.isAny(j, "analyze", "analyse"):
			runs = p.analyzes(j)
			j++
		case p.op(j, "("):
			close := p.closes(j, end)
			if close < 0 || p.isAny(j+1, "select", "with") {
				return
			}
			for ; j <= close; j++ {
				runs = runs || p.analyzes(j)
			}
		case Verbs.Has(p.toks[j].word):
			if runs {
				p.runInner(j, end)
			}
			return
		default:
			j++
		}
	}
}

// analyzes reports whether token i is the option of EXPLAIN that runs the statement.
func (p *parser) analyzes(i int) bool {
	return p.isAny(i, "analyze", "analyse") && !p.isAny(i+1, "false", "off") && p.raw(i+1) != "0"
}

// runInner classifies [j,end) as its own segment and keeps the verb of the current statement.
func (p *parser) runInner(j, end int) {
	head := p.head
	p.segment(j, end)
	p.head = head
}

func (p *parser) deletion(i, end int) {
	target, next := p.name(p.behindDelete(i, end), end)
	for p.op(next, ",") { // for example DELETE a, b FROM …
		_, next = p.name(next+1, end)
	}
	if p.is(next, "from") && !p.is(i+1, "from") { // DELETE alias FROM t, or a list of columns in CQL
		target, _ = p.name(next+1, end)
	}
	if p.isTemporary(target) {
		p.add("delete.scoped", target, i, end)
		return
	}
	if p.hidden(target, end) {
		return
	}
	p.selfJoined = p.joinsItself(i, end, target)
	shape := p.whereShape(i, end, target)
	if holdsAccounts(target) {
		shape = "unbounded" // deleted accounts lose access
	}
	p.add("delete."+shape, target, i, end)
	p.selfJoined = false
	p.functions(i, end)
}

// behindDelete returns the index of the table name in the DELETE at token i.
func (p *parser) behindDelete(i, end int) int {
	for j := i + 1; ; j++ {
		switch {
		case p.is(j, "top"):
			if p.op(j+1, "(") {
				if j = p.closes(j+1, end); j < 0 {
					return i + 1
				}
			} else {
				j++
			}
		case !p.isAny(j, "from", "only", "quick", "ignore") && p.raw(j) != "low_priority":
			return j
		}
	}
}

// joinsItself reports whether DELETE FROM t joins t with itself (USING t v), or with a CTE that
// selects all of a table.
func (p *parser) joinsItself(i, end int, target string) bool {
	at := p.find(i, end, p.toks[i].depth, "using")
	if at < 0 {
		return false
	}
	table, _ := p.name(at+1, end)
	return sameTable(table, target) || slices.Contains(p.unscoped, strings.ToLower(table))
}

// hidden reports whether the name is missing because the MySQL reading takes a "#" after token
// end-1 as the start of a comment. Then the tokens are not a statement in this reading.
func (p *parser) hidden(name string, end int) bool {
	return name == "" && p.read == MySQL && end > 0 && strings.HasPrefix(strings.TrimLeft(p.text[p.toks[end-1].End:], " "), "#")
}

func (p *parser) isTemporary(name string) bool {
	n := strings.ToLower(name)
	return scan.HasAnyPrefix(n, "#", "pg_temp.", "tempdb.", "@") ||
		slices.Contains(p.temporary, n)
}

// objectPairs maps two words that together name a kind of object to that kind.
var objectPairs = map[[2]string]string{{"foreign", "key"}: "other", {"server", "role"}: "role", {"user", "mapping"}: "other", {"event", "trigger"}: "other"}

func (p *parser) update(i, end int) {
	if p.is(i+1, "statistics") {
		p.add("ddl.additive", "", i, end)
		return
	}
	j := i + 1
	for p.isAny(j, "only", "ignore", "or", "replace", "rollback", "abort") || p.raw(j) == "low_priority" {
		j++
	}
	target, next := p.name(j, end)
	if p.isTemporary(target) {
		p.add("update.scoped", target, i, end)
		return
	}
	set := p.find(next, end, p.toks[i].depth, "set")
	if set < 0 && p.due(i, 0) && i > 0 || set < 0 && next >= end {
		p.out.Unknown = true
		return
	}
	p.add("update."+p.whereShape(i, end, target), target, i, end)
	p.systemTable(target, i, end)
	p.functions(i, end)
}

// systemTable records a write to a table that contains the accounts of the server.
func (p *parser) systemTable(target string, i, end int) {
	if holdsAccounts(target) {
		p.add("privilege.superuser", target, i, end)
	}
}

func holdsAccounts(table string) bool {
	switch strings.ToLower(table) {
	case "mysql.user", "mysql.global_priv", "mysql.db", "pg_authid", "pg_catalog.pg_authid", "pg_shadow", "sqlite_master", "sqlite_schema", "pg_class", "pg_catalog.pg_class", "pg_attribute":
		return true
	}
	return false
}

func (p *parser) insertion(verb string, i, end int) {
	j := i + 1
	effect := "insert"
	if verb == "replace" {
		effect = "replace"
	}
	for p.isAny(j, "into", "overwrite", "table", "ignore", "or", "replace", "all", "directory", "local") {
		if p.isAny(j, "overwrite", "replace") {
			effect = "replace"
		}
		j++
	}
	target, next := p.name(j, end)
	if effect == "replace" && p.selectsNothing(p.firstOf(next, end, "select"), end) {
		effect = "truncate"
	}
	p.add(effect, target, i, end)
	if p.is(j, "function") && p.raw(j+1) == "url" && p.firstOf(next, end, "from") > 0 {
		p.add(act.SendsAway, p.stringAt(j+3), i, end)
	}
	p.systemTable(target, i, end)
	p.functions(i, end)
}

func (p *parser) mergeStatement(i, end int) {
	j := i + 1
	for p.isAny(j, "into") {
		j++
	}
	target, _ := p.name(j, end)
	effect := "replace"
	for k := j; k < end; k++ {
		if !p.is(k, "then") || !p.is(k+1, "delete") {
			continue
		}
		when := k
		for when > j && !p.is(when, "when") {
			when--
		}
		if !p.has(when, k, "and") { // WHEN … AND condition THEN DELETE is scoped
			effect = "merge.unbounded"
		}
	}
	p.add(effect, target, i, end)
	p.functions(i, end)
}

func (p *parser) truncation(i, end int) {
	j := i + 1
	for p.isAny(j, "table", "only", "database", "all", "tables", "from") || p.is(j, "if") || p.is(j, "exists") {
		j++
	}
	target, _ := p.name(j, end)
	if p.isTemporary(target) {
		p.add("drop.other", target, i, end)
		return
	}
	p.add("truncate", target, i, end)
}

// ObjectWords maps the words after CREATE, DROP and ALTER to the kind of object. The kind is ""
// for a modifier, which is skipped. Several words may have the same kind.
var ObjectWords = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"table": "table", "tables": "table", "database": "database", "databases": "database", "db": "database", "schema": "schema", "keyspace": "database",
		"catalog": "database", "collection": "table", "view": "view", "index": "index", "sequence": "other",
		"function": "routine", "procedure": "routine", "proc": "routine", "trigger": "trigger", "event": "event", "rule": "rule",
		"aggregate": "other", "operator": "other", "type": "type", "domain": "other", "role": "role", "user": "role",
		"login": "role", "group": "role", "extension": "extension", "policy": "policy", "server": "server",
		"tablespace": "tablespace", "publication": "other", "subscription": "other", "statistics": "other",
		"language": "other", "cast": "other", "collation": "other", "conversion": "other", "transform": "other",
		"owned": "owned", "column": "column", "partition": "partition", "constraint": "other", "default": "other",
		"assembly": "assembly", "certificate": "other", "credential": "other", "synonym": "other", "link": "other", "package": "routine",
		"profile": "other", "directory": "other", "library": "other", "dimension": "other", "cluster": "other",
		"stream": "stream", "streams": "stream", "topic": "stream", "connector": "other", "stage": "stage", "pipe": "other", "task": "event",
		"warehouse": "other", "integration": "other", "share": "other", "tag": "other", "model": "other",
		"function's": "", "resource": "other", "workload": "other", "instance": "instance", "system": "system", "session": "session", "account": "account",
		"dictionary": "table", "quota": "other", "projection": "other", "measurement": "table", "series": "series", "shard": "table", "bucket": "database",
		"continuous": "other", "retention": "table", "access": "other", "text": "other", "search": "other", "job": "event",
		"temporary": "", "temp": "", "materialized": "view", "external": "", "foreign": "foreign", "global": "", "local": "",
		"unique": "", "fulltext": "", "spatial": "", "recursive": "", "unlogged": "", "transient": "", "dynamic": "",
		"public": "", "pluggable": "", "clustered": "", "nonclustered": "", "columnstore": "", "trusted": "", "procedural": "", "editionable": "",
		"all": "", "objects": "schema", "namespace": "database", "force": "", "or": "", "replace": "", "alter": "", "if": "", "not": "", "exists": "", "hypertable": "table", "edition": "other",
		"graph": "database", "space": "database", "vertex": "table", "edge": "table", "secret": "other", "macro": "routine", "service": "other",
		"symmetric": "other", "asymmetric": "other", "master": "other", "endpoint": "other", "audit": "other", "application": "other", "virtual": "", "row": "policy", "masking": "policy", "security": "policy", "network": "policy", "file": "other", "secondary": "", "hot": "", "replica": "other", "snapshot": "table", "backup": "database", "changefeed": "other", "schedule": "other", "schedules": "other", "changefeeds": "other", "placement": "other",
	}
})

// objectOf returns the kind of the object that the words at token i, after CREATE, DROP or ALTER,
// name.
func objectOf(p *parser, i, hi int) string {
	for n := 0; i < hi && n < 6 && p.toks[i].kind == sqlWord; n++ {
		word := p.raw(i)
		if kind, ok := objectPairs[[2]string{word, p.raw(i + 1)}]; ok {
			return kind
		}
		kind, ok := ObjectWords()[word]
		switch {
		case word == "definer", word == "algorithm", word == "sql":
			i = p.firstOf(i, hi, "view", "procedure", "function", "trigger", "event")
		case kind == "foreign", ok && kind == "":
			i++
		default:
			return kind
		}
	}
	return ""
}

// dropEffects maps the kind of a dropped object to its effect. For other kinds the effect is
// drop.other.
var dropEffects = map[string]string{"database": "drop.database", "schema": "drop.schema", "owned": "drop.schema", "column": "drop.column",
	"table": "drop.table", "tablespace": "drop.table", "partition": "drop.table", "stage": "drop.table"}

// objectName returns the name of the object after CREATE, DROP or ALTER. i is the index of the
// word after the verb.
func (p *parser) objectName(i, hi int) string {
	seen := false
	for ; i < hi && p.toks[i].kind == sqlWord; i++ {
		kind, ok := ObjectWords()[p.raw(i)]
		if p.isAny(i, "if", "not", "exists", "concurrently", "only", "or", "replace", "by", "view", "mapping", "for") || p.raw(i) == "data" {
			continue
		}
		if !ok || seen && kind != "" && !p.isAny(i, "table", "role", "trigger", "group") {
			break
		}
		seen = seen || kind != ""
	}
	name, _ := p.name(i, hi)
	return name
}

func (p *parser) drop(i, end int) {
	target := p.objectName(i+1, end)
	if p.hidden(target, end) {
		return
	}
	kind := objectOf(p, i+1, end)
	effect := cmp.Or(dropEffects[kind], "drop.other")
	switch {
	case p.isTemporary(target), p.isAny(i+1, "temporary", "temp"):
		effect = "drop.other"
	case kind == "series":
		effect = "delete." + p.whereShape(i, end, target)
	case kind == "stream" && p.is(end-1, "topic") && p.has(i, end, "delete"):
		effect = "drop.table"
	case kind == "role" && p.is(end-1, "cascade"):
		effect = "drop.schema" // Oracle drops all objects that the user owns
	case kind == "" && (p.op(i+1, "(") || i+1 >= end):
		p.out.Unknown = true
		return
	}
	p.add(effect, target, i, end)
}

// stringAt returns the value of the string token i, or "" if it is not a string.
func (p *parser) stringAt(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	switch text := p.textOf(i); {
	case p.toks[i].kind == sqlString:
		return stringText(text)
	case p.toks[i].kind == sqlName && text[0] == '"':
		return unquote(text)
	}
	return ""
}

func (p *parser) transaction(verb string, i, end int) {
	switch verb {
	case "begin", "start":
		p.begin(verb, i, end)
	case "commit":
		p.txStart = -1
	case "end":
		if p.toks[i].depth == 0 && i+1 >= end && !p.loop {
			p.txStart = -1
		}
	case "abort", "rollback":
		if !p.has(i+1, i+3, "to") {
			p.undo()
		}
	case "prepare":
		p.prepare(i, end)
	}
}

// begin handles BEGIN and START: a transaction, a block of statements, or the start of a replica.
func (p *parser) begin(verb string, i, end int) {
	switch {
	case verb == "start" && !p.is(i+1, "transaction"):
		p.out.ReadOnly = false
		if p.isAny(i+1, "slave", "replica") {
			p.add("server.config", "", i, end)
		}
	case verb == "begin" && i+1 < end && !p.isAny(i+1, "tran", "transaction", "work", "isolation", "read", "immediate", "exclusive") && p.raw(i+1) != "deferred":
		p.functions(i, end) // BEGIN starts a block
	default:
		p.txStart = len(p.out.Facts)
	}
}

// prepare judges the text of a prepared statement. PREPARE TRANSACTION ends the transaction,
// because another session may commit it.
func (p *parser) prepare(i, end int) {
	p.out.ReadOnly = false
	if p.is(i+1, "transaction") {
		p.txStart = -1
		return
	}
	name, next := p.name(i+1, end)
	if !p.is(next, "from") {
		return
	}
	p.assign(name, next+1, end)
	if text := p.vars[strings.ToLower(name)]; text != "" {
		p.nested(text, "prepare", i, end)
	} else {
		p.add("dynamic", name, i, end)
	}
}

// undo marks the effects of the open transaction as rolled back. It does nothing if the
// transaction contains an effect that ROLLBACK does not undo, because such a statement also
// commits the effects before it.
func (p *parser) undo() {
	from := p.txStart
	p.txStart = -1
	if from < 0 || from > len(p.out.Facts) {
		return
	}
	for _, f := range p.out.Facts[from:] {
		if escapesRollback(f.Effect, p.of.Transactional) {
			return
		}
	}
	for k := from; k < len(p.out.Facts); k++ {
		p.out.Facts[k].RolledBack = true
	}
}

// escapesRollback reports whether an effect remains after ROLLBACK. Most servers commit DDL
// automatically; transactional means that this server does not.
func escapesRollback(effect string, transactional bool) bool {
	switch kind, rest, _ := strings.Cut(effect, "."); kind {
	case "delete", "update", "insert", "replace", "merge":
		return false
	case "drop":
		return !transactional || rest == "database"
	case "truncate", "ddl", "privilege":
		return !transactional
	}
	return true
}
