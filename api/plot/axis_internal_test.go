package plot

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
)

// TestTheAxisOfCountsNamesWholeNumbers checks that an axis of counts reaches the highest column
// and has 2 to 6 whole numbers.
func TestTheAxisOfCountsNamesWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := float64(rapid.IntRange(0, 10_000_000).Draw(t, "most"))
		ticks := chart{counts: true, Chart: policy.Chart{Shape: policy.Stacked, Labels: []string{"a"}, Values: [][]float64{{most}}}}.ticks()
		if ticks[0] != 0 || ticks[len(ticks)-1] < most || len(ticks) < 2 || len(ticks) > 6 || ticks[1] != math.Trunc(ticks[1]) {
			t.Fatalf("%v for %g", ticks, most)
		}
	})
}

// TestTheAxisHoldsEveryValue checks that every value is between the ends of the axis, and that the
// axis ascends in few steps.
func TestTheAxisHoldsEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 20).Draw(t, "values")
		shape := policy.Shape(rapid.IntRange(0, 2).Draw(t, "shape"))
		ticks := chart{Chart: policy.Chart{Shape: shape, Labels: make([]string, len(values)), Values: [][]float64{values}}}.ticks()
		lowest, highest := ticks[0], ticks[len(ticks)-1]
		near := (highest - lowest) * 1e-6
		for i, value := range values {
			if value < lowest-near || value > highest+near {
				t.Fatalf("%g is outside of %v", values[i], ticks)
			}
		}
		for i := 1; i < len(ticks); i++ {
			if ticks[i] <= ticks[i-1] || len(ticks) > 8 {
				t.Fatalf("%v", ticks)
			}
		}
	})
}
