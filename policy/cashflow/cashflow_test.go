package cashflow_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/policytest"
)

func ptr[T any](x T) *T { return &x }

func evaluate(t policytest.TB, in cashflow.Input) cashflow.Output {
	t.Helper()
	return policytest.Must(t, cashflow.Evaluate, in)
}

// ask evaluates a request that is given as JSON members.
func ask(t *testing.T, members string) cashflow.Output {
	t.Helper()
	return policytest.Ask(t, cashflow.Evaluate, members)
}

// is reports whether an optional number agrees to 12 digits. The last digit may differ by one.
func is(got *float64, want float64) bool {
	return got != nil && math.Abs(*got-want) <= 1.2e-11*math.Abs(want)
}

func show(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprint(*x)
}

func ExampleEvaluate() {
	// The oil pump of Lorie and Savage 1955, "Three Problems in Rationing Capital": a larger pump
	// costs 1,600, and pays 10,000 one year earlier instead of one year later.
	out, err := cashflow.Evaluate(cashflow.Input{CashFlows: cashflow.Periodic(-1600, 10000, -10000)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.IRRStatus, out.IRRRoots, out.Findings[0].ID)
	// Output: multiple [0.25 4] irr_multiple_roots
}

// The service gives the example of the contract, digit by digit.
func TestWorkedExample(t *testing.T) {
	got := policytest.Members(t, cashflow.Service, cashflow.Service.Example)
	for name, want := range map[string]any{
		"mode": "periodic", "npv": 115.030737184, "irr": 0.128205923472, "irrAnnualized": 0.128205923472, "xirr": nil,
		"irrRoots": []any{0.128205923472}, "irrStatus": "unique", "moic": 1.29166666667, "dpi": 1.29166666667, "rvpi": 0.0,
		"tvpi": 1.29166666667, "paybackPeriod": 2.46153846154, "totalContributions": 1200.0, "totalDistributions": 1550.0,
		"netCashFlow": 350.0, "mirr": nil, "dcf": nil, "findings": []any{}, "service": "cashflow-analyze",
	} {
		value, there := got[name]
		if diff := cmp.Diff(want, value); diff != "" || !there {
			t.Errorf("%s there %v (-want +got):\n%s", name, there, diff)
		}
	}
}

// The results are those of the Excel manual: XIRR 0.373362535, XNPV at 9 % 2086.647602, IRR 8.7 %
// (8.66309 %), MIRR 12.6094 %.
func TestSpreadsheetManualExamples(t *testing.T) {
	out := ask(t, `"discountRate":0.09,"cashFlows":[{"date":"2008-01-01","amount":-10000},{"date":"2008-03-01","amount":2750},
		{"date":"2008-10-30","amount":4250},{"date":"2009-02-15","amount":3250},{"date":"2009-04-01","amount":2750}]`)
	if math.Abs(*out.XIRR-0.373362535) > 5e-9 || math.Abs(*out.NPV-2086.647602) > 5e-7 || out.IRR != nil || out.IRRAnnualized != nil || out.Mode != "dated" {
		t.Errorf("xirr %s npv %s", show(out.XIRR), show(out.NPV))
	}
	out = ask(t, `"cashFlows":[-70000,12000,15000,18000,21000,26000]`)
	if math.Abs(*out.IRR-0.0866309480) > 5e-10 {
		t.Errorf("irr %s", show(out.IRR))
	}
	out = ask(t, `"cashFlows":[-120000,39000,30000,21000,37000,46000],"financeRate":0.1,"reinvestRate":0.12`)
	if math.Abs(*out.MIRR-0.126094) > 5e-7 {
		t.Errorf("mirr %s", show(out.MIRR))
	}
}

// The results agree with closed forms: the present value of an annuity, of a long annuity and of a
// single payment.
func TestClosedForms(t *testing.T) {
	flows := make([]float64, 61)
	for i := 1; i <= 60; i++ {
		flows[i] = 100
	}
	in := cashflow.Input{CashFlows: cashflow.Periodic(flows...), DiscountRate: ptr(0.06), PeriodsPerYear: ptr(12)}
	monthly := math.Pow(1.06, 1.0/12) - 1
	if out := evaluate(t, in); !is(out.NPV, 100*(1-math.Pow(1+monthly, -60))/monthly) {
		t.Errorf("annuity %s", show(out.NPV))
	}
	out := ask(t, `"cashFlows":[-100,0,0,0,0,0,0,200],"discountRate":0.05,"periodsPerYear":4`)
	if !is(out.IRR, math.Pow(2, 1.0/7)-1) || !is(out.IRRAnnualized, math.Pow(2, 4.0/7)-1) || !is(out.NPV, 200*math.Pow(1.05, -7.0/4)-100) {
		t.Errorf("doubling: irr %s, a year %s, npv %s", show(out.IRR), show(out.IRRAnnualized), show(out.NPV))
	}
	out = ask(t, `"cashFlows":[{"date":"2023-01-01","amount":-100},{"date":"2025-12-31","amount":100},{"date":"2022-01-01","amount":0}]`)
	if !is(out.XIRR, 0) || *out.PaybackPeriod != 4 {
		t.Errorf("nothing gained: xirr %s, payback %s", show(out.XIRR), show(out.PaybackPeriod))
	}
}

func TestStatusOfRoots(t *testing.T) {
	for _, tc := range []struct {
		flows    string
		status   string
		roots    []float64
		findings []string
	}{
		{"-1600,10000,-10000", "multiple", []float64{0.25, 4}, []string{"irr_multiple_roots"}},
		{"1000,-3000,2500", "none", []float64{}, []string{"irr_no_root"}},                  // from Brealey and Myers; has no rate
		{"-100,230,-132", "multiple", []float64{0.1, 0.2}, []string{"irr_multiple_roots"}}, // proportional to (v-1/1.1)(v-1/1.2)
		{"-100,220,-121", "unique", []float64{0.1}, []string{"irr_tangent_root"}},          // double root
		{"1,-3,3,-1", "unique", []float64{0}, []string{"irr_tangent_root"}},                // triple root
		{"100,-250,144", "multiple", []float64{-0.1, 0.6}, []string{"irr_multiple_roots"}},
		{"100,-200,75", "multiple", []float64{-0.5, 0.5}, []string{"irr_multiple_roots"}},
		{"1,2,3", "no_sign_change", []float64{}, []string{"irr_no_sign_change"}},
		{"-1,-2", "no_sign_change", []float64{}, []string{"irr_no_sign_change"}},
		{"-5", "no_sign_change", []float64{}, []string{"irr_no_sign_change"}},
		{"-1,10001", "unique", []float64{10000}, []string{"irr_above_100pct"}},
		{"-1,10001.1", "none", []float64{}, []string{"irr_no_root"}},
		{"-10000,1", "unique", []float64{-0.9999}, []string{}},
		{"-10001,1", "none", []float64{}, []string{"irr_no_root"}},
		{"0,0,-100,110,0", "unique", []float64{0.1}, []string{}},
		{"-0.3,0.1,0.2", "unique", []float64{0}, []string{}},
		{"-1e-300,1e15", "none", []float64{}, []string{"irr_no_root"}},
		{"-1e15,1e15", "unique", []float64{0}, []string{}},
		{"-1000,3600,-4310,1716", "multiple", []float64{0.1, 0.2, 0.3}, []string{"irr_multiple_roots"}},
	} {
		out := ask(t, `"cashFlows":[`+tc.flows+`]`)
		if out.IRRStatus != tc.status || len(out.IRRRoots) != len(tc.roots) {
			t.Errorf("%s: %s %v, want %s %v", tc.flows, out.IRRStatus, out.IRRRoots, tc.status, tc.roots)
			continue
		}
		for i, want := range tc.roots {
			tolerance := 1e-11 * math.Max(math.Abs(want), 1e-3)
			if slices.Contains(tc.findings, "irr_tangent_root") {
				tolerance = 1e-5 // the error of a double root is about the square root of the precision of a double
			}
			if math.Abs(out.IRRRoots[i]-want) > tolerance {
				t.Errorf("%s: root %v, want %v", tc.flows, out.IRRRoots[i], want)
			}
		}
		got := slices.DeleteFunc(policytest.IDs(out.Findings), func(id string) bool { return !strings.HasPrefix(id, "irr_") })
		if diff := cmp.Diff(tc.findings, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.flows, diff)
		}
	}
}

