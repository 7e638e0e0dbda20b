package op

import (
	"time"
)

// Bounds of requests. Each keeps one caller from taking the resources of others.
const (
	ReadHeaderTimeout = 10 * time.Second
	ReadTimeout       = 20 * time.Second
	WriteTimeout      = 40 * time.Second
	IdleTimeout       = 60 * time.Second
	HandlerTimeout    = 15 * time.Second // work in the database may take 5 s of it
	paidTimeout       = 35 * time.Second // to verify the payment, to settle it, and to compute
	MaxHeaderBytes    = 64 << 10         // payment headers are large
	MaxConnections    = 16_384           // further ones wait in the accept queue
	MaxInFlight       = 1024             // requests that are processed at once; further ones get 503, because a queue would only hide the overload

	// Bounds of bodies that are being read. The largest body of 1 MiB has to arrive at 51 KiB a
	// second (ReadTimeout), a small one within the grace period.
	BodyGrace           = 5 * time.Second
	BodyPerSecond       = 16 << 10 // bytes, the minimum rate
	MaxBodies           = 2048     // at once; a new one cuts off the oldest
	MaxBodiesPerAddress = 256
	CutBodyPause        = 2 * time.Second        // before the answer to a body that was cut off
	MaxBodiesWaiting    = 4096                   // bodies that were cut off and wait for their answer; a quarter of all connections
	UnreadBody          = 100 * time.Millisecond // for the rest of a body that is not read

	// MaxHeldBodies is how many bytes all bodies may take at once, from their first byte to the end
	// of their requests. A body takes twice its length, for a buffer that grew and for its
	// canonical form. The bound allows 128 of the largest bodies, or 244 records to verify.
	MaxHeldBodies = 256 << 20

	// Maximum bytes of bodies. Those of services are in their declarations.
	LimitRefund = 524_288
	LimitVerify = 524_288
	LimitOther  = 16_384

	LimitPolicy = 262_144 // a policy of 1000 entries in each list

	LimitGuardLog = 1_048_576 // 500 lines of a guard's log (guardlog.MostLines)

	LimitWebhook = 262_144 // a checkout with all its line items

	// Bounds of messages to webhooks.
	DeliveriesAtOnce = 16
	DeliveriesToOne  = 2                      // messages at once to one webhook, so that a slow one takes no more slots
	DeliveriesEvery  = 250 * time.Millisecond // how often due messages are looked up
	DeliveryTimeout  = 30 * time.Second       // of an attempt; the receiver has 15 s of it
	DeliveryLease    = time.Minute            // after which a node that took a message counts as dead

	MaxIdempotencyKey = 200 // characters, as in the specification

	// Requests of all kinds, for one valid credential, and for one network without valid
	// credentials. A service with two processors answers about 2,000 small calls a second. One
	// credential may take a tenth of them over a long time, and all unknown callers of one network
	// a hundredth.
	CallsPerMinute     = 12_000
	StrangersPerMinute = 1200
	PagesPerMinute     = 1200 // pages, their files, and tiles of the ledger: about 2 ms of a processor each, so a network can take 4 % of one

	// Per network address, for IPv6 per /64.
	KeysPerMinute     = 10               // free keys, and everything else that creates something
	KeysPerDay        = 100              // free keys
	VerifiesPerMinute = 600              // records: an auditor has many
	RefundsPerMinute  = 30               // recomputed answers
	BodyCountsAs      = 16 << 10         // bytes of a body that count as one more request
	linksPerMailbox   = 3                // e-mails with a link to sign in, to one mailbox
	linksPeriod       = 15 * time.Minute // the period of that number

	RetrySoon        = "2"    // seconds, after a 503 that will pass
	RetryLimited     = "60"   // seconds; the same for every limit except the quota, so that it does not reveal which limit it was
	RateLimitEntries = 10_000 // callers that are remembered; beyond that the one that was not seen for the longest time is forgotten
)
