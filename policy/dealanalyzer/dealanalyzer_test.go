package dealanalyzer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/dealanalyzer"
	"github.com/countersign/countersign/policy/policytest"
)

func ask(t *testing.T, members string) dealanalyzer.Output {
	t.Helper()
	return policytest.Ask(t, dealanalyzer.Evaluate, members)
}

func ExampleEvaluate() {
	multiple, metric := 8.0, 150.0
	out, err := dealanalyzer.Evaluate(dealanalyzer.Input{
		PurchasePrice: 1000, CashFlows: []float64{100, 100, 100, 100, 100}, DiscountRate: 0.1,
		Terminal: dealanalyzer.Terminal{Method: "exitMultiple", ExitMultiple: &multiple, Metric: &metric},
		Debt:     &dealanalyzer.Debt{Amount: 500, AnnualRate: 0.06, Type: "interestOnly", TermYears: 5},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range out.Equity.CashFlows {
		fmt.Print(*x, " ")
	}
	fmt.Printf("irr %.4f moic %v value %.2f %s\n", *out.Equity.IRR, *out.Equity.MOIC, *out.DCF.EnterpriseValue, out.Verdict)
	// Output: -500 70 70 70 70 770 irr 0.1944 moic 2.1 value 1124.18 attractive
}

// covers returns the first difference between want and got, or "". got may have more members than
// want. Numbers must agree to 10 digits.
func covers(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: got %v", path, got)
		}
		for name := range w {
			if diff := covers(path+"/"+name, w[name], g[name]); diff != "" {
				return diff
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: got %v, want %v", path, got, want)
		}
		for i := range w {
			if diff := covers(fmt.Sprint(path, "/", i), w[i], g[i]); diff != "" {
				return diff
			}
		}
	case float64:
		if g, ok := got.(float64); !ok || math.Abs(g-w) > 1.2e-10*math.Abs(w)+1e-8 && !strings.HasPrefix(path, "/waterfall") || ok && strings.HasPrefix(path, "/waterfall") && g != w {
			return fmt.Sprintf("%s: got %v, want %v", path, got, w)
		}
	default:
		if got != want {
			return fmt.Sprintf("%s: got %v, want %v", path, got, want)
		}
	}
	return ""
}

// In testdata/deals.txtar each request is followed by its answer, which was computed
// independently.
func TestDealsAgainstAnotherComputation(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/deals.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		request, want := archive.Files[i], archive.Files[i+1]
		a, err := dealanalyzer.Service.Evaluate(request.Data)
		if err != nil {
			t.Errorf("%s: %v", request.Name, err)
			continue
		}
		var got any
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(want.Data)) {
			var members any
			if err := json.Unmarshal([]byte(line), &members); err != nil {
				t.Fatal(err)
			}
			if diff := covers("", members, got); diff != "" {
				t.Errorf("%s: %s", request.Name, diff)
			}
		}
	}
}

const (
	exit   = `"terminal":{"method":"exitMultiple","exitMultiple":8,"metric":150}`
	gordon = `"terminal":{"method":"gordon","growthRate":0.02}`
	base   = `"purchasePrice":1000,"cashFlows":[100,100,100],"discountRate":0.1`
)

func TestVerdicts(t *testing.T) {
	for members, want := range map[string]string{
		`"purchasePrice":1000,"cashFlows":[100,100,100],"discountRate":0.1,` + exit:                                                                                   "attractive",
		`"purchasePrice":1200,"cashFlows":[100,100,100],"discountRate":0.3,` + exit:                                                                                   "unattractive",
		`"purchasePrice":1151,"cashFlows":[100,100,100],"discountRate":0.1,` + exit + `,"debt":{"amount":1000,"annualRate":0.01,"type":"interestOnly","termYears":9}`: "marginal",
		`"purchasePrice":1150,"cashFlows":[100,100,100],"discountRate":0.1,` + exit + `,"debt":{"amount":1000,"annualRate":0.5,"type":"interestOnly","termYears":9}`:  "marginal",
		`"purchasePrice":10,"cashFlows":[-100],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":0,"metric":0}`:                                   "unattractive",
	} {
		if out := ask(t, members); out.Verdict != want {
			t.Errorf("%s: %s, npv %v, irr %v", members, out.Verdict, *out.NPVAtPurchase, out.Equity.IRR)
		}
	}
}

