package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// Read counts every value in the bucket of the smallest power of two that is not below the value,
// and in all larger ones.
func TestDistributionCountsEveryValueWhereItBelongs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Int64Range(0, 1<<30)).Draw(t, "values")
		var d Distribution
		sum := int64(0)
		for _, v := range values {
			d.count(v)
			sum += v
		}
		count, total, atMost := d.Read(1)
		if count != uint64(len(values)) || total != float64(sum) {
			t.Errorf("%d values of %v, want %d of %d", count, total, len(values), sum)
		}
		for bound, n := range atMost {
			want := uint64(0)
			for _, v := range values {
				if float64(v) <= bound {
					want++
				}
			}
			if n != want {
				t.Errorf("%d values of at most %v, want %d", n, bound, want)
			}
		}
	})
}
