// Package stores decides for which database a text is: SQL, MongoDB's shell or Redis. It finds the
// effects of the latter two; package sql finds those of SQL.
package stores

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Clients maps a client to the SQL syntax that it uses. For other clients all syntaxes are tried.
var Clients = map[string]sql.Reading{
	"psql": sql.ANSI, "pgcli": sql.ANSI, "cockroach": sql.ANSI, "ysqlsh": sql.ANSI, "vsql": sql.ANSI, "gsql": sql.ANSI,
	"sqlite3": sql.ANSI, "sqlite": sql.ANSI, "duckdb": sql.ANSI,
	"mysql": sql.MySQL, "mariadb": sql.MySQL, "mycli": sql.MySQL,
	"sqlcmd": sql.ANSI, "osql": sql.ANSI, "isql": sql.ANSI, "sqlplus": sql.ANSI, "sqlcl": sql.ANSI,
	"cqlsh": sql.Slash | sql.ANSI, "nzsql": sql.ANSI, "usql": sql.ANSI, "mysqlsh": sql.MySQL, "mssql-cli": sql.ANSI, "litecli": sql.ANSI,
}

// ClientWords returns the operands and option values of a client that name its server or database:
// all except the text that it runs.
func ClientWords(v *act.Invocation, text string) string {
	if v == nil {
		return ""
	}
	words := []string{""}
	place := func(t string) bool { return t != text && !strings.ContainsAny(t, " \n") }
	for _, w := range v.Operands {
		if place(w.Text) && !strings.Contains(w.Text, "/dev/") {
			words = append(words, w.Text)
		}
	}
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && place(o.Value.Text) && !strings.HasPrefix(o.Value.Text, "/") {
			words = append(words, o.Value.Text)
		}
	}
	return strings.Join(append(words, setWords(v)...), " ")
}

// setWords returns further words about the server of a client: the values of variables such as
// PGHOST, "local" if the database is on this machine, and the host on which the client runs.
func setWords(v *act.Invocation) (words []string) {
	for _, a := range v.Env {
		if strings.HasPrefix(a.Name, "PG") || scan.HasAnySuffix(a.Name, "_ENV", "URL") {
			words = append(words, a.Value.Text)
		}
	}
	if v.Has("--local") && facts.Tables().In("local-stores", v.Exe) || inMemory(v) {
		words = append(words, "local")
	}
	return append(words, v.Host)
}

// inMemory reports whether the client's database is only in memory, and no other is opened.
func inMemory(v *act.Invocation) bool {
	memory := false
	for _, w := range v.Operands {
		text := strings.ToLower(w.Text)
		if scan.HasAny(text, "attach", ".open", ".restore") {
			return false
		}
		memory = memory || text == ":memory:" || strings.HasPrefix(text, "file::memory:")
	}
	return memory
}

// LooksSQL reports whether the first words begin a statement of some database. It is a cheap test
// for text of an unknown language. If the first word is also a program's name, the following words
// decide.
func LooksSQL(text string) bool {
	text = skipSQLSpace(text)
	if strings.HasPrefix(text, "(") {
		return strings.HasPrefix(strings.ToLower(strings.TrimLeft(text, "( ")), "select ")
	}
	word, rest := sqlWordAt(text)
	next, after := sqlWordAt(skipSQLSpace(rest))
	switch word {
	case "":
		return sqlMetaStart(text)
	case "db":
		return LooksMongo(text)
	case "select", "insert", "merge", "upsert", "with", "explain", "values", "grant", "revoke", "deny", "for":
		return sqlSecond(word, next, strings.ToLower(rest))
	case "delete":
		return deletesRows(next, rest, after)
	case "update":
		return setsColumns(rest, after)
	case "drop", "create", "alter", "truncate":
		return sqlObject(word, next, rest, after)
	case "if", "begin", "while", "declare":
		if blockOfSQL(word, strings.ToLower(rest)) {
			return true
		}
	case "exec", "execute", "call":
		return callsProcedure(word, next, rest)
	}
	return sqlPair(word, next, rest)
}

// setsColumns reports whether UPDATE is the SQL statement (UPDATE t SET x = 1), not a program with
// options.
func setsColumns(rest, after string) bool {
	return HasSQLWord(strings.ToLower(after), "set") && strings.Contains(after, "=") && !strings.HasPrefix(strings.TrimSpace(rest), "-")
}

// blockOfSQL reports whether a block contains SQL statements. The word "declare" with an option is
// bash, and a compound command such as "if …; then" is the shell's.
func blockOfSQL(word, low string) bool {
	option := word == "declare" && strings.HasPrefix(strings.TrimLeft(low, " "), "-")
	return !option && sql.HoldsSQL(low) && !scan.HasAny(low, "; then", ";then", "; do", "\ndo", "\nthen")
}