func TestFindings(t *testing.T) {
	for members, want := range map[string][]string{
		base + `,` + exit + `,"debt":{"amount":900,"annualRate":0.05,"type":"interestOnly","termYears":9}`: {"terminal_value_dominates"},
		base + `,` + exit + `,"debt":{"amount":999,"annualRate":0.2,"type":"interestOnly","termYears":9}`:  {"debt_service_shortfall", "negative_npv", "terminal_value_dominates", "payback_not_reached"},
		base + `,"terminal":{"method":"exitMultiple","exitMultiple":1,"metric":10},"debt":{"amount":500,"annualRate":0.05,"type":"interestOnly","termYears":9}`: {
			"negative_exit_equity", "irr_no_root", "negative_npv", "payback_not_reached"},
		base + `,"terminal":{"method":"gordon","growthRate":0.06}`: {"growth_above_5pct", "terminal_value_dominates"},
		base + `,"terminal":{"method":"gordon","growthRate":0.02},"sensitivity":{"discountRates":[0.02,0.03],"terminalValues":[0.02]}`: {
			"terminal_value_dominates", "grid_cell_undefined"},
	} {
		got := policytest.IDs(ask(t, members).Findings)
		for _, id := range want {
			if !slices.Contains(got, id) {
				t.Errorf("%s: got %v, want %s", members, got, id)
			}
		}
	}
	out := ask(t, base+`,`+gordon+`,"waterfall":{"preferredReturnRate":0.5}`)
	paths := map[string]string{}
	for _, f := range out.Findings {
		paths[f.ID] = f.Path
	}
	if paths["terminal_value_dominates"] != "/terminal" || paths["preferred_return_unpaid"] != "/waterfall" {
		t.Errorf("paths %v", paths)
	}
	out = ask(t, base+`,"terminal":{"method":"gordon","growthRate":0.06}`)
	for _, f := range out.Findings {
		if f.ID == "growth_above_5pct" && f.Path != "/terminal/growthRate" {
			t.Errorf("path %s", f.Path)
		}
	}
	if out := ask(t, `"purchasePrice":1000,"cashFlows":[-5,2000],"discountRate":0.1,`+exit); slices.Contains(policytest.IDs(out.Findings), "debt_service_shortfall") {
		t.Error("a shortfall of debt service without debt")
	}
}

func TestWithoutOptionalParts(t *testing.T) {
	out := ask(t, base+`,`+exit)
	if out.Sensitivity != nil || out.Waterfall != nil || out.DebtSchedule == nil || len(out.DebtSchedule) != 0 || *out.DCF.EquityValue != *out.DCF.EnterpriseValue {
		t.Errorf("got %+v", out)
	}
}

// A purchase that returns nothing still has a split, with a contribution only.
func TestNothingComesBack(t *testing.T) {
	out := ask(t, `"purchasePrice":1000,"cashFlows":[0],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":0,"metric":0},"waterfall":{"preferredReturnRate":0.08}`)
	if out.Waterfall.UnreturnedCapital != 100000 || out.Waterfall.TotalDistributed != 0 || out.Equity.IRR != nil || out.Verdict != "unattractive" {
		t.Errorf("got %+v", out)
	}
}

