package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// kindSQL items are effects of database statements; their name is the id of the
// rule that the effect has.
const kindSQL = "sql"

// Statements matches the effects and hands carried shell text on.
func (e *Env) Statements(src *act.Source, r *sql.Result, words string) {
	if !e.Budget.Spend(r.Steps) || r.TooDeep {
		e.TooDeep = true
	}
	matched := false
	for i := range r.Facts {
		f := &r.Facts[i]
		it := act.Item{Kind: kindSQL, Name: ruleOf(f.Effect), Src: src, From: f.Start, To: f.End, Target: act.Printable(f.Target),
			Words: words + factWords(f), Undone: f.RolledBack || f.Deferred}
		if f.Via != "" {
			inner := *src
			inner.Via = append(append([]string(nil), src.Via...), f.Via)
			it.Src = &inner
		}
		matched = e.Match(&it) || matched
	}
	for _, f := range r.Files {
		span, _ := src.Where(f.Start, f.End)
		path := act.Word{Text: f.Path, At: -1, Span: span, Taint: src.Taint}
		(&Process{Env: e, Src: src}).Emit(src, f.Via, act.Effect{Op: f.Op, On: []act.Word{path}, Writes: f.Writes, From: f.Start, To: f.End})
	}
	for _, c := range r.Shell {
		span, _ := src.Where(c.Start, c.End)
		inner := act.Source{Text: c.Text, At: -1, Span: span, Via: append(append([]string(nil), src.Via...), c.Via), Depth: src.Depth + 1, Taint: src.Taint}
		if n := strings.Index(src.Text, c.Text); n >= 0 && src.At >= 0 && c.Text != "" {
			inner.At = src.At + n
		}
		in := act.Flow{}
		if strings.HasPrefix(c.Via, "copy-program") {
			in.Taint = act.FromDump // the table's rows are its input
		}
		if c.Via == "client-feeds" {
			in.Taint = act.FromBuilt
		}
		e.Front.Script(&Process{Env: e, Root: r.Root && c.Via == "client-shell"}, &inner, in)
	}
	if !matched && !r.ReadOnly {
		e.Unproven = true
		if r.Unknown {
			e.Doubt("a statement of an unknown dialect")
			e.See(act.UnknownDialect, src, 0, len(src.Text), "")
		}
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
	case "drop.database", "drop.schema", act.DropsDatabase:
		return " " + f.Target
	}
	if n := strings.LastIndexByte(f.Target, '.'); n > 0 {
		return " " + f.Target[:n]
	}
	return ""
}

// Mongo judges a text for MongoDB's shell.
func (e *Env) Mongo(src *act.Source, text, words string) {
	r := stores.MongoResult(e.Calls(), text)
	e.Statements(src, &r, words)
}

// Redis judges a text for Redis.
func (e *Env) Redis(src *act.Source, text, words string) {
	r := stores.RedisResult(e.Calls(), text)
	e.Statements(src, &r, words)
}