// The reported rate has the sign of the sum of the flows. The first three rates are in the tests
// of numpy-financial and pyxirr (numpy-financial tests/test_financial.py, "test_gh_44" and the
// flows of issue 28; pyxirr tests/test_periodic.rs).
func TestHeadlineHasTheSignOfTheSum(t *testing.T) {
	for flows, want := range map[string]float64{
		"-50,-100,600,300,-100": 1.85441782845, "-1678.87,771.96,1814.05,3520.3,3552.95,3584.99,4789.91,-1": 1.00426984872, "-5,10.5,1,-8,1": 0.08859833852,
		"-1600,10000,-10000": 0.25, "100,-250,144": -0.1, "100,-200,75": -0.5, "-1000,3600,-4310,1716": 0.1,
		"100,-200,100": 0, // the sum is 0, and the rate is 0
	} {
		out := ask(t, `"cashFlows":[`+flows+`]`)
		if out.IRR == nil || math.Abs(*out.IRR-want) > 1e-10 {
			t.Errorf("%s: got %s of %v, want %v", flows, show(out.IRR), out.IRRRoots, want)
		}
	}
	if out := ask(t, `"cashFlows":[-50,-100,600,300,-100]`); len(out.IRRRoots) != 2 || out.IRRStatus != "multiple" || !slices.Contains(policytest.IDs(out.Findings), "irr_multiple_roots") {
		t.Errorf("all roots stay listed: %+v", out)
	}
}

