package plot

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// An axis of counts ends at or above the highest column and names whole numbers, few
// enough to read.
func TestTheAxisOfCountsNamesWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := float64(rapid.IntRange(0, 10_000_000).Draw(t, "most"))
		lowest, highest, labels := wholeAxis(most)
		step := (*highest - *lowest) / float64(labels-1)
		if *lowest != 0 || *highest < most || labels < 2 || labels > 6 || step != math.Trunc(step) {
			t.Fatalf("%g to %g with %d labels", *lowest, *highest, labels)
		}
	})
}
