package actionrisk

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Coverage says how well the action was understood.
type Coverage struct {
	Route         string   `json:"route" jsonschema_description:"Language the command was read as."`
	Parsed        bool     `json:"parsed" jsonschema_description:"False if a parser refused a part of it and tokens were scanned instead."`
	ReadOnly      bool     `json:"readOnly" jsonschema_description:"Every part is proven to change nothing."`
	Unmatched     bool     `json:"unmatched" jsonschema_description:"No rule matched and it is not proven read-only."`
	Uncertainties []string `json:"uncertainties" jsonschema_description:"What could not be known, one clause each."`
}

// Assessment is the engine's answer.
type Assessment struct {
	Risk             Level
	Score            int // 0 to 99
	RequiresApproval bool
	Findings         []Finding // level descending, span, id; at most 64
	Coverage         Coverage
}

// RuleIDs are the ids of the rules that matched, each once, highest level first;
// never nil.
func (a Assessment) RuleIDs() []string {
	ids := make([]string, 0, len(a.Findings))
	for i := range a.Findings {
		if id := a.Findings[i].Rule.ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// conclude sorts the findings and adds them up.
func (e *engine) conclude(route string) Assessment {
	a := Assessment{Coverage: Coverage{Route: route, Parsed: !e.unparsed, Uncertainties: e.uncertain}}
	if a.Coverage.Uncertainties == nil {
		a.Coverage.Uncertainties = []string{}
	}
	a.Coverage.ReadOnly = len(e.findings) == 0 && !e.unproven && !e.unparsed && e.ran
	a.Coverage.Unmatched = !a.Coverage.ReadOnly && !slices.ContainsFunc(e.findings, understood)
	if e.action.FailClosedOnUnmatched && (a.Coverage.Unmatched || e.loose) {
		e.raise("gate.unmatched-fail-closed", &source{text: e.action.Command}, 0, len(e.action.Command), "")
	}
	slices.SortStableFunc(e.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.Span.Start, b.Span.Start),
			cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Rule.ID, b.Rule.ID))
	})
	a.Findings = e.findings[:min(len(e.findings), scan.MaxFindings)]
	if a.Findings == nil {
		a.Findings = []Finding{}
	}
	a.Risk, a.Score = riskOf(a.Findings)
	a.RequiresApproval = a.Risk >= High
	return a
}

// understood: a finding that only says that something was not understood does
// not count as a match.
func understood(f Finding) bool {
	return f.Rule.ID != "parse.dialect-unknown" && f.Rule.ID != "parse.unparsed"
}

// riskOf is the highest level and the score: 25 per level, and up to 24 for what
// comes beside the worst finding, for what cannot be undone and what is hidden.
func riskOf(findings []Finding) (Level, int) {
	if len(findings) == 0 {
		return Low, 0
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
		if blindsFirst(f.Rule.ID) && risk >= High {
			extra += 6
		}
	}
	if irreversible && risk > Low {
		extra += 6
	}
	if hidden {
		extra += 3
	}
	return risk, 25*int(risk) + min(24, extra)
}

// blindsFirst: audit or backup switched off makes whatever else is done worse.
func blindsFirst(id string) bool {
	return strings.HasSuffix(id, ".audit-off") || strings.HasSuffix(id, ".delete-backup") || strings.HasSuffix(id, ".hardening-off")
}
