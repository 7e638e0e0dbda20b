package options

import (
	"fmt"
	"math"
	"strconv"

	"github.com/countersign/countersign/policy"
)

// charts returns the value of the example's option by the price of the underlying, now and at
// expiry.
func charts(s policy.Service) ([]policy.Chart, error) {
	in, err := policy.ReadExample[Input](s)
	if err != nil {
		return nil, err
	}
	c := policy.Chart{Title: "Value of the example's option by the price of the underlying, now and at expiry", Names: []string{"value now", "payoff at expiry"},
		Values: make([][]float64, 2), Caption: fmt.Sprintf("Before expiry the option is worth more than its payoff, which is the amount by which the price of the underlying exceeds the strike of %v.", in.Strike)}
	for step := range 41 {
		in.Spot = math.Round(in.Strike*(0.5+float64(step)/40)*100) / 100
		answer, err := Evaluate(in)
		if err != nil {
			return nil, err
		}
		c.Labels = append(c.Labels, strconv.FormatFloat(math.Round(in.Spot), 'f', 0, 64))
		c.Values[0], c.Values[1] = append(c.Values[0], answer.Price), append(c.Values[1], answer.IntrinsicValue)
	}
	return []policy.Chart{c}, nil
}
