package x402

import "time"

// Sizes in bytes and characters.
const (
	// MaxHeader is the maximum length of PAYMENT-SIGNATURE. It is Node's limit for all headers
	// together.
	MaxHeader = 16_384

	// MaxHead is how many bytes the status line and all headers of a 402 may have. If they do not
	// fit into 4,096 bytes, the default buffer of nginx, nginx answers 502 instead.
	MaxHead = 3_500

	// MaxChallenge is how many characters PAYMENT-REQUIRED may have. The other headers of a 402
	// need less than the remaining 500 bytes.
	MaxChallenge = MaxHead - 500

	maxExtensions   = 1_024   // characters of EXTENSION-RESPONSES that are passed on
	maxExplanation  = 300     // characters of a facilitator's text in the log
	longestReason   = 80      // characters of a challenge's error
	walletSignature = 65      // bytes; signatures of contracts have other lengths
	maxAnswer       = 1 << 20 // bytes, of facilitator and chain; a receipt has a few kilobytes
	maxTransaction  = 200     // characters; a hash has 66
)

// Durations of the window in which a payment is valid.
const (
	defaultTimeout = 300 // seconds; longer than all attempts together
	minTimeout     = 60
	maxTimeout     = 600

	windowLeft  = 6 * time.Second  // must be left of the window, so that the transfer gets into a block
	windowLimit = 24 * time.Hour   // the window may be longer than we ask for: clients sign an hour, and clocks differ
	expiredFor  = 30 * time.Second // by the chain's own clock, until an unused payment counts as never used
)

// Time-outs and intervals.
const (
	verifyTimeout  = 10 * time.Second
	settleTimeout  = 30 * time.Second // a transfer takes several blocks
	supportTimeout = 10 * time.Second
	chainTimeout   = 10 * time.Second // for one proof
	headTimeout    = 2 * time.Second  // a claim waits for it, but can go on without it

	firstRecheck   = time.Second // doubled until the facilitator supports our kind of payment
	recheckEvery   = time.Minute
	missesUntilOff = 3 // clear answers without our kind; a single mistake does not count

	chainAfter = 5 * time.Second // until the chain is asked about a settle call that has not answered
	chainEvery = 2 * time.Second // about a block

	maxInFlight = 32 // calls to the facilitator; more are refused before they claim anything
)

// Blocks of the chain.
const (
	blocksPerQuery   = 2_000 // the range for which public nodes answer eth_getLogs
	blocksBefore     = 10    // before a claim, since its node's clock and head may be ahead
	maxConfirmations = 1_000
)
