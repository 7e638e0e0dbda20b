// Package dealanalyzer analyzes the purchase of a business: its value by discounted cash flow, the
// return on the equity after debt, a table of values by discount rate and terminal assumption, and
// the split of the proceeds.
//
// The package itself computes only the debt. Package cashflow computes the valuation and the
// returns, package waterfall the split. The equity at the start is price plus costs less debt.
// Each year the equity gets the free cash flow less the debt service, and in the last year also
// the terminal value less the remaining debt. Example: 1,000, half of it paid with debt at 6 %,
// 100 a year, and an exit after 5 years at 8 times 150 give the equity flows -500, 70, 70, 70, 70,
// 770.
//
// Amounts are in one currency, rates are annual decimals, and times are whole years.
package dealanalyzer

import (
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/shape"
	"github.com/countersign/countersign/policy/waterfall"
)

// Service is the declaration of dealanalyzer/analyze.
var Service = policy.Declare(policy.Service{
	Name:       "dealanalyzer/analyze",
	PriceCents: 25,
	Group:      policy.GroupFinance,
	Title:      "Deal analysis",
	Summary: "Analyzes an acquisition: DCF value, levered equity returns, sensitivity of the value to discount rate and terminal assumption, " +
		"LP/GP waterfall on the proceeds, and a verdict: attractive, marginal or unattractive. Signed receipt.",
	Example: `{"purchasePrice":1000,"cashFlows":[100,100,100,100,100],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":8,"metric":150},` +
		`"debt":{"amount":500,"annualRate":0.06,"type":"interestOnly","termYears":5},"sensitivity":{"discountRates":[0.08,0.1,0.12],"terminalValues":[7,8,9]},` +
		`"waterfall":{"preferredReturnRate":0.08,"carryRate":0.2}}`,
	Signed:   true,
	Rules:    documented,
	PassesOn: []string{"cashflow/analyze", "waterfall/distribute"},
	Conditions: func() []any {
		return []any{shape.Within("terminal", shape.Terminal("method", "growthRate", "exitMultiple", "metric")...)}
	},
	Reasons: []string{"growth_not_below_discount_rate", "catch_up_not_above_carry", "inconsistent_input", "out_of_range", "no_cash_flows"},
}, Evaluate)

// Input is one deal, with the assumptions of the analysis.
type Input struct {
	policy.Common
	PurchasePrice    float64      `json:"purchasePrice" jsonschema:"exclusiveMinimum=0,maximum=1000000000000000" jsonschema_description:"Enterprise value paid at the start, in currency."`
	TransactionCosts *float64     `json:"transactionCosts,omitempty" jsonschema:"minimum=0,maximum=1000000000000000,default=0" jsonschema_description:"Costs paid in addition to the price, in currency."`
	CashFlows        []float64    `json:"cashFlows" jsonschema:"minItems=1,maxItems=50" jsonschema_description:"Unlevered free cash flows of years 1 to n, in currency, each from -1e15 to 1e15."`
	DiscountRate     float64      `json:"discountRate" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Annual effective rate as a decimal."`
	Terminal         Terminal     `json:"terminal" jsonschema_description:"Assumption about the value of the business after year n."`
	MidYear          *bool        `json:"midYear,omitempty" jsonschema:"default=false" jsonschema_description:"Whether the cash flows are in the middle of their years (valuation only)."`
	Debt             *Debt        `json:"debt,omitempty" jsonschema_description:"Debt that pays part of the price."`
	Sensitivity      *Sensitivity `json:"sensitivity,omitempty" jsonschema_description:"Terms of the table of values; absent: no table."`
	Waterfall        *Waterfall   `json:"waterfall,omitempty" jsonschema_description:"Terms of the split of the equity flows; absent: no split."`
}

