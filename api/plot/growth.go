package plot

import "github.com/countersign/countersign/policy"

// Growth draws how long things take as a ledger grows: a line for each of names, over
// labels that name the lengths; each of values is as long as labels.
func Growth(title string, names, labels []string, values [][]float64) (Figure, error) {
	return chart{Chart: policy.Chart{Title: title, Caption: title + ".", Names: names, Labels: labels, Values: values}}.draw()
}
