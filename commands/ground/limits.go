package ground

import "time"

const (
	maxTries    = 5               // of one command, when streams that it read have moved
	TriesWithin = 5 * time.Second // for all tries of a command; the ledger allows one append the same
	MaxName     = 200             // characters of a name that people give
	MaxReason   = 1000            // characters: enough for a sentence and a ticket
)
