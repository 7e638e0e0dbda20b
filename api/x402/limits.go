package x402

import "time"

// Bounds of what is read and waited for.
const (
	MaxHeader       = 16_384  // characters of PAYMENT-SIGNATURE: Node's limit for all headers together
	MaxChallenge    = 4_096   // characters of PAYMENT-REQUIRED stay below: proxies cut a response head at 4 KiB, and clients echo it
	maxAnswer       = 1 << 20 // octets of an answer of facilitator or chain
	maxTransaction  = 200     // characters; a hash has 66
	minSignature    = 65      // octets; a wallet's own. Longer ones are contracts'
	maxInFlight     = 32      // calls to the facilitator; more are refused before anything is claimed
	defaultTimeout  = 300     // seconds a payment may take: outlasts all attempts
	minTimeout      = 60
	maxTimeout      = 600
	windowLeft      = 6 * time.Second  // what must be left of a payment's window, to get it into a block
	windowSlack     = 60 * time.Second // how much longer it may be than asked, for clocks that differ
	verifyTimeout   = 10 * time.Second
	settleTimeout   = 30 * time.Second
	supportTimeout  = 10 * time.Second
	recheckEvery    = time.Minute
	missesUntilOff  = 3               // clear answers without our kind
	chainAfter      = 5 * time.Second // when the chain is asked beside a settle call that has not answered
	chainEvery      = 2 * time.Second // about a block
	chainTimeout    = 10 * time.Second
	blocksPerQuery  = 2_000            // what public nodes answer eth_getLogs for
	blocksBefore    = 10               // before the claim: the clocks of chain and node differ
	expiredFor      = 30 * time.Second // by the chain's own clock, before unused counts as never
	headTimeout     = 2 * time.Second  // a claim waits for it, and can do without
	maxConfirmation = 1_000
)
