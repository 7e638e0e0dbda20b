package cashflow

import "math"

// Bounds of the inputs; the tags of Input repeat them for the schema.
const (
	maxFlows    = 2000 // a flow a day for five years; all roots still take milliseconds
	maxAmount   = 1e15
	minRate     = -0.99 // a discount factor of 100 per period and no more
	maxRate     = 10
	maxPeriods  = 365 // a year has no shorter periods
	maxDCF      = 200
	maxMultiple = 1000
	daysPerYear = 365.0 // ACT/365 Fixed
)

// Where internal rates of return are sought and how closely.
const (
	lowestRate, highestRate = -0.9999, 10000.0

	narrowest = 1e-10     // boxes of ln(1+rate) that are not split further
	hair      = 1e-12     // the search goes this much beyond the ends of its range
	together  = 1e-9      // roots closer than this are one
	nothing   = 1e-14     // a rate nearer to 0 is 0: the noise of the sum
	maxTerms  = 2_000_000 // terms to one side, at most 0.2 s; lists of single roots need a few per cent
	maxPoints = 10_000    // points to one side, whatever their terms: memory
	rounding  = 4e-16     // relative error of one term and of the compensated sum
)

// lowestX and highestX limit the search for x = ln(1+rate). The search starts at 0 and moves
// outward in both directions.
var lowestX, highestX = -math.Log1p(lowestRate) + hair, math.Log1p(highestRate) + hair

// recovered is how far below 0, relative to what was paid in, a discounted
// balance still counts as paid back: 110/1.1 is 100 only to a rounding.
const recovered = 1e-12

// maxValuations is one a month for forty years.
const maxValuations = 500

// When a finding is made.
const (
	dominatingShare = 0.75
	steepGrowth     = 0.05
	highReturn      = 1.0 // 100 % a year
	percentRate     = 1.0 // above it a rate was probably written in percent
)
