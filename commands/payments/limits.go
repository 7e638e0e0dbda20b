package payments

import "time"

const (
	paymentWait        = 12 * time.Second       // longest wait for a settlement; clients give up after 15 to 30 s
	pollClaim          = 20 * time.Millisecond  // time between two reads while waiting for another payment's claim
	pollPayment        = 250 * time.Millisecond // time between two reads while another node may be settling a payment
	claimIsTaken       = 2 * time.Second        // an equal request settles a claimed payment only after this time: the node that claimed it, if it runs, has begun by then
	settleAttempts     = 3                      // attempts of one request; after that the payment waits in the queue of open payments
	firstAttemptWithin = 25 * time.Second       // an attempt that starts later than this after the claim does not count as the first: other nodes may settle after a minute, and one call to settle takes up to 30 s
	maxUnknowns        = 10                     // events payment.unknown of one payment, each with another transaction
	minSecretKey       = 16                     // characters; a shorter Idempotency-Key could be guessed, so it does not prove who the buyer is
	keyIsTaken         = time.Minute            // a payment that is not claimed in this time loses its Idempotency-Key: its request has ended
	recordAgain        = 250 * time.Millisecond // time between two tries to record the result of a payment
)
