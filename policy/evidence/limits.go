package evidence

import "time"

// Tolerances of the contract.
const (
	defaultMaxAge = 86400             // seconds between settlement and asOf: one day
	futureSlack   = 300 * time.Second // a settlement after asOf: clocks differ that much at most
	orderSlack    = 5 * time.Second   // between two steps of one purchase
	fewDigits     = 2                 // distinct digits of a made-up transaction hash
)
