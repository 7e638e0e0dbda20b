package plot

import "github.com/countersign/countersign/policy"

// Decisions draws columns of the decisions per day that were allowed, need a review, or were
// denied. The labels are the days. links has the address of each day's list of decisions. All
// slices have equal lengths.
func Decisions(labels, links []string, allowed, reviewed, denied []float64) (Figure, error) {
	return chart{
		Chart: policy.Chart{
			Shape: policy.Stacked, Title: "Decisions per day: allowed, needing review, denied. The table below has the numbers.",
			Names:  []string{"allowed", "need review", "denied"},
			Labels: labels, Values: [][]float64{allowed, reviewed, denied},
		},
		colours: verdictColours, counts: true, links: links,
	}.draw()
}

// Spend draws columns of the US dollars spent per day, with links to the lists of decisions.
func Spend(labels, links []string, spent []float64) (Figure, error) {
	return chart{
		Chart: policy.Chart{Shape: policy.Bars, Title: "US dollars spent per day. The table below has the numbers.", Names: []string{"US dollars"},
			Labels: labels, Values: [][]float64{spent}},
		links: links,
	}.draw()
}
