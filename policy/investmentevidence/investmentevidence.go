// Package investmentevidence runs a cash-flow analysis, a portfolio score, or both, and reports
// check by check what they show about an investment.
//
// The parts are the answers of packages cashflow and portfoliorisk, unchanged. Each row of
// evidence is one check of one metric. A check without data is omitted. For [-1200, 400, 500, 650]
// at 8 % five checks pass and the verdict is supported.
package investmentevidence

import (
	"errors"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/portfoliorisk"
)

// Service is the declaration of investment-evidence/analyze.
var Service = policy.Declare(policy.Service{
	Name:       "investment-evidence/analyze",
	PriceCents: 25,
	Group:      policy.GroupFinance,
	Title:      "Investment evidence",
	Summary: "Runs a cash-flow analysis, a DCF valuation and a portfolio risk score, and reports for each check (value, returns, multiples, payback, " +
		"concentration, drawdown, history) whether it supports an investment, with a verdict. Signed receipt.",
	Example: `{"cashFlow":{"cashFlows":[-1200,400,500,650],"discountRate":0.08},` +
		`"portfolio":{"positions":[{"symbol":"AAA","weight":0.6},{"symbol":"BBB","weight":0.4}],"portfolioReturns":[0.012,-0.002,0.01,-0.016],"periodsPerYear":12}}`,
	Signed:     true,
	Rules:      documented,
	PassesOn:   []string{"cashflow/analyze", "portfolio-risk/score"},
	Conditions: conditions,
	Reasons:    slices.Concat(cashflow.Service.Reasons, portfoliorisk.Service.Reasons),
}, Evaluate)

// Input contains the request of one part, or of both parts.
type Input struct {
	policy.Common
	CashFlow  *cashflow.Input      `json:"cashFlow,omitempty" jsonschema_description:"Request of cashflow/analyze. Send cashFlow, portfolio or both."`
	Portfolio *portfoliorisk.Input `json:"portfolio,omitempty" jsonschema_description:"Request of portfolio-risk/score."`
}

