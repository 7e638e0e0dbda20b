package actionrisk

import (
	"slices"
	"testing"
	"time"
)

var started = time.Now()

// nanotime returns a monotonic time in nanoseconds, for benchmarks.
func nanotime() int64 { return int64(time.Since(started)) }

// report reports the percentiles of times in microseconds.
func report(b *testing.B, times []float64) {
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-µs")
	b.ReportMetric(times[len(times)*99/100], "p99-µs")
	b.ReportMetric(times[len(times)-1], "max-µs")
}
