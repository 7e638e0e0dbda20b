package interp

import (
	"slices"
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

// placeIn is where a text is verbatim in the submitted command, or -1.
func placeIn(src *act.Source, text string) int {
	if n := strings.Index(src.Text, text); n >= 0 && src.At >= 0 && text != "" {
		return src.At + n
	}
	return -1
}

// statement matches one effect and tells whether a rule holds.
func (e *Env) statement(src *act.Source, f *sql.Fact, words string) bool {
	if f.Via != "" {
		inner := *src
		inner.Via = append(slices.Clip(src.Via), f.Via)
		src = &inner
	}
	return e.Match(&act.Item{Kind: kindSQL, Name: ruleOf(f.Effect), Src: src, From: f.Start, To: f.End, Target: act.Printable(f.Target),
		Words: words + factWords(f), Undone: f.RolledBack || f.Deferred})
}

// shellInput is where the input of a program comes from that a statement starts.
func shellInput(via string) act.Taint {
	switch {
	case strings.HasPrefix(via, "copy-program"): // the table's rows
		return act.FromDump
	case via == "client-feeds":
		return act.FromBuilt
	}
	return 0
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
	r := stores.MongoResult(&e.Calls, text)
	e.Statements(src, &r, words)
}

// Redis judges a text for Redis.
func (e *Env) Redis(src *act.Source, text, words string) {
	r := stores.RedisResult(&e.Calls, text)
	e.Statements(src, &r, words)
}
