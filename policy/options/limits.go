package options

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxPrice      = 1e12  // of spot, strike and market price; above any quoted price
	maxYears      = 100   // longer than any option that is traded
	maxRate       = 2     // 200 % a year, positive or negative, continuously compounded
	maxVolatility = 10    // 1,000 % a year
	maxDividends  = 100   // one a quarter for 25 years
	daysPerYear   = 365.0 // ACT/365 Fixed
)

// Parameters of the numerical methods.
const (
	treeSteps = 1001 // odd, as Leisen-Reimer requires; the error is far below 2e-4 of the strike
	refresh   = 64   // steps after which node prices are computed again, so that rounding errors do not add up

	lowestVolatility = 1e-6 // lower end of the bracket of the implied volatility
	solveSteps       = 400  // Newton's method with bisection needs fewer than 100

	volatilityBump = 0.01 // relative change for the vega of a tree
	rateBump       = 1e-3 // absolute change for the rho of a tree
)

// Thresholds of findings.
const (
	atTheMoney        = 1e-9 // distance of spot and strike, relative to the strike
	extremeVolatility = 2
	percentRate       = 0.5 // a higher rate was probably written in percent
	longExpiry        = 10  // years; few options with a longer time are traded
	nearExpiryYears   = 1 / daysPerYear
	deepD2            = 5 // out of the money, in standard deviations
)
