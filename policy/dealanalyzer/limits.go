package dealanalyzer

// Bounds of the inputs; the tags of Input repeat them for the schema.
const (
	maxAmount   = 1e15
	minRate     = -0.99
	maxRate     = 10
	maxYears    = 50
	maxMultiple = 1000
	maxDebtRate = 2
	maxGrid     = 11 // a readable table
	// maxSplit is the largest flow a waterfall can split to the cent.
	maxSplit = 1e12
)
