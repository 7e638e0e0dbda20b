package ground

import "time"

const (
	maxTries    = 5               // number of tries of one command, if streams that it has read change
	TriesWithin = 5 * time.Second // for all tries of a command together; the ledger gives one append the same time
	MaxName     = 200             // characters of a name that a user enters
	MaxReason   = 1000            // characters of a reason: enough for a sentence and a ticket number
)
