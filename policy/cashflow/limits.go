package cashflow

import "math"

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxFlows    = 2000 // one flow a day for five years; finding all roots takes milliseconds
	maxAmount   = 1e15
	minRate     = -0.99 // at this rate a discount factor is at most 100 per period
	maxRate     = 10
	maxPeriods  = 365 // a year has no more periods than days
	maxDCF      = 200
	maxMultiple = 1000
	daysPerYear = 365.0 // ACT/365 Fixed
)

// Range and precision of the search for internal rates of return.
const (
	lowestRate, highestRate = -0.9999, 10000.0

	narrowest = 1e-10     // boxes of ln(1+rate) that are this narrow are not split
	hair      = 1e-12     // the search goes beyond both ends of its range by this much
	together  = 1e-9      // roots that are closer than this count as one
	nothing   = 1e-14     // a root this near to 0 is 0, because the rest is rounding error
	maxTerms  = 2_000_000 // largest number of terms evaluated in one direction, which takes at most 0.2 s; flows with single roots need a few per cent of them
	maxPoints = 10_000    // largest number of points evaluated in one direction, to limit memory
	rounding  = 4e-16     // relative error of one term, and of the compensated sum
)

// lowestX and highestX limit the search for x = ln(1+rate). The search starts at 0 and moves
// outward in both directions.
var lowestX, highestX = -math.Log1p(lowestRate) + hair, math.Log1p(highestRate) + hair

// A discounted balance counts as paid back if it is below 0 by no more than this part of the
// flows: 110/1.1 is 100 only up to rounding.
const recovered = 1e-12

// maxValuations allows one valuation a month for forty years.
const maxValuations = 500

// Thresholds of findings.
const (
	dominatingShare = 0.75
	steepGrowth     = 0.05
	highReturn      = 1.0 // 100 % a year
	percentRate     = 1.0 // a higher rate was probably written in percent
)
