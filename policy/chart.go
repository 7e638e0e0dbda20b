package policy

import "github.com/countersign/countersign/policy/canon"

// Chart is a figure for the example of a service. Its numbers come from the service's own answers.
// The service's page draws it.
type Chart struct {
	Shape   Shape
	Title   string // names both axes, also for readers who cannot see the figure
	Caption string // one sentence that says what the figure shows
	Names   []string
	Labels  []string    // along the x axis
	Values  [][]float64 // for each name, one value per label
}

// Shape is the form of a chart.
type Shape int

// Shapes of charts.
const (
	Lines Shape = iota
	Bars
	Stacked
)

// ReadExample decodes the example of a service into its input.
func ReadExample[I any](s Service) (in I, err error) {
	err = canon.DecodeChecked([]byte(s.Example), &in)
	return in, err
}

// RunExample decodes the example of a service into its input and evaluates it.
func RunExample[I, O any](s Service, evaluate func(I) (O, error)) (in I, answer O, err error) {
	if in, err = ReadExample[I](s); err == nil {
		answer, err = evaluate(in)
	}
	return in, answer, err
}
