package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// consoleCalls maps functions that run a command of a web framework to the program with the same
// commands.
var consoleCalls = map[string]string{"call_command": "manage.py", "Artisan::call": "artisan", "execute_from_command_line": "manage.py"}

// wireCalls lists methods that write bytes to a connection.
var wireCalls = scan.SetOf("send sendall write sendto puts print syswrite end sendMessage writelines fwrite fputs socket_write stream_socket_sendto")

// database judges a call of a database driver or mapper, and reports whether the call is one.
func (r *inlineRun) database(name tokens.Token, args []tokens.Token) bool {
	cut := strings.LastIndexAny(name.Text, ".:>")
	last := strings.TrimLeft(name.Text[cut+1:], "&")
	if r.sends(name, args) {
		return true
	}
	method := cut >= 0 || r.isMethod(name)
	if effect := r.driverEffect(last, method, name, args); effect != "" {
		r.effect(effect, name, args)
		return true
	}
	list := r.strings(args)
	if r.console(name, last, list) {
		return true
	}
	for _, t := range list {
		if wireCalls.Has(last) && method && t.Kind == tokens.String && stores.LooksWire(t.Text) {
			r.readAs("wire", t, nil)
		}
	}
	return r.sh.Env.Calls.Statements.Get(last) && (method || strings.Contains(last, "_")) && r.runsSQL(name, args)
}

// console judges a call that runs a command of a web framework, or a script file in the MongoDB
// shell. It reports whether the call is one.
func (r *inlineRun) console(name tokens.Token, last string, list []tokens.Token) bool {
	if last == "load" && r.mongo {
		if len(list) > 0 {
			r.included(list[0].Text)
		}
		return true
	}
	program := consoleCalls[name.Text[strings.LastIndexByte(name.Text, '.')+1:]]
	if program == "" || len(list) == 0 {
		return false
	}
	r.run(append([]tokens.Token{{Text: program}}, list...))
	return true
}

// driverEffect returns the effect of a method of a database driver or an object-relational mapper,
// or "".
func (r *inlineRun) driverEffect(last string, method bool, name tokens.Token, args []tokens.Token) string {
	if d, ok := r.sh.Env.Calls.Drivers.Find(last); ok && (method || d.Scoped == "") {
		if d.Scoped != "" && !r.wholeFilter(args) {
			return d.Scoped
		}
		return d.Whole
	}
	if last == "purge" && scan.HasAny(name.Text, "control.", "ueue") {
		return act.EmptiesQueue
	}
	effect := r.mapperEffect(last, name, args)
	if effect == "" && last == "drop" && len(args) == 0 && (strings.HasPrefix(name.Text, "db.") || strings.Contains(r.chain(name), "ollection")) {
		return act.DropsCollection
	}
	return effect
}

// chain returns the text from the start of the statement or line up to and including the name.
func (r *inlineRun) chain(name tokens.Token) string {
	before := r.src.Text[:min(max(name.From, 0), len(r.src.Text))]
	return before[strings.LastIndexAny(before, ";\n")+1:] + name.Text
}

// mapperEffect returns the effect of a method of an object-relational mapper whose arguments, or
// the calls before it, decide the effect.
func (r *inlineRun) mapperEffect(last string, name tokens.Token, args []tokens.Token) string {
	text, chain := "", r.chain(name)
	if len(args) > 0 {
		from, to := max(args[0].From, 0), min(args[len(args)-1].To+2, len(r.src.Text))
		text = strings.Join(strings.Fields(r.src.Text[min(from, to):to]), "")
	}
	all, schema := false, strings.HasSuffix(chain, "sequelize.drop") || strings.HasSuffix(chain, "schema.drop")
	switch last {
	case "destroy":
		all = scan.HasAny(text, "truncate:true", "where:{}")
	case "delete":
		all = r.deletesAll(chain, name, args)
	case "del":
		all = len(args) == 0 && scan.HasAny(chain, "knex", "db(") && !strings.Contains(chain, "where")
	case "sync", "synchronize":
		schema = schema || text == "true" || strings.Contains(text, "force:true")
	}
	switch {
	case all:
		return "delete.unbounded"
	case schema:
		return "drop.schema"
	}
	return ""
}

