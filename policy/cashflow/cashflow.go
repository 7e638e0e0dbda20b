// Package cashflow measures a list of cash flows: net present value, every internal rate of return
// with a proof that there are no others, multiples, payback, modified rate of return, and a
// discounted cash-flow valuation.
//
// Flows are periodic (numbers; the first is at time 0 and not discounted) or dated (the time of a
// flow is the number of days since the earliest, divided by 365). Amounts paid in are negative.
//
//	npv = sum of c_i / (1+r)^t_i
//
// For [-1200, 400, 500, 650] at 8 % this is 115.030737184. The internal rates of return are the
// roots of that sum (roots.go describes how all are found). In the example there is one,
// 0.128205923472. If there are several, the answer reports the one nearest to 0 among those with
// the sign of the undiscounted sum, or the one nearest to 0 if none has that sign. The multiples
// are those of the ILPA reporting template: dpi is paid out over paid in, rvpi is the residual
// value over paid in, and tvpi is the sum of both.
//
// Rates are decimals. Times are periods or years, as stated for each number.
package cashflow

import (
	"math"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// Service is the declaration of cashflow/analyze.
var Service = policy.Declare(policy.Service{
	Name:       "cashflow/analyze",
	PriceCents: 20,
	Group:      policy.GroupFinance,
	Title:      "Cash-flow analysis",
	Summary: "Computes NPV, all IRRs or XIRRs with a status and a proof that there are no others, MOIC, DPI, RVPI, TVPI, payback, MIRR and " +
		"profitability index of periodic or dated cash flows; from valuations also modified Dietz and time-weighted return; optionally a DCF valuation with a terminal value by Gordon growth or exit multiple. Signed receipt.",
	Example:    `{"cashFlows":[-1200,400,500,650],"discountRate":0.08}`,
	Signed:     true,
	Rules:      documented,
	Conditions: Conditions,
	Reasons:    []string{"no_cash_flows", "growth_not_below_discount_rate", "inconsistent_input", "out_of_range"},
	Charts:     charts,
}, Evaluate)

// Input is a list of cash flows, a DCF valuation, or both.
type Input struct {
	policy.Common
	CashFlows      []Flow   `json:"cashFlows,omitempty" jsonschema:"minItems=1,maxItems=2000" jsonschema_description:"Either numbers (periodic, the first at time 0) or objects with date and amount (dated, in any order; the amounts of one day are added up). A negative amount is paid in, a positive one is paid out; each is from -1e15 to 1e15."`
	DiscountRate   *float64 `json:"discountRate,omitempty" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Annual effective rate as a decimal. Without it the answer has no discounted values."`
	PeriodsPerYear *int     `json:"periodsPerYear,omitempty" jsonschema:"minimum=1,maximum=365,default=1" jsonschema_description:"Number of periods a year of periodic flows."`
	ResidualValue  *float64 `json:"residualValue,omitempty" jsonschema:"minimum=0,maximum=1000000000000000,default=0" jsonschema_description:"Net asset value still held, in currency: an inflow at the last time for npv, irr and mirr."`
	FinanceRate    *float64 `json:"financeRate,omitempty" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Rate per period at which outflows are financed, for mirr (periodic only); needs reinvestRate."`
	ReinvestRate   *float64 `json:"reinvestRate,omitempty" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Rate per period at which inflows are reinvested."`
	Valuations     []Valued `json:"valuations,omitempty" jsonschema:"maxItems=500" jsonschema_description:"Values of the portfolio on two days or more, for modifiedDietz and timeWeightedReturn; needs dated cashFlows."`
	DCF            *DCF     `json:"dcf,omitempty" jsonschema_description:"Terms of a discounted cash-flow valuation."`
}

// Valued is the value of the portfolio on a day, before the flows of that day.
type Valued struct {
	Date  string  `json:"date" jsonschema:"format=date" jsonschema_description:"Day of the valuation, YYYY-MM-DD; each day at most once."`
	Value float64 `json:"value" jsonschema:"minimum=0,maximum=1000000000000000" jsonschema_description:"Market value before that day's flows, in currency."`
}

// Output is the analysis. A number that cannot be computed is null.
type Output struct {
	Mode                    string           `json:"mode" jsonschema:"enum=periodic,enum=dated,enum=dcf" jsonschema_description:"periodic or dated, by the form of cashFlows; dcf without cashFlows."`
	NPV                     *float64         `json:"npv" jsonschema:"nullable" jsonschema_description:"Net present value at discountRate, in currency, time 0 not discounted."`
	IRR                     *float64         `json:"irr" jsonschema:"nullable" jsonschema_description:"Internal rate of return per period (periodic). If there are several: the one nearest to 0 among those that are at least -0.5 and have the sign of the undiscounted sum, or among all if none is."`
	IRRAnnualized           *float64         `json:"irrAnnualized" jsonschema:"nullable" jsonschema_description:"(1+irr)^periodsPerYear - 1 (periodic)."`
	XIRR                    *float64         `json:"xirr" jsonschema:"nullable" jsonschema_description:"Annual effective internal rate of return (dated). If there are several, one is chosen by the rule of irr."`
	IRRRoots                []float64        `json:"irrRoots" jsonschema_description:"Every rate from -0.9999 to 10000 at which the flows are worth nothing, ascending."`
	IRRStatus               string           `json:"irrStatus" jsonschema:"enum=unique,enum=multiple,enum=none,enum=no_sign_change" jsonschema_description:"How many internal rates of return there are."`
	MOIC                    *float64         `json:"moic" jsonschema:"nullable" jsonschema_description:"Gross multiple of invested capital; equals tvpi."`
	DPI                     *float64         `json:"dpi" jsonschema:"nullable" jsonschema_description:"Distributions divided by contributions."`
	RVPI                    *float64         `json:"rvpi" jsonschema:"nullable" jsonschema_description:"Residual value divided by contributions."`
	TVPI                    *float64         `json:"tvpi" jsonschema:"nullable" jsonschema_description:"dpi plus rvpi."`
	TotalContributions      *float64         `json:"totalContributions" jsonschema:"nullable" jsonschema_description:"Sum of the amounts paid in, as a positive number, in currency."`
	TotalDistributions      *float64         `json:"totalDistributions" jsonschema:"nullable" jsonschema_description:"Sum of the amounts paid out, in currency."`
	NetCashFlow             *float64         `json:"netCashFlow" jsonschema:"nullable" jsonschema_description:"Distributions less contributions, in currency."`
	PaybackPeriod           *float64         `json:"paybackPeriod" jsonschema:"nullable" jsonschema_description:"Time until contributions are first recovered, in periods (periodic) or years (dated)."`
	DiscountedPaybackPeriod *float64         `json:"discountedPaybackPeriod" jsonschema:"nullable" jsonschema_description:"The payback period of the discounted flows."`
	MIRR                    *float64         `json:"mirr" jsonschema:"nullable" jsonschema_description:"Modified internal rate of return per period."`
	ModifiedDietz           *float64         `json:"modifiedDietz" jsonschema:"nullable" jsonschema_description:"Return from the first to the last valuation, with each flow weighted by the days from it to the last valuation; null without valuations or capital."`
	TimeWeightedReturn      *float64         `json:"timeWeightedReturn" jsonschema:"nullable" jsonschema_description:"Linked returns of the periods between valuations. It is exact if every day with a flow has a valuation; otherwise the return of each period is a modified Dietz return."`
	TimeWeightedAnnualized  *float64         `json:"timeWeightedReturnAnnualized" jsonschema:"nullable" jsonschema_description:"(1+timeWeightedReturn)^(365/days) - 1."`
	ProfitabilityIndex      *float64         `json:"profitabilityIndex" jsonschema:"nullable" jsonschema_description:"Present value of the inflows divided by that of the outflows."`
	DCF                     *DCFValue        `json:"dcf" jsonschema:"nullable" jsonschema_description:"The valuation; null if dcf was not sent."`
	Findings                []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Evaluate analyzes cash flows. The codes of its errors are missing_field, unknown_field,
// wrong_type, invalid_date, invalid_enum, out_of_range, too_many_items, mutually_exclusive,
// inconsistent_input, no_cash_flows and growth_not_below_discount_rate.
func Evaluate(in Input) (Output, error) {
	s, err := read(in)
	if err != nil {
		return Output{}, err
	}
	out := Output{Mode: "dcf", IRRRoots: []float64{}, IRRStatus: "none"}
	var n notes
	if s != nil {
		out.Mode = "periodic"
		if s.dated {
			out.Mode = "dated"
		}
		s.totals(&out, &n)
		s.returns(&out, &n)
		s.discounted(&out, &n)
		s.compare(in, &out, &n)
		s.performance(&out, &n)
	}
	if in.DCF != nil {
		value := in.DCF.Value()
		out.DCF = value.report(&n)
		n.found = append(n.found, in.DCF.Findings("/dcf", value)...)
	}
	if n.beyond {
		n.add("number_out_of_range", "medium", "", "A number beyond 9007199254740991 has no exact JSON form and is null.")
	}
	out.Findings = policy.SortFindings(n.found)
	return out, nil
}

// notes collects findings. beyond is true if a number is too large for the answer.
type notes struct {
	found  []policy.Finding
	beyond bool
}

func (n *notes) add(id, severity, path, message string) {
	n.found = append(n.found, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
}

// number returns x as answers contain it, or nil if it is too large.
func (n *notes) number(x float64) *float64 {
	p := money.Number(x)
	n.beyond = n.beyond || p == nil
	return p
}

// compare adds findings about the rate of return, the discount rate and the present value.
func (s *series) compare(in Input, out *Output, n *notes) {
	annual := out.XIRR
	if out.IRRAnnualized != nil {
		annual = out.IRRAnnualized
	}
	if annual != nil && *annual > highReturn {
		n.add("irr_above_100pct", "low", "", "The internal rate of return is above 100 % a year.")
	}
	if annual != nil && in.DiscountRate != nil && *annual < *in.DiscountRate {
		n.add("irr_below_discount_rate", "medium", "", "The internal rate of return is below the discount rate.")
	}
	if in.DiscountRate != nil && *in.DiscountRate > percentRate {
		n.add("rate_looks_like_percent", "medium", "/discountRate", "The discount rate is above 100 % a year; 8 % is written 0.08.")
	}
	if out.NPV != nil && *out.NPV < 0 {
		n.add("negative_npv", "medium", "", "The flows are worth less than nothing at the discount rate.")
	}
}

// totals sets the results that do not depend on the discount rate: sums, multiples, payback and
// modified rate of return.
func (s *series) totals(out *Output, n *notes) {
	var in, outgoing, net, value money.Sum
	value.Add(s.residual)
	for _, c := range s.amounts {
		net.Add(c)
		if c < 0 {
			in.Add(-c)
		} else {
			outgoing.Add(c)
			value.Add(c)
		}
	}
	contributed, distributed := in.Float(), outgoing.Float()
	out.TotalContributions, out.TotalDistributions = n.number(contributed), n.number(distributed)
	out.NetCashFlow = n.number(net.Float())
	if contributed > 0 {
		out.DPI, out.RVPI = n.number(distributed/contributed), n.number(s.residual/contributed)
		out.TVPI = n.number(value.Float() / contributed)
		out.MOIC = out.TVPI
	} else {
		n.add("no_contributions", "medium", "", "Nothing was paid in, so that there are no multiples.")
	}
	out.PaybackPeriod = s.payback(n)
	if s.finance != nil {
		if m := s.modified(contributed); !math.IsNaN(m) {
			out.MIRR = n.number(m)
		}
	}
}

// returns sets the internal rates of return.
func (s *series) returns(out *Output, n *notes) {
	amounts := s.withResidual()
	positive, negative := false, false
	for _, c := range amounts {
		positive, negative = positive || c > 0, negative || c < 0
	}
	if !positive || !negative {
		out.IRRStatus = "no_sign_change"
		n.add("irr_no_sign_change", "high", "", "Flows of one sign have no internal rate of return.")
		return
	}
	rates, tangent := allRates(s.times, amounts)
	for _, r := range rates {
		if p := money.Number(r); *p >= lowestRate && *p <= highestRate {
			out.IRRRoots = append(out.IRRRoots, *p)
		}
	}
	if tangent {
		n.add("irr_tangent_root", "medium", "", "At one rate the present value touches zero, to the precision of a double, without a proven crossing.")
	}
	switch len(out.IRRRoots) {
	case 0:
		out.IRRStatus = "none"
		n.add("irr_no_root", "high", "", "No rate from -99.99 % to 1,000,000 % makes the flows worth nothing.")
		return
	case 1:
		out.IRRStatus = "unique"
	default:
		out.IRRStatus = "multiple"
		n.add("irr_multiple_roots", "high", "", "More than one rate makes the flows worth nothing; reported is the one nearest to 0 of those with the sign of the sum of the flows.")
	}
	irr := headline(out.IRRRoots, amounts)
	if s.dated {
		out.XIRR = &irr
		return
	}
	out.IRR = &irr
	out.IRRAnnualized = n.number(math.Expm1(s.perYear * math.Log1p(irr)))
}

// headline returns the rate to report from roots, which must be in ascending order. It prefers
// roots with the sign of the undiscounted sum, since flows that return more than was paid in have
// a positive rate. It prefers roots of at least -50 %: a lower root solves the equation but does
// not describe the investment. Of the preferred roots, or of all if none is preferred, it returns
// the one nearest to 0.
func headline(roots, amounts []float64) float64 {
	const spurious = -0.5
	var sum money.Sum
	for _, c := range amounts {
		sum.Add(c)
	}
	fits := func(r float64) bool { return float64(sum.Sign())*r > 0 && r >= spurious }
	best := roots[0]
	for _, r := range roots {
		if fits(r) && !fits(best) || fits(r) == fits(best) && math.Abs(r) <= math.Abs(best) {
			best = r
		}
	}
	return best
}

// discounted sets the results that depend on the discount rate.
func (s *series) discounted(out *Output, n *notes) {
	if s.rate == nil {
		return
	}
	x := math.Log1p(*s.rate)
	var total, positive, negative money.Compensated
	for i, c := range s.withResidual() {
		pv := float64(c * math.Exp(-x*s.times[i]/s.perYear))
		total.Add(pv)
		if c > 0 {
			positive.Add(pv)
		} else {
			negative.Add(-pv)
		}
	}
	out.NPV = n.number(total.Float())
	if negative.Float() > 0 {
		out.ProfitabilityIndex = n.number(positive.Float() / negative.Float())
	}
	out.DiscountedPaybackPeriod = s.discountedPayback(x, n)
}