func TestRefusals(t *testing.T) {
	debt := func(s string) string { return base + `,` + exit + `,"debt":{` + s + `}` }
	for members, want := range map[string][2]string{
		`"purchasePrice":1000,"cashFlows":[],"discountRate":0.1,` + exit:                                  {"out_of_range", "/cashFlows"},
		`"purchasePrice":1000,"cashFlows":[` + strings.Repeat("1,", 50) + `1],"discountRate":0.1,` + exit: {"too_many_items", "/cashFlows"},
		`"purchasePrice":1000,"cashFlows":[1,2e15],"discountRate":0.1,` + exit:                            {"out_of_range", "/cashFlows/1"},
		base:                                     {"invalid_enum", "/terminal/method"},
		base + `,"terminal":{"method":"none"}`:   {"invalid_enum", "/terminal/method"},
		base + `,"terminal":{"method":"gordon"}`: {"missing_field", "/terminal/growthRate"},
		base + `,"terminal":{"method":"gordon","growthRate":0.1}`:                                                                     {"growth_not_below_discount_rate", "/terminal/growthRate"},
		base + `,"terminal":{"method":"exitMultiple","metric":1}`:                                                                     {"missing_field", "/terminal/exitMultiple"},
		base + `,"terminal":{"method":"exitMultiple","exitMultiple":1}`:                                                               {"missing_field", "/terminal/metric"},
		debt(`"amount":1000,"annualRate":0.05,"type":"amortizing","termYears":5`):                                                     {"out_of_range", "/debt/amount"},
		debt(`"amount":500,"annualRate":0.05,"type":"balloon","termYears":5`):                                                         {"invalid_enum", "/debt/type"},
		debt(`"amount":500,"annualRate":0.05,"type":"amortizing","termYears":51`):                                                     {"out_of_range", "/debt/termYears"},
		base + `,` + exit + `,"sensitivity":{"discountRates":[],"terminalValues":[1]}`:                                                {"out_of_range", "/sensitivity/discountRates"},
		base + `,` + exit + `,"sensitivity":{"discountRates":[0.1],"terminalValues":[1,2,3,4,5,6,7,8,9,10,11,12]}`:                    {"too_many_items", "/sensitivity/terminalValues"},
		base + `,` + exit + `,"sensitivity":{"discountRates":[-1],"terminalValues":[1]}`:                                              {"out_of_range", "/sensitivity/discountRates/0"},
		base + `,` + exit + `,"sensitivity":{"discountRates":[0.1],"terminalValues":[1001]}`:                                          {"out_of_range", "/sensitivity/terminalValues/0"},
		base + `,` + gordon + `,"sensitivity":{"discountRates":[0.1],"terminalValues":[-1]}`:                                          {"out_of_range", "/sensitivity/terminalValues/0"},
		base + `,` + exit + `,"waterfall":{"preferredReturnRate":0.08,"catchUpRate":0.1}`:                                             {"catch_up_not_above_carry", "/waterfall/catchUpRate"},
		base + `,` + exit + `,"waterfall":{"preferredReturnRate":0.08,"compounding":"monthly"}`:                                       {"invalid_enum", "/waterfall/compounding"},
		`"purchasePrice":2e12,"cashFlows":[1],"discountRate":0.1,` + exit + `,"waterfall":{"preferredReturnRate":0.08}`:               {"out_of_range", "/waterfall"},
		`"purchasePrice":1e-9,"cashFlows":[1],"discountRate":0.1,` + exit + `,"waterfall":{"preferredReturnRate":0.08}`:               {"inconsistent_input", "/waterfall"},
		`"purchasePrice":1,"cashFlows":[1],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":1000,"metric":1e15}`: {"out_of_range", ""},
		base + `,` + exit + `,"leverage":2`:                                                                                           {"unknown_field", ""},
	} {
		_, err := dealanalyzer.Service.Evaluate([]byte("{" + members + "}"))
		policytest.Refused(t, members, err, want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, dealanalyzer.Service,
		`{"purchasePrice":1000,"transactionCosts":5,"cashFlows":[100,100],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":8,"metric":150},
		  "debt":{"amount":500,"annualRate":0.06,"type":"amortizing","termYears":5}}`,
		`{"purchasePrice":1000,"cashFlows":[100,100],"discountRate":0.1,"terminal":{"method":"gordon","growthRate":0.02},
		  "waterfall":{"preferredReturnRate":0.08,"carryRate":0.2,"catchUpRate":0,"gpCommitmentRate":0.02}}`)
	if n != 25 {
		t.Errorf("%d limits tried", n)
	}
}

// The debt is repaid in full, and its schedule is consistent. The NPV of the equity is that of the
// enterprise less that of the debt: borrowing at the discount rate neither adds nor removes value
// (Modigliani and Miller without taxes).
func TestDebtAtTheDiscountRateAddsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		rate := rapid.Float64Range(0.01, 0.4).Draw(t, "rate")
		multiple, metric := 10.0, rapid.Float64Range(10, 100).Draw(t, "metric")
		in := dealanalyzer.Input{
			PurchasePrice: rapid.Float64Range(500, 2000).Draw(t, "price"), DiscountRate: rate,
			CashFlows: rapid.SliceOfN(rapid.Float64Range(-50, 200), n, n).Draw(t, "flows"),
			Terminal:  dealanalyzer.Terminal{Method: "exitMultiple", ExitMultiple: &multiple, Metric: &metric},
		}
		plain, err := dealanalyzer.Evaluate(in)
		if err != nil {
			t.Fatal(err)
		}
		in.Debt = &dealanalyzer.Debt{Amount: in.PurchasePrice * rapid.Float64Range(0.1, 0.9).Draw(t, "share"), AnnualRate: rate,
			Type: rapid.SampledFrom([]string{"interestOnly", "amortizing"}).Draw(t, "type"), TermYears: rapid.IntRange(1, 30).Draw(t, "term")}
		levered, err := dealanalyzer.Evaluate(in)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(*plain.Equity.NPVAtDiscountRate-*levered.Equity.NPVAtDiscountRate) > 1e-6 || math.Abs(*plain.Equity.NPVAtDiscountRate-*plain.NPVAtPurchase) > 1e-6 {
			t.Fatalf("npv %v, levered %v, at purchase %v", *plain.Equity.NPVAtDiscountRate, *levered.Equity.NPVAtDiscountRate, *plain.NPVAtPurchase)
		}
		balance := in.Debt.Amount
		for i, y := range levered.DebtSchedule {
			if y.Year != i+1 || math.Abs(*y.Interest-balance*rate) > 1e-6 || math.Abs(*y.Balance-(balance-*y.Principal)) > 1e-6 || *y.Principal < -1e-9 {
				t.Fatalf("year %+v after balance %v", y, balance)
			}
			balance = *y.Balance
		}
		if in.Debt.TermYears < n && balance != 0 {
			t.Fatalf("%v owed after the term", balance)
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, dealanalyzer.Service,
		`{"purchasePrice":1000,"cashFlows":[100,-100],"discountRate":0.1,"terminal":{"method":"gordon","growthRate":0.02},"debt":{"amount":5,"annualRate":1,"type":"amortizing","termYears":1},"sensitivity":{"discountRates":[0.01],"terminalValues":[0.02]}}`)
}

func TestExampleOfTheDeclaration(t *testing.T) {
	a, err := dealanalyzer.Service.Evaluate([]byte(dealanalyzer.Service.Example))
	if err != nil || !dealanalyzer.Service.Signed {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("dealanalyzer-analyze", got["service"]); diff != "" {
		t.Error(diff)
	}
}

// A deal that returns three times the money is not called marginal because its rate has a second
// root near -100 %.
func TestVerdictOfADealThatGains(t *testing.T) {
	out := ask(t, `"purchasePrice":50,"cashFlows":[-100,600,300,-100],"discountRate":0.1,"terminal":{"method":"exitMultiple","exitMultiple":0,"metric":0}`)
	if out.Equity.IRR == nil || math.Abs(*out.Equity.IRR-1.85441782846) > 1e-9 || out.Verdict != "attractive" {
		t.Errorf("irr %v of %v, moic %v: %s", *out.Equity.IRR, out.Equity.IRRRoots, *out.Equity.MOIC, out.Verdict)
	}
}
