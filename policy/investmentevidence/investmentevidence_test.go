package investmentevidence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/investmentevidence"
	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/portfoliorisk"
)

func ask(t *testing.T, members string) investmentevidence.Output {
	t.Helper()
	return policytest.Ask(t, investmentevidence.Evaluate, members)
}

// outcomes formats each row as "id outcome".
func outcomes(out investmentevidence.Output) []string {
	list := []string{}
	for _, e := range out.Evidence {
		list = append(list, e.ID+" "+e.Outcome)
	}
	return list
}

func ExampleEvaluate() {
	rate := 0.08
	out, err := investmentevidence.Evaluate(investmentevidence.Input{
		CashFlow: &cashflow.Input{CashFlows: cashflow.Periodic(-1200, 400, 500, 650), DiscountRate: &rate},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range out.Evidence {
		fmt.Println(e.Rule, "-", e.Value, e.Outcome)
	}
	fmt.Println(out.Verdict)
	// Output:
	// npv >= 0 - 115.030737184 pass
	// irrStatus is unique - unique pass
	// irrAnnualized >= discountRate - 0.128205923472 pass
	// tvpi >= 1 - 1.29166666667 pass
	// paybackPeriod is not null - 2.46153846154 pass
	// supported
}

func TestEvidence(t *testing.T) {
	months := strings.TrimSuffix(strings.Repeat("0.01,-0.005,", 15), ",")
	four := `"positions":[{"symbol":"A","weight":0.25},{"symbol":"B","weight":0.25},{"symbol":"C","weight":0.25},{"symbol":"D","weight":0.25}]`
	for members, want := range map[string]struct {
		rows    []string
		verdict string
	}{
		`"cashFlow":{"cashFlows":[-100,50]}`: {
			[]string{"irr_unique pass", "tvpi_at_least_one fail", "payback_reached fail"}, "not_supported"},
		`"cashFlow":{"cashFlows":[-100,50],"residualValue":60,"discountRate":0.05}`: {
			[]string{"npv_not_negative pass", "irr_unique pass", "irr_not_below_discount_rate pass", "tvpi_at_least_one pass", "payback_reached warn"}, "supported"},
		`"cashFlow":{"cashFlows":[-1600,10000,-10000]}`: {
			[]string{"irr_unique warn", "tvpi_at_least_one fail", "payback_reached pass"}, "mixed"},
		`"cashFlow":{"cashFlows":[5,6]}`:   {[]string{"irr_unique fail"}, "not_supported"},
		`"cashFlow":{"cashFlows":[-5,-6]}`: {[]string{"irr_unique fail", "tvpi_at_least_one fail", "payback_reached fail"}, "not_supported"},
		`"cashFlow":{"cashFlows":[{"date":"2025-01-01","amount":-100},{"date":"2026-01-01","amount":105}],"discountRate":0.1}`: {
			[]string{"npv_not_negative fail", "irr_unique pass", "irr_not_below_discount_rate fail", "tvpi_at_least_one pass", "payback_reached pass"}, "mixed"},
		`"cashFlow":{"dcf":{"cashFlows":[1],"discountRate":0.1}}`: {[]string{}, "supported"},
		`"portfolio":{` + four + `}`: {
			[]string{"risk_level_not_high fail", "concentration_limited pass"}, "mixed"},
		`"portfolio":{` + four + `,"portfolioReturns":[` + months + `]}`: {
			[]string{"risk_level_not_high pass", "concentration_limited pass", "drawdown_limited pass", "sharpe_not_negative pass", "history_sufficient pass"}, "supported"},
		`"portfolio":{` + four + `,"portfolioReturns":[` + months + `,-0.4]}`: {
			[]string{"risk_level_not_high fail", "concentration_limited pass", "drawdown_limited fail", "sharpe_not_negative fail", "history_sufficient pass"}, "not_supported"},
		`"portfolio":{"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[0.01,0.01]}`: {
			[]string{"risk_level_not_high pass", "concentration_limited fail", "drawdown_limited pass", "history_sufficient warn"}, "mixed"},
	} {
		out := ask(t, members)
		if diff := cmp.Diff(want.rows, outcomes(out)); diff != "" || out.Verdict != want.verdict {
			t.Errorf("%s: %s (-want +got):\n%s", members, out.Verdict, diff)
		}
	}
}

func TestNoEvidenceIsFound(t *testing.T) {
	out := ask(t, `"cashFlow":{"dcf":{"cashFlows":[1],"discountRate":0.1}}`)
	if len(out.Findings) != 1 || out.Findings[0].ID != "no_evidence" || out.CashFlow == nil || out.Portfolio != nil {
		t.Errorf("got %+v", out)
	}
}

// The parts equal the answers of the two services. The answer includes their findings, with paths
// below the part.
func TestPartsAreTheServices(t *testing.T) {
	flows, portfolio := `{"cashFlows":[-100,50],"discountRate":0.1}`, `{"positions":[{"symbol":"A","weight":1,"sector":"x"}]}`
	whole, err := investmentevidence.Service.Evaluate([]byte(`{"cashFlow":` + flows + `,"portfolio":` + portfolio + `,"reference":"r-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		CashFlow, Portfolio map[string]any
		Findings            []policy.Finding
		Reference           string
		Rest                map[string]any `json:",inline"`
	}
	if err := json.Unmarshal(whole.Body, &got, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for part, service := range map[*map[string]any]policy.Service{&got.CashFlow: cashflow.Service, &got.Portfolio: portfoliorisk.Service} {
		body := flows
		if part == &got.Portfolio {
			body = portfolio
		}
		alone, err := service.Evaluate([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(alone.Body, &want); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"status", "service", "version", "inputHash", "outputHash"} {
			delete(want, name)
		}
		n += len(want["findings"].([]any))
		if diff := cmp.Diff(want, *part); diff != "" {
			t.Errorf("%s (-alone +part):\n%s", service.Name, diff)
		}
	}
	if len(got.Findings) != n || got.Reference != "r-1" {
		t.Errorf("%d findings of %d, reference %q", len(got.Findings), n, got.Reference)
	}
	for _, f := range got.Findings {
		if !strings.HasPrefix(f.Path, "/cashFlow") && !strings.HasPrefix(f.Path, "/portfolio") {
			t.Errorf("finding %s at %q", f.ID, f.Path)
		}
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string][2]string{
		`{}`:                             {"missing_field", "/cashFlow"},
		`{"reference":"x"}`:              {"missing_field", "/cashFlow"},
		`{"cashFlow":{}}`:                {"missing_field", "/cashFlow/cashFlows"},
		`{"cashFlow":{"cashFlows":[0]}}`: {"no_cash_flows", "/cashFlow/cashFlows"},
		`{"portfolio":{"positions":[]}}`: {"out_of_range", "/portfolio/positions"},
		`{"portfolio":{"positions":[{"symbol":"A","weight":0.5}]}}`:                              {"weights_do_not_sum_to_one", "/portfolio/positions"},
		`{"cashFlow":{"cashFlows":[0]},"portfolio":{"positions":[{"symbol":"A","weight":0.5}]}}`: {"no_cash_flows", "/cashFlow/cashFlows"},
		`{"cashFlow":{"cashFlows":[1],"taxRate":0.3}}`:                                           {"unknown_field", "/cashFlow"},
		`{"portfolio":[]}`: {"wrong_type", "/portfolio"},
	} {
		_, err := investmentevidence.Service.Evaluate([]byte(body))
		policytest.Refused(t, body, err, want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, investmentevidence.Service,
		`{"cashFlow":{"cashFlows":[-1200,400,500,650],"discountRate":0.08,"residualValue":1},
		  "portfolio":{"positions":[{"symbol":"A","marketValue":5}],"portfolioReturns":[0.01,0.02],"riskFreeRate":0.1,"confidenceLevel":0.9}}`)
	if n != 10 {
		t.Errorf("%d limits tried", n)
	}
}

// The verdict depends only on the outcomes of the checks.
func TestVerdictCountsFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flows := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 12).Draw(t, "flows")
		rate := rapid.Float64Range(-0.5, 1).Draw(t, "rate")
		out, err := investmentevidence.Evaluate(investmentevidence.Input{CashFlow: &cashflow.Input{CashFlows: cashflow.Periodic(flows...), DiscountRate: &rate}})
		if err != nil {
			t.Skip("all zero")
		}
		failed := 0
		for _, e := range out.Evidence {
			if e.Outcome == "fail" {
				failed++
			}
		}
		want := "not_supported"
		if failed == 0 {
			want = "supported"
		} else if failed <= len(out.Evidence)-failed {
			want = "mixed"
		}
		if out.Verdict != want {
			t.Fatalf("%d of %d failed: %s", failed, len(out.Evidence), out.Verdict)
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, investmentevidence.Service,
		`{"cashFlow":{"cashFlows":[{"date":"2025-01-01","amount":-100},{"date":"2026-01-01","amount":105}],"discountRate":0.1}}`)
}
