package cashflow

import (
	"fmt"
	"strconv"

	"github.com/countersign/countersign/policy"
)

// charts returns the flows of the example, and their present value by discount rate.
func charts(s policy.Service) ([]policy.Chart, error) {
	in, err := policy.ReadExample[Input](s)
	if err != nil {
		return nil, err
	}
	flows := policy.Chart{Shape: policy.Bars, Title: "Cash flows of the example by period", Caption: "Amount paid in (negative) or paid out (positive) in each period.",
		Names: []string{"cash flow"}, Values: make([][]float64, 1)}
	for i, flow := range in.CashFlows {
		flows.Labels, flows.Values[0] = append(flows.Labels, strconv.Itoa(i)), append(flows.Values[0], *flow.Amount)
	}
	curve := policy.Chart{Title: "Net present value by discount rate", Names: []string{"net present value"}, Values: make([][]float64, 1)}
	for percent := range 31 {
		in.DiscountRate = new(float64(percent) / 100)
		answer, err := Evaluate(in)
		if err != nil {
			return nil, err
		}
		curve.Labels, curve.Values[0] = append(curve.Labels, strconv.Itoa(percent)+"%"), append(curve.Values[0], *answer.NPV)
		if answer.IRR != nil {
			curve.Caption = fmt.Sprintf("The net present value is zero at the internal rate of return, %.2f%%.", 100**answer.IRR)
		}
	}
	return []policy.Chart{flows, curve}, nil
}