// Terminal is the assumption from which the terminal value is computed.
type Terminal struct {
	Method       string   `json:"method" jsonschema:"enum=gordon,enum=exitMultiple" jsonschema_description:"gordon: the last cash flow grows for ever; exitMultiple: a multiple of a metric."`
	GrowthRate   *float64 `json:"growthRate,omitempty" jsonschema:"exclusiveMinimum=-0.99,maximum=10" jsonschema_description:"Annual growth as a decimal, below discountRate (gordon)."`
	ExitMultiple *float64 `json:"exitMultiple,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Multiple of the metric (exitMultiple)."`
	Metric       *float64 `json:"metric,omitempty" jsonschema:"minimum=-1000000000000000,maximum=1000000000000000" jsonschema_description:"Amount that exitMultiple multiplies, for example EBITDA of year n, in currency."`
}

// Debt pays part of the price. The cash flows pay its interest and principal.
type Debt struct {
	Amount     float64 `json:"amount" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Amount of the debt, in currency, less than the sum of price and costs."`
	AnnualRate float64 `json:"annualRate" jsonschema:"minimum=0,maximum=2" jsonschema_description:"Annual interest as a decimal, paid yearly."`
	Type       string  `json:"type" jsonschema:"enum=interestOnly,enum=amortizing" jsonschema_description:"interestOnly: repaid in year termYears or at exit; amortizing: level annual payment over termYears."`
	TermYears  int     `json:"termYears" jsonschema:"minimum=1,maximum=50" jsonschema_description:"Years until the debt is repaid."`
}

// Sensitivity requests the value for each pair of a discount rate and a terminal assumption.
type Sensitivity struct {
	DiscountRates  []float64 `json:"discountRates" jsonschema:"minItems=1,maxItems=11" jsonschema_description:"Rows: annual rates, each above -0.99 and at most 10."`
	TerminalValues []float64 `json:"terminalValues" jsonschema:"minItems=1,maxItems=11" jsonschema_description:"Columns: growth rates (gordon) or multiples (exitMultiple)."`
}

// Waterfall contains the terms of the split.
type Waterfall struct {
	PreferredReturnRate float64  `json:"preferredReturnRate" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Annual preferred return as a decimal."`
	CarryRate           *float64 `json:"carryRate,omitempty" jsonschema:"minimum=0,maximum=0.99,default=0.2" jsonschema_description:"GP's share of the profit as a decimal."`
	CatchUpRate         *float64 `json:"catchUpRate,omitempty" jsonschema:"minimum=0,maximum=1,default=1" jsonschema_description:"GP's share in the catch-up: 0, or above carryRate."`
	Compounding         *string  `json:"compounding,omitempty" jsonschema:"enum=annual,enum=simple,default=annual" jsonschema_description:"How the preferred return is compounded."`
	GPCommitmentRate    *float64 `json:"gpCommitmentRate,omitempty" jsonschema:"minimum=0,maximum=0.99,default=0" jsonschema_description:"GP's share of the capital."`
}

