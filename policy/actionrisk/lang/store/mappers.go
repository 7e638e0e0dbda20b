package store

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// runStringSQL judges the SQL in those strings of a program text that are arguments of a function
// which runs SQL. It is for languages that have no scanner.
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

// givenSQL reports whether the innermost call that is open at the end of the text runs SQL.
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
	return e.Calls.Statements.Get(name[strings.LastIndexAny(name, "./!-")+1:])
}

// runORM judges calls of object-relational mappers in a program text. If a filter precedes the
// call, the effect is Mapper.Scoped, otherwise Mapper.Whole.
func runORM(e *interp.Env, src *act.Source) {
	text := src.Text
	if !strings.ContainsAny(text, ".:>") {
		return
	}
	var r sql.Result
	r.ReadOnly = true
	for _, o := range e.Calls.Mappers {
		at := strings.Index(text, o.Text)
		if at < 0 || o.Needs != "" && !strings.Contains(text, o.Needs) || at > 0 && text[at-1] <= ' ' && o.Text[0] == '.' {
			continue
		}
		from := strings.LastIndexAny(text[:at], ";\n") + 1
		effect, chain := o.Whole, text[from:at]
		if o.Scoped != "" && e.Calls.Filtered(chain) {
			effect = o.Scoped
		}
		r.Facts = append(r.Facts, sql.Fact{Effect: effect, Start: from, End: at + len(o.Text)})
		r.Steps += len(text) / 16
	}
	if len(r.Facts) > 0 {
		e.Statements(src, &r, "")
	}
}

// ReadORM judges the calls of object-relational mappers in a program text.
func ReadORM(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runORM(sh.Env, src)
	return act.Flow{}
}

// ReadQuoted judges the SQL statements in the strings of a program text.
func ReadQuoted(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runStringSQL(sh.Env, src)
	return act.Flow{}
}
