package portfoliorisk

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/countersign/countersign/policy"
)

// charts returns how far the example's portfolio is below its highest value so far. It returns an
// error if the lowest point is not the answer's maxDrawdown.
func charts(s policy.Service) ([]policy.Chart, error) {
	in, answer, err := policy.RunExample(s, Evaluate)
	if err != nil {
		return nil, err
	}
	c := policy.Chart{Title: "Drawdown of the example's portfolio by period", Names: []string{"% below the highest value so far"}, Values: make([][]float64, 1)}
	value, best := 100.0, 100.0
	c.Labels, c.Values[0] = []string{"0"}, []float64{0}
	for period := range answer.Observations {
		change := 0.0
		for _, p := range in.Positions {
			change += *p.Weight * p.Returns[period]
		}
		value *= 1 + change
		best = max(best, value)
		c.Labels = append(c.Labels, strconv.Itoa(period+1))
		c.Values[0] = append(c.Values[0], 100*(value/best-1))
	}
	if deepest := -slices.Min(c.Values[0]); math.Abs(deepest-100**answer.MaxDrawdown) > 1e-6 {
		return nil, fmt.Errorf("the chart has a largest drawdown of %v, the answer %v", deepest, *answer.MaxDrawdown)
	}
	c.Caption = fmt.Sprintf("Loss of the portfolio since its highest value so far. The largest loss, %.1f%%, is maxDrawdown of the answer.", 100**answer.MaxDrawdown)
	return []policy.Chart{c}, nil
}
