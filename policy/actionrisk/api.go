package actionrisk

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
)

// The API of this package and of the packages in its subfolders. Callers use these names, so that
// the subfolders can be reorganized.
type (
	// Action is one proposed action with the caller's statements about it.
	Action = act.Action
	// Level is a level of risk: low, medium, high or critical.
	Level = act.Level
	// Span is a range of bytes in the submitted command.
	Span = act.Span
	// Adjustment records that a member of the request changed a level.
	Adjustment = act.Adjustment
	// Rule is a row of a rule table: an effect, its level of risk, and the conditions to match.
	Rule = facts.Rule
	// Finding is one rule that the action triggers.
	Finding = interp.Finding
	// Coverage describes which parts of the action the engine understood.
	Coverage = judge.Coverage
	// Trace reports the programs that run and the files that are needed for a verdict.
	Trace = interp.Trace
	// Use is one invocation or one redirection.
	Use = interp.Use
	// Assessment is the verdict of the engine.
	Assessment = judge.Assessment
)

// The levels of risk, in ascending order.
const (
	Low      = act.Low
	Medium   = act.Medium
	High     = act.High
	Critical = act.Critical
)

// Mask replaces the secrets in a text with "[secret]", for showing the text to people.
func Mask(text string) string { return act.Mask(text) }

// Ruleset returns the version (YYYY.MM.DD), and the SHA-256 of the canonical JSON of all tables
// except safer.json. The same version always gives the same verdicts.
func Ruleset() (version, hash string) { return facts.Ruleset() }

// Rules returns all rules in the order of the tables. The caller must not change them.
func Rules() []*Rule { return facts.Rules() }