// deletesAll reports whether no filter before or after delete restricts the rows.
func (r *inlineRun) deletesAll(chain string, name tokens.Token, args []tokens.Token) bool {
	rest := r.src.Text[min(max(name.To, 0), len(r.src.Text)):]
	if end := strings.IndexAny(rest, ";\n"); end >= 0 {
		rest = rest[:end]
	}
	if r.sh.Env.Calls.Filtered(chain + rest) {
		return false
	}
	return len(args) == 0 && strings.Contains(chain, ".query(") || len(args) > 0 && strings.Contains(r.src.Text, "drizzle")
}

// tagged judges a tagged template such as sql`drop table x`, if token i is its text and the tag is
// a function that runs SQL.
func (r *inlineRun) tagged(i int) {
	t := r.toks[i]
	if r.lang != "node" || t.Kind != tokens.String || i == 0 || r.toks[i-1].Kind != tokens.Name || r.toks[i-1].To >= len(r.src.Text) || r.src.Text[r.toks[i-1].To] != '`' {
		return
	}
	name := r.toks[i-1].Text
	if r.sh.Env.Calls.Statements.Get(name[strings.LastIndexByte(name, '.')+1:]) && stores.LooksSQL(t.Text) {
		r.readAs("sql", t, nil)
	}
}

// feedsClient judges the statements among the strings of the program text, if it starts a database
// client without a statement: popen("psql"), input=b"drop table x".
func (r *inlineRun) feedsClient(command string) {
	fields := strings.Fields(strings.Trim(command, "| "))
	if len(fields) == 0 || !r.sh.Env.ReadsStatements(scan.Base(fields[0])) {
		return
	}
	for _, f := range fields[1:] {
		switch f {
		case "-c", "-e", "-Q", "-f", "-q", "--command", "--execute", "--eval", "--file":
			return
		}
	}
	client := &act.Invocation{Exe: scan.Base(fields[0]), Cwd: r.sh.Cwd, Src: r.src}
	for _, t := range r.toks {
		if t.Kind == tokens.String && (stores.LooksSQL(t.Text) || stores.LooksRedis(t.Text) || stores.LooksMongo(t.Text)) && r.sh.Env.Budget.Spend(4) {
			r.readAs("sql", t, client)
		}
	}
}

// isMethod reports whether the name follows "->", "." or ":".
func (r *inlineRun) isMethod(name tokens.Token) bool {
	before := r.src.Text[:min(max(name.From, 0), len(r.src.Text))]
	return strings.HasSuffix(before, "->") || strings.HasSuffix(before, ".") || strings.HasSuffix(before, ":")
}

// runsSQL judges the SQL or the Redis command in the arguments of a call. It reports whether there
// is any.
func (r *inlineRun) runsSQL(name tokens.Token, args []tokens.Token) bool {
	if len(args) == 0 {
		return false
	}
	text, ok := r.firstText(args)
	list := r.strings(args)
	if len(list) > 1 && strings.Trim(text.Text, string(scan.Hole)) == "" && stores.LooksSQL(list[1].Text) {
		text, ok = list[1], true // the first argument is the connection
	}
	if !ok || text.Text == string(scan.Hole) {
		if decodesAny(args) && scan.HasAny(strings.ToLower(name.Text), "quer", "execute") {
			r.sh.Env.See(act.UnknownStatement, r.src, name.From, name.To, "")
		}
		return false
	}
	if words := r.listed(list, " ", name); stores.LooksRedis(words.Text) {
		src := r.src.Inside(r.word(words), r.lang)
		r.sh.Env.Redis(&src, words.Text, "")
		return true
	}
	for _, t := range append([]tokens.Token{text}, list...) { // the SQL may follow the connection
		if stores.LooksSQL(t.Text) {
			r.readAs("sql", t, r.library())
			return true
		}
	}
	return false
}

