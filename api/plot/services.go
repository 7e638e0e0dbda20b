package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/waterfall"
)

// Figures draws a service's example; none for a service that is better read.
func Figures(s policy.Service) ([]Figure, error) {
	var list []chart
	var err error
	switch s.Operation {
	case bond.Service.Operation:
		list, err = bondCharts(s)
	case cashflow.Service.Operation:
		list, err = cashflowCharts(s)
	case options.Service.Operation:
		list, err = optionCharts(s)
	case portfoliorisk.Service.Operation:
		list, err = drawdownCharts(s)
	case waterfall.Service.Operation:
		list, err = waterfallCharts(s)
	}
	if err != nil {
		return nil, err
	}
	figures := make([]Figure, len(list))
	for i, c := range list {
		if figures[i], err = c.draw(); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// example is the service's own request, to be changed.
func example(s policy.Service) (request map[string]any, err error) {
	err = json.Unmarshal([]byte(s.Example), &request)
	return request, err
}

// ask has a service answer a request.
func ask(s policy.Service, request map[string]any, into any) error {
	body, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return err
	}
	answer, err := s.Evaluate(body)
	if err != nil {
		return fmt.Errorf("ask %s for a figure: %w", s.Operation, err)
	}
	return json.Unmarshal(answer.Body, into, json.MatchCaseInsensitiveNames(true))
}

// bondCharts are the example's cash flows, and a loan of 30 years as it is paid back.
func bondCharts(s policy.Service) ([]chart, error) {
	request, err := example(s)
	if err != nil {
		return nil, err
	}
	var answer struct {
		CashFlows []struct {
			Date              string
			Coupon, Principal float64
		} `json:"cashFlows"`
	}
	if err := ask(s, request, &answer); err != nil {
		return nil, err
	}
	flows := chart{shape: stacked, title: "Cash flows of the example's bond by date", names: []string{"coupon", "principal"},
		caption: "What the bond of the example pays, and when.", values: make([][]float64, 2)}
	for _, f := range answer.CashFlows {
		flows.labels = append(flows.labels, f.Date[:7])
		flows.values[0], flows.values[1] = append(flows.values[0], f.Coupon), append(flows.values[1], f.Principal)
	}
	loan, err := loanChart(s)
	return []chart{flows, loan}, err
}

func loanChart(s policy.Service) (chart, error) {
	const principal, rate, months = 300_000, 0.06, 360
	var answer struct {
		Schedule []struct {
			Balance, Interest, Principal float64
		} `json:"schedule"`
	}
	c := chart{title: "Balance of a loan and interest paid so far, by year", names: []string{"balance", "interest paid so far"}, values: make([][]float64, 2),
		caption: fmt.Sprintf("A loan of %d at %v%% over %d years, as this service amortizes it: what is still owed, and what it has cost.", principal, 100*rate, months/12)}
	request := map[string]any{"principal": principal, "annualRate": rate, "termMonths": months, "includeSchedule": true}
	if err := ask(s, request, &answer); err != nil {
		return c, err
	}
	c.labels, c.values[0], c.values[1] = []string{"0"}, []float64{principal}, []float64{0}
	paid := 0.0
	for i, month := range answer.Schedule {
		if paid += month.Interest; (i+1)%12 == 0 {
			c.labels = append(c.labels, strconv.Itoa((i+1)/12))
			c.values[0], c.values[1] = append(c.values[0], month.Balance), append(c.values[1], paid)
		}
	}
	return c, nil
}

// cashflowCharts are the example's flows, and their present value by discount rate.
func cashflowCharts(s policy.Service) ([]chart, error) {
	request, err := example(s)
	if err != nil {
		return nil, err
	}
	flows := chart{shape: bars, title: "Cash flows of the example by period", caption: "What is paid and received in each period.", names: []string{"cash flow"}, values: make([][]float64, 1)}
	amounts, _ := request["cashFlows"].([]any)
	for i, amount := range amounts {
		value, _ := amount.(float64)
		flows.labels, flows.values[0] = append(flows.labels, strconv.Itoa(i)), append(flows.values[0], value)
	}
	curve := chart{title: "Net present value by discount rate", names: []string{"net present value"}, values: make([][]float64, 1)}
	for percent := range 31 {
		var answer struct {
			NPV float64
			IRR *float64
		}
		request["discountRate"] = float64(percent) / 100
		if err := ask(s, request, &answer); err != nil {
			return nil, err
		}
		curve.labels, curve.values[0] = append(curve.labels, strconv.Itoa(percent)+"%"), append(curve.values[0], answer.NPV)
		if answer.IRR != nil {
			curve.caption = fmt.Sprintf("The present value crosses zero at the internal rate of return, %.2f%%.", 100**answer.IRR)
		}
	}
	return []chart{flows, curve}, nil
}

// optionCharts are the example's option by the price of what it is on: at expiry,
// and now.
func optionCharts(s policy.Service) ([]chart, error) {
	request, err := example(s)
	if err != nil {
		return nil, err
	}
	strike, _ := request["strike"].(float64)
	c := chart{title: "Value of the example's option by the price of the underlying, now and at expiry", names: []string{"value now", "payoff at expiry"},
		values: make([][]float64, 2), caption: fmt.Sprintf("The option is worth more than it would pay today; at expiry only what lies beyond the strike of %v counts.", strike)}
	for step := range 41 {
		spot := math.Round(strike*(0.5+float64(step)/40)*100) / 100
		var answer struct{ Price, IntrinsicValue float64 }
		request["spot"] = spot
		if err := ask(s, request, &answer); err != nil {
			return nil, err
		}
		c.labels = append(c.labels, strconv.FormatFloat(math.Round(spot), 'f', 0, 64))
		c.values[0], c.values[1] = append(c.values[0], answer.Price), append(c.values[1], answer.IntrinsicValue)
	}
	return []chart{c}, nil
}

// drawdownCharts are how far the example's portfolio lies below its best so far. Its
// deepest point must be the service's.
func drawdownCharts(s policy.Service) ([]chart, error) {
	request, err := example(s)
	if err != nil {
		return nil, err
	}
	positions, _ := request["positions"].([]any)
	periods := 0
	weights, returns := []float64{}, [][]any{}
	for _, p := range positions {
		position, _ := p.(map[string]any)
		weight, _ := position["weight"].(float64)
		list, _ := position["returns"].([]any)
		weights, returns, periods = append(weights, weight), append(returns, list), max(periods, len(list))
	}
	c := chart{title: "Drawdown of the example's portfolio by period", names: []string{"% below the best value so far"}, values: make([][]float64, 1)}
	value, best := 100.0, 100.0
	c.labels, c.values[0] = []string{"0"}, []float64{0}
	for period := range periods {
		change := 0.0
		for i, list := range returns {
			r, _ := list[period].(float64)
			change += weights[i] * r
		}
		value *= 1 + change
		best = max(best, value)
		c.labels = append(c.labels, strconv.Itoa(period+1))
		c.values[0] = append(c.values[0], 100*(value/best-1))
	}
	var answer struct {
		MaxDrawdown float64 `json:"maxDrawdown"`
	}
	if err := ask(s, request, &answer); err != nil {
		return nil, err
	}
	if deepest := -slices.Min(c.values[0]); math.Abs(deepest-100*answer.MaxDrawdown) > 1e-6 {
		return nil, fmt.Errorf("the figure's drawdown is %v, the service's %v", deepest, answer.MaxDrawdown)
	}
	c.caption = fmt.Sprintf("How far the portfolio lies below its best value so far; the deepest point, %.1f%%, is the answer's maxDrawdown.", 100*answer.MaxDrawdown)
	return []chart{c}, nil
}

// waterfallCharts are who gets what of each tier.
func waterfallCharts(s policy.Service) ([]chart, error) {
	request, err := example(s)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Tiers []struct {
			Name   string
			LP, GP float64
		}
	}
	if err := ask(s, request, &answer); err != nil {
		return nil, err
	}
	c := chart{shape: stacked, title: "What investors and manager get of each tier", names: []string{"investors", "manager"}, values: make([][]float64, 2),
		caption: "The distribution of the example, tier after tier: investors first, then the manager catches up, then both share."}
	for _, tier := range answer.Tiers {
		c.labels = append(c.labels, tierNames[tier.Name])
		c.values[0], c.values[1] = append(c.values[0], tier.LP), append(c.values[1], tier.GP)
	}
	return []chart{c}, nil
}

var tierNames = map[string]string{"return_of_capital": "capital", "preferred_return": "preferred return", "gp_catch_up": "catch-up", "carried_interest": "carry"}
