package dealanalyzer

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxAmount   = 1e15
	minRate     = -0.99
	maxRate     = 10
	maxYears    = 50
	maxMultiple = 1000
	maxDebtRate = 2
	maxGrid     = 11 // largest number of rows, and of columns, of a table
	// maxSplit is the largest flow that the waterfall can split to the cent.
	maxSplit = 1e12
)
