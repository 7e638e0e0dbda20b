package ground

import (
	"time"
)

const (
	maxTries    = 5               // of a command whose streams moved under it
	TriesWithin = 5 * time.Second // all of them; the same as the ledger gives one append
	MaxName     = 200             // characters of a name that people give
	MaxReason   = 1000            // characters: enough for a sentence and a ticket
)
