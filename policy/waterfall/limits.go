package waterfall

import "github.com/countersign/countersign/policy/money"

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxAmount  = 1e12 // more than any fund has; a thousand events still have an exact sum
	maxRate    = 1
	maxYears   = 100
	maxCarry   = 0.99
	minEvents  = 2    // a contribution and a distribution
	maxEvents  = 1000 // one contribution and one distribution a week for ten years
	maxHurdles = 6
	maxDealID  = 64
	maxTotal   = money.MaxCents
)

// Thresholds of findings.
const (
	aboveHeadline = 1e-6 // effective carry above the carry rate
	withinOneCent = money.Cents(1)
)
