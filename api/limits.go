package api

import "time"

// Bounds of a request. Each keeps one caller from taking what others need.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 20 * time.Second
	writeTimeout      = 40 * time.Second
	idleTimeout       = 60 * time.Second
	handlerTimeout    = 15 * time.Second // database work has 5 s of it
	paidTimeout       = 35 * time.Second // asking whether it would settle, settling, and the same
	maxHeaderBytes    = 64 << 10         // payment headers are large
	maxConnections    = 16_384           // further ones wait in the accept queue
	maxInFlight       = 1024             // that are worked for; beyond it 503: a queue would only hide the overload

	// Bodies that are being read. The largest of 1 MiB has to come at 51 KiB a second
	// (readTimeout), a small one within the grace.
	bodyGrace           = 5 * time.Second
	bodyPerSecond       = 16 << 10 // octets, at the least
	maxBodies           = 2048     // at once; a new one cuts the oldest off
	maxBodiesPerAddress = 256
	cutBodyPause        = 2 * time.Second        // before a body that was cut off is answered
	maxBodiesWaiting    = 4096                   // for that; a quarter of all connections
	unreadBody          = 100 * time.Millisecond // for the rest of a body that nobody asks for

	// Bytes that all bodies may take at once, from their first byte to the end of their
	// requests. A body takes twice its length, for a buffer that grew and for its canonical
	// form: 128 of the largest, or 244 records to verify.
	maxHeldBodies = 256 << 20

	// Octets of a body. The action's twelve members fit eight times.
	limitActionSafety = 65_536
	limitComponent    = 1_048_576
	limitRefund       = 524_288
	limitVerify       = 524_288
	limitOther        = 16_384

	limitPolicy = 262_144 // a policy of 1000 entries in each list

	limitGuardLog = 1_048_576 // 500 lines of a guard's log (guardlog.MostLines)

	limitWebhook = 262_144 // a checkout with all its line items

	// Messages to webhooks.
	deliveriesAtOnce = 16
	deliveriesToOne  = 2                      // webhook: a slow one keeps no more slots
	deliveriesEvery  = 250 * time.Millisecond // looked for
	deliveryTimeout  = 30 * time.Second       // of an attempt: 15 s of it are the receiver's
	deliveryLease    = time.Minute            // after which a node that took a message is taken to be dead

	maxIdempotencyKey = 200 // characters, as the specification's

	// Requests of all kinds, of one credential that was found good, and of a network of
	// which none was. A service with two processors answers some 2,000 small calls a
	// second: one credential may take a tenth of them for long, all strangers of one
	// network a hundredth.
	callsPerMinute     = 12_000
	strangersPerMinute = 1200
	pagesPerMinute     = 1200 // pages, their files, and tiles of the ledger: some 2 ms of a processor each, so a network has 4 % of one

	// Per network address, of IPv6 per /64.
	keysPerMinute     = 10               // free keys, and whatever else makes something new
	keysPerDay        = 100              // free keys
	verifiesPerMinute = 600              // records: an auditor has many
	refundsPerMinute  = 30               // recomputed answers
	bodyCountsAs      = 16 << 10         // octets of a body that cost as much as one request more
	lettersPerAddress = 3                // with a link to sign in, to one mailbox in
	lettersPeriod     = 15 * time.Minute // so long

	retrySoon        = "2"    // seconds, after a 503 that passes
	retryLimited     = "60"   // seconds; one for every limit but the quota, so that it does not tell which
	rateLimitEntries = 10_000 // that are remembered; then the one not seen for the longest time is forgotten
)

// NoContact is an address nobody has, for a service that only its own machine can
// reach.
const NoContact = "operator@countersign.invalid"