// Numbers that are allowed but suspicious make findings, not errors.
func TestSuspiciousNumbers(t *testing.T) {
	for members, want := range map[string]bool{
		`"cashFlows":[-100,60,60],"discountRate":8`: true, `"dcf":{"cashFlows":[10],"discountRate":8}`: true, `"cashFlows":[-100,60,60],"discountRate":0.9`: false,
	} {
		if got := slices.Contains(policytest.IDs(ask(t, members).Findings), "rate_looks_like_percent"); got != want {
			t.Errorf("%s: %v", members, got)
		}
	}
}

// The two-year example of the modified Dietz method (Wikipedia, "Modified Dietz method"): 100 at
// the start, 50 paid in after a year, and 300 at the end are a gain of 150 on a capital of 125, or
// 120 %. With a valuation of 140 before the payment, the time-weighted return is 1.4 * 300/190 - 1
// (CFA Institute, GIPS: linked at each external flow).
func TestModifiedDietzAndTimeWeightedReturn(t *testing.T) {
	const flows = `"cashFlows":[{"date":"2021-01-01","amount":-100},{"date":"2022-01-01","amount":-50},{"date":"2023-01-01","amount":300}],"valuations":[`
	out := ask(t, flows+`{"date":"2023-01-01","value":300},{"date":"2021-01-01","value":0}]`)
	if !is(out.ModifiedDietz, 1.2) || !is(out.TimeWeightedReturn, 1.2) || !is(out.TimeWeightedAnnualized, math.Sqrt(2.2)-1) {
		t.Errorf("modified Dietz %s, time-weighted %s, a year %s", show(out.ModifiedDietz), show(out.TimeWeightedReturn), show(out.TimeWeightedAnnualized))
	}
	out = ask(t, flows+`{"date":"2021-01-01","value":0},{"date":"2022-01-01","value":140},{"date":"2023-01-01","value":300}]`)
	if want := 1.4*300/190 - 1; !is(out.TimeWeightedReturn, want) || !is(out.ModifiedDietz, 1.2) {
		t.Errorf("time-weighted %s, want %v", show(out.TimeWeightedReturn), want)
	}
	if out := ask(t, `"cashFlows":[-100,110]`); out.ModifiedDietz != nil || out.TimeWeightedReturn != nil {
		t.Error("returns without valuations")
	}
}

