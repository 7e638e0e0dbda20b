package plot

// Decisions draws how many decisions of each day were allowed, need a review and were
// denied, as columns; labels name the days, and the other three are as long.
func Decisions(labels []string, allowed, reviewed, denied []float64) (Figure, error) {
	return chart{
		shape: stacked, title: "Decisions by day: allowed, in need of review, denied; the table below has the numbers",
		names:  []string{"allowed", "need review", "denied"},
		labels: labels, values: [][]float64{allowed, reviewed, denied}, colours: verdictColours, counts: true,
	}.draw()
}
