package cashflow

import (
	"fmt"
	"math"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// DCF is the input of a discounted cash-flow valuation: flows at the end of years 1 to n, and a
// terminal value at the end of year n.
type DCF struct {
	CashFlows          []float64 `json:"cashFlows" jsonschema:"minItems=1,maxItems=200" jsonschema_description:"Free cash flows of years 1 to n, in currency, each from -1e15 to 1e15."`
	DiscountRate       float64   `json:"discountRate" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Annual effective rate as a decimal."`
	TerminalMethod     *string   `json:"terminalMethod,omitempty" jsonschema:"enum=gordon,enum=exitMultiple,enum=none,default=none" jsonschema_description:"gordon: the last flow grows for ever; exitMultiple: a multiple of a metric."`
	TerminalGrowthRate *float64  `json:"terminalGrowthRate,omitempty" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Annual growth after year n as a decimal, below discountRate (gordon)."`
	ExitMultiple       *float64  `json:"exitMultiple,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Multiple of terminalMetric (exitMultiple)."`
	TerminalMetric     *float64  `json:"terminalMetric,omitempty" jsonschema:"minimum=-1000000000000000,maximum=1000000000000000" jsonschema_description:"Amount that exitMultiple multiplies, for example EBITDA of year n, in currency."`
	MidYear            *bool     `json:"midYear,omitempty" jsonschema:"default=false" jsonschema_description:"Whether the flows are in the middle of their years."`
	NetDebt            *float64  `json:"netDebt,omitempty" jsonschema:"minimum=-1000000000000000,maximum=1000000000000000,default=0" jsonschema_description:"Debt less cash, in currency; subtracted from the enterprise value."`
	SharesOutstanding  *float64  `json:"sharesOutstanding,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000000" jsonschema_description:"Number of shares."`
}

// DCFValue is a valuation as answers contain it.
type DCFValue struct {
	PVCashFlows         *float64 `json:"pvCashFlows" jsonschema:"nullable" jsonschema_description:"Present value of the flows, in currency."`
	TerminalValue       *float64 `json:"terminalValue" jsonschema:"nullable" jsonschema_description:"Terminal value at the end of year n, in currency; 0 if there is none."`
	PVTerminalValue     *float64 `json:"pvTerminalValue" jsonschema:"nullable" jsonschema_description:"Present value of terminalValue, in currency."`
	EnterpriseValue     *float64 `json:"enterpriseValue" jsonschema:"nullable" jsonschema_description:"Sum of pvCashFlows and pvTerminalValue, in currency."`
	EquityValue         *float64 `json:"equityValue" jsonschema:"nullable" jsonschema_description:"enterpriseValue less netDebt, in currency."`
	ValuePerShare       *float64 `json:"valuePerShare" jsonschema:"nullable" jsonschema_description:"equityValue divided by sharesOutstanding."`
	TerminalValueShare  *float64 `json:"terminalValueShare" jsonschema:"nullable" jsonschema_description:"pvTerminalValue divided by enterpriseValue; null if enterpriseValue is 0."`
	ImpliedGrowthRate   *float64 `json:"impliedGrowthRate" jsonschema:"nullable" jsonschema_description:"Perpetual growth that the exit multiple implies."`
	ImpliedExitMultiple *float64 `json:"impliedExitMultiple" jsonschema:"nullable" jsonschema_description:"Multiple of terminalMetric that the growth rate implies."`
}

// Valuation is a valuation before rounding. A number that is not defined is NaN.
type Valuation struct {
	Flows, Terminal, PVTerminal, Enterprise, Equity         float64
	PerShare, TerminalShare, ImpliedGrowth, ImpliedMultiple float64
}

// Check refuses a DCF that cannot be valued. path is its JSON pointer.
func (d *DCF) Check(c *money.Check, path string) {
	c.Length(path+"/cashFlows", len(d.CashFlows), 1, maxDCF)
	for i, x := range d.CashFlows {
		c.Between(fmt.Sprintf("%s/cashFlows/%d", path, i), x, -maxAmount, maxAmount)
	}
	c.Above(path+"/discountRate", d.DiscountRate, minRate, maxRate)
	method := money.Or(d.TerminalMethod, "none")
	c.OneOf(path+"/terminalMethod", method, "gordon", "exitMultiple", "none")
	c.Above(path+"/terminalGrowthRate", money.Or(d.TerminalGrowthRate, 0), minRate, maxRate)
	c.Between(path+"/exitMultiple", money.Or(d.ExitMultiple, 0), 0, maxMultiple)
	c.Between(path+"/terminalMetric", money.Or(d.TerminalMetric, 0), -maxAmount, maxAmount)
	c.Between(path+"/netDebt", money.Or(d.NetDebt, 0), -maxAmount, maxAmount)
	c.Above(path+"/sharesOutstanding", money.Or(d.SharesOutstanding, 1), 0, maxAmount)
	if method == "gordon" {
		if d.TerminalGrowthRate == nil {
			c.Missing(path + "/terminalGrowthRate")
		} else if *d.TerminalGrowthRate >= d.DiscountRate {
			c.Refuse("growth_not_below_discount_rate", path+"/terminalGrowthRate", "terminalGrowthRate must be below discountRate")
		}
	}
	if method == "exitMultiple" {
		if d.ExitMultiple == nil {
			c.Missing(path + "/exitMultiple")
		}
		if d.TerminalMetric == nil {
			c.Missing(path + "/terminalMetric")
		}
	}
}

// Value computes the valuation of a DCF that passed Check.
func (d *DCF) Value() Valuation {
	x := math.Log1p(d.DiscountRate)
	n := float64(len(d.CashFlows))
	early := 0.0
	if money.Or(d.MidYear, false) {
		early = 0.5
	}
	var flows money.Compensated
	for i, c := range d.CashFlows {
		flows.Add(c * math.Exp(-x*(float64(i+1)-early)))
	}
	last := d.CashFlows[len(d.CashFlows)-1]
	v := Valuation{Flows: flows.Float(), PerShare: math.NaN(), TerminalShare: math.NaN(), ImpliedGrowth: math.NaN(), ImpliedMultiple: math.NaN()}
	switch money.Or(d.TerminalMethod, "none") {
	case "gordon":
		g := *d.TerminalGrowthRate
		v.Terminal = last * (1 + g) / (d.DiscountRate - g)
		v.PVTerminal = float64(v.Terminal * math.Exp(-x*(n-early)))
		if d.TerminalMetric != nil && *d.TerminalMetric != 0 {
			v.ImpliedMultiple = v.Terminal / *d.TerminalMetric
		}
	case "exitMultiple":
		v.Terminal = float64(*d.ExitMultiple * *d.TerminalMetric)
		v.PVTerminal = float64(v.Terminal * math.Exp(-x*n))
		if sum := v.Terminal + last; sum != 0 {
			v.ImpliedGrowth = (float64(v.Terminal*d.DiscountRate) - last) / sum
		}
	}
	v.Enterprise = v.Flows + v.PVTerminal
	v.Equity = v.Enterprise - money.Or(d.NetDebt, 0)
	if d.SharesOutstanding != nil {
		v.PerShare = v.Equity / *d.SharesOutstanding
	}
	if v.Enterprise != 0 {
		v.TerminalShare = v.PVTerminal / v.Enterprise
	}
	return v
}

// Report returns the valuation as answers contain it. ok is false if a number beyond
// 9007199254740991 became null.
func (v Valuation) Report() (*DCFValue, bool) {
	var n notes
	value := v.report(&n)
	return value, !n.beyond
}

func (v Valuation) report(n *notes) *DCFValue {
	defined := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return n.number(x)
	}
	return &DCFValue{
		PVCashFlows: n.number(v.Flows), TerminalValue: n.number(v.Terminal), PVTerminalValue: n.number(v.PVTerminal),
		EnterpriseValue: n.number(v.Enterprise), EquityValue: n.number(v.Equity), ValuePerShare: defined(v.PerShare),
		TerminalValueShare: defined(v.TerminalShare), ImpliedGrowthRate: defined(v.ImpliedGrowth), ImpliedExitMultiple: defined(v.ImpliedMultiple),
	}
}

// Findings returns the findings about unusual terms and results of a valuation. path is the JSON
// pointer of the DCF.
func (d *DCF) Findings(path string, v Valuation) []policy.Finding {
	var n notes
	if v.TerminalShare > dominatingShare {
		n.add("terminal_value_dominates", "medium", path, "More than three quarters of the value is in the terminal value.")
	}
	if money.Or(d.TerminalMethod, "none") == "gordon" && *d.TerminalGrowthRate > steepGrowth {
		n.add("growth_above_5pct", "medium", path+"/terminalGrowthRate", "Growth above 5 % a year for ever outruns every economy.")
	}
	if d.DiscountRate > percentRate {
		n.add("rate_looks_like_percent", "medium", path+"/discountRate", "The discount rate is above 100 % a year; 8 % is written 0.08.")
	}
	return n.found
}
