package x402provenance

import "time"

// Limits and thresholds that the contract states.
const (
	topPayers   = 50 // largest number of payers in an answer
	maxFindings = 500
	maxDecimals = 36
	maxAssets   = 5000 // members of assetDecimals; as many as records

	minCoverage   = 0.5 // with less evidence coverage the verdict is insufficient_evidence
	ownShare      = 0.5 // share of the kept records that the owner may have paid
	topShare      = 0.5 // share of the external amount that one payer may have paid
	minPayers     = 3
	burstWindow   = time.Minute
	burstRecords  = 10
	burstFraction = 2 // a burst has more than 1/burstFraction of the external records
)
