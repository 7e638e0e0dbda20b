package ledger

import "time"

const (
	// MaxEvents is the most events of one append. More need several appends.
	MaxEvents = 64
	// MaxPayload is the most bytes of a payload.
	MaxPayload = 2 << 20

	queueLength   = 4096            // requests; if the queue is full, an append fails at once and does not wait longer
	batchEvents   = 512             // rows of one commit: with more, latency grows and throughput does not
	fewRows       = 16              // rows of one commit that are written as parameters, with a prepared statement for each number
	batchOctets   = 4 << 20         // bytes of payload of one commit
	budget        = 5 * time.Second // of one append, from queue to commit
	recentKeys    = 65_536          // idempotency keys in memory, which answer replays without a query
	cachedHeads   = 65_536          // streams counted with Any that the sequencer caches
	cachedEntries = 1024            // entries of the directory that the sequencer knows to be written
	mostMissed    = 4096            // events of other nodes that the sequencer reads to bring its cached heads up to date
	backOff       = 4               // batches by the lock path after another node was faster. Measured with two nodes of which one wrote every 20 ms: with 32, 4 % of the batches of the other took the fast path; with 4, half to four fifths
	lingerAbove   = 4               // events of the last batch above which the next one waits a moment for more
	linger        = 50 * time.Microsecond
	poolSize      = 20               // connections for reads and projections; each sequencer has its own
	distrust      = 10 * time.Second // how long a node counts as failing after an error that a trial does not repeat
	trialOctets   = 64 << 10         // bytes that a trial writes: more than the free space of one or two pages
	readTries     = 3                // attempts of a read whose connection is lost
	feedBatch     = 1000
	pollInterval  = time.Second
	gather        = 5 * time.Millisecond // how long a woken reader waits for more events, unless a caller of Await waits
	busyFeed      = 16                   // events of a batch after which more are likely to come
	gatherBusy    = 8 * time.Millisecond // how long a reader then waits, since a batch costs it as much as many events. 20 ms gave 3 % more decisions and showed them 10 ms later
	tailBlock     = feedBatch            // events per block of the tail
	tailBlocks    = 5                    // blocks of the tail; the last one is being filled

	// A reader that has failed pauses and tries again. A query of a read model waits at most
	// 2 s for it (projections.readYourWrites), so the longest pause is a part of that.
	feedFirstPause = 50 * time.Millisecond
	feedLastPause  = 500 * time.Millisecond
	feedTell       = 5 * time.Second // between two log lines about the same failure
)
