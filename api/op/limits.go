package op

import (
	"time"
)

// Bounds of a request. Each keeps one caller from taking what others need.
const (
	ReadHeaderTimeout = 10 * time.Second
	ReadTimeout       = 20 * time.Second
	WriteTimeout      = 40 * time.Second
	IdleTimeout       = 60 * time.Second
	HandlerTimeout    = 15 * time.Second // database work has 5 s of it
	paidTimeout       = 35 * time.Second // asking whether it would settle, settling, and the same
	MaxHeaderBytes    = 64 << 10         // payment headers are large
	MaxConnections    = 16_384           // further ones wait in the accept queue
	MaxInFlight       = 1024             // that are worked for; beyond it 503: a queue would only hide the overload

	// Bodies that are being read. The largest of 1 MiB has to come at 51 KiB a second
	// (ReadTimeout), a small one within the grace.
	BodyGrace           = 5 * time.Second
	BodyPerSecond       = 16 << 10 // octets, at the least
	MaxBodies           = 2048     // at once; a new one cuts the oldest off
	MaxBodiesPerAddress = 256
	CutBodyPause        = 2 * time.Second        // before a body that was cut off is answered
	MaxBodiesWaiting    = 4096                   // for that; a quarter of all connections
	UnreadBody          = 100 * time.Millisecond // for the rest of a body that nobody asks for

	// Bytes that all bodies may take at once, from their first byte to the end of their
	// requests. A body takes twice its length, for a buffer that grew and for its canonical
	// form: 128 of the largest, or 244 records to verify.
	MaxHeldBodies = 256 << 20

	// Bytes of a body. Those of services are in their declarations.
	LimitRefund = 524_288
	LimitVerify = 524_288
	LimitOther  = 16_384

	LimitPolicy = 262_144 // a policy of 1000 entries in each list

	LimitGuardLog = 1_048_576 // 500 lines of a guard's log (guardlog.MostLines)

	LimitWebhook = 262_144 // a checkout with all its line items

	// Messages to webhooks.
	DeliveriesAtOnce = 16
	DeliveriesToOne  = 2                      // webhook: a slow one keeps no more slots
	DeliveriesEvery  = 250 * time.Millisecond // looked for
	DeliveryTimeout  = 30 * time.Second       // of an attempt: 15 s of it are the receiver's
	DeliveryLease    = time.Minute            // after which a node that took a message is taken to be dead

	MaxIdempotencyKey = 200 // characters, as the specification's

	// Requests of all kinds, of one credential that was found good, and of a network of
	// which none was. A service with two processors answers some 2,000 small calls a
	// second: one credential may take a tenth of them for long, all strangers of one
	// network a hundredth.
	CallsPerMinute     = 12_000
	StrangersPerMinute = 1200
	PagesPerMinute     = 1200 // pages, their files, and tiles of the ledger: some 2 ms of a processor each, so a network has 4 % of one

	// Per network address, of IPv6 per /64.
	KeysPerMinute     = 10               // free keys, and whatever else makes something new
	KeysPerDay        = 100              // free keys
	VerifiesPerMinute = 600              // records: an auditor has many
	RefundsPerMinute  = 30               // recomputed answers
	BodyCountsAs      = 16 << 10         // octets of a body that cost as much as one request more
	lettersPerAddress = 3                // with a link to sign in, to one mailbox in
	lettersPeriod     = 15 * time.Minute // so long

	RetrySoon        = "2"    // seconds, after a 503 that passes
	RetryLimited     = "60"   // seconds; one for every limit but the quota, so that it does not tell which
	RateLimitEntries = 10_000 // that are remembered; then the one not seen for the longest time is forgotten
)
