package waterfall

import "github.com/countersign/countersign/policy/money"

// Bounds of the inputs; the tags of Input repeat them for the schema.
const (
	maxAmount  = 1e12 // larger than any fund; a thousand events still sum exactly
	maxRate    = 1
	maxYears   = 100
	maxCarry   = 0.99
	minEvents  = 2    // something paid in and something paid out
	maxEvents  = 1000 // a contribution and a distribution a week for ten years
	maxHurdles = 6
	maxDealID  = 64
	maxTotal   = money.MaxCents
)

// When a finding is made.
const (
	aboveHeadline = 1e-6 // of the carry rate
	withinOneCent = money.Cents(1)
)
