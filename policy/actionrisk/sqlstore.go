package actionrisk

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Texts for stores that know no SQL, and the files in which clients of all of them
// keep what they run when they start.

// storeLanguage tells whether a text in a language is a database's to run.
func storeLanguage(lang string) bool {
	return lang == "sql" || lang == "mongo" || lang == "redis"
}

// clientFile says which clients read a file when they start, and in which language.
type clientFile struct {
	name    string // the last parts of its path
	clients string
	lang    string
	setting string // only the values of this setting are run
}

var clientFiles = []clientFile{
	{".psqlrc", "psql", "sql", ""},
	{".usqlrc", "usql", "sql", ""},
	{".my.cnf", "mysql mariadb mysqladmin mysqldump", "sql", "init-command"},
	{".mylogin.cnf", "mysql", "sql", "init-command"},
	{"my.cnf", "mysqld mariadbd", "sql", "init-file"},
	{".myclirc", "mycli", "sql", "init-commands"},
	{".sqliterc", "sqlite3 sqlite", "sql", ""},
	{".duckdbrc", "duckdb", "sql", ""},
	{".mongoshrc.js", "mongosh", "mongo", ""},
	{".mongorc.js", "mongo", "mongo", ""},
	{"login.sql", "sqlplus sqlcl", "sql", ""},
	{"glogin.sql", "sqlplus sqlcl", "sql", ""},
	{".hiverc", "hive", "sql", ""},
	{".arangosh.rc", "arangosh", "mongo", ""},
}

// fileOptionsOf are options, and variables, that name such a file.
var fileOptionsOf = map[string]string{
	"--defaults-file": ".my.cnf", "--defaults-extra-file": ".my.cnf", "-init": ".sqliterc", "--init": ".sqliterc", "--myclirc": ".myclirc",
	"PSQLRC": ".psqlrc", "USQLRC": ".usqlrc",
}

// startsClient is the entry of a file by its name, if clients run what it holds.
func startsClient(name string) (clientFile, bool) {
	last := path.Base(name)
	for _, f := range clientFiles {
		if last == f.name && f.name[0] == '.' {
			return f, true
		}
	}
	return clientFile{}, false
}

// startFiles runs the start files of a client that the command itself wrote.
func startFiles(sh *shell, w *wrapper, v *invocation) {
	if !storeLanguage(w.Lang) || len(sh.e.files) == 0 {
		return
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.given && fileOptionsOf[o.name] != "" {
			sh.startFile(o.value.Text, fileOptionsOf[o.name], v)
		}
	}
	for _, name := range [...]string{"PSQLRC", "USQLRC"} {
		if w := sh.vars[name]; len(w) == 1 {
			sh.startFile(w[0].Text, fileOptionsOf[name], v)
		}
		for _, a := range v.env {
			if a.name == name {
				sh.startFile(a.value.Text, fileOptionsOf[name], v)
			}
		}
	}
	if strings.HasPrefix(v.exe, "sqlplus") || v.exe == "sqlcl" { // it looks where it is started
		sh.startFile("login.sql", "login.sql", v)
	}
}

// startFile runs a file as the start file of another name.
func (sh *shell) startFile(name, as string, v *invocation) {
	f, ok := sh.e.files[paths.FileKey(sh.cwd, name)]
	if !ok || !f.known || sh.src.depth >= scan.MaxDepth {
		return
	}
	for _, c := range clientFiles {
		if c.name == as {
			sh.runStartFile(&c, f.word, v)
			return
		}
	}
}

// runStartFile runs what a start file holds, or the values of its setting.
func (sh *shell) runStartFile(c *clientFile, text Word, v *invocation) {
	if c.setting == "" {
		sh.interpret(c.lang, text, v, c.name, nil)
		return
	}
	for line := range strings.Lines(text.Text) {
		key, value, ok := strings.Cut(line, "=")
		key = strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		word := Word{Text: value, At: -1, Span: text.Span}
		switch {
		case !ok || !sh.e.budget.spend(1):
		case key == c.setting:
			sh.interpret(c.lang, word, v, c.name, nil)
		case key == "pager":
			sh.interpret("shell", word, v, c.name, nil)
		}
	}
}

