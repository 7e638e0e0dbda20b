package assurance

import (
	"time"

	"github.com/countersign/countersign/policy/normal"
)

// Limits of requests, in characters (code points) and entries: generous for people, and small
// enough that a record fits on a page.
const (
	MaxDecisionBody = 262_144 // bytes; mostly toolArguments
	MaxReceiptBody  = 65_536  // bytes

	maxIdempotencyKey = 200
	maxID             = 200 // runId, agentId, policyId
	maxPurpose        = 1000
	maxText           = normal.MaxText
	maxURL            = normal.MaxURL
	maxEntries        = 1000 // of a list of a policy
	maxEvidence       = 100  // evidence hashes of a receipt
	maxEvidenceLength = 256
)

const (
	// ValidFor is how long an allow, or an approval, is valid.
	ValidFor = 15 * time.Minute
	// skew is the tolerated error of an executor's clock.
	skew = 2 * time.Minute
	// lateAfter is the age from which evidence counts as late; it is always accepted.
	lateAfter = 24 * time.Hour
)
