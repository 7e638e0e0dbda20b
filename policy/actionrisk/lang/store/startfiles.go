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

// clientFile describes a file that database clients run when they start, and its language.
type clientFile struct {
	name    string // the last parts of its path
	clients string
	lang    string
	setting string // run only the values of this setting; "" runs the whole file
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

// fileOptionsOf maps an option or an environment variable that names a start file to the usual
// name of that file.
var fileOptionsOf = map[string]string{
	"--defaults-file": ".my.cnf", "--defaults-extra-file": ".my.cnf", "-init": ".sqliterc", "--init": ".sqliterc", "--myclirc": ".myclirc",
	"PSQLRC": ".psqlrc", "USQLRC": ".usqlrc",
}

// startsClient returns the entry of a hidden file that database clients run when they start, and
// false if the name is not such a file.
func startsClient(name string) (clientFile, bool) {
	last := path.Base(name)
	for _, f := range clientFiles {
		if last == f.name && f.name[0] == '.' {
			return f, true
		}
	}
	return clientFile{}, false
}

// StartFiles judges the start files of a client that the command itself wrote.
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
	if strings.HasPrefix(v.Exe, "sqlplus") || v.Exe == "sqlcl" { // these clients read login.sql in the working directory
		startFile(sh, "login.sql", "login.sql", v)
	}
}

// startFile judges a file that the command itself wrote. The parameter "as" is the usual name of
// the start file, which decides how its content is read.
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

// runStartFile judges the content of a start file. In a file with settings it judges only the
// setting that runs statements, and the pager.
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

// WritesStartFile judges text that a command writes into the start file of a client. The client
// runs this text when it starts the next time.
func WritesStartFile(sh *interp.Process, name act.Word, f act.Flow) {
	c, ok := startsClient(name.Text)
	if !ok || !name.Known() || !f.Known || len(f.Word.Text) > scan.MaxDecoded || sh.Src.Depth >= scan.MaxDepth {
		return
	}
	client, _, _ := strings.Cut(c.clients, " ")
	runStartFile(sh, &c, f.Word, &act.Invocation{Exe: client, Src: sh.Src, Stdin: act.Flow{Known: true}, Cwd: sh.Cwd})
}

// Restored reports that tables are dropped if a client is given a database dump that drops each
// table before it creates it.
func Restored(sh *interp.Process, in act.Flow, v *act.Invocation) {
	if strings.HasSuffix(in.Via, act.DropsMark) {
		r := sql.Result{Facts: []sql.Fact{{Effect: "drop.table", Start: v.From, End: v.To}}}
		sh.Env.Statements(sh.Src, &r, stores.ClientWords(v, ""))
	}
}

// migrators maps each migration tool to the words with which it applies the SQL files of a folder.
var migrators = map[string][]string{
	"flyway": {"migrate"}, "migrate": {"up", "down"}, "dbmate": {"up", "migrate"}, "goose": {"up", "up-to", "up-by-one"}, "sqlx": {"run"}, "diesel": {"run"}, "supabase": {"push", "up"},
	"prisma": {"deploy", "dev"}, "atlas": {"apply"}, "wrangler": {"apply"}, "tern": {"migrate"}, "sqitch": {"deploy"}, "liquibase": {"update"}, "node-pg-migrate": {"up"}, "refinery": {"migrate"}, "evolve": {"migrate"}, "hasura": {"apply"},
}

// Migrations judges the SQL files that the command itself wrote, if a migration tool applies them.
// It always returns false, because it matches no rule for the call itself.
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

// ReadMongo judges a text for the MongoDB shell.
func ReadMongo(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	sh.Env.Mongo(src, strings.ReplaceAll(src.Text, string(scan.Hole), "_"), stores.ClientWords(client, src.Text))
	return act.Flow{}
}

// ReadRedis judges a text for Redis.
func ReadRedis(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	sh.Env.Redis(src, strings.ReplaceAll(src.Text, string(scan.Hole), "_"), stores.ClientWords(client, src.Text))
	return act.Flow{}
}