// Output contains the answers of the parts, the checks, and the verdict.
type Output struct {
	CashFlow  *cashflow.Output      `json:"cashFlow" jsonschema:"nullable" jsonschema_description:"Answer of cashflow/analyze; null if not requested."`
	Portfolio *portfoliorisk.Output `json:"portfolio" jsonschema:"nullable" jsonschema_description:"Answer of portfolio-risk/score; null if not requested."`
	Evidence  []Evidence            `json:"evidence" jsonschema_description:"One row for each check that has data."`
	Verdict   string                `json:"verdict" jsonschema:"enum=supported,enum=mixed,enum=not_supported" jsonschema_description:"supported: no check fails; mixed: at least one check fails, but at most half; not_supported: more than half fail."`
	Findings  []policy.Finding      `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Evidence is the result of one check.
type Evidence struct {
	ID      string `json:"id" jsonschema_description:"Name of the check."`
	Source  string `json:"source" jsonschema:"enum=cashFlow,enum=portfolio" jsonschema_description:"Part of the answer that was checked."`
	Metric  string `json:"metric" jsonschema_description:"Member of that part's answer."`
	Value   any    `json:"value" jsonschema_description:"The member's value."`
	Rule    string `json:"rule" jsonschema_description:"Condition under which the check passes."`
	Outcome string `json:"outcome" jsonschema:"enum=pass,enum=warn,enum=fail" jsonschema_description:"Result of the check. warn: the condition is not met, but that is no evidence against the investment."`
}

// Evaluate runs the parts and the checks. It refuses a request without a part (missing_field). It
// returns the errors of the parts with paths below the part.
func Evaluate(in Input) (Output, error) {
	if in.CashFlow == nil && in.Portfolio == nil {
		return Output{}, policy.Refuse("missing_field", "/cashFlow", "cashFlow or portfolio is required")
	}
	out := Output{Evidence: []Evidence{}}
	if in.CashFlow != nil {
		part, err := cashflow.Evaluate(*in.CashFlow)
		if err != nil {
			return Output{}, below("cashFlow", err)
		}
		out.CashFlow = &part
		out.Evidence = append(out.Evidence, cashFlowChecks(*in.CashFlow, part)...)
		out.include("/cashFlow", part.Findings)
	}
	if in.Portfolio != nil {
		part, err := portfoliorisk.Evaluate(*in.Portfolio)
		if err != nil {
			return Output{}, below("portfolio", err)
		}
		out.Portfolio = &part
		out.Evidence = append(out.Evidence, portfolioChecks(part)...)
		out.include("/portfolio", part.Findings)
	}
	out.Verdict = verdict(out.Evidence)
	if len(out.Evidence) == 0 {
		out.Findings = append(out.Findings, policy.Finding{ID: "no_evidence", Severity: "medium", Message: "No check has data: nothing speaks for or against the investment."})
	}
	out.Findings = policy.SortFindings(out.Findings)
	return out, nil
}

// below changes the path of a part's error to the path in this request.
func below(part string, err error) error {
	var refusal *policy.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return policy.Refuse(refusal.Code, "/"+part+refusal.Path, part+": "+strings.TrimSpace(refusal.Message))
}

// include adds the findings of a part, with paths below the part.
func (o *Output) include(part string, findings []policy.Finding) {
	for _, f := range findings {
		f.Path = part + f.Path
		o.Findings = append(o.Findings, f)
	}
}

// verdict returns the verdict for the number of failed checks.
func verdict(rows []Evidence) string {
	failed := 0
	for _, row := range rows {
		if row.Outcome == "fail" {
			failed++
		}
	}
	switch {
	case failed == 0:
		return "supported"
	case 2*failed <= len(rows):
		return "mixed"
	}
	return "not_supported"
}

// rows collects the checks of one part.
type rows struct {
	source string
	list   []Evidence
}

// add adds a check. Its outcome is pass if good is true, and otherwise the given outcome.
func (r *rows) add(id, metric string, value any, rule string, good bool, otherwise string) {
	outcome := otherwise
	if good {
		outcome = "pass"
	}
	r.list = append(r.list, Evidence{ID: id, Source: r.source, Metric: metric, Value: value, Rule: rule, Outcome: outcome})
}

// number adds a check of the number x, unless x is nil. The check fails if good(*x) is false.
func (r *rows) number(id, metric string, x *float64, rule string, good func(float64) bool) {
	if x != nil {
		r.add(id, metric, *x, rule, good(*x), "fail")
	}
}

// cashFlowChecks returns the checks of value, return, multiple and payback. If there are several
// rates of return, or none, the return is unclear, but that is no evidence against the investment.
// Flows without a change of sign are such evidence.
func cashFlowChecks(in cashflow.Input, out cashflow.Output) []Evidence {
	r := rows{source: "cashFlow"}
	notNegative := func(x float64) bool { return x >= 0 }
	r.number("npv_not_negative", "npv", out.NPV, "npv >= 0", notNegative)
	if out.Mode == "dcf" {
		return r.list
	}
	otherwise := "warn"
	if out.IRRStatus == "no_sign_change" {
		otherwise = "fail"
	}
	r.add("irr_unique", "irrStatus", out.IRRStatus, "irrStatus is unique", out.IRRStatus == "unique", otherwise)
	metric, rate := "irrAnnualized", out.IRRAnnualized
	if out.Mode == "dated" {
		metric, rate = "xirr", out.XIRR
	}
	if in.DiscountRate != nil {
		r.number("irr_not_below_discount_rate", metric, rate, metric+" >= discountRate", func(x float64) bool { return x >= *in.DiscountRate })
	}
	r.number("tvpi_at_least_one", "tvpi", out.TVPI, "tvpi >= 1", func(x float64) bool { return x >= 1 })
	if out.TotalContributions != nil && *out.TotalContributions > 0 {
		var value any
		if out.PaybackPeriod != nil {
			value = *out.PaybackPeriod
		}
		// A residual value may still pay back what the flows have not.
		otherwise := "fail"
		if money.Or(in.ResidualValue, 0) > 0 {
			otherwise = "warn"
		}
		r.add("payback_reached", "paybackPeriod", value, "paybackPeriod is not null", value != nil, otherwise)
	}
	return r.list
}

// Limits of the portfolio checks. They equal the thresholds of the findings of package
// portfoliorisk.
const (
	maxHHI          = 0.25
	maxDrawdown     = 0.30
	minObservations = 30
)

// portfolioChecks returns the checks of risk level, concentration, drawdown, return and history.
func portfolioChecks(out portfoliorisk.Output) []Evidence {
	r := rows{source: "portfolio"}
	r.add("risk_level_not_high", "riskLevel", out.RiskLevel, "riskLevel is low or medium", out.RiskLevel == "low" || out.RiskLevel == "medium", "fail")
	r.number("concentration_limited", "concentrationHHI", &out.ConcentrationHHI, "concentrationHHI <= 0.25", func(x float64) bool { return x <= maxHHI })
	r.number("drawdown_limited", "maxDrawdown", out.MaxDrawdown, "maxDrawdown <= 0.30", func(x float64) bool { return x <= maxDrawdown })
	r.number("sharpe_not_negative", "sharpe", out.Sharpe, "sharpe >= 0", func(x float64) bool { return x >= 0 })
	if out.Observations > 0 {
		r.add("history_sufficient", "observations", out.Observations, "observations >= 30", out.Observations >= minObservations, "warn")
	}
	return r.list
}
