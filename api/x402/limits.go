package x402

import "time"

// Octets and characters of what is read and written.
const (
	// MaxHeader is how long PAYMENT-SIGNATURE may be: Node's limit for all headers
	// together.
	MaxHeader = 16_384

	// MaxHead is how many bytes the status line and all headers of a 402 may have: nginx
	// answers 502 instead if they do not fit into one page of 4,096, its default buffer.
	MaxHead = 3_500

	// MaxChallenge is how many characters PAYMENT-REQUIRED may have: the other headers
	// of a 402 need less than the 500 that are left.
	MaxChallenge = MaxHead - 500

	maxExtensions   = 1_024   // characters of EXTENSION-RESPONSES that are passed on
	maxExplanation  = 300     // characters of a facilitator's words in the log
	longestReason   = 80      // characters of a challenge's error
	walletSignature = 65      // octets; other lengths are contracts' signatures
	maxAnswer       = 1 << 20 // of facilitator and chain; a receipt has some kilobytes
	maxTransaction  = 200     // characters; a hash has 66
)

// Seconds and times of a payment's window.
const (
	defaultTimeout = 300 // a payment may take; outlasts all attempts
	minTimeout     = 60
	maxTimeout     = 600

	windowLeft  = 6 * time.Second  // must be left of it, to get into a block
	windowLimit = 24 * time.Hour   // it may be longer than asked: clients sign an hour, and clocks differ
	expiredFor  = 30 * time.Second // by the chain's own clock, before unused counts as never
)

// How long others are waited for, and how often asked.
const (
	verifyTimeout  = 10 * time.Second
	settleTimeout  = 30 * time.Second // a transfer takes blocks
	supportTimeout = 10 * time.Second
	chainTimeout   = 10 * time.Second // for one proof
	headTimeout    = 2 * time.Second  // a claim waits for it, and can do without

	firstRecheck   = time.Second // doubled until the facilitator has shown our kind
	recheckEvery   = time.Minute
	missesUntilOff = 3 // clear answers without our kind; a mistake of a moment is none

	chainAfter = 5 * time.Second // when a settle call that has not answered is looked up
	chainEvery = 2 * time.Second // about a block

	maxInFlight = 32 // calls to the facilitator; more are refused before anything is claimed
)

// Blocks of the chain.
const (
	blocksPerQuery   = 2_000 // what public nodes answer eth_getLogs for
	blocksBefore     = 10    // a claim: its node's clock and head may be ahead
	maxConfirmations = 1_000
)
