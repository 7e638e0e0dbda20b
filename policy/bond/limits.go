package bond

import "math"

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxMoney         = 1e12 // face value, prices and principal; up to this amount a float64 distinguishes every cent
	maxCoupon        = 1    // 100 % a year
	maxYears         = 100  // the longest bonds that are issued
	maxYield         = 10   // 1,000 % a year
	minPeriodicYield = -0.99
	maxSteps         = 100 // coupon steps or calls: one a year for the longest bond
	maxAmortizations = 400 // one a quarter for the longest bond
	maxTermMonths    = 600 // 50 years, as the longest mortgages
	maxLoanRate      = 2   // 200 % a year
)

// Parameters of the numerical methods.
const (
	maxPeriodicYield = 10 // largest yield per coupon period that is searched
	wholePeriod      = 1e-9
	solveSteps       = 200
)

// lowestX and highestX limit the search for x = ln(1 + periodic yield).
var lowestX, highestX = math.Log1p(minPeriodicYield), math.Log1p(maxPeriodicYield)

// Thresholds of findings.
const (
	parWithin       = 1e-6 // relative to the face value
	distressedPrice = 0.4  // relative to the redemption
	distressedYield = 0.25
	longDuration    = 15     // years
	farAbovePar     = 2      // relative to the redemption
	percentRate     = 0.5    // a higher coupon rate was probably written in percent
	basisPoint      = 0.0001 // also the yield change of dv01
	balloonFactor   = 1.5    // final payment relative to the level payment
	highRate        = 0.36   // the usual legal limit of consumer credit in the United States
)
