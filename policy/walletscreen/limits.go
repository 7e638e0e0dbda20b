package walletscreen

import "time"

// What makes transfers a pattern (from the reporting
// thresholds of anti-money-laundering practice: 10,000 USD and one day).
const (
	structuringFrom  = 9000.0  // USD, included
	structuringBelow = 10000.0 // USD, excluded: the reporting threshold itself
	structuringCount = 3
	fanInSenders     = 10
	patternWindow    = 24 * time.Hour
	passThroughTime  = time.Hour
	passThroughPairs = 2
	passThroughShare = 0.9 // the outgoing part of what came in
)

// Scores from which a wallet is reviewed and denied, of 100.
const (
	reviewFrom = 25
	denyFrom   = 75
)
