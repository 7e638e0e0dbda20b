package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Program text that calls a database: the methods of drivers and object mappers,
// SQL in their arguments, and bytes that are written to a connection.

// driverEffects are the effects of drivers' methods by their names: on everything,
// and on what a filter picks if the method takes one.
var driverEffects = map[string]struct{ whole, scoped string }{
	"dropDatabase": {"nosql.database-drop", ""}, "drop_database": {"nosql.database-drop", ""}, "_dropDatabase": {"nosql.database-drop", ""}, "DropDatabase": {"nosql.database-drop", ""}, "deleteDatabase": {"nosql.database-drop", ""}, "drop_keyspace": {"nosql.database-drop", ""},
	"dropCollection": {"nosql.collection-drop", ""}, "drop_collection": {"nosql.collection-drop", ""}, "_drop": {"nosql.collection-drop", ""}, "deleteTable": {"nosql.collection-drop", ""}, "delete_table": {"nosql.collection-drop", ""}, "DropCollection": {"nosql.collection-drop", ""},
	"deleteMany": {"nosql.delete-all", "nosql.delete-scoped"}, "delete_many": {"nosql.delete-all", "nosql.delete-scoped"}, "DeleteMany": {"nosql.delete-all", "nosql.delete-scoped"},
	"updateMany": {"update.unbounded", "update.scoped"}, "update_many": {"update.unbounded", "update.scoped"}, "UpdateMany": {"update.unbounded", "update.scoped"},
	"flushall": {"nosql.redis.flush", ""}, "flushdb": {"nosql.redis.flush", ""}, "flushAll": {"nosql.redis.flush", ""}, "flushDb": {"nosql.redis.flush", ""}, "flushDB": {"nosql.redis.flush", ""}, "FlushAll": {"nosql.redis.flush", ""}, "FlushDB": {"nosql.redis.flush", ""}, "flush_all": {"nosql.redis.flush", ""},
	"config_set": {"nosql.redis.config-write", ""}, "configSet": {"nosql.redis.config-write", ""},
	"dropSchema": {"drop.schema", ""}, "drop_schema": {"drop.schema", ""}, "dropAllTables": {"drop.schema", ""}, "dropAllSchemas": {"drop.schema", ""}, "drop_all": {"drop.schema", ""}, "dropAllSequences": {"drop.other", ""},
	"dropTable": {"drop.table", ""}, "drop_table": {"drop.table", ""}, "dropTableIfExists": {"drop.table", ""}, "drop_tables": {"drop.table", ""}, "DropTable": {"drop.table", ""}, "DropTableIfExists": {"drop.table", ""},
	"dropColumn": {"drop.column", ""}, "removeColumn": {"drop.column", ""}, "remove_column": {"drop.column", ""}, "drop_column": {"drop.column", ""}, "DropColumn": {"drop.column", ""},
	"truncate_table": {"truncate", ""}, "truncateTable": {"truncate", ""}, "truncate_all": {"truncate", ""},
	"purgeQueue": {"nosql.queue-purge", ""}, "purge_queue": {"nosql.queue-purge", ""}, "queue_purge": {"nosql.queue-purge", ""}, "queuePurge": {"nosql.queue-purge", ""}, "deleteQueue": {"nosql.queue-purge", ""}, "delete_queue": {"nosql.queue-purge", ""}, "queue_delete": {"nosql.queue-purge", ""}, "obliterate": {"nosql.queue-purge", ""},
	"deleteTopics": {"nosql.topic-delete", ""}, "delete_topics": {"nosql.topic-delete", ""}, "deleteTopic": {"nosql.topic-delete", ""}, "delete_topic": {"nosql.topic-delete", ""}, "DeleteTopics": {"nosql.topic-delete", ""}, "delete_stream": {"nosql.topic-delete", ""}, "deleteStream": {"nosql.topic-delete", ""},
	"deleteAllInBatch": {"delete.unbounded", ""}, "deleteAllRows": {"delete.unbounded", ""},
}