// writesStartFile runs what is written into a client's start file: it runs whenever
// the client is started next.
func writesStartFile(sh *shell, name Word, f flow) {
	c, ok := startsClient(name.Text)
	if !ok || !name.known() || !f.known || len(f.word.Text) > scan.MaxDecoded || sh.src.depth >= scan.MaxDepth {
		return
	}
	client := c.clients
	if i := strings.IndexByte(client, ' '); i > 0 {
		client = client[:i]
	}
	sh.runStartFile(&c, f.word, &invocation{exe: client, src: sh.src, stdin: flow{known: true}, cwd: sh.cwd})
}

// dropsMark is put behind the name of a program that prints statements which drop
// what is there before they create it again.
const dropsMark = " --clean"

func dropsFirst(v *invocation) bool {
	return v.has("--clean") || v.exe == "pg_dump" && v.has("-c") || v.has("--add-drop-database")
}

// restored: a dump that drops first is given to a client.
func restored(sh *shell, in flow, v *invocation) {
	if strings.HasSuffix(in.via, dropsMark) {
		r := sql.Result{Facts: []sql.Fact{{Effect: "drop.table", Start: v.from, End: v.to}}}
		sh.e.statements(sh.src, &r, clientWords(v, ""))
	}
}

// buildsStatements: a command whose program prints what a database runs names what
// destroys, or puts its text together so that nobody can read it. A program that
// picks lines of a dump does neither.
func buildsStatements(text string) bool {
	low := strings.ToLower(text)
	for _, word := range [...]string{"drop", "truncate", "delete", "alter ", "grant ", "update ", "flush", "remove", "chr(", "char(", "charcode", "reverse", "decode", "pack(", "rot13", "[::-1]", "atob", "b64", "unhex", "fromhex"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// decodesText: programs that make text of letters. Dumps are kept packed and sealed,
// too, but not written in letters.
func decodesText(program string) bool {
	switch program {
	case "base64", "gbase64", "base32", "basenc", "xxd", "uudecode", "rev", "tr", "ascii85", "base58":
		return true
	}
	return false
}

// migrators apply the files of statements that lie in a folder.
var migrators = map[string][]string{
	"flyway": {"migrate"}, "migrate": {"up", "down"}, "dbmate": {"up", "migrate"}, "goose": {"up", "up-to", "up-by-one"}, "sqlx": {"run"}, "diesel": {"run"}, "supabase": {"push", "up"},
	"prisma": {"deploy", "dev"}, "atlas": {"apply"}, "wrangler": {"apply"}, "tern": {"migrate"}, "sqitch": {"deploy"}, "liquibase": {"update"}, "node-pg-migrate": {"up"}, "refinery": {"migrate"}, "evolve": {"migrate"}, "hasura": {"apply"},
}

// migrations runs the statements that the command itself has put where a migration
// tool finds them.
func migrations(sh *shell, v *invocation) bool {
	e := sh.e
	words := migrators[v.exe]
	if len(e.files) == 0 || len(words) == 0 || v.dry || !slices.ContainsFunc(words, v.has) {
		return false
	}
	var names []string
	for name, f := range e.files {
		back := strings.HasSuffix(name, ".down.sql") && !v.has("down")
		if f.known && strings.HasSuffix(name, ".sql") && !back {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		src := v.src.inside(e.files[name].word, v.exe)
		if src.depth <= scan.MaxDepth {
			e.read("sql", &src, nil)
		}
	}
	return false
}

// runMongo reads a text for MongoDB's shell.
func runMongo(sh *shell, src *source, _ string, client *invocation) flow {
	sh.e.mongo(src, strings.ReplaceAll(src.text, string(scan.Hole), "_"), clientWords(client, src.text))
	return flow{}
}

// runRedis reads a text for Redis.
func runRedis(sh *shell, src *source, _ string, client *invocation) flow {
	sh.e.redis(src, strings.ReplaceAll(src.text, string(scan.Hole), "_"), clientWords(client, src.text))
	return flow{}
}
