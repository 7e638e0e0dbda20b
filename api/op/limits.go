package op

import (
	"time"
)

// Limits of requests. Each limit prevents one caller from taking the resources of others.
const (
	ReadHeaderTimeout = 10 * time.Second
	ReadTimeout       = 20 * time.Second
	WriteTimeout      = 40 * time.Second
	IdleTimeout       = 60 * time.Second
	HandlerTimeout    = 15 * time.Second // longer than the 5 s that one database statement may take
	paidTimeout       = 35 * time.Second // time to verify the payment, settle it, and compute
	MaxHeaderBytes    = 64 << 10         // bytes; payment headers are large
	MaxConnections    = 16_384           // further connections wait in the accept queue
	MaxInFlight       = 1024             // requests in progress; further ones get 503, because a queue would only hide the overload

	// Limits of bodies that are being read. A body of the maximal 1 MiB must arrive at 51 KiB a
	// second (ReadTimeout), a small body within BodyGrace.
	BodyGrace           = 5 * time.Second
	BodyPerSecond       = 16 << 10 // minimal rate in bytes per second
	MaxBodies           = 2048     // bodies read at once; a new one ends the reading of the oldest
	MaxBodiesPerAddress = 256
	CutBodyPause        = 2 * time.Second        // pause before the answer to a body whose reading was ended
	MaxBodiesWaiting    = 4096                   // such answers that may wait at once; a quarter of all connections
	UnreadBody          = 100 * time.Millisecond // time to read the rest of a body that is ignored

	// MaxHeldBodies limits the bytes that all bodies may take at once, from their first byte to
	// the end of their requests. A body takes twice its length, because its buffer grows and its
	// canonical form is a copy. The limit allows 128 of the largest bodies, or 256 of the largest
	// documents to verify.
	MaxHeldBodies = 256 << 20

	// Largest bodies in bytes. The limits of services are in their declarations.
	LimitRefund = 524_288
	LimitVerify = 524_288
	LimitOther  = 16_384

	LimitPolicy = 262_144 // a policy with 1000 entries in each list

	LimitGuardLog = 1_048_576 // 500 lines of a guard's log (guardlog.MostLines)

	LimitWebhook = 262_144 // a checkout notice with all its line items

	// Limits of messages to webhooks.
	DeliveriesAtOnce = 16
	DeliveriesToOne  = 2                      // messages in progress to one webhook, so that a slow receiver does not take all slots
	DeliveriesEvery  = 250 * time.Millisecond // interval between two searches for due messages
	DeliveryTimeout  = 30 * time.Second       // time for one attempt, of which the receiver has 15 s
	DeliveryLease    = time.Minute            // time after which another node may take over a message from a node that seems dead

	MaxIdempotencyKey = 200 // characters, as the specification defines

	// Limits of requests per minute: for a valid credential, and for a network without valid
	// credentials. A service with two processors answers about 2,000 small calls a second. In the
	// long run, one credential can use a tenth of that, and all unknown callers of one network a
	// hundredth.
	CallsPerMinute     = 12_000
	StrangersPerMinute = 1200
	PagesPerMinute     = 1200 // pages, their files, and tiles of the ledger. Each takes about 2 ms of a processor, so a network can use 4 % of one

	// Limits per network address; for IPv6 per /64.
	KeysPerMinute     = 10               // free keys, and all other operations that create something
	KeysPerDay        = 100              // free keys
	VerifiesPerMinute = 600              // records to verify; an auditor has many
	RefundsPerMinute  = 30               // requests for refunds, each of which recomputes an answer
	BodyCountsAs      = 16 << 10         // bytes of a body that count as one additional request
	linksPerMailbox   = 3                // e-mails with a sign-in link to one mailbox, per linksPeriod
	linksPeriod       = 15 * time.Minute // period of linksPerMailbox

	RetrySoon        = "2"    // seconds, after a temporary 503
	RetryLimited     = "60"   // seconds; equal for every limit except the quota, so that it does not reveal which limit applied
	RateLimitEntries = 10_000 // callers in memory; when it is full, the caller with the oldest request is removed
)
