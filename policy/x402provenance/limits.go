package x402provenance

import "time"

// Bounds and thresholds of the contract.
const (
	topPayers   = 50 // payers listed; more tell a reader nothing new
	maxFindings = 500
	maxDecimals = 36
	maxAssets   = 5000 // entries of assetDecimals: no more assets than records

	minCoverage   = 0.5 // evidence below it supports no verdict
	ownShare      = 0.5 // of kept records that the owner paid himself
	topShare      = 0.5 // of the amount that one payer paid
	minPayers     = 3
	burstWindow   = time.Minute
	burstRecords  = 10
	burstFraction = 2 // more than one part in two
)
