package payments

import "time"

const (
	paymentWait        = 12 * time.Second       // how long an answer waits for a settlement: clients give up after 15 to 30 s
	pollClaim          = 20 * time.Millisecond  // between two looks for the claim of a payment that has taken an Idempotency-Key
	pollPayment        = 250 * time.Millisecond // between two looks at a payment that another node may be settling
	claimIsTaken       = 2 * time.Second        // after which an equal request settles a claimed payment: a node that still runs has begun by then
	settleAttempts     = 3                      // in a row; after that the payment waits in the queue
	firstAttemptWithin = 25 * time.Second       // after the claim: others may settle the payment a minute after it, and a call to settle lasts 30 s
	maxUnknowns        = 10                     // records of an unknown result, each with another transaction
	minSecretKey       = 16                     // characters of an Idempotency-Key that proves who the buyer is; the same as of a payment identifier
	keyIsTaken         = time.Minute            // how long a payment without a claim holds an Idempotency-Key: its request has ended by then
	recordAgain        = 250 * time.Millisecond // between two tries to record the result of a payment
)
