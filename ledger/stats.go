package ledger

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats counts what the sequencers of this node have done since it started.
type Stats struct {
	Events, Batches, FastPath, LockPath, LostSwaps, Unknown atomic.Int64

	BatchEvents Distribution // events of each batch
	Waits       Distribution // microseconds from an append's arrival until its batch was taken
	Commits     Distribution // microseconds from there until the batch was committed, or was not
}

// Stats of this node's appends.
func (l *Ledger) Stats() *Stats { return &l.stats }

// Distribution counts values by powers of two. The zero value is ready, and many
// may count and read at once.
type Distribution struct {
	counts [32]atomic.Uint64 // of values of at most 2^i and above the power before
	sum    atomic.Int64
}

func (d *Distribution) count(value int64) {
	d.counts[min(bits.Len64(uint64(max(value, 1)-1)), len(d.counts)-1)].Add(1)
	d.sum.Add(value)
}

func (d *Distribution) since(t time.Time) { d.count(time.Since(t).Microseconds()) }

// Read returns how many values there were, their sum, and how many were at most
// each power of two, times scale.
func (d *Distribution) Read(scale float64) (count uint64, sum float64, atMost map[float64]uint64) {
	atMost = map[float64]uint64{}
	for i := range d.counts {
		count += d.counts[i].Load()
		atMost[float64(uint64(1)<<i)*scale] = count
	}
	return count, float64(d.sum.Load()) * scale, atMost
}
