package options

// Bounds of the inputs; the tags of Input repeat them for the schema.
const (
	maxPrice      = 1e12  // of spot, strike and market price: above any quoted price
	maxYears      = 100   // longer than any listed or negotiated option
	maxRate       = 2     // plus or minus 200 % a year, continuously compounded
	maxVolatility = 10    // 1,000 % a year
	maxDividends  = 100   // quarterly for 25 years
	daysPerYear   = 365.0 // ACT/365 Fixed
)

// How the numbers are found.
const (
	treeSteps = 1001 // odd, as Leisen-Reimer needs; error far below 2e-4 of the strike
	refresh   = 64   // tree steps after which node prices are computed again, against drift

	lowestVolatility = 1e-6 // bracket of the implied volatility
	solveSteps       = 400  // Newton and bisection together need fewer than 100

	volatilityBump = 0.01 // relative, for the vega of a tree
	rateBump       = 1e-3 // absolute, for the rho of a tree
)

// When a finding is made.
const (
	atTheMoney        = 1e-9 // relative distance of spot and strike
	extremeVolatility = 2
	percentRate       = 0.5 // above it a rate was probably written in percent
	longExpiry        = 10  // years; few options are traded beyond
	nearExpiryYears   = 1 / daysPerYear
	deepD2            = 5 // standard deviations out of the money
)
