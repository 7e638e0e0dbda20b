package evidence

import "time"

// Tolerances of the contract.
const (
	defaultMaxAge = 86400             // seconds between settlement and asOf: one day
	futureSlack   = 300 * time.Second // for a settlement after asOf: the largest difference of clocks
	orderSlack    = 5 * time.Second   // between two steps of one purchase
	fewDigits     = 2                 // distinct digits of an invented transaction hash
)