// callsProcedure reports whether a verb calls a stored procedure or runs a text as a statement.
func callsProcedure(word, next, rest string) bool {
	name := procedureName(rest)
	return strings.HasPrefix(name, "sp_") || strings.HasPrefix(name, "xp_") || next == "immediate" || next == "master" ||
		strings.HasPrefix(strings.TrimSpace(rest), "(") || strings.Contains(rest, "xp_cmdshell") || word == "call" && strings.Contains(rest, "(")
}

// procedureName returns the last part of the dotted name before the arguments, in lower case:
// msdb.dbo.sp_add_job, [master]..[xp_cmdshell].
func procedureName(rest string) string {
	rest = strings.TrimLeft(rest, " \t\n")
	end := 0
	for end < len(rest) && (sql.IsWordByte(rest[end]) || strings.IndexByte(".[]\"", rest[end]) >= 0) {
		end++
	}
	name := rest[:end]
	return strings.Trim(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]), "[]\"")
}

// deletesRows reports whether the words after DELETE are those of an SQL statement.
func deletesRows(next, rest, after string) bool {
	third, _ := sqlWordAt(skipSQLSpace(after))
	return next == "from" || next == "top" || third == "from" || third == "where" || deletesByName(rest)
}

// deletesByName reports whether DELETE has MySQL's modifiers, or lists tables before FROM ("DELETE
// o.*, i FROM …").
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

// LaterSQL reports whether a text begins with a statement that is also a shell command (SET x = 1,
// EXEC p, PRINT 'x') and has a later one that is only SQL.
func LaterSQL(text string) bool {
	text = skipSQLSpace(text)
	word, rest := sqlWordAt(text)
	if !mayPrecede(word, text, rest) {
		return false
	}
	for n := 0; n < scan.MaxLaterSQL; n++ {
		at := strings.IndexAny(rest, ";\n")
		if at < 0 {
			return false
		}
		if rest = skipSQLSpace(rest[at+1:]); LooksSQL(rest) {
			return true
		}
	}
	return false
}

// mayPrecede reports whether a text begins with a statement that may precede the first one that is
// clearly SQL.
func mayPrecede(word, text, rest string) bool {
	second, behind := sqlWordAt(skipSQLSpace(rest))
	switch word {
	case "set":
		behind = strings.TrimLeft(behind, " ")
		return second != "" && (scan.HasAnyPrefix(behind, "=", ":=") || HasSQLWord(strings.ToLower(behind[:min(len(behind), 64)]), "to", "on", "off"))
	case "go":
		return strings.HasPrefix(strings.TrimLeft(text[2:], " \t;"), "\n")
	case "begin", "commit", "rollback":
		return true
	case "exec", "execute", "call", "print", "use", "declare", "start", "savepoint", "prepare", "show", "deallocate", "raiserror":
		return second != ""
	}
	return false
}

// sqlSecond reports whether the text after a verb that only SQL has continues as a statement. low
// is the text in lower case.
func sqlSecond(word, next, low string) bool {
	switch word {
	case "select":
		// "select x in …; do" is a loop of bash
		return !strings.Contains(low, " in ") || !strings.Contains(low, "; do") || strings.Contains(low, " from ")
	case "merge":
		return HasSQLWord(low, "using")
	case "insert", "upsert":
		return slices.Contains([]string{"into", "overwrite", "ignore", "or"}, next) || HasSQLWord(low, "using", "values")
	case "with":
		return scan.HasAny(low, " as (", " as(", " as materialized")
	case "grant", "revoke", "deny":
		return HasSQLWord(low, "to", "from", "on")
	case "for":
		return removesEach(low)
	}
	return word == "explain" && next != "" || strings.HasPrefix(strings.TrimSpace(low), "(")
}

// sqlPair reports whether the text after a word fits the word's entry in sqlPairs.
func sqlPair(word, next, rest string) bool {
	alternatives, ok := sqlPairs[word]
	low := strings.TrimSpace(strings.ToLower(rest))
	switch {
	case !ok:
		return false
	case alternatives == "":
		return low == "" || scan.HasAnyPrefix(low, ";", "async", "sync")
	case alternatives == "*":
		return next != ""
	case alternatives == "* ":
		return next != "" && !strings.HasPrefix(low, "-") && !strings.ContainsAny(low, "/|&$")
	}
	return slices.ContainsFunc(strings.Split(alternatives, "|"), func(a string) bool {
		if a == " " {
			return low == ""
		}
		if part, anywhere := strings.CutPrefix(a, "*"); anywhere {
			return strings.Contains(" "+low, " "+strings.TrimSpace(part))
		}
		return strings.HasPrefix(low, a)
	})
}

