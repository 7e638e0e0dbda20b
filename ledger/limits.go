package ledger

import "time"

const (
	// MaxEvents is the largest number of events in one append.
	MaxEvents = 64
	// MaxPayload is the largest payload in bytes.
	MaxPayload = 2 << 20

	queueLength   = 4096            // requests per partition; if the queue is full, Append fails at once
	batchEvents   = 512             // rows of one commit: more rows raise the latency but not the throughput
	fewRows       = 16              // commits of up to this many rows pass them as parameters; each number of rows has a prepared statement
	batchOctets   = 4 << 20         // payload bytes of one commit
	budget        = 5 * time.Second // time for one append, from queue to commit
	recentKeys    = 65_536          // idempotency keys in memory, which detect replays without a query
	cachedHeads   = 65_536          // entries that the sequencer keeps in each cache: streams written with Any, tenants, and series
	cachedEntries = 1024            // directory entries that the sequencer remembers as written
	mostMissed    = 4096            // events of other nodes that the sequencer reads to update its cached heads
	backOff       = 4               // batches that use the lock path after another node has won the head row. Measured with two nodes, of which one wrote every 20 ms: with the value 32, 4 % of the other node's batches took the fast path; with 4, it was 50 to 80 %
	lingerAbove   = 4               // if the last batch had more requests than this, the next batch waits briefly for more
	linger        = 50 * time.Microsecond
	poolSize      = 20               // connections for reads and projections; each sequencer has its own connection
	distrust      = 10 * time.Second // time for which a node counts as failing after an error that a trial write cannot reproduce
	trialOctets   = 64 << 10         // bytes that a trial write inserts: more than the free space of one or two pages
	readTries     = 3                // attempts of a read that loses its connection
	feedBatch     = 1000
	pollInterval  = time.Second
	gather        = 5 * time.Millisecond // time that a woken reader waits for more events, unless a caller of Await is waiting
	busyFeed      = 16                   // a batch with at least this many events makes more events likely
	gatherBusy    = 8 * time.Millisecond // time that a reader waits after such a batch, so that the next batch is larger: each batch costs as much as many events. With 20 ms there were 3 % more decisions, visible 10 ms later
	tailBlock     = feedBatch            // events per block of the tail
	tailBlocks    = 5                    // blocks in the tail, including the last one, which is not full

	// After an error a reader pauses and retries. A query waits at most 2 s for a read model
	// (projections.readYourWrites), so the longest pause is much shorter.
	feedFirstPause = 50 * time.Millisecond
	feedLastPause  = 500 * time.Millisecond
	feedTell       = 5 * time.Second // least time between two log lines of a reader about failures
)
