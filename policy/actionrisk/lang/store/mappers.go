package store

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// ormEffects are what the methods of object mappers do to a whole table unless
// a filter stands before them in the chain.
var ormEffects = []struct {
	text           string
	whole, limited string
	needs          string // a word that the text must hold as well
}{
	{".delete_all", "delete.unbounded", "delete.scoped", ""},
	{".destroy_all", "delete.unbounded", "delete.scoped", ""},
	{".update_all", "update.unbounded", "update.scoped", ""},
	{".objects.all().delete()", "delete.unbounded", "delete.unbounded", ""},
	{".objects.all().update(", "update.unbounded", "update.unbounded", ""},
	{").delete()", "delete.scoped", "delete.scoped", ""},
	{"->truncate()", "truncate", "truncate", ""},
	{"::truncate()", "truncate", "truncate", ""},
	{"->delete()", "delete.unbounded", "delete.scoped", ""},
	{"truncate: true", "truncate", "truncate", ""},
	{".deleteMany()", "delete.unbounded", "delete.unbounded", ""},
	{".deleteMany({})", "delete.unbounded", "delete.unbounded", ""},
	{"drop_all(", "drop.schema", "drop.schema", ""},
	{"drop_table(", "drop.table", "drop.table", ""},
	{"dropSchema(", "drop.schema", "drop.schema", ""},
	{".dropTable(", "drop.table", "drop.table", ""},
	{"->dropIfExists(", "drop.table", "drop.table", ""},
	{"::dropIfExists(", "drop.table", "drop.table", ""},
	{"dropAllTables", "drop.schema", "drop.schema", ""},
	{"].delete", "delete.unbounded", "delete.scoped", "Sequel"},
	{"].truncate", "truncate", "truncate", "Sequel"},
	{"EnsureDeleted(", "drop.database", "drop.database", ""},
	{"EnsureDeletedAsync(", "drop.database", "drop.database", ""},
	{".truncate({", "truncate", "truncate", ""},
	{".query.delete()", "delete.unbounded", "delete.unbounded", ""},
	{".all().delete()", "delete.unbounded", "delete.scoped", ""},
	{".delete().execute()", "delete.unbounded", "delete.scoped", ""},
	{".delete()", "nosql.collection-drop", "nosql.delete-scoped", "dynamodb"},
	{".delete_prefix(", "nosql.delete-all", "nosql.delete-all", "etcd"},
	{".reset()", "nosql.database-drop", "nosql.database-drop", "chromadb"},
	{"delete_all=True", "nosql.delete-all", "nosql.delete-all", ""},
	{", recursive=True)", "nosql.delete-all", "nosql.delete-all", "azoo"},
	{".delete('", "nosql.database-drop", "nosql.database-drop", "couchdb.Server"},
	{`.delete("`, "nosql.database-drop", "nosql.database-drop", "couchdb.Server"},
	{"(&:delete_all)", "delete.unbounded", "delete.unbounded", ""},
	{"(&:destroy_all)", "delete.unbounded", "delete.unbounded", ""},
	{"each(&:destroy", "delete.unbounded", "delete.scoped", ""},
	{"each(&:delete)", "delete.unbounded", "delete.scoped", ""},
	{".flushall", "nosql.redis.flush", "nosql.redis.flush", "edis"},
	{".flushdb", "nosql.redis.flush", "nosql.redis.flush", "edis"},
	{".database.drop", "nosql.database-drop", "nosql.database-drop", "Mongo"},
	{".collections.each(&:drop)", "nosql.database-drop", "nosql.database-drop", "Mongo"},
	{".reference.delete()", "nosql.delete-all", "nosql.delete-scoped", "stream("},
	{"ref('/').remove(", "nosql.database-drop", "nosql.database-drop", ""},
	{`ref("/").remove(`, "nosql.database-drop", "nosql.database-drop", ""},
	{".ref().remove(", "nosql.database-drop", "nosql.database-drop", ""},
	{"ref('/').set(null", "nosql.database-drop", "nosql.database-drop", ""},
	{`ref("/").set(null`, "nosql.database-drop", "nosql.database-drop", ""},
	{"Repo.delete_all", "delete.unbounded", "delete.scoped", ""},
}

// runStringSQL runs the SQL in the strings of a text in a language without a scanner,
// where a function that takes SQL stands before them.
func runStringSQL(e *interp.Env, src *act.Source) {
	text := src.Text
	for i := 0; i < len(text) && e.Budget.Spend(1); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			continue
		}
		if value := text[i+1 : end]; stores.LooksSQL(value) && src.Depth < scan.MaxDepth && givenSQL(e, text[:i]) {
			inner := *src
			inner.Text, inner.At, inner.Depth = value, -1, src.Depth+1
			inner.Span, _ = src.Where(i+1, end)
			e.Read("sql", &inner, nil)
		}
		i = end
	}
}

// givenSQL: the call that is under way at the end of the text takes SQL.
func givenSQL(e *interp.Env, before string) bool {
	before = before[max(0, len(before)-160):]
	depth, open := 0, len(before)-1
	for ; open >= 0; open-- {
		if before[open] == ')' {
			depth++
		} else if before[open] == '(' {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	if open >= 0 {
		before = before[:open+1]
	}
	name := tokens.CalledBefore(before)
	return stores.Calls[name[strings.LastIndexAny(name, "./!-")+1:]]
}

// runORM finds calls of object mappers in program text, and SQL in its strings
// where a call that runs SQL stands before them.
func runORM(e *interp.Env, src *act.Source) {
	text := src.Text
	if !strings.ContainsAny(text, ".:>") {
		return
	}
	var r sql.Result
	r.ReadOnly = true
	for _, o := range ormEffects {
		at := strings.Index(text, o.text)
		if at < 0 || o.needs != "" && !strings.Contains(text, o.needs) || at > 0 && text[at-1] <= ' ' && o.text[0] == '.' {
			continue
		}
		from := strings.LastIndexAny(text[:at], ";\n") + 1
		effect, chain := o.whole, text[from:at]
		if slices.ContainsFunc(stores.ChainFilters, func(f string) bool { return strings.Contains(chain, f) }) {
			effect = o.limited
		}
		r.Facts = append(r.Facts, sql.Fact{Effect: effect, Start: from, End: at + len(o.text)})
		r.Steps += len(text) / 16
	}
	if len(r.Facts) > 0 {
		e.Statements(src, &r, "")
	}
}

// ReadORM judges calls of mappers in a program text.
func ReadORM(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runORM(sh.Env, src)
	return act.Flow{}
}

// ReadQuoted judges the statements in the strings of a program text.
func ReadQuoted(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runStringSQL(sh.Env, src)
	return act.Flow{}
}
