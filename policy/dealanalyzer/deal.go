package dealanalyzer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/waterfall"
)

// deal is an input that was read and checked, with the findings so far.
type deal struct {
	dcf      cashflow.DCF
	debt     *Debt
	owed     float64   // debt at the start
	flows    []float64 // flows of the equity at the end of years 0 to n
	found    []policy.Finding
	terminal Terminal
}

func read(in Input) (*deal, error) {
	var c money.Check
	c.Above("/purchasePrice", in.PurchasePrice, 0, maxAmount)
	costs := money.Or(in.TransactionCosts, 0)
	c.Between("/transactionCosts", costs, 0, maxAmount)
	c.Length("/cashFlows", len(in.CashFlows), 1, maxYears)
	for i, x := range in.CashFlows {
		c.Between(fmt.Sprintf("/cashFlows/%d", i), x, -maxAmount, maxAmount)
	}
	c.Above("/discountRate", in.DiscountRate, minRate, maxRate)
	checkTerminal(&c, in.Terminal, in.DiscountRate)
	d := &deal{debt: in.Debt, terminal: in.Terminal, dcf: cashflow.DCF{
		CashFlows: in.CashFlows, DiscountRate: in.DiscountRate, TerminalMethod: &in.Terminal.Method, TerminalGrowthRate: in.Terminal.GrowthRate,
		ExitMultiple: in.Terminal.ExitMultiple, TerminalMetric: in.Terminal.Metric, MidYear: in.MidYear, NetDebt: new(float64),
	}}
	if in.Debt != nil {
		d.owed = in.Debt.Amount
		*d.dcf.NetDebt = d.owed
		if !(d.owed > 0 && d.owed < in.PurchasePrice+costs) {
			c.Refuse("out_of_range", "/debt/amount", "debt.amount must be above 0 and below the sum of purchasePrice and transactionCosts")
		}
		c.Between("/debt/annualRate", in.Debt.AnnualRate, 0, maxDebtRate)
		c.OneOf("/debt/type", in.Debt.Type, "interestOnly", "amortizing")
		c.Between("/debt/termYears", float64(in.Debt.TermYears), 1, maxYears)
	}
	if in.Sensitivity != nil {
		checkSensitivity(&c, *in.Sensitivity, in.Terminal.Method)
	}
	d.flows = append([]float64{-(in.PurchasePrice + costs - d.owed)}, in.CashFlows...)
	return d, c.Err()
}

func checkTerminal(c *money.Check, t Terminal, rate float64) {
	c.OneOf("/terminal/method", t.Method, "gordon", "exitMultiple")
	c.Above("/terminal/growthRate", money.Or(t.GrowthRate, 0), minRate, maxRate)
	c.Between("/terminal/exitMultiple", money.Or(t.ExitMultiple, 0), 0, maxMultiple)
	c.Between("/terminal/metric", money.Or(t.Metric, 0), -maxAmount, maxAmount)
	if t.Method == "gordon" {
		if t.GrowthRate == nil {
			c.Missing("/terminal/growthRate")
		} else if *t.GrowthRate >= rate {
			c.Refuse("growth_not_below_discount_rate", "/terminal/growthRate", "terminal.growthRate must be below discountRate")
		}
		return
	}
	if t.ExitMultiple == nil {
		c.Missing("/terminal/exitMultiple")
	}
	if t.Metric == nil {
		c.Missing("/terminal/metric")
	}
}

func checkSensitivity(c *money.Check, s Sensitivity, method string) {
	c.Length("/sensitivity/discountRates", len(s.DiscountRates), 1, maxGrid)
	c.Length("/sensitivity/terminalValues", len(s.TerminalValues), 1, maxGrid)
	for i, x := range s.DiscountRates {
		c.Above(fmt.Sprintf("/sensitivity/discountRates/%d", i), x, minRate, maxRate)
	}
	for i, x := range s.TerminalValues {
		path := fmt.Sprintf("/sensitivity/terminalValues/%d", i)
		if method == "gordon" {
			c.Above(path, x, minRate, maxRate)
		} else {
			c.Between(path, x, 0, maxMultiple)
		}
	}
}

// terminalFindings returns the findings of the valuation, with the paths of this request.
func (d *deal) terminalFindings(v cashflow.Valuation) []policy.Finding {
	found := d.dcf.Findings("", v)
	for i := range found {
		found[i].Path = strings.Replace("/terminal"+found[i].Path, "/terminalGrowthRate", "/growthRate", 1)
		if found[i].ID == "rate_looks_like_percent" {
			found[i].Path = "/discountRate"
		}
	}
	return found
}