// sqlCalls are functions that run the SQL in their first argument.
var sqlCalls = scan.SetOf(`execute executemany executescript execute_sql executeSql exec_driver_sql execute_immediate exec exec_query exec_sql exec_update exec_delete
	query queryRaw query_raw rawQuery raw_query raw rawSql execSQL execSql multi_query multiQuery real_query run all each none any one oneOrNone manyOrNone many result multi batch
	$executeRaw $executeRawUnsafe $queryRaw $queryRawUnsafe executeRaw executeRawUnsafe queryRawUnsafe executeUpdate executeQuery executeLargeUpdate executeStatement executeNonQuery ExecuteNonQuery ExecuteSqlRaw ExecuteSqlRawAsync ExecuteSqlCommand FromSqlRaw
	createQuery createNativeQuery createSQLQuery nativeQuery do prepare selectall_arrayref selectrow_array unprepared statement affectingStatement sql read_sql read_sql_query run_sql runSql
	Exec ExecContext Query QueryRow QueryContext MustExec NamedExec Raw pg_query mysqli_query mysqli_multi_query mysql_query sqlite_exec odbc_exec sqlsrv_query oci_parse db_query unsafe command execute_command sendCommand send_command sendCommandRaw call execute_query executeScript delete update select select_all select_value client_query simpleQuery sendline dbExecute dbSendStatement dbSendQuery dbGetQuery sqlQuery sqlExec executeStatement`)

// consoleCalls run a command of the application's own console.
var consoleCalls = map[string]string{"call_command": "manage.py", "Artisan::call": "artisan", "execute_from_command_line": "manage.py"}

// wireCalls are methods that write bytes to a connection.
var wireCalls = scan.SetOf("send sendall write sendto puts print syswrite end sendMessage writelines fwrite fputs socket_write stream_socket_sendto")

// database judges a call of a driver's method and tells whether it was one.
func (r *inlineRun) database(name inlineToken, args []inlineToken) bool {
	cut := strings.LastIndexAny(name.text, ".:>")
	last := strings.TrimLeft(name.text[cut+1:], "&")
	if r.sends(name, args) {
		return true
	}
	method := cut >= 0 || r.isMethod(name)
	if d, ok := driverEffects[last]; ok && (method || d.scoped == "") {
		effect := d.whole
		if d.scoped != "" && !r.wholeFilter(args) {
			effect = d.scoped
		}
		r.effect(effect, name, args)
		return true
	}
	if last == "purge" && (strings.Contains(name.text, "control.") || strings.Contains(name.text, "ueue")) {
		r.effect("nosql.queue-purge", name, args)
		return true
	}
	if last == "load" && r.mongo {
		if list := r.strings(args); len(list) > 0 {
			r.included(list[0].text)
		}
		return true
	}
	if effect := r.mapperEffect(last, name, args); effect != "" {
		r.effect(effect, name, args)
		return true
	}
	if last == "drop" && len(args) == 0 && r.ofCollection(name) {
		r.effect("nosql.collection-drop", name, args)
		return true
	}
	if program := consoleCalls[name.text[max(strings.LastIndexByte(name.text, '.'), -1)+1:]]; program != "" {
		if list := r.strings(args); len(list) > 0 {
			r.run(append([]inlineToken{{text: program}}, list...))
			return true
		}
	}
	if wireCalls[last] && method {
		for _, t := range r.strings(args) {
			if t.kind == 's' && looksWire(t.text) {
				src := r.src.inside(r.word(t), r.lang)
				r.sh.read("wire", &src, nil)
			}
		}
	}
	if !sqlCalls[last] || !method && !strings.Contains(last, "_") {
		return false
	}
	return r.runsSQL(name, args)
}

// ofCollection: the chain in front of a method goes through a collection.
func (r *inlineRun) ofCollection(name inlineToken) bool {
	before := r.src.text[:min(max(name.from, 0), len(r.src.text))]
	chain := before[strings.LastIndexAny(before, ";\n")+1:] + name.text
	return strings.Contains(chain, "ollection") || strings.HasPrefix(name.text, "db.")
}

