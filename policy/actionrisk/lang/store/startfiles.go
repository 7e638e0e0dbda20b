package store

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

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

// StartFiles runs the start files of a client that the command itself wrote.
func StartFiles(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) {
	if !act.StoreLanguage(w.Lang) || len(sh.Env.Files) == 0 {
		return
	}
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && fileOptionsOf[o.Name] != "" {
			startFile(sh, o.Value.Text, fileOptionsOf[o.Name], v)
		}
	}
	for _, name := range [...]string{"PSQLRC", "USQLRC"} {
		if w := sh.Vars[name]; len(w) == 1 {
			startFile(sh, w[0].Text, fileOptionsOf[name], v)
		}
		for _, a := range v.Env {
			if a.Name == name {
				startFile(sh, a.Value.Text, fileOptionsOf[name], v)
			}
		}
	}
	if strings.HasPrefix(v.Exe, "sqlplus") || v.Exe == "sqlcl" { // it looks where it is started
		startFile(sh, "login.sql", "login.sql", v)
	}
}

// startFile runs a file as the start file of another name.
func startFile(sh *interp.Process, name, as string, v *act.Invocation) {
	f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, name)]
	if !ok || !f.Known || sh.Src.Depth >= scan.MaxDepth {
		return
	}
	for _, c := range clientFiles {
		if c.name == as {
			runStartFile(sh, &c, f.Word, v)
			return
		}
	}
}

// runStartFile runs what a start file holds, or the values of its setting.
func runStartFile(sh *interp.Process, c *clientFile, text act.Word, v *act.Invocation) {
	if c.setting == "" {
		sh.Interpret(c.lang, text, v, c.name, nil)
		return
	}
	for line := range strings.Lines(text.Text) {
		key, value, ok := strings.Cut(line, "=")
		key = strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		word := act.Word{Text: value, At: -1, Span: text.Span}
		switch {
		case !ok || !sh.Env.Budget.Spend(1):
		case key == c.setting:
			sh.Interpret(c.lang, word, v, c.name, nil)
		case key == "pager":
			sh.Interpret("shell", word, v, c.name, nil)
		}
	}
}

// WritesStartFile runs what is written into a client's start file: it runs whenever
// the client is started next.
func WritesStartFile(sh *interp.Process, name act.Word, f act.Flow) {
	c, ok := startsClient(name.Text)
	if !ok || !name.Known() || !f.Known || len(f.Word.Text) > scan.MaxDecoded || sh.Src.Depth >= scan.MaxDepth {
		return
	}
	client, _, _ := strings.Cut(c.clients, " ")
	runStartFile(sh, &c, f.Word, &act.Invocation{Exe: client, Src: sh.Src, Stdin: act.Flow{Known: true}, Cwd: sh.Cwd})
}

// Restored: a dump that drops first is given to a client.
func Restored(sh *interp.Process, in act.Flow, v *act.Invocation) {
	if strings.HasSuffix(in.Via, act.DropsMark) {
		r := sql.Result{Facts: []sql.Fact{{Effect: "drop.table", Start: v.From, End: v.To}}}
		sh.Env.Statements(sh.Src, &r, stores.ClientWords(v, ""))
	}
}

// migrators apply the files of statements that are in a folder.
var migrators = map[string][]string{
	"flyway": {"migrate"}, "migrate": {"up", "down"}, "dbmate": {"up", "migrate"}, "goose": {"up", "up-to", "up-by-one"}, "sqlx": {"run"}, "diesel": {"run"}, "supabase": {"push", "up"},
	"prisma": {"deploy", "dev"}, "atlas": {"apply"}, "wrangler": {"apply"}, "tern": {"migrate"}, "sqitch": {"deploy"}, "liquibase": {"update"}, "node-pg-migrate": {"up"}, "refinery": {"migrate"}, "evolve": {"migrate"}, "hasura": {"apply"},
}

// Migrations runs the statements that the command itself has put where a migration
// tool finds them.
func Migrations(sh *interp.Process, v *act.Invocation) bool {
	e := sh.Env
	words := migrators[v.Exe]
	if len(e.Files) == 0 || len(words) == 0 || v.Dry || !slices.ContainsFunc(words, v.Has) {
		return false
	}
	var names []string
	for name, f := range e.Files {
		back := strings.HasSuffix(name, ".down.sql") && !v.Has("down")
		if f.Known && strings.HasSuffix(name, ".sql") && !back {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		src := v.Src.Inside(e.Files[name].Word, v.Exe)
		if src.Depth <= scan.MaxDepth {
			e.Read("sql", &src, nil)
		}
	}
	return false
}

// ReadMongo reads a text for MongoDB's shell.
func ReadMongo(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	sh.Env.Mongo(src, strings.ReplaceAll(src.Text, string(scan.Hole), "_"), stores.ClientWords(client, src.Text))
	return act.Flow{}
}

// ReadRedis reads a text for Redis.
func ReadRedis(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	sh.Env.Redis(src, strings.ReplaceAll(src.Text, string(scan.Hole), "_"), stores.ClientWords(client, src.Text))
	return act.Flow{}
}
