package evidence

import "time"

// Tolerances that the contract states.
const (
	defaultMaxAge = 86400             // seconds from settlement to asOf: one day
	futureSlack   = 300 * time.Second // tolerated difference of clocks, if the settlement is after asOf
	orderSlack    = 5 * time.Second   // tolerated difference of clocks between two steps of a purchase
	fewDigits     = 2                 // a transaction hash with at most this many different digits is made up
)
