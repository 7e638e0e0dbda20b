package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
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

// chainFilters are parts of a chain that pick rows.
var chainFilters = []string{"where", "Where", "filter(", "find(", "find_by", "findBy", "findOrFail", "findOne", "findFirst", "limit(", "first", "get("}

// runStringSQL runs the SQL in the strings of a text in a language without a scanner,
// where a function that takes SQL stands before them.
func (e *engine) runStringSQL(src *source) {
	text := src.text
	for i := 0; i < len(text) && e.budget.spend(1); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := closingQuote(text, i)
		if end < 0 {
			continue
		}
		if value := text[i+1 : end]; looksSQL(value) && src.depth < scan.MaxDepth && e.givenSQL(text[:i]) {
			inner := *src
			inner.text, inner.at, inner.depth = value, -1, src.depth+1
			inner.span, _ = src.where(i+1, end)
			e.read("sql", &inner, nil)
		}
		i = end
	}
}

// givenSQL: the call that is under way at the end of the text takes SQL.
func (e *engine) givenSQL(before string) bool {
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
	name := calledBefore(before)
	return sqlCalls[name[strings.LastIndexAny(name, "./!-")+1:]]
}

// runORM finds calls of object mappers in program text, and SQL in its strings
// where a call that runs SQL stands before them.
func (e *engine) runORM(src *source) {
	text := src.text
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
		if slices.ContainsFunc(chainFilters, func(f string) bool { return strings.Contains(chain, f) }) {
			effect = o.limited
		}
		r.Facts = append(r.Facts, sql.Fact{Effect: effect, Start: from, End: at + len(o.text)})
		r.Steps += len(text) / 16
	}
	if len(r.Facts) > 0 {
		e.statements(src, &r, "")
	}
}

// readORM judges calls of mappers in a program text.
func readORM(sh *shell, src *source, _ string, _ *invocation) flow {
	sh.e.runORM(src)
	return flow{}
}

// readQuoted judges the statements in the strings of a program text.
func readQuoted(sh *shell, src *source, _ string, _ *invocation) flow {
	sh.e.runStringSQL(src)
	return flow{}
}
