package plot

import "github.com/countersign/countersign/policy"

// Decisions draws how many decisions of each day were allowed, need a review and were
// denied, as columns. The labels name the days, links lead to the lists of their decisions, and
// the other three are as long.
func Decisions(labels, links []string, allowed, reviewed, denied []float64) (Figure, error) {
	return chart{
		Chart: policy.Chart{
			Shape: policy.Stacked, Title: "Decisions by day: allowed, in need of review, denied; the table below has the numbers",
			Names:  []string{"allowed", "need review", "denied"},
			Labels: labels, Values: [][]float64{allowed, reviewed, denied},
		},
		colours: verdictColours, counts: true, links: links,
	}.draw()
}

// Spend draws how many US dollars were spent on each day, as columns with links to the lists of
// the decisions.
func Spend(labels, links []string, spent []float64) (Figure, error) {
	return chart{
		Chart: policy.Chart{Shape: policy.Bars, Title: "US dollars spent by day; the table below has the numbers", Names: []string{"US dollars"},
			Labels: labels, Values: [][]float64{spent}},
		links: links,
	}.draw()
}
