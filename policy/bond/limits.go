package bond

import "math"

// Bounds of the inputs; the tags of Input repeat them for the schema.
const (
	maxMoney         = 1e12 // face, prices, principal: cents of it are exact in a double
	maxCoupon        = 1    // 100 % a year
	maxYears         = 100  // longest bonds issued
	maxYield         = 10   // 1,000 % a year
	minPeriodicYield = -0.99
	maxSteps         = 100 // coupon steps and calls: one a year for the longest bond
	maxAmortizations = 400 // quarterly for the longest bond
	maxTermMonths    = 600 // 50 years, the longest mortgages
	maxLoanRate      = 2   // 200 % a year
)

// How the numbers are found.
const (
	maxPeriodicYield = 10 // upper end of the yield bracket, per coupon period
	wholePeriod      = 1e-9
	solveSteps       = 200
)

// The yield bracket in x = ln(1 + periodic yield).
var lowestX, highestX = math.Log1p(minPeriodicYield), math.Log1p(maxPeriodicYield)

// When a finding is made.
const (
	parWithin       = 1e-6 // of the face value
	distressedPrice = 0.4  // of the redemption
	distressedYield = 0.25
	longDuration    = 15     // years
	farAbovePar     = 2      // of the redemption
	percentRate     = 0.5    // above it a rate was probably written in percent
	basisPoint      = 0.0001 // also the step of dv01
	balloonFactor   = 1.5    // final payment against the level one
	highRate        = 0.36   // the usual legal ceiling of consumer credit in the United States
)