func TestResidualValueIsAnInflowAtTheEnd(t *testing.T) {
	out := ask(t, `"cashFlows":[-100,10],"residualValue":100,"discountRate":0.05,"financeRate":0.1,"reinvestRate":0.1`)
	if !is(out.IRR, 0.1) || !is(out.NPV, 110/1.05-100) || !is(out.DPI, 0.1) || !is(out.RVPI, 1) || !is(out.TVPI, 1.1) || !is(out.MOIC, 1.1) ||
		!is(out.MIRR, 0.1) || !is(out.ProfitabilityIndex, 110/105.0) || !is(out.NetCashFlow, -90) || out.PaybackPeriod != nil {
		t.Errorf("got %+v", out)
	}
	if out := ask(t, `"cashFlows":[-100],"residualValue":50`); out.IRRStatus != "no_sign_change" || !is(out.TVPI, 0.5) {
		t.Errorf("one flow: %s, tvpi %s", out.IRRStatus, show(out.TVPI))
	}
	if out := ask(t, `"cashFlows":[-0.1,-0.2],"residualValue":0.3`); out.IRRStatus != "unique" {
		t.Errorf("the last flow nets to 0.1: %s", out.IRRStatus)
	}
}

func TestPayback(t *testing.T) {
	for _, tc := range []struct {
		members string
		want    string
		found   []string
	}{
		{`"cashFlows":[-100,50,50]`, "2", nil},
		{`"cashFlows":[-100,50,100]`, "1.5", nil},
		{`"cashFlows":[100,-50,20]`, "0", nil},
		{`"cashFlows":[100,-150,100]`, "1.5", nil},
		{`"cashFlows":[-100,150,-100,80]`, "0.666666666667", []string{"payback_not_final"}},
		{`"cashFlows":[-100,50]`, "null", []string{"payback_not_reached"}},
		{`"cashFlows":[-0.3,0.1,0.2]`, "2", nil},
		{`"cashFlows":[-100,0,0,200],"periodsPerYear":12`, "2.5", nil},
		{`"cashFlows":[{"date":"2025-01-01","amount":-100},{"date":"2026-01-01","amount":200}]`, "0.5", nil},
	} {
		out := ask(t, tc.members)
		if show(out.PaybackPeriod) != tc.want {
			t.Errorf("%s: got %s, want %s", tc.members, show(out.PaybackPeriod), tc.want)
		}
		for _, id := range tc.found {
			if !slices.Contains(policytest.IDs(out.Findings), id) {
				t.Errorf("%s: findings %v, want %s", tc.members, policytest.IDs(out.Findings), id)
			}
		}
	}
	for members, want := range map[string]string{
		`"cashFlows":[-100,110],"discountRate":0.1`:                    "1", // the discounted flow is exactly 100
		`"cashFlows":[-100,109],"discountRate":0.1`:                    "null",
		`"cashFlows":[-100,60,72.6],"discountRate":0.1`:                "1.75757575758",
		`"cashFlows":[-100,110],"discountRate":0.1,"periodsPerYear":2`: "0.953462589246", // 100/(110/1.1^0.5)
		`"cashFlows":[10,10],"discountRate":0.1`:                       "0",
		`"cashFlows":[-100,50,50],"discountRate":0`:                    "2",
	} {
		out := ask(t, members)
		if show(out.DiscountedPaybackPeriod) != want {
			t.Errorf("%s: got %s, want %s", members, show(out.DiscountedPaybackPeriod), want)
		}
	}
}

