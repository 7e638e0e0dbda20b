package plot

import "github.com/countersign/countersign/policy"

// Growth draws durations as a ledger grows: one line for each name. The labels are the lengths of
// the ledger. Each slice of values is as long as labels.
func Growth(title string, names, labels []string, values [][]float64) (Figure, error) {
	return chart{Chart: policy.Chart{Title: title, Caption: title + ".", Names: names, Labels: labels, Values: values}}.draw()
}
