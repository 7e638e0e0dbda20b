package ledger

import "time"

const (
	// MaxEvents of one append: more is a job for several appends.
	MaxEvents = 64
	// MaxPayload in octets; the table checks the same number.
	MaxPayload = 2 << 20

	queueLength  = 4096            // requests; full is an error at once, not a longer wait
	batchEvents  = 512             // rows of one commit: beyond it latency grows and throughput does not
	fewRows      = 16              // of one commit, which are written as they are: a prepared statement for each number
	batchOctets  = 4 << 20         // payload of one commit
	budget       = 5 * time.Second // of one append, from queue to commit
	recentKeys   = 65_536          // idempotency keys that answer replays without the database
	cachedHeads  = 65_536          // streams counted with Any that the sequencer remembers
	backOff      = 4               // batches by the lock path after another node was faster: measured on two nodes, 32 left 4 % of the batches the fast path where the other wrote every 20 ms, 4 leave half to four fifths
	lingerAbove  = 4               // events of the last batch from which waiting a moment pays
	linger       = 50 * time.Microsecond
	poolSize     = 20               // connections for reads and projections; the sequencer has its own
	distrust     = 10 * time.Second // of a node whose last append was refused for reasons that a trial does not show
	trialOctets  = 64 << 10         // a trial writes: more than the free room of a page or two
	readTries    = 3                // of a read whose connection was lost
	feedBatch    = 1000
	pollInterval = time.Second
	gather       = 5 * time.Millisecond // a woken reader waits for more, unless somebody waits for it
	busyFeed     = 16                   // events of a batch that tell of more to come
	gatherBusy   = 8 * time.Millisecond // then a reader waits for so long: a batch costs it as much as many events (20 ms gave decisions a thirtieth more, and showed them 10 ms later)
	tailBlock    = feedBatch            // events that readers need not fetch, in blocks
	tailBlocks   = 5                    // of which the last is still filling

	// A reader that was refused tries again. Whoever asks a read model waits 2 s for it
	// (projections.readYourWrites): the longest pause is a part of that, so that what was
	// locked or unreachable for long is not missing for longer once it is there.
	feedFirstPause = 50 * time.Millisecond
	feedLastPause  = 500 * time.Millisecond
	feedTell       = 5 * time.Second // between two lines in the log of what goes on failing
)
