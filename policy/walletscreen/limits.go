package walletscreen

import "time"

// Thresholds of the transfer patterns. They follow the reporting thresholds of
// anti-money-laundering practice: 10,000 USD and one day.
const (
	structuringFrom  = 9000.0  // USD, inclusive
	structuringBelow = 10000.0 // USD, exclusive; the reporting threshold itself
	structuringCount = 3
	fanInSenders     = 10
	patternWindow    = 24 * time.Hour
	passThroughTime  = time.Hour
	passThroughPairs = 2
	passThroughShare = 0.9 // an outgoing transfer must have at least this part of the incoming one
)

// Scores, of 100, from which a wallet needs a review or is denied.
const (
	reviewFrom = 25
	denyFrom   = 75
)
