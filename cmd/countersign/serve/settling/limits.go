package settling

import "time"

// Bounds of settling what nobody waits for.
const (
	atOnce         = 8
	scanned        = 1000 // open payments looked at in one go
	attemptsInRow  = 3    // before a payment waits its turn
	firstPause     = time.Second
	longestPause   = time.Minute
	attemptTimeout = 45 * time.Second // the facilitator has 30 s of it, asking the chain and the ledger the rest
	claimIsOrphan  = time.Minute      // after which the node that claimed is done or dead
	day            = 24 * time.Hour   // after which a payment is looked at every
	hour           = time.Hour
	sampledCalls   = 100 // recomputed once a day
)