// The order of dated flows does not matter. The amounts of a day are added as decimals: 0.1 + 0.2
// - 0.3 counts as nothing paid in and nothing paid out.
func TestDatedFlowsAreSortedAndNetted(t *testing.T) {
	a := ask(t, `"cashFlows":[{"date":"2025-01-01","amount":-100},{"date":"2026-01-01","amount":60},{"date":"2025-07-01","amount":60}]`)
	b := ask(t, `"cashFlows":[{"date":"2026-01-01","amount":30},{"date":"2025-07-01","amount":60},{"date":"2026-01-01","amount":30},{"date":"2025-01-01","amount":-100}]`)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	c := ask(t, `"cashFlows":[{"date":"2025-01-01","amount":0.1},{"date":"2025-01-01","amount":0.2},{"date":"2025-01-01","amount":-0.3},{"date":"2026-01-01","amount":5}]`)
	if !is(c.TotalContributions, 0) || !is(c.TotalDistributions, 5) || c.DPI != nil {
		t.Errorf("netted: %+v", c)
	}
}

func TestDCF(t *testing.T) {
	flows := `"dcf":{"cashFlows":[100,110,121],"discountRate":0.1`
	pv := 100/1.1 + 110/1.21 + 121/1.331
	for members, want := range map[string]map[string]float64{
		flows + `}`: {"pv": pv, "tv": 0, "pvtv": 0, "ev": pv, "equity": pv, "share": 0},
		flows + `,"terminalMethod":"gordon","terminalGrowthRate":0.02,"netDebt":200,"sharesOutstanding":10,"terminalMetric":300}`: {
			"pv": pv, "tv": 121 * 1.02 / 0.08, "pvtv": 121 * 1.02 / 0.08 / 1.331, "ev": pv + 121*1.02/0.08/1.331,
			"equity": pv + 121*1.02/0.08/1.331 - 200, "per": (pv + 121*1.02/0.08/1.331 - 200) / 10, "multiple": 121 * 1.02 / 0.08 / 300,
			"share": 121 * 1.02 / 0.08 / 1.331 / (pv + 121*1.02/0.08/1.331)},
		flows + `,"terminalMethod":"exitMultiple","exitMultiple":8,"terminalMetric":200}`: {
			"tv": 1600, "pvtv": 1600 / 1.331, "growth": (1600*0.1 - 121) / (1600 + 121)},
		flows + `,"terminalMethod":"gordon","terminalGrowthRate":0.02,"midYear":true}`: {
			"pv": pv * math.Sqrt(1.1), "pvtv": 121 * 1.02 / 0.08 / math.Pow(1.1, 2.5)},
		flows + `,"terminalMethod":"exitMultiple","exitMultiple":8,"terminalMetric":200,"midYear":true}`: {
			"pv": pv * math.Sqrt(1.1), "pvtv": 1600 / 1.331},
	} {
		out := ask(t, members)
		d := out.DCF
		got := map[string]*float64{"pv": d.PVCashFlows, "tv": d.TerminalValue, "pvtv": d.PVTerminalValue, "ev": d.EnterpriseValue,
			"equity": d.EquityValue, "per": d.ValuePerShare, "share": d.TerminalValueShare, "growth": d.ImpliedGrowthRate, "multiple": d.ImpliedExitMultiple}
		for name, w := range want {
			if !is(got[name], w) {
				t.Errorf("%s %s: got %s, want %v", members, name, show(got[name]), w)
			}
		}
		if out.Mode != "dcf" || out.NPV != nil || out.IRRStatus != "none" || len(out.IRRRoots) != 0 {
			t.Errorf("%s: %+v", members, out)
		}
	}
	// The growth rate that an exit multiple implies gives the same terminal value.
	a := ask(t, flows+`,"terminalMethod":"exitMultiple","exitMultiple":8,"terminalMetric":200}`)
	b := ask(t, flows+`,"terminalMethod":"gordon","terminalGrowthRate":`+show(a.DCF.ImpliedGrowthRate)+`,"terminalMetric":200}`)
	if math.Abs(*b.DCF.TerminalValue-1600) > 1e-7 || math.Abs(*b.DCF.ImpliedExitMultiple-8) > 1e-9 {
		t.Errorf("implied growth %s gives %s", show(a.DCF.ImpliedGrowthRate), show(b.DCF.TerminalValue))
	}
	if d := ask(t, `"dcf":{"cashFlows":[0],"discountRate":0.1}`).DCF; d.TerminalValueShare != nil || !is(d.EnterpriseValue, 0) {
		t.Errorf("worth nothing: %+v", d)
	}
	if out := ask(t, `"cashFlows":[-100,110],`+flows+`}`); out.Mode != "periodic" || out.DCF == nil || !is(out.IRR, 0.1) {
		t.Errorf("both: %+v", out)
	}
}