// mapperEffect: methods of object mappers whose arguments, or whose chain, decide.
func (r *inlineRun) mapperEffect(last string, name inlineToken, args []inlineToken) string {
	text := ""
	if len(args) > 0 {
		from, to := max(args[0].from, 0), min(args[len(args)-1].to+2, len(r.src.text))
		text = strings.Join(strings.Fields(r.src.text[min(from, to):to]), "")
	}
	before := r.src.text[:min(max(name.from, 0), len(r.src.text))]
	chain := before[strings.LastIndexAny(before, ";\n")+1:] + name.text
	switch last {
	case "destroy":
		if strings.Contains(text, "truncate:true") || strings.Contains(text, "where:{}") {
			return "delete.unbounded"
		}
	case "sync", "synchronize":
		if strings.Contains(text, "force:true") || text == "true" {
			return "drop.schema"
		}
	case "drop":
		if strings.HasSuffix(chain, "sequelize.drop") || strings.HasSuffix(chain, "schema.drop") {
			return "drop.schema"
		}
	case "delete":
		rest := r.src.text[min(max(name.to, 0), len(r.src.text)):]
		if end := strings.IndexAny(rest, ";\n"); end >= 0 {
			rest = rest[:end]
		}
		filtered := slices.ContainsFunc(chainFilters, func(f string) bool { return strings.Contains(chain, f) || strings.Contains(rest, f) })
		if len(args) == 0 && strings.Contains(chain, ".query(") && !filtered || len(args) > 0 && strings.Contains(r.src.text, "drizzle") && !filtered {
			return "delete.unbounded"
		}
	case "del":
		if len(args) == 0 && (strings.Contains(chain, "knex") || strings.Contains(chain, "db(")) && !strings.Contains(chain, "where") {
			return "delete.unbounded"
		}
	}
	return ""
}

// tagged: sql`drop table x` hands the text behind a name to it.
func (r *inlineRun) tagged(i int) {
	t := r.toks[i]
	if r.lang != "node" || t.kind != 's' || i == 0 || r.toks[i-1].kind != 'i' || r.toks[i-1].to >= len(r.src.text) || r.src.text[r.toks[i-1].to] != '`' {
		return
	}
	name := r.toks[i-1].text
	if sqlCalls[name[strings.LastIndexByte(name, '.')+1:]] && looksSQL(t.text) {
		src := r.src.inside(r.word(t), r.lang)
		if src.depth <= scan.MaxDepth {
			r.sh.read("sql", &src, nil)
		}
	}
}

// feedsClient: a text that starts a database's client without a statement hands its
// own strings to it: popen("psql"), input=b"drop table x".
func (r *inlineRun) feedsClient(command string) {
	fields := strings.Fields(strings.Trim(command, "| "))
	if len(fields) == 0 || !r.sh.e.readsStatements(scan.Base(fields[0])) {
		return
	}
	for _, f := range fields[1:] {
		switch f {
		case "-c", "-e", "-Q", "-f", "-q", "--command", "--execute", "--eval", "--file":
			return
		}
	}
	client := &invocation{exe: scan.Base(fields[0]), cwd: r.sh.cwd, src: r.src}
	for _, t := range r.toks {
		if t.kind == 's' && (looksSQL(t.text) || looksRedis(t.text) || looksMongo(t.text)) && r.sh.e.budget.spend(4) {
			src := r.src.inside(r.word(t), r.lang)
			if src.depth <= scan.MaxDepth {
				r.sh.read("sql", &src, client)
			}
		}
	}
}

// readsStatements: a client that runs what it is given on its input.
func (e *engine) readsStatements(exe string) bool {
	for _, w := range e.wrappers[exe] {
		if w.Stdin && len(w.sub) == 0 && storeLanguage(w.Lang) {
			return true
		}
	}
	return false
}

// isMethod: -> or a point stands before the name.
func (r *inlineRun) isMethod(name inlineToken) bool {
	before := r.src.text[:min(max(name.from, 0), len(r.src.text))]
	return strings.HasSuffix(before, "->") || strings.HasSuffix(before, ".") || strings.HasSuffix(before, ":")
}

