package settling

import "time"

// Limits for settling payments in the background.
const (
	atOnce         = 8
	scanned        = 1000 // open payments that a sweep reads
	attemptsInRow  = 3    // attempts in a row; after that the payment waits for its next turn
	firstPause     = time.Second
	longestPause   = time.Minute
	attemptTimeout = 45 * time.Second // 30 s for the facilitator, the rest for the blockchain and the ledger
	claimIsOrphan  = time.Minute      // by then the node that claimed the payment has settled it or crashed
	day            = 24 * time.Hour   // an open payment that is older is tried once per hour
	hour           = time.Hour
	sampledCalls   = 100 // calls that are computed again each day
)
