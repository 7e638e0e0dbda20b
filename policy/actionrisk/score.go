package actionrisk

import (
	"slices"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/canon"
)

// ScoreInput is an action, with a reference of the caller if there is one.
type ScoreInput struct {
	act.Action
	policy.Common
}

// Evidence is the part of the submitted command that triggered a rule: its range in bytes, on
// character boundaries, and up to 80 characters of it with secrets masked.
type Evidence struct {
	Start   int    `json:"start" jsonschema_description:"Offset in the command of the first byte of the matching part."`
	End     int    `json:"end" jsonschema_description:"Offset in the command after the last byte of the matching part."`
	Excerpt string `json:"excerpt" jsonschema_description:"The matching part, with secrets masked, at most 80 characters."`
}

// MatchedRule is one finding as the response shows it.
type MatchedRule struct {
	ID           string           `json:"id" jsonschema_description:"Id of the rule."`
	Category     string           `json:"category" jsonschema:"enum=destructive,enum=deployment,enum=data_mutation,enum=secrets,enum=network,enum=payment,enum=privilege,enum=supply_chain" jsonschema_description:"Kind of harm."`
	Severity     string           `json:"severity" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity after the context changed it."`
	BaseSeverity string           `json:"baseSeverity" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity before the context changed it."`
	Title        string           `json:"title" jsonschema_description:"Title of the rule."`
	Effect       string           `json:"effect" jsonschema_description:"Effect of the command."`
	Reversible   string           `json:"reversible" jsonschema:"enum=yes,enum=hard,enum=no" jsonschema_description:"Whether the effect can be undone: yes, hard (with effort) or no."`
	Evidence     Evidence         `json:"evidence" jsonschema_description:"The part of the command that matched."`
	Segment      int              `json:"segment" jsonschema_description:"Index, from 0, of the command that matched; the submitted text may contain several."`
	Via          []string         `json:"via" jsonschema_description:"What contains the command that runs, outermost first, such as sudo or bash -c."`
	Decoded      string           `json:"decoded,omitempty" jsonschema_description:"The text that runs, if the command contains it in an encoded form."`
	Target       string           `json:"target,omitempty" jsonschema_description:"The object of the effect, such as a path."`
	Context      []act.Adjustment `json:"context" jsonschema_description:"Members of the request that changed the severity."`
	Remediation  string           `json:"remediation" jsonschema_description:"A safer alternative."`
	DocPath      string           `json:"docPath" jsonschema_description:"Path of the rule's page, relative to the URL of the service."`
}

// ScoreOutput is a verdict with all its evidence.
type ScoreOutput struct {
	RequestID            string           `json:"requestId" jsonschema:"pattern=^crs_[0-9a-f]{32}$" jsonschema_description:"crs_ and the first 32 digits of inputHash."`
	Risk                 string           `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"The highest level of the rules that matched."`
	RiskScore            int              `json:"riskScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Score from 0 to 100. Each level covers 25 points."`
	RequiresApproval     bool             `json:"requiresApproval" jsonschema_description:"Whether a person should approve the action before it runs."`
	Recommendation       string           `json:"recommendation" jsonschema:"enum=approve,enum=approve_with_controls,enum=block" jsonschema_description:"Recommended decision."`
	MatchedRules         []MatchedRule    `json:"matchedRules" jsonschema_description:"The rules that matched, the most severe first."`
	MatchedRuleIDs       []string         `json:"matchedRuleIds" jsonschema_description:"Ids of the rules that matched."`
	ActionBindingVersion string           `json:"actionBindingVersion" jsonschema_description:"Name of the method that computes actionHash."`
	ActionHash           string           `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical action. An executor compares it with the hash of the action that it runs."`
	Controls             []string         `json:"controls" jsonschema_description:"Controls to apply before the action runs."`
	Coverage             judge.Coverage   `json:"coverage" jsonschema_description:"Which parts of the command the engine understood."`
	RulesetVersion       string           `json:"rulesetVersion" jsonschema_description:"Version of the rule set."`
	RulesetHash          string           `json:"rulesetHash" jsonschema_description:"SHA-256 of the rule set."`
	NextRecommendedCall  *NextCall        `json:"nextRecommendedCall" jsonschema:"nullable" jsonschema_description:"The call to make next; null if none is recommended."`
	Findings             []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; empty if there are none."`
}

// Score is command-risk/score: it returns the verdict of the quick gate with its evidence.
var Score = policy.Declare(policy.Service{
	Name:       "command-risk/score",
	PriceCents: 10,
	Group:      policy.GroupSafety,
	Title:      "Command risk score",
	Summary:    "Every rule that an action matches, with the matching part of the text and its wrappers, and controls to apply before the action runs.",
	Example:    `{"command":"terraform destroy -auto-approve","environment":"production"}`,
	Ruleset:    facts.Ruleset,
	Rules:      coverageNotes,
	BodyLimit:  policy.ActionBody,
}, score)

// coverageNotes describes the findings that notes returns. The tables have no rules for them.
func coverageNotes() []policy.Rule {
	return []policy.Rule{
		{ID: "gate.read-only", Example: `{"command":"git status","environment":null}`,
			Catches: "every part of the action is known to change nothing",
			Why:     "this proof is stronger than a low risk because no rule matched",
			Instead: "run the action"},
		{ID: "gate.unmatched", Example: `{"command":"frobnicate --all","environment":null}`,
			Catches: "no rule matched, and the action is not proven read-only",
			Why:     "no table describes the effects of such a command",
			Instead: "send failClosedOnUnmatched, so that the action requires approval"},
	}
}

