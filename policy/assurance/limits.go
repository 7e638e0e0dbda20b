package assurance

import (
	"time"

	"github.com/countersign/countersign/policy/normal"
)

// What requests may hold, in characters (code points) and entries. Generous for
// people, small enough that a record stays a page.
const (
	MaxDecisionBody = 262_144 // octets; toolArguments are most of it
	MaxReceiptBody  = 65_536  // octets

	maxIdempotencyKey = 200
	maxID             = 200 // runId, agentId, policyId
	maxPurpose        = 1000
	maxText           = normal.MaxText
	maxURL            = normal.MaxURL
	maxEntries        = 1000 // of a policy's list
	maxEvidence       = 100  // evidence hashes of a receipt
	maxEvidenceLength = 256
)

const (
	// ValidFor is how long an allow, or an approval, may be acted on.
	ValidFor = 15 * time.Minute
	// skew is how far an executor's clock may be off before its word is doubted.
	skew = 2 * time.Minute
	// lateAfter is when evidence counts as late; it is accepted for ever.
	lateAfter = 24 * time.Hour
)