// removesEach reports whether a loop removes documents: FOR x IN c REMOVE x IN c. A loop of a
// shell has "; do".
func removesEach(low string) bool {
	return HasSQLWord(low, "in") && HasSQLWord(low, "remove") && !strings.Contains(low, ";") && !HasSQLWord(low, "do")
}

// sqlObject reports whether DROP, CREATE, ALTER or TRUNCATE names an object of a database.
func sqlObject(word, next, rest, after string) bool {
	if word == "truncate" {
		return next == "table" || next == "only" || next == "database" || next == "all" && HasSQLWord(strings.ToLower(rest), "tables") || truncates(strings.TrimSpace(skipSQLSpace(rest)))
	}
	if _, ok := sql.ObjectWords()[next]; !ok {
		return false
	}
	return strings.TrimSpace(after) != "" || word == "drop"
}

// truncates reports whether the text after TRUNCATE (without TABLE) is a list of names with the
// few words that may follow them. The program truncate of coreutils and plain English continue
// differently.
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

// sqlPairs maps verbs that are also programs or English words to the texts that must follow in
// SQL, separated by "|". The rest must begin with one of them, or, after a "*", contain it. ""
// means that nothing, or ";", "async" or "sync" must follow. "*" alone requires a word. "* " alone
// requires a word, and no characters that only a shell uses.
var sqlPairs = map[string]string{
	"show": "* ", "describe": "* ", "use": "* ", "analyze": "table|verbose", "vacuum": "*retain|full|analyze|verbose|freeze|;| ", "optimize": "table", "reindex": "table|index|database|schema|system|concurrently",
	"cluster": "* using", "refresh": "materialized|table", "rename": "table", "replace": "into", "lock": "table|tables", "flush": "tables|privileges|logs|hosts|table|binary|status", "purge": "binary|master|recyclebin|table",
	"kill": "query|connection", "shutdown": "abort|immediate|transactional|normal|nowait", "set": "global|persist|session|password|role|search_path|@|local", "reset": "master|slave|replica|query|all|binary",
	"begin": ";|transaction|work|tran|immediate|try|isolation| ", "start": "transaction|slave|replica", "commit": ";", "rollback": ";", "do": "$|language", "declare": "@", "prepare": "*from|*as|transaction",
	"copy": "*from '|*from s|*to '|*to p|*from p|into|(|*to s", "load": "data|xml|csv", "bulk": "insert", "import": "foreign", "comment": "on", "reassign": "owned", "pragma": "*", "attach": "database|'", "detach": "database|table",
	"backup": "database|log|into '", "export": "data options|data with connection|into csv|into parquet", "restore": "database|log", "stop": "slave|replica", "change": "master|replication", "install": "plugin|component", "dbcc": "*", "match": "(",
	"exchange": "tables", "undrop": "table|database|schema", "security": "label", "discard": "all", "notify": "*;", "system": "drop|stop|start|reload|flush|shutdown|kill", "if": "exists (|object_id",
	"remove": "database|namespace|table|ns |db ", "runscript": "from", "flashback": "database|table", "while": "1=1|1 = 1|(1=1|exists", "delimiter": "*", "go": "", "flushall": "", "flushdb": "", "config": "set ", "msck": "repair", "xp_cmdshell": "'", "sp_executesql": "n'|'", "sp_configure": "'", "unload": "(", "waitfor": "delay", "handler": "*open", "savepoint": "*;", "table": "*;"}

// skipSQLSpace skips white space, comments, semicolons and the marks of executable comments.
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

// sqlWordAt returns the first word in lower case and the rest of the text. A comment inside a verb
// is removed.
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
			if joined := w + strings.ToLower(tail[:after]); sql.Verbs.Has(joined) && !sql.Verbs.Has(w) {
				return joined, tail[after:]
			}
		}
	}
	return w, rest
}

// HasSQLWord reports whether a text in lower case contains one of the words as a whole word.
func HasSQLWord(low string, words ...string) bool {
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

// sqlMetaStart reports whether a text begins with a meta-command such as psql's \!. A shell
// command may begin with a backslash, too: \rm.
func sqlMetaStart(text string) bool {
	for _, m := range [...]string{`\!`, `\copy `, `\gexec`, `\i `, `\o `, `\dt`, `\d `, `\d+`, `\l`, `\c `, `\du`, `\x`} {
		if strings.HasPrefix(text, m) {
			return m != `\l` && m != `\x` || len(text) == 2 || strings.HasPrefix(text[2:], "\n") || strings.HasPrefix(text[2:], "+")
		}
	}
	return false
}

// QueryKeys are the members and parameters that services run as statements.
var QueryKeys = scan.SetOf("sql query statement stmt statements queries ksql aql cypher db_query raw_query sqltext sql_query command_text gremlin n1ql")
