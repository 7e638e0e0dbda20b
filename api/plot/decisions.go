package plot

import "github.com/countersign/countersign/policy"

// Decisions draws how many decisions of each day were allowed, need a review and were
// denied, as columns; labels name the days, and the other three are as long.
func Decisions(labels []string, allowed, reviewed, denied []float64) (Figure, error) {
	return chart{
		Chart: policy.Chart{
			Shape: policy.Stacked, Title: "Decisions by day: allowed, in need of review, denied; the table below has the numbers",
			Names:  []string{"allowed", "need review", "denied"},
			Labels: labels, Values: [][]float64{allowed, reviewed, denied},
		},
		colours: verdictColours, counts: true,
	}.draw()
}