// Output is the analysis. A number that cannot be computed is null.
type Output struct {
	DCF           *cashflow.DCFValue `json:"dcf" jsonschema_description:"Valuation; netDebt is the debt."`
	Equity        Equity             `json:"equity" jsonschema_description:"Flows and returns of the equity."`
	DebtSchedule  []DebtYear         `json:"debtSchedule" jsonschema_description:"Debt service until its term or the exit; empty without debt."`
	Sensitivity   *Grid              `json:"sensitivity" jsonschema:"nullable" jsonschema_description:"Table of values; null if sensitivity was not sent."`
	Waterfall     *waterfall.Output  `json:"waterfall" jsonschema:"nullable" jsonschema_description:"Split of the equity flows, with years of 365 days from 1970-01-01; null if waterfall was not sent."`
	NPVAtPurchase *float64           `json:"npvAtPurchase" jsonschema:"nullable" jsonschema_description:"Enterprise value less price and costs, in currency."`
	Verdict       string             `json:"verdict" jsonschema:"enum=attractive,enum=marginal,enum=unattractive" jsonschema_description:"attractive: npvAtPurchase above 0 and irr at least discountRate; marginal: one of the two; unattractive: neither."`
	Findings      []policy.Finding   `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Equity contains the flows of the owners and their returns, computed as by cashflow/analyze.
type Equity struct {
	Invested          *float64   `json:"invested" jsonschema:"nullable" jsonschema_description:"Sum of all negative flows of the equity, in currency, as a positive number."`
	CashFlows         []*float64 `json:"cashFlows" jsonschema_description:"Flows of the equity at the end of years 0 to n, in currency."`
	IRR               *float64   `json:"irr" jsonschema:"nullable" jsonschema_description:"Annual internal rate of return."`
	IRRRoots          []float64  `json:"irrRoots" jsonschema_description:"All internal rates of return, ascending."`
	MOIC              *float64   `json:"moic" jsonschema:"nullable" jsonschema_description:"Amount paid out divided by amount paid in."`
	NPVAtDiscountRate *float64   `json:"npvAtDiscountRate" jsonschema:"nullable" jsonschema_description:"Net present value of the flows at discountRate, in currency."`
	Payback           *float64   `json:"payback" jsonschema:"nullable" jsonschema_description:"Years until the amount paid in is recovered."`
}

// DebtYear is the debt service of one year.
type DebtYear struct {
	Year      int      `json:"year" jsonschema_description:"1 for the first year."`
	Interest  *float64 `json:"interest" jsonschema:"nullable" jsonschema_description:"Interest of the year, in currency."`
	Principal *float64 `json:"principal" jsonschema:"nullable" jsonschema_description:"Principal repaid in the year, in currency."`
	Balance   *float64 `json:"balance" jsonschema:"nullable" jsonschema_description:"Debt that remains after the year, in currency."`
}

// Grid is the table of values, with one row for each discount rate.
type Grid struct {
	Grid []Row `json:"grid" jsonschema_description:"One row for each discount rate."`
}

// Row contains the values at one discount rate.
type Row struct {
	DiscountRate float64 `json:"discountRate" jsonschema_description:"Annual rate of the row, as a decimal."`
	Values       []Cell  `json:"values" jsonschema_description:"One value for each terminal assumption."`
}

// Cell is the value for one pair of discount rate and terminal assumption. It is null if growth is
// not below the discount rate.
type Cell struct {
	TerminalValue   float64  `json:"terminalValue" jsonschema_description:"The terminal assumption: growth rate or multiple."`
	EnterpriseValue *float64 `json:"enterpriseValue" jsonschema:"nullable" jsonschema_description:"Enterprise value, in currency."`
	EquityValue     *float64 `json:"equityValue" jsonschema:"nullable" jsonschema_description:"Enterprise value less debt, in currency."`
}

// Evaluate analyzes one deal. The codes of its errors are missing_field, invalid_enum,
// out_of_range, too_many_items, inconsistent_input, no_cash_flows, growth_not_below_discount_rate
// and catch_up_not_above_carry.
func Evaluate(in Input) (Output, error) {
	d, err := read(in)
	if err != nil {
		return Output{}, err
	}
	value := d.dcf.Value()
	out := Output{DebtSchedule: []DebtYear{}}
	exact := false
	if out.DCF, exact = value.Report(); !exact {
		d.found = append(d.found, policy.Finding{ID: "number_out_of_range", Severity: "medium", Path: "/terminal",
			Message: "A number beyond 9007199254740991 has no exact JSON form and is null."})
	}
	d.found = append(d.found, d.terminalFindings(value)...)
	balance := d.serve(&out)
	if err := d.measure(in, &out, value.Terminal-balance); err != nil {
		return Output{}, err
	}
	if in.Sensitivity != nil {
		out.Sensitivity = d.table(*in.Sensitivity)
	}
	if in.Waterfall != nil {
		if out.Waterfall, err = d.split(*in.Waterfall); err != nil {
			return Output{}, err
		}
	}
	npv := value.Enterprise - in.PurchasePrice - money.Or(in.TransactionCosts, 0)
	out.NPVAtPurchase = money.Number(npv)
	good := 0
	if npv > 0 {
		good++
	}
	if out.Equity.IRR != nil && *out.Equity.IRR >= in.DiscountRate {
		good++
	}
	out.Verdict = []string{"unattractive", "marginal", "attractive"}[good]
	out.Findings = policy.SortFindings(d.found)
	return out, nil
}
