package assurance

import (
	"time"

	"github.com/countersign/countersign/policy/normal"
)

// Limits of requests. Sizes of bodies are in bytes, lengths of texts in characters (code points).
const (
	MaxDecisionBody = 262_144 // mostly for toolArguments
	MaxReceiptBody  = 65_536

	maxIdempotencyKey = 200
	maxID             = 200 // of runId, agentId and policyId
	maxPurpose        = 1000
	maxText           = normal.MaxText
	maxURL            = normal.MaxURL
	maxEntries        = 1000 // of one list of a policy
	maxEvidence       = 100  // evidence hashes in one receipt
	maxEvidenceLength = 256
)

const (
	// ValidFor is the time for which an allow, or an approval, is valid after its issue.
	ValidFor = 15 * time.Minute
	// skew is the tolerated error of an executor's clock.
	skew = 2 * time.Minute
	// A receipt is late if it arrives more than lateAfter after the decision expired. A decision
	// that does not allow has no expiry; then the time counts from its issue. A late receipt is
	// accepted all the same.
	lateAfter = 24 * time.Hour
)
