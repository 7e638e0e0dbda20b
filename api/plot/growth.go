package plot

// Growth draws how long things take as a ledger grows: a line for each of names, over
// labels that name the lengths; each of values is as long as labels.
func Growth(title string, names, labels []string, values [][]float64) (Figure, error) {
	return chart{title: title, caption: title + ".", names: names, labels: labels, values: values}.draw()
}
