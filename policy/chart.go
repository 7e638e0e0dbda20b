package policy

import "github.com/countersign/countersign/policy/canon"

// Chart is a figure of a service's example. It holds numbers of the service's own answers;
// whoever shows the service draws it.
type Chart struct {
	Shape   Shape
	Title   string // says what is drawn over what, for readers who do not see it
	Caption string // one sentence that says what is to be seen
	Names   []string
	Labels  []string    // along the x axis
	Values  [][]float64 // for each name, a value for each label
}

// Shape is how a chart shows its series.
type Shape int

// Shapes of charts.
const (
	Lines Shape = iota
	Bars
	Stacked
)

// ReadExample reads the example of a service into its input.
func ReadExample[I any](s Service) (in I, err error) {
	err = canon.DecodeChecked([]byte(s.Example), &in)
	return in, err
}