func TestFindings(t *testing.T) {
	for members, want := range map[string][]string{
		`"cashFlows":[-100,105],"discountRate":0.1`: {"irr_below_discount_rate", "negative_npv"},
		`"cashFlows":[-100,201]`:                    {"irr_above_100pct"},
		`"cashFlows":[-100,200]`:                    {},
		`"cashFlows":[-100,142],"periodsPerYear":2`: {"irr_above_100pct"},
		`"cashFlows":[100,50],"discountRate":0.1`:   {"irr_no_sign_change", "no_contributions"},
		`"dcf":{"cashFlows":[100],"discountRate":0.1,"terminalMethod":"gordon","terminalGrowthRate":0.051}`:                    {"growth_above_5pct", "terminal_value_dominates"},
		`"dcf":{"cashFlows":[100],"discountRate":0.1,"terminalMethod":"exitMultiple","exitMultiple":3,"terminalMetric":100}`:   {},
		`"dcf":{"cashFlows":[100],"discountRate":0.1,"terminalMethod":"exitMultiple","exitMultiple":3.1,"terminalMetric":100}`: {"terminal_value_dominates"},
		`"cashFlows":[1e15,1e15,1e15,1e15,1e15,1e15,1e15,1e15,1e15,1e15]`:                                                      {"irr_no_sign_change", "no_contributions", "number_out_of_range"},
	} {
		if diff := cmp.Diff(want, policytest.IDs(ask(t, members).Findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", members, diff)
		}
	}
}

func TestUndefinedIsNull(t *testing.T) {
	out := ask(t, `"cashFlows":[100,50],"financeRate":0.1,"reinvestRate":0.1,"discountRate":0.1`)
	if out.DPI != nil || out.RVPI != nil || out.TVPI != nil || out.MOIC != nil || out.MIRR != nil || out.ProfitabilityIndex != nil || out.IRR != nil {
		t.Errorf("nothing paid in: %+v", out)
	}
	if out := ask(t, `"cashFlows":[-100],"financeRate":0.1,"reinvestRate":0.1`); out.MIRR != nil {
		t.Errorf("mirr of one flow %s", show(out.MIRR))
	}
	if out := ask(t, `"cashFlows":[-100,50]`); out.NPV != nil || out.DiscountedPaybackPeriod != nil || out.ProfitabilityIndex != nil {
		t.Errorf("no discount rate: %+v", out)
	}
	if out := ask(t, `"cashFlows":[-100,-50],"financeRate":0.1,"reinvestRate":0.1`); !is(out.MIRR, -1) {
		t.Errorf("everything lost: mirr %s", show(out.MIRR))
	}
}

func TestRefusals(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("1,", 2001), ",")
	for members, want := range map[string][2]string{
		`"discountRate":0.1`:         {"missing_field", "/cashFlows"},
		`"cashFlows":[]`:             {"out_of_range", "/cashFlows"},
		`"cashFlows":[` + long + `]`: {"too_many_items", "/cashFlows"},
		`"cashFlows":[0,0]`:          {"no_cash_flows", "/cashFlows"},
		`"cashFlows":[-1,2],"valuations":[{"date":"2025-01-01","value":5},{"date":"2025-02-01","value":5}]`:                               {"inconsistent_input", "/valuations"},
		`"cashFlows":[{"date":"2025-01-01","amount":-5}],"valuations":[{"date":"2025-01-01","value":5}]`:                                  {"out_of_range", "/valuations"},
		`"cashFlows":[{"date":"2025-01-01","amount":-5}],"valuations":[{"date":"2025-01-01","value":5},{"date":"2025-01-01","value":6}]`:  {"inconsistent_input", "/valuations"},
		`"cashFlows":[{"date":"2025-01-01","amount":-5}],"valuations":[{"date":"2025-01-01","value":5},{"date":"2025-01-32","value":6}]`:  {"invalid_date", "/valuations/1/date"},
		`"cashFlows":[{"date":"2025-01-01","amount":-5}],"valuations":[{"date":"2025-01-01","value":-5},{"date":"2025-01-02","value":6}]`: {"out_of_range", "/valuations/0/value"},
		`"cashFlows":[{"date":"2025-01-01","amount":5},{"date":"2025-01-01","amount":-5}]`:                                                {"no_cash_flows", "/cashFlows"},
		`"cashFlows":[1,{"date":"2025-01-01","amount":5}]`:                                                                                {"wrong_type", "/cashFlows/1"},
		`"cashFlows":[{"date":"2025-01-01","amount":5},1]`:                                                                                {"wrong_type", "/cashFlows/1"},
		`"cashFlows":["1"]`:                                                                             {"wrong_type", "/cashFlows/0"},
		`"cashFlows":[null]`:                                                                            {"wrong_type", "/cashFlows/0"},
		`"cashFlows":[{"date":"2025-01-01"}]`:                                                           {"missing_field", "/cashFlows/0/amount"},
		`"cashFlows":[{"amount":5}]`:                                                                    {"missing_field", "/cashFlows/0/date"},
		`"cashFlows":[{"amount":5,"date":"2025-01-01","note":"x"}]`:                                     {"unknown_field", "/cashFlows/0"},
		`"cashFlows":[{"amount":"5","date":"2025-01-01"}]`:                                              {"wrong_type", "/cashFlows/0/amount"},
		`"cashFlows":[{"amount":5,"date":"2025-02-29"}]`:                                                {"invalid_date", "/cashFlows/0/date"},
		`"cashFlows":[{"amount":1.1e15,"date":"2025-02-28"}]`:                                           {"out_of_range", "/cashFlows/0/amount"},
		`"cashFlows":[5,-1.1e15]`:                                                                       {"out_of_range", "/cashFlows/1"},
		`"cashFlows":[{"amount":5,"date":"2025-02-28"}],"periodsPerYear":12`:                            {"mutually_exclusive", "/periodsPerYear"},
		`"cashFlows":[{"amount":5,"date":"2025-02-28"}],"financeRate":0.1,"reinvestRate":0.1`:           {"mutually_exclusive", "/financeRate"},
		`"cashFlows":[5],"financeRate":0.1`:                                                             {"missing_field", "/reinvestRate"},
		`"cashFlows":[5],"reinvestRate":0.1`:                                                            {"missing_field", "/financeRate"},
		`"dcf":{"cashFlows":[],"discountRate":0.1}`:                                                     {"out_of_range", "/dcf/cashFlows"},
		`"dcf":{"cashFlows":[` + long[:401] + `],"discountRate":0.1}`:                                   {"too_many_items", "/dcf/cashFlows"},
		`"dcf":{"cashFlows":[2e15],"discountRate":0.1}`:                                                 {"out_of_range", "/dcf/cashFlows/0"},
		`"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"perpetual"}`:                       {"invalid_enum", "/dcf/terminalMethod"},
		`"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"gordon"}`:                          {"missing_field", "/dcf/terminalGrowthRate"},
		`"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"gordon","terminalGrowthRate":0.1}`: {"growth_not_below_discount_rate", "/dcf/terminalGrowthRate"},
		`"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"exitMultiple","terminalMetric":5}`: {"missing_field", "/dcf/exitMultiple"},
		`"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"exitMultiple","exitMultiple":5}`:   {"missing_field", "/dcf/terminalMetric"},
	} {
		_, err := cashflow.Service.Evaluate([]byte("{" + members + "}"))
		policytest.Refused(t, members, err, want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, cashflow.Service,
		`{"cashFlows":[-100,50,80],"discountRate":0.1,"periodsPerYear":4,"residualValue":5,"financeRate":0.1,"reinvestRate":0.1,
		  "dcf":{"cashFlows":[1,2],"discountRate":0.1,"exitMultiple":5,"terminalMetric":7,"terminalMethod":"exitMultiple","netDebt":1,"sharesOutstanding":3,"terminalGrowthRate":0.02}}`)
	if n != 22 {
		t.Errorf("%d limits tried", n)
	}
}

func TestMostFlowsAreAnswered(t *testing.T) {
	flows := make([]float64, 2000)
	for i := range flows {
		flows[i] = 1
	}
	flows[0] = -1000
	if out := evaluate(t, cashflow.Input{CashFlows: cashflow.Periodic(flows...)}); out.IRRStatus != "unique" {
		t.Error(out.IRRStatus)
	}
}

// At each root the present value is 0, relative to the size of the flows.
func TestRootsAreZeroes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flows := rapid.SliceOfN(rapid.Float64Range(-1000, 1000), 2, 40).Draw(t, "flows")
		for i := range flows {
			flows[i] = math.Round(flows[i])
		}
		out, err := cashflow.Evaluate(cashflow.Input{CashFlows: cashflow.Periodic(flows...)})
		if err != nil {
			t.Skip("all zero")
		}
		for _, r := range out.IRRRoots {
			var npv, volume, slope float64
			for k, c := range flows {
				pv := c * math.Pow(1+r, -float64(k))
				npv += pv
				volume += math.Abs(pv)
				slope += math.Abs(pv) * float64(k)
			}
			if math.Abs(npv) > 1e-11*slope*(1+1/(1+r))+1e-12*volume { // the error from rounding the rate to twelve digits
				t.Fatalf("at %v the flows are worth %v of %v", r, npv, volume)
			}
		}
	})
}