func score(in ScoreInput) (ScoreOutput, error) {
	if err := Check(in.Action); err != nil {
		return ScoreOutput{}, err
	}
	out := ScoreAction(in.Action)
	out.RequestID = RequestID("crs_", in)
	return out, nil
}

// RequestID returns the prefix and the first 32 hexadecimal digits of the SHA-256 of the request's
// canonical JSON. Only the members that are present count; failClosedOnUnmatched: false counts as
// absent.
func RequestID(prefix string, request any) string {
	text, err := canon.Marshal(request)
	if err != nil {
		text = nil // invalid UTF-8 cannot have come as JSON
	}
	return prefix + canon.Hash(text)[:32]
}

// ScoreAction returns the score of an action, as for a request without a reference of the caller.
func ScoreAction(a act.Action) ScoreOutput { return scored(a, Assess(a)) }

// ScoreIn is like ScoreAction with the given surroundings. It also returns a trace of the programs
// that run.
func ScoreIn(a act.Action, s Surroundings) (ScoreOutput, Trace) {
	got, trace := AssessIn(a, s)
	return scored(a, got), trace
}

func scored(a act.Action, got judge.Assessment) ScoreOutput {
	out := ScoreOutput{
		RequestID: RequestID("crs_", a), Risk: got.Risk.String(), RiskScore: got.Score,
		RequiresApproval: got.RequiresApproval, Recommendation: recommendation(got.Risk),
		MatchedRules: make([]MatchedRule, 0, len(got.Findings)), MatchedRuleIDs: got.RuleIDs(),
		ActionBindingVersion: BindingVersion, ActionHash: Hash(a), Controls: Controls(got),
		Coverage: got.Coverage, RulesetVersion: facts.RulesetVersion, RulesetHash: facts.RulesetHash, Findings: []policy.Finding{},
	}
	command := act.Conceal(a.Command)
	for i := range got.Findings {
		f := &got.Findings[i]
		out.MatchedRules = append(out.MatchedRules, show(f, command))
		out.Findings = append(out.Findings, policy.Finding{ID: f.Rule.ID, Severity: f.Level.String(),
			Message: f.Rule.Title, Path: "/command", Evidence: command.Excerpt(f.Span)})
	}
	out.Findings = append(out.Findings, notes(got)...)
	out.Findings = policy.SortFindings(out.Findings)
	if got.Risk >= act.High {
		out.NextRecommendedCall = &nextRun
	}
	return out
}

// notes returns the findings about coverage: the action is proven read-only, or no rule matched.
// They do not count as matched rules.
func notes(a judge.Assessment) []policy.Finding {
	switch {
	case a.Coverage.ReadOnly:
		return []policy.Finding{{ID: "gate.read-only", Severity: "info", Message: "every part of the action is known to change nothing", Path: "/command"}}
	case a.Coverage.Unmatched:
		return []policy.Finding{{ID: "gate.unmatched", Severity: "info", Message: "no rule matched and the action is not proven read-only", Path: "/command"}}
	}
	return nil
}

func show(f *interp.Finding, command act.Concealed) MatchedRule {
	out := MatchedRule{
		ID: f.Rule.ID, Category: f.Rule.Category, Severity: f.Level.String(), BaseSeverity: f.Base.String(),
		Title: f.Rule.Title, Effect: f.Rule.Effect, Reversible: f.Rule.Reversible,
		Evidence: Evidence{Excerpt: command.Excerpt(f.Span)}, Segment: f.Segment, Via: make([]string, len(f.Via)),
		Target: command.Hide(f.Target), Context: f.Context, Remediation: f.Rule.Instead, DocPath: policy.RulePath(f.Rule.ID),
	}
	out.Evidence.Start, out.Evidence.End = f.Span.Start, f.Span.End
	if f.Decoded != "" {
		out.Decoded = command.Hide(act.Printable(f.Decoded))
	}
	for i, via := range f.Via { // mask it: the name of an unknown program can be any text
		out.Via[i] = command.Hide(act.Printable(via))
	}
	if out.Context == nil {
		out.Context = []act.Adjustment{}
	}
	return out
}

// recommendation returns the advice for a level.
func recommendation(l act.Level) string {
	switch l {
	case act.Low:
		return "approve"
	case act.Medium:
		return "approve_with_controls"
	}
	return "block"
}

// Controls returns the safer alternatives of the rules that matched with at least medium, and the
// controls for their category and for the level. There are at most 16.
func Controls(a judge.Assessment) []string {
	out := []string{}
	add := func(when bool, c string) {
		if when && c != "" && !slices.Contains(out, c) && len(out) < 16 {
			out = append(out, c)
		}
	}
	for i := range a.Findings {
		f := &a.Findings[i]
		add(f.Level >= act.Medium, f.Rule.Instead)
		add(f.Level >= act.Medium, controlOf[f.Rule.Category])
	}
	add(a.Risk >= act.High, "let a person approve the exact action hash")
	add(a.Risk == act.Critical, "two people approve, and a person who can undo it is available")
	add(a.Coverage.Unmatched, "run it with the least rights that suffice")
	return out
}

// controlOf is the control for each category of rules.
var controlOf = map[string]string{
	"destructive":   "take a backup or a snapshot first and check that it restores",
	"data_mutation": "take a backup or a snapshot first and check that it restores",
	"supply_chain":  "pin the version and check the digest before it runs",
	"payment":       "check recipient, network and amount against a second source",
	"secrets":       "rotate the credential if it was shown",
}