// library returns a client for an embedded database that the program text uses, or nil. The files
// of such a database are local files of the user.
func (r *inlineRun) library() *act.Invocation {
	for _, name := range [...]string{"duckdb", "sqlite3"} {
		if strings.Contains(r.src.Text, name) {
			return &act.Invocation{Exe: name, Cwd: r.sh.Cwd, Src: r.src}
		}
	}
	return nil
}

// firstText returns the first argument as a string. It evaluates concatenation, formats, join in
// Perl and the calls of statementMakers.
func (r *inlineRun) firstText(args []tokens.Token) (tokens.Token, bool) {
	if text, ok := formatted(args); ok {
		return text, true
	}
	if args[0].Text == "join" && len(args) > 1 {
		rest := args[1:]
		if rest[0].Kind == '(' {
			rest = rest[1:]
		}
		if list := r.strings(rest); len(list) > 1 {
			return r.listed(list[1:], list[0].Text, args[0]), true
		}
	}
	if len(args) > 3 && args[0].Kind == tokens.Name && args[1].Kind == '(' && scan.HasAnySuffix(args[0].Text, statementMakers...) {
		return r.firstText(args[2:])
	}
	list := r.strings(args)
	if len(list) == 0 {
		return tokens.Token{}, false
	}
	return list[0], true
}

// statementMakers lists the ends of names of functions that convert a text to a statement:
// text("…") of SQLAlchemy, Prisma.raw(`…`).
var statementMakers = []string{"text", "sql", "raw", "SQL", "Statement"}

// wholeFilter reports whether a call has no argument, or a filter that matches every document.
func (r *inlineRun) wholeFilter(args []tokens.Token) bool {
	if len(args) == 0 {
		return true
	}
	from, to := args[0].From, args[len(args)-1].To
	if from < 0 || to > len(r.src.Text) || from >= to {
		return false
	}
	first, _ := stores.SplitArg(r.src.Text[from:to])
	first = strings.Join(strings.Fields(first), "")
	if body, ok := strings.CutPrefix(first, "{where:"); ok {
		first = strings.TrimSuffix(body, "}")
	}
	return stores.MongoAll(strings.TrimSuffix(strings.TrimPrefix(first, "bson.M"), ",")) || first == "{data:" || strings.HasPrefix(first, "{data:") && !strings.Contains(r.src.Text[from:to], "where")
}

// effect reports one effect of a call on a database.
func (r *inlineRun) effect(effect string, name tokens.Token, args []tokens.Token) {
	to := name.To
	if len(args) > 0 {
		to = max(to, args[len(args)-1].To)
	}
	target := name.Text
	if list := r.strings(args); len(list) > 0 && list[0].Kind == tokens.String && strings.IndexByte(list[0].Text, scan.Hole) < 0 {
		target = list[0].Text
	}
	words := ""
	for _, t := range r.toks { // the address of the server shows the environment
		if t.Kind == tokens.String && strings.Contains(t.Text, "://") {
			words += " " + t.Text
		}
	}
	res := sql.Result{Facts: []sql.Fact{{Effect: effect, Target: target, Start: name.From, End: min(to, len(r.src.Text))}}}
	r.sh.Env.Statements(r.src, &res, words)
}

// included judges a script that load() names, if the command itself wrote it.
func (r *inlineRun) included(name string) {
	if f, ok := r.sh.Env.Files[r.sh.Env.Key(r.sh.Cwd, name)]; ok && f.Known && r.src.Depth < scan.MaxDepth {
		inner := r.src.Inside(f.Word, "load")
		r.sh.Read("mongo", &inner, nil)
	}
}
