package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Coverage describes which parts of the action the engine understood.
type Coverage struct {
	Route         string   `json:"route" jsonschema_description:"Language in which the command was read."`
	Parsed        bool     `json:"parsed" jsonschema_description:"False if a parser rejected a part of the command. That part was only scanned for tokens."`
	ReadOnly      bool     `json:"readOnly" jsonschema_description:"True if every part is proven to change nothing."`
	Unmatched     bool     `json:"unmatched" jsonschema_description:"True if no rule matched and the command is not proven read-only."`
	Uncertainties []string `json:"uncertainties" jsonschema_description:"What the engine could not evaluate, one clause each."`
}

// Assessment is the verdict of the engine.
type Assessment struct {
	Risk             act.Level
	Score            int // 0 to 99
	RequiresApproval bool
	Findings         []interp.Finding // sorted by level (highest first), span and id; at most 64
	Coverage         Coverage
}

// RuleIDs returns the ids of the rules that matched, without duplicates, the highest level first.
// It is never nil.
func (a Assessment) RuleIDs() []string {
	ids := make([]string, 0, len(a.Findings))
	for i := range a.Findings {
		if id := a.Findings[i].Rule.ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Conclude sorts the findings and combines them into one verdict.
func Conclude(e *interp.Env, route string) Assessment {
	a := Assessment{Coverage: Coverage{Route: route, Parsed: !e.Unparsed, Uncertainties: e.Uncertain}}
	if a.Coverage.Uncertainties == nil {
		a.Coverage.Uncertainties = []string{}
	}
	a.Coverage.ReadOnly = len(e.Findings) == 0 && !e.Unproven && !e.Unparsed && e.Ran
	a.Coverage.Unmatched = !a.Coverage.ReadOnly && !slices.ContainsFunc(e.Findings, understood)
	if e.Action.FailClosedOnUnmatched && (a.Coverage.Unmatched || e.Loose) {
		e.See(act.NotKnown, &act.Source{Text: e.Action.Command}, 0, len(e.Action.Command), "")
	}
	slices.SortStableFunc(e.Findings, func(a, b interp.Finding) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.Span.Start, b.Span.Start),
			cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Rule.ID, b.Rule.ID))
	})
	a.Findings = e.Findings[:min(len(e.Findings), scan.MaxFindings)]
	if a.Findings == nil {
		a.Findings = []interp.Finding{}
	}
	a.Risk, a.Score = riskOf(a.Findings)
	a.RequiresApproval = a.Risk >= act.High
	return a
}

// understood reports whether a finding counts as a match. The rules for text that could not be
// parsed do not.
func understood(f interp.Finding) bool {
	return f.Rule.ID != "parse.dialect-unknown" && f.Rule.ID != "parse.unparsed"
}

// riskOf returns the highest level and the score: 25 per level, plus up to 24 for further
// findings, for irreversible effects, for hidden text, and for audit, backup or hardening that is
// turned off.
func riskOf(findings []interp.Finding) (act.Level, int) {
	if len(findings) == 0 {
		return act.Low, 0
	}
	risk, extra := findings[0].Level, 0
	irreversible, hidden := findings[0].Rule.Reversible == "no", false
	for i := range findings {
		f := &findings[i]
		if i > 0 {
			extra += [...]int{1, 2, 4, 6}[f.Level]
		}
		if strings.HasPrefix(f.Rule.ID, "obf.") || strings.HasPrefix(f.Rule.ID, "text.") {
			hidden = true
		}
		if blindsFirst(f.Rule.ID) && risk >= act.High {
			extra += 6
		}
	}
	if irreversible && risk > act.Low {
		extra += 6
	}
	if hidden {
		extra += 3
	}
	return risk, 25*int(risk) + min(24, extra)
}

// blindsFirst reports whether a rule is about turning off audit, backup or hardening, which makes
// other findings worse.
func blindsFirst(id string) bool {
	return scan.HasAnySuffix(id, ".audit-off", ".delete-backup", ".hardening-off")
}
