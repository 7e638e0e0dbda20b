package actionrisk

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
)

// What callers see of the rooms below. The names are theirs to keep; where a thing
// lives may move.
type (
	// Action is one proposed action with what its caller says about it.
	Action = act.Action
	// Level is a risk: low, medium, high or critical.
	Level = act.Level
	// Span is a range of bytes of the submitted command.
	Span = act.Span
	// Adjustment is how a member of the request moved a level.
	Adjustment = act.Adjustment
	// Rule is one line of a table: an effect, how bad it is, and what to match.
	Rule = facts.Rule
	// Finding is one rule that holds for the action.
	Finding = interp.Finding
	// Coverage says how well the action was understood.
	Coverage = judge.Coverage
	// Trace is what an assessment tells of the machine.
	Trace = interp.Trace
	// Use is one call of a program, or one redirection.
	Use = interp.Use
	// Assessment is the engine's answer.
	Assessment = judge.Assessment
)

// The four levels.
const (
	Low      = act.Low
	Medium   = act.Medium
	High     = act.High
	Critical = act.Critical
)

// Mask hides what looks like a secret in a text that leaves the service.
func Mask(text string) string { return act.Mask(text) }

// Ruleset returns the version (YYYY.MM.N) and the SHA-256 of the canonical JSON of
// all tables together. The same version always gives the same answers.
func Ruleset() (version, hash string) { return facts.Ruleset() }

// Rules is the catalogue: every rule of every table, in table order. The caller must
// not change it.
func Rules() []*Rule { return facts.Rules() }
