package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// kindSQL is the kind of an item that is an effect of a database statement. The item's name is the
// id of the rule for the effect.
const kindSQL = "sql"

// Statements judges the effects of a parsed database text, and runs the shell commands in it.
func (e *Env) Statements(src *act.Source, r *sql.Result, words string) {
	if !e.Budget.Spend(r.Steps) || r.TooDeep {
		e.TooDeep = true
	}
	matched := false
	for i := range r.Facts {
		matched = e.statement(src, &r.Facts[i], words) || matched
	}
	for _, f := range r.Files {
		span, _ := src.Where(f.Start, f.End)
		path := act.Word{Text: f.Path, At: -1, Span: span, Taint: src.Taint}
		(&Process{Env: e, Src: src}).Emit(src, f.Via, act.Effect{Op: f.Op, On: []act.Word{path}, Writes: f.Writes, From: f.Start, To: f.End})
	}
	for _, c := range r.Shell {
		inner := src.Inside(act.Word{Text: c.Text, At: placeIn(src, c.Text), Taint: src.Taint}, c.Via)
		inner.Span, _ = src.Where(c.Start, c.End)
		inner.Layers = 0
		e.Front.Script(&Process{Env: e, Root: r.Root && c.Via == "client-shell"}, &inner, act.Flow{Taint: shellInput(c.Via)})
	}
	if matched || r.ReadOnly {
		return
	}
	e.Unproven = true
	if r.Unknown {
		e.Doubt("a statement of an unknown dialect")
		e.See(act.UnknownDialect, src, 0, len(src.Text), "")
	}
}

// placeIn returns the offset of a text in the submitted command, or -1 if the command does not
// have it unchanged.
func placeIn(src *act.Source, text string) int {
	if n := strings.Index(src.Text, text); n >= 0 && src.At >= 0 && text != "" {
		return src.At + n
	}
	return -1
}

// statement judges one effect and reports whether a rule matched.
func (e *Env) statement(src *act.Source, f *sql.Fact, words string) bool {
	if f.Via != "" {
		inner := *src
		inner.Via = append(slices.Clip(src.Via), f.Via)
		src = &inner
	}
	return e.Match(&act.Item{Kind: kindSQL, Name: ruleOf(f.Effect), Src: src, From: f.Start, To: f.End, Target: act.Printable(f.Target),
		Words: words + factWords(f), Undone: f.RolledBack || f.Deferred})
}

// shellInput returns the origin of the input of a program that a statement starts.
func shellInput(via string) act.Taint {
	switch {
	case strings.HasPrefix(via, "copy-program"): // its input is the table's rows
		return act.FromDump
	case via == "client-feeds":
		return act.FromBuilt
	}
	return 0
}

// ruleOf returns the rule id of an effect. The names of SQL effects omit the "sql." of the id.
func ruleOf(effect string) string {
	if strings.HasPrefix(effect, "nosql.") || strings.HasPrefix(effect, "orm.") || strings.HasPrefix(effect, "secret.") {
		return effect
	}
	return "sql." + effect
}

// factWords returns the name of the database or schema in a target, because it may be the name of
// an environment. The table's name does not count: test_results is not a test.
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
	r := stores.MongoResult(&e.Calls, text)
	e.Statements(src, &r, words)
}

// Redis judges a text for Redis.
func (e *Env) Redis(src *act.Source, text, words string) {
	r := stores.RedisResult(&e.Calls, text)
	e.Statements(src, &r, words)
}