// runsSQL judges the SQL in a call's first argument and tells whether it is SQL.
func (r *inlineRun) runsSQL(name inlineToken, args []inlineToken) bool {
	if len(args) == 0 {
		return false
	}
	text, ok := r.firstText(args)
	if list := r.strings(args); len(list) > 1 && (!ok || strings.Trim(text.text, string(scan.Hole)) == "") && looksSQL(list[1].text) {
		text, ok = list[1], true // the connection stands before it
	}
	if !ok || text.text == string(scan.Hole) {
		if decodesAny(args) && strings.Contains(strings.ToLower(name.text), "quer") || decodesAny(args) && strings.Contains(strings.ToLower(name.text), "execute") {
			r.sh.e.raise("sql.dynamic", r.src, name.from, name.to, "")
		}
		return false
	}
	if words := r.listed(r.strings(args), " ", name); looksRedis(words.text) {
		src := r.src.inside(r.word(words), r.lang)
		r.sh.e.redis(&src, words.text, "")
		return true
	}
	for _, t := range r.strings(args) { // behind the connection
		if !looksSQL(text.text) && looksSQL(t.text) {
			text = t
		}
	}
	if !looksSQL(text.text) {
		return false
	}
	src := r.src.inside(r.word(text), r.lang)
	if src.depth <= scan.MaxDepth {
		r.sh.read("sql", &src, r.library())
	}
	return true
}

// library is the client that a text with a database in itself stands for, nil if it
// is none: its files are the user's.
func (r *inlineRun) library() *invocation {
	for _, name := range [...]string{"duckdb", "sqlite3"} {
		if strings.Contains(r.src.text, name) {
			return &invocation{exe: name, cwd: r.sh.cwd, src: r.src}
		}
	}
	return nil
}

// firstText is the first argument as a string: put together, formatted, or Perl's
// join of a list.
func (r *inlineRun) firstText(args []inlineToken) (inlineToken, bool) {
	if text, ok := formatted(args); ok {
		return text, true
	}
	if args[0].text == "join" && len(args) > 1 {
		rest := args[1:]
		if rest[0].kind == '(' {
			rest = rest[1:]
		}
		if list := r.strings(rest); len(list) > 1 {
			return r.listed(list[1:], list[0].text, args[0]), true
		}
	}
	if len(args) > 3 && args[0].kind == 'i' && args[1].kind == '(' && (strings.HasSuffix(args[0].text, "text") || strings.HasSuffix(args[0].text, "sql") || strings.HasSuffix(args[0].text, "raw") || strings.HasSuffix(args[0].text, "SQL") || strings.HasSuffix(args[0].text, "Statement")) {
		return r.firstText(args[2:]) // text("…") of SQLAlchemy, Prisma.raw(`…`)
	}
	list := r.strings(args)
	if len(list) == 0 {
		return inlineToken{}, false
	}
	return list[0], true
}

// wholeFilter: no argument, or one that every document meets.
func (r *inlineRun) wholeFilter(args []inlineToken) bool {
	if len(args) == 0 {
		return true
	}
	from, to := args[0].from, args[len(args)-1].to
	if from < 0 || to > len(r.src.text) || from >= to {
		return false
	}
	first, _ := splitArg(r.src.text[from:to])
	first = strings.Join(strings.Fields(first), "")
	if strings.HasPrefix(first, "{where:{}") {
		return true
	}
	if body, ok := strings.CutPrefix(first, "{where:"); ok {
		first = strings.TrimSuffix(body, "}")
	}
	return mongoAll(strings.TrimSuffix(strings.TrimPrefix(first, "bson.M"), ",")) || first == "{data:" || strings.HasPrefix(first, "{data:") && !strings.Contains(r.src.text[from:to], "where")
}

// effect reports one effect of a call.
func (r *inlineRun) effect(effect string, name inlineToken, args []inlineToken) {
	to := name.to
	if len(args) > 0 {
		to = max(to, args[len(args)-1].to)
	}
	target := name.text
	if list := r.strings(args); len(list) > 0 && list[0].kind == 's' && strings.IndexByte(list[0].text, scan.Hole) < 0 {
		target = list[0].text
	}
	words := ""
	for _, t := range r.toks { // the address of the server says where it acts
		if t.kind == 's' && strings.Contains(t.text, "://") {
			words += " " + t.text
		}
	}
	res := sql.Result{Facts: []sql.Fact{{Effect: effect, Target: target, Start: name.from, End: min(to, len(r.src.text))}}}
	r.sh.e.statements(r.src, &res, words)
}

// included runs a script that load() names, if the command itself wrote it.
func (r *inlineRun) included(name string) {
	if f, ok := r.sh.e.files[paths.FileKey(r.sh.cwd, name)]; ok && f.known && r.src.depth < scan.MaxDepth {
		inner := r.src.inside(f.word, "load")
		r.sh.read("mongo", &inner, nil)
	}
}
