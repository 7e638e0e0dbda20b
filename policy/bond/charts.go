package bond

import (
	"fmt"
	"strconv"

	"github.com/countersign/countersign/policy"
)

// charts returns the cash flows of the example, and the balance of a loan over 30 years.
func charts(s policy.Service) ([]policy.Chart, error) {
	_, answer, err := policy.RunExample(s, Evaluate)
	if err != nil {
		return nil, err
	}
	flows := policy.Chart{Shape: policy.Stacked, Title: "Cash flows of the example's bond by date", Names: []string{"coupon", "principal"},
		Caption: "Payments of the example's bond, coupon and principal, by date.", Values: make([][]float64, 2)}
	for _, f := range answer.CashFlows {
		flows.Labels = append(flows.Labels, (*f.Date)[:7])
		flows.Values[0], flows.Values[1] = append(flows.Values[0], f.Coupon), append(flows.Values[1], f.Principal)
	}
	loan, err := loanChart()
	return []policy.Chart{flows, loan}, err
}

func loanChart() (policy.Chart, error) {
	const principal, rate, months = 300_000, 0.06, 360
	c := policy.Chart{Title: "Balance of a loan and interest paid so far, by year", Names: []string{"balance", "interest paid so far"}, Values: make([][]float64, 2),
		Caption: fmt.Sprintf("A loan of %d at %v%% over %d years: the principal that remains, and the sum of the interest paid, at the end of each year.", principal, 100*rate, months/12)}
	answer, err := Evaluate(Input{Principal: new(float64(principal)), AnnualRate: new(rate), TermMonths: new(months), IncludeSchedule: new(true)})
	if err != nil {
		return c, err
	}
	c.Labels, c.Values[0], c.Values[1] = []string{"0"}, []float64{principal}, []float64{0}
	paid := 0.0
	for i, month := range answer.Schedule {
		if paid += month.Interest.Float(); (i+1)%12 == 0 {
			c.Labels = append(c.Labels, strconv.Itoa((i+1)/12))
			c.Values[0], c.Values[1] = append(c.Values[0], month.Balance.Float()), append(c.Values[1], paid)
		}
	}
	return c, nil
}
