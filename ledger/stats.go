package ledger

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats counts the work of this node's sequencers since the node started.
type Stats struct {
	Events, Batches, FastPath, LockPath, LostSwaps, Unknown atomic.Int64

	BatchEvents Distribution // number of events per batch
	Waits       Distribution // microseconds between the arrival of an append and its batch
	Commits     Distribution // microseconds from the start of a batch until it was committed or failed
}

// Stats returns the counters of this node's appends.
func (l *Ledger) Stats() *Stats { return &l.stats }

// Distribution counts values by powers of two. The zero value is ready. It is safe for
// concurrent use.
type Distribution struct {
	counts [32]atomic.Uint64 // counts[i] is the number of values above 2^(i-1) and up to 2^i
	sum    atomic.Int64
}

func (d *Distribution) count(value int64) {
	d.counts[min(bits.Len64(uint64(max(value, 1)-1)), len(d.counts)-1)].Add(1)
	d.sum.Add(value)
}

func (d *Distribution) since(t time.Time) { d.count(time.Since(t).Microseconds()) }

// Read returns the number of values, their sum, and for each power of two the number of values up
// to that power. It multiplies the sum and the powers by scale.
func (d *Distribution) Read(scale float64) (count uint64, sum float64, atMost map[float64]uint64) {
	atMost = map[float64]uint64{}
	for i := range d.counts {
		count += d.counts[i].Load()
		atMost[float64(uint64(1)<<i)*scale] = count
	}
	return count, float64(d.sum.Load()) * scale, atMost
}
