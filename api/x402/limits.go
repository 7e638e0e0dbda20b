package x402

import "time"

// Sizes in bytes and characters.
const (
	// MaxHeader is the largest length of PAYMENT-SIGNATURE: Node's limit for all headers together.
	MaxHeader = 16_384

	// MaxHead limits the status line and all headers of a 402 in bytes. If they do not fit into
	// 4,096 bytes, the default buffer of nginx, nginx answers 502 instead.
	MaxHead = 3_500

	// MaxChallenge is the largest length of PAYMENT-REQUIRED. The other headers of a 402 fit into
	// the remaining 500 bytes.
	MaxChallenge = MaxHead - 500

	maxExtensions   = 1_024   // largest length of EXTENSION-RESPONSES that is returned
	maxExplanation  = 300     // characters of a facilitator's text in the log
	longestReason   = 80      // characters of the error in a challenge
	walletSignature = 65      // bytes of a signature by a key; signatures of contracts may have other lengths
	maxAnswer       = 1 << 20 // bytes of an answer of the facilitator or the chain; a receipt has a few kilobytes
	maxTransaction  = 200     // characters of a transaction id; a hash has 66
)

// Limits of the time window in which a payment is valid.
const (
	defaultTimeout = 300 // seconds; longer than all attempts to settle together
	minTimeout     = 60
	maxTimeout     = 600

	windowLeft  = 6 * time.Second  // smallest rest of the window, so that the transfer can be included in a block
	windowLimit = 24 * time.Hour   // largest window; it exceeds our offer, because clients sign for an hour and clocks differ
	expiredFor  = 30 * time.Second // time after expiry, by the chain's clock, from which an unused payment counts as never used
)

// Time-outs and intervals.
const (
	verifyTimeout  = 10 * time.Second
	settleTimeout  = 30 * time.Second // a transfer takes several blocks
	supportTimeout = 10 * time.Second
	chainTimeout   = 10 * time.Second // time for one proof
	headTimeout    = 2 * time.Second  // a claim waits for it, but can continue without it

	firstRecheck   = time.Second // first interval; it doubles until the facilitator supports our kind of payment
	recheckEvery   = time.Minute
	missesUntilOff = 3 // consecutive answers without our kind; a single one may be a mistake

	chainAfter = 5 * time.Second // time after which a running settle call also asks the chain
	chainEvery = 2 * time.Second // about one block

	maxInFlight = 32 // calls to the facilitator at once; further verifications are refused before anything is claimed
)

// Numbers of blocks.
const (
	blocksPerQuery   = 2_000 // range for which public nodes answer eth_getLogs
	blocksBefore     = 10    // start of the search, counted back from the head at the claim, because another node may have reported that head
	maxConfirmations = 1_000
)