// Multiplying all flows by a number changes no rate. For an investment followed by income, the NPV
// falls as the rate rises, and is 0 at the only root.
func TestInvestmentProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		income := rapid.SliceOfN(rapid.Float64Range(0, 1000), 1, 30).Draw(t, "income")
		flows := append([]float64{-rapid.Float64Range(1, 5000).Draw(t, "cost")}, income...)
		total := 0.0
		for _, c := range income {
			total += c
		}
		if total < 1 {
			t.Skip("no income")
		}
		r := rapid.Float64Range(-0.5, 2).Draw(t, "rate")
		a := evaluate(t, cashflow.Input{CashFlows: cashflow.Periodic(flows...), DiscountRate: &r})
		higher := r + 0.01
		b := evaluate(t, cashflow.Input{CashFlows: cashflow.Periodic(flows...), DiscountRate: &higher})
		if *b.NPV > *a.NPV || len(a.IRRRoots) > 1 || !cmp.Equal(a.IRRRoots, b.IRRRoots) {
			t.Fatalf("npv %v at %v, %v at %v, roots %v", *a.NPV, r, *b.NPV, higher, a.IRRRoots)
		}
		if a.IRR != nil && math.Abs(*a.IRR-r) > 1e-9 && (*a.NPV > 0) != (*a.IRR > r) {
			t.Fatalf("irr %v, npv %v at %v", *a.IRR, *a.NPV, r)
		}
		scaled := slices.Clone(flows)
		for i := range scaled {
			scaled[i] *= 8
		}
		c := evaluate(t, cashflow.Input{CashFlows: cashflow.Periodic(scaled...), DiscountRate: &r})
		if !cmp.Equal(a.IRRRoots, c.IRRRoots) || math.Abs(*c.NPV-8**a.NPV) > 1e-10*math.Abs(*c.NPV) {
			t.Fatalf("scaled: %v, %v", c.IRRRoots, a.IRRRoots)
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, cashflow.Service,
		`{"cashFlows":[{"date":"2025-01-01","amount":-5},{"date":"2026-01-01","amount":6}],"residualValue":1,"discountRate":0.1}`,
		`{"cashFlows":[1,-3,3,-1],"financeRate":0.1,"reinvestRate":0.1,"dcf":{"cashFlows":[1],"discountRate":0.1,"terminalMethod":"gordon","terminalGrowthRate":0.01}}`)
}
