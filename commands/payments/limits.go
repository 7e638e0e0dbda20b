package payments

import (
	"time"
)

const (
	paymentWait        = 12 * time.Second       // for a settlement, before the answer is "not known yet": clients give up after 15 to 30 s
	pollClaim          = 20 * time.Millisecond  // of a payment that has taken its Idempotency-Key
	pollPayment        = 250 * time.Millisecond // of a payment that another node may be settling
	claimIsTaken       = 2 * time.Second        // up by then, if the node that claimed is alive: an equal request may do it
	settleAttempts     = 3                      // in a row, before the payment has to wait its turn
	firstAttemptWithin = 25 * time.Second       // after the claim: a minute later others may take the payment up, and a call to settle lasts 30 s
	maxUnknowns        = 10                     // records of an unclear end, each with another transaction
	minSecretKey       = 16                     // characters of an Idempotency-Key that shows who its buyer is, as of a payment identifier
	keyIsTaken         = time.Minute            // by a payment that reserved an Idempotency-Key and has not been claimed: its request is over by then
	recordAgain        = 250 * time.Millisecond // after the end of a payment could not be recorded
)