// serve subtracts the debt service from the equity flows. It returns the debt that remains after
// the last year.
func (d *deal) serve(out *Output) (balance float64) {
	if d.debt == nil {
		return 0
	}
	n, term := len(d.flows)-1, d.debt.TermYears
	balance = d.owed
	level := float64(d.owed) / float64(term)
	if i := d.debt.AnnualRate; i > 0 {
		level = -d.owed * i / math.Expm1(-float64(term)*math.Log1p(i))
	}
	short := false
	for year := 1; year <= min(n, term); year++ {
		interest, principal := float64(balance*d.debt.AnnualRate), 0.0
		switch {
		case d.debt.Type == "amortizing" && year == term:
			principal = balance // includes the remainder of rounding
		case d.debt.Type == "amortizing":
			principal = level - interest
		case year == term && term < n:
			principal = balance
		}
		balance -= principal
		d.flows[year] -= interest + principal
		out.DebtSchedule = append(out.DebtSchedule, DebtYear{year, money.Number(interest), money.Number(principal), money.Number(balance)})
	}
	for _, x := range d.flows[1:] {
		short = short || x < 0
	}
	if short {
		d.found = append(d.found, policy.Finding{ID: "debt_service_shortfall", Severity: "medium", Path: "/debt",
			Message: "In one year the cash flow does not cover the debt service."})
	}
	return balance
}

// measure adds the exit value to the equity flows and computes their returns.
func (d *deal) measure(in Input, out *Output, exit float64) error {
	if exit < 0 {
		d.found = append(d.found, policy.Finding{ID: "negative_exit_equity", Severity: "high", Path: "/terminal",
			Message: "At exit the debt is larger than the terminal value."})
	}
	d.flows[len(d.flows)-1] += exit
	for _, x := range d.flows {
		if !(math.Abs(x) <= maxAmount) {
			return policy.Refuse("out_of_range", "", "every equity flow must be from -1e15 to 1e15")
		}
	}
	m, err := cashflow.Evaluate(cashflow.Input{CashFlows: cashflow.Periodic(d.flows...), DiscountRate: &in.DiscountRate})
	if err != nil {
		return err
	}
	out.Equity = Equity{Invested: m.TotalContributions, IRR: m.IRR, IRRRoots: m.IRRRoots, MOIC: m.MOIC, NPVAtDiscountRate: m.NPV, Payback: m.PaybackPeriod}
	for _, x := range d.flows {
		out.Equity.CashFlows = append(out.Equity.CashFlows, money.Number(x))
	}
	d.include("/equity", slices.DeleteFunc(m.Findings, func(f policy.Finding) bool { return f.ID == "rate_looks_like_percent" })) // drop a finding that the deal already has
	return nil
}

// include adds the findings of a part of the analysis, with paths below that part.
func (d *deal) include(part string, found []policy.Finding) {
	for _, f := range found {
		f.Path = part + f.Path
		d.found = append(d.found, f)
	}
}

// table values the deal for each pair of discount rate and terminal assumption.
func (d *deal) table(s Sensitivity) *Grid {
	grid := &Grid{Grid: []Row{}}
	for i, rate := range s.DiscountRates {
		row := Row{DiscountRate: rate, Values: []Cell{}}
		for j, assumption := range s.TerminalValues {
			cell := Cell{TerminalValue: assumption}
			dcf := d.dcf
			dcf.DiscountRate = rate
			if d.terminal.Method == "gordon" {
				dcf.TerminalGrowthRate = &assumption
			} else {
				dcf.ExitMultiple = &assumption
			}
			if v := dcf.Value(); d.terminal.Method != "gordon" || assumption < rate {
				cell.EnterpriseValue, cell.EquityValue = money.Number(v.Enterprise), money.Number(v.Equity)
			}
			if cell.EnterpriseValue == nil || cell.EquityValue == nil {
				d.found = append(d.found, policy.Finding{ID: "grid_cell_undefined", Severity: "low", Path: fmt.Sprintf("/sensitivity/grid/%d/values/%d", i, j),
					Message: "Growth at or above the discount rate has no terminal value, and a number beyond 9007199254740991 no form."})
			}
			row.Values = append(row.Values, cell)
		}
		grid.Grid = append(grid.Grid, row)
	}
	return grid
}

// split applies the waterfall to the equity flows, each rounded to cents. The flows are 365 days
// apart, which the waterfall counts as exactly one year.
func (d *deal) split(w Waterfall) (*waterfall.Output, error) {
	in := waterfall.Input{PreferredReturnRate: &w.PreferredReturnRate, CarryRate: w.CarryRate, CatchUpRate: w.CatchUpRate,
		Compounding: w.Compounding, GPCommitmentRate: w.GPCommitmentRate, Events: []waterfall.Event{}}
	for year, x := range d.flows {
		if math.Abs(x) > maxSplit {
			return nil, policy.Refuse("out_of_range", "/waterfall", "waterfall must be absent if an equity flow is above 1e12 or below -1e12")
		}
		amount := money.Round(money.Exact(x))
		e := waterfall.Event{Date: money.Day(365 * year).String(), Type: "distribution", Amount: amount.Float()}
		if amount < 0 {
			e.Type, e.Amount = "contribution", -e.Amount
		}
		if amount != 0 {
			in.Events = append(in.Events, e)
		}
	}
	out, err := waterfall.Proceeds(in)
	var refusal *policy.Error
	if errors.As(err, &refusal) {
		path := refusal.Path
		if strings.HasPrefix(path, "/events") {
			path = "" // the request has no events
		}
		return nil, policy.Refuse(refusal.Code, "/waterfall"+path, "waterfall: "+refusal.Message)
	}
	d.include("/waterfall", out.Findings)
	return &out, err
}
