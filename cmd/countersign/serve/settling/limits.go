package settling

import "time"

// Limits of settling payments in the background.
const (
	atOnce         = 8
	scanned        = 1000 // open payments read per sweep
	attemptsInRow  = 3    // attempts before a payment must wait for its next turn
	firstPause     = time.Second
	longestPause   = time.Minute
	attemptTimeout = 45 * time.Second // 30 s of it for the facilitator, the rest for the chain and the ledger
	claimIsOrphan  = time.Minute      // the node that claimed the payment has finished or died by then
	day            = 24 * time.Hour   // after this age an open payment is checked once per
	hour           = time.Hour
	sampledCalls   = 100 // recomputed per day
)
