package portfoliorisk_test

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

	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/portfoliorisk"
)

func ptr[T any](x T) *T { return &x }

// ask evaluates a request that is given as JSON members.
func ask(t *testing.T, members string) portfoliorisk.Output {
	t.Helper()
	return policytest.Ask(t, portfoliorisk.Evaluate, members)
}

func ExampleEvaluate() {
	weight := []float64{0.6, 0.4}
	periods, riskFree := 12, 0.024
	out, err := portfoliorisk.Evaluate(portfoliorisk.Input{
		Positions: []portfoliorisk.Position{
			{Symbol: "AAA", Weight: &weight[0], Returns: []float64{0.02, -0.01, 0.03, -0.04}},
			{Symbol: "BBB", Weight: &weight[1], Returns: []float64{0, 0.01, -0.02, 0.02}},
		},
		PeriodsPerYear: &periods, RiskFreeRate: &riskFree,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.RiskScore, out.RiskLevel, *out.Volatility, *out.Sharpe, out.ConcentrationHHI)
	// Output: 39.23 medium 0.04472135955 -0.2683281573 0.52
}

// In testdata/portfolios.txtar each request is followed by its answer, which was computed
// independently.
func TestPortfoliosAgainstAnotherComputation(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/portfolios.txtar")
	if err != nil {
		t.Fatal(err)
	}
	within := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1.2e-11*math.Abs(b) })
	for i := 0; i+1 < len(archive.Files); i += 2 {
		request, want := archive.Files[i], archive.Files[i+1]
		a, err := portfoliorisk.Service.Evaluate(request.Data)
		if err != nil {
			t.Errorf("%s: %v", request.Name, err)
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(want.Data)) {
			var members map[string]any
			if err := json.Unmarshal([]byte(line), &members); err != nil {
				t.Fatal(err)
			}
			for name, value := range members {
				if diff := cmp.Diff(value, got[name], within); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", request.Name, name, diff)
				}
			}
		}
	}
}

// The service gives the worked example of the contract, digit by digit.
func TestWorkedExample(t *testing.T) {
	got := policytest.Members(t, portfoliorisk.Service, portfoliorisk.Service.Example)
	for name, want := range map[string]any{
		"volatility": 0.04472135955, "sharpe": -0.2683281573, "sortino": -0.375734574651, "maxDrawdown": 0.016,
		"concentrationHHI": 0.52, "effectiveHoldings": 1.92307692308, "diversificationRatio": 1.99884410788,
		"riskScore": 39.23, "riskLevel": "medium", "beta": nil, "observations": 4.0,
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if c := got["positions"].([]any)[0].(map[string]any)["riskContribution"]; c != 1.44 {
		t.Errorf("risk contribution of AAA %v", c)
	}
}

func TestUnavailableIsNull(t *testing.T) {
	out := ask(t, `"positions":[{"symbol":"A","weight":1}]`)
	if out.Volatility != nil || out.Sharpe != nil || out.Sortino != nil || out.MaxDrawdown != nil || out.Calmar != nil || out.AnnualizedReturn != nil ||
		out.ValueAtRisk != nil || out.ExpectedShortfall != nil || out.Beta != nil || out.DiversificationRatio != nil ||
		out.Positions[0].RiskContribution != nil || out.Positions[0].StandaloneVolatility != nil || out.Observations != 0 {
		t.Errorf("no returns: %+v", out)
	}
	if out.RiskScore != 100 || out.RiskLevel != "critical" { // one position has an HHI of 1
		t.Errorf("score %v %s", out.RiskScore, out.RiskLevel)
	}
	flat := ask(t, `"positions":[{"symbol":"A","weight":1,"returns":[0.01,0.01,0.01]}],"benchmarkReturns":[0.02,0.02,0.02]`)
	if flat.Sharpe != nil || flat.Sortino != nil || flat.Calmar != nil || flat.Beta != nil || flat.DiversificationRatio != nil ||
		flat.Positions[0].RiskContribution != nil || *flat.Volatility != 0 || *flat.MaxDrawdown != 0 {
		t.Errorf("no deviation: %+v", flat)
	}
	ruined := ask(t, `"positions":[{"symbol":"A","weight":2,"returns":[-0.9,0.1]},{"symbol":"B","weight":-1,"returns":[0,0]}]`)
	if ruined.AnnualizedReturn != nil || ruined.Calmar != nil || *ruined.MaxDrawdown <= 1 || !slices.Contains(policytest.IDs(ruined.Findings), "annual_return_undefined") {
		t.Errorf("ruined: %+v", ruined)
	}
	lost := ask(t, `"positions":[{"symbol":"A","weight":1,"returns":[-1,0.1]}]`)
	if *lost.AnnualizedReturn != -1 || *lost.MaxDrawdown != 1 {
		t.Errorf("lost: %+v", lost)
	}
}

// Omega is the sum of the gains above a threshold, here the risk-free rate of a period, divided by
// the sum of the losses below it (Keating and Shadwick 2002). The information ratio is the mean
// active return divided by its standard deviation (Goodwin 1998). The returns are from the tests
// of empyrical: 19 points of gain and 14 of loss.
func TestOmegaAndInformationRatio(t *testing.T) {
	const returns = `"positions":[{"symbol":"X","weight":1}],"portfolioReturns":[0.01,0.1,-0.04,0.02,0.03,0.02,0.01,-0.1]`
	out := ask(t, returns)
	if out.Omega == nil || math.Abs(*out.Omega-19.0/14) > 1e-11 || out.InformationRatio != nil || out.TrackingError != nil {
		t.Errorf("omega %v, information ratio %v", out.Omega, out.InformationRatio)
	}
	out = ask(t, returns+`,"periodsPerYear":12,"riskFreeRate":0.12`)
	if want := (0.09 + 0.01 + 0.02 + 0.01) / (0.05 + 0.11); out.Omega == nil || math.Abs(*out.Omega-want) > 1e-11 {
		t.Errorf("omega above 1 %% a month: %v, want %v", out.Omega, want)
	}
	out = ask(t, `"positions":[{"symbol":"X","weight":1}],"portfolioReturns":[0.03,0.01,0.02,0.04],"benchmarkReturns":[0.01,0.01,0.01,0.01],"periodsPerYear":12`)
	mean, deviation := 0.015, math.Sqrt((0.005*0.005+0.015*0.015+0.005*0.005+0.015*0.015)/3)
	if out.InformationRatio == nil || math.Abs(*out.InformationRatio-mean/deviation*math.Sqrt(12)) > 1e-10 || math.Abs(*out.TrackingError-deviation*math.Sqrt(12)) > 1e-12 {
		t.Errorf("information ratio %v, tracking error %v", *out.InformationRatio, *out.TrackingError)
	}
	if out.Omega != nil {
		t.Errorf("omega without a loss: %v", *out.Omega)
	}
}

func TestFindings(t *testing.T) {
	five := `{"symbol":"A","weight":0.2,"sector":"a"},{"symbol":"B","weight":0.2,"sector":"b"},{"symbol":"C","weight":0.2,"sector":"c"},{"symbol":"D","weight":0.2,"sector":"d"},`
	months := strings.TrimSuffix(strings.Repeat("0.01,-0.005,", 20), ",")
	for members, want := range map[string][]string{
		`"positions":[` + five + `{"symbol":"E","weight":0.2,"sector":"e"}],"portfolioReturns":[` + months + `]`: {
			"single_position_concentration", "single_position_concentration", "single_position_concentration", "single_position_concentration", "single_position_concentration"},
		`"positions":[{"symbol":"A","weight":1}]`:                                                        {"single_position_concentration", "few_holdings", "no_return_history"},
		`"positions":[{"symbol":"A","weight":1,"sector":"x"}]`:                                           {"sector_concentration", "single_position_concentration", "few_holdings", "no_return_history"},
		`"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[0.01,0.02]`:                         {"single_position_concentration", "few_holdings", "insufficient_history"},
		`"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[` + months + `]`:                    {"single_position_concentration", "few_holdings"},
		`"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[` + months + `,-0.31]`:              {"deep_drawdown", "high_volatility", "single_position_concentration", "few_holdings", "negative_sharpe"},
		`"positions":[{"symbol":"A","weight":1.5},{"symbol":"B","weight":-0.5}]`:                         {"single_position_concentration", "few_holdings", "leverage", "no_return_history", "short_exposure", "single_position_concentration"},
		`"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[` + months + `],"riskFreeRate":0.9`: {"single_position_concentration", "few_holdings", "negative_sharpe", "rate_looks_like_percent"},
	} {
		if diff := cmp.Diff(want, policytest.IDs(ask(t, members).Findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", members, diff)
		}
	}
	var positions []string
	for i := range 10 {
		positions = append(positions, fmt.Sprintf(`{"symbol":"S%d","weight":0.1,"sector":"%d"}`, i, i%4))
	}
	if got := policytest.IDs(ask(t, `"positions":[`+strings.Join(positions, ",")+`]`).Findings); !slices.Equal(got, []string{"no_return_history", "sector_concentration", "sector_concentration"}) {
		t.Errorf("a tenth each, 30 %% in two sectors: %v", got)
	}
}

func TestLevels(t *testing.T) {
	for n, want := range map[int]string{1: "critical", 5: "critical", 6: "high", 8: "high", 9: "medium", 16: "medium", 17: "low"} {
		var positions []string
		for i := range n {
			positions = append(positions, fmt.Sprintf(`{"symbol":"S%d","marketValue":1}`, i))
		}
		out := ask(t, `"positions":[`+strings.Join(positions, ",")+`]`)
		if out.RiskLevel != want {
			t.Errorf("%d equal positions: %v %s, want %s", n, out.RiskScore, out.RiskLevel, want)
		}
	}
}

func TestSumOfWeights(t *testing.T) {
	for sum, ok := range map[string]bool{"0.400001": true, "0.4000011": false, "0.399999": true, "0.3999989": false} {
		_, err := portfoliorisk.Service.Evaluate([]byte(`{"positions":[{"symbol":"A","weight":0.6},{"symbol":"B","weight":` + sum + `}]}`))
		if (err == nil) != ok {
			t.Errorf("0.6 and %s: %v", sum, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	a, b := `{"symbol":"A","weight":0.5}`, `{"symbol":"B","weight":0.5}`
	withReturns := `{"symbol":"A","weight":0.5,"returns":[0.1,0.2]}`
	for members, want := range map[string][2]string{
		`"positions":[]`: {"out_of_range", "/positions"},
		`"positions":[` + strings.Repeat(a+",", 500) + a + `]`:                                                             {"too_many_items", "/positions"},
		`"positions":[` + a + `,` + a + `]`:                                                                                {"inconsistent_input", "/positions/1/symbol"},
		`"positions":[{"symbol":"","weight":1}]`:                                                                           {"out_of_range", "/positions/0/symbol"},
		`"positions":[{"symbol":"` + strings.Repeat("é", 33) + `","weight":1}]`:                                            {"too_long", "/positions/0/symbol"},
		`"positions":[{"symbol":"A","weight":1,"sector":"` + strings.Repeat("é", 65) + `"}]`:                               {"too_long", "/positions/0/sector"},
		`"positions":[{"symbol":"A","weight":1,"sector":""}]`:                                                              {"out_of_range", "/positions/0/sector"},
		`"positions":[{"symbol":"A"}]`:                                                                                     {"missing_field", "/positions/0/weight"},
		`"positions":[{"symbol":"A","weight":1,"marketValue":1}]`:                                                          {"mutually_exclusive", "/positions/0/marketValue"},
		`"positions":[` + a + `,{"symbol":"B","marketValue":1}]`:                                                           {"inconsistent_input", "/positions/1"},
		`"positions":[{"symbol":"A","marketValue":1},{"symbol":"B","marketValue":-1}]`:                                     {"inconsistent_input", "/positions"},
		`"positions":[` + a + `]`:                                                                                          {"weights_do_not_sum_to_one", "/positions"},
		`"positions":[` + withReturns + `,` + b + `]`:                                                                      {"returns_incomplete", "/positions/1/returns"},
		`"positions":[` + withReturns + `,{"symbol":"B","weight":0.5,"returns":[0.1,0.2,0.3]}]`:                            {"returns_incomplete", "/positions/1/returns"},
		`"positions":[` + b + `,` + withReturns + `]`:                                                                      {"returns_incomplete", "/positions/0/returns"},
		`"positions":[` + withReturns + `,` + strings.Replace(withReturns, "A", "B", 1) + `],"portfolioReturns":[0.1,0.2]`: {"mutually_exclusive", "/portfolioReturns"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[0.1]`:                                                       {"out_of_range", "/portfolioReturns"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[0.1,10.1]`:                                                  {"out_of_range", "/portfolioReturns/1"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[0.1,-1.01]`:                                                 {"out_of_range", "/portfolioReturns/1"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[` + strings.Repeat("0,", 5000) + `0]`:                       {"too_many_items", "/portfolioReturns"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[0.1,0],"benchmarkReturns":[0,0,0]`:                          {"inconsistent_input", "/benchmarkReturns"},
		`"positions":[` + a + `,` + b + `],"benchmarkReturns":[0,0,0]`:                                                     {"inconsistent_input", "/benchmarkReturns"},
		`"positions":[` + a + `,` + b + `],"portfolioReturns":[0.1,0],"benchmarkReturns":[0,11]`:                           {"out_of_range", "/benchmarkReturns/1"},
	} {
		_, err := portfoliorisk.Service.Evaluate([]byte("{" + members + "}"))
		policytest.Refused(t, members, err, want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, portfoliorisk.Service,
		`{"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[0.1,0.2],"riskFreeRate":0.1,"periodsPerYear":4,"confidenceLevel":0.9}`,
		`{"positions":[{"symbol":"A","marketValue":1}]}`)
	if n != 10 {
		t.Errorf("%d limits tried", n)
	}
}

// The risk contributions add up to 1, and so do the weights of the positions and those of the
// sectors. The order of positions and the unit of market values do not matter. The expected
// shortfall is at least the value at risk.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, periods := rapid.IntRange(1, 8).Draw(t, "n"), rapid.IntRange(2, 60).Draw(t, "periods")
		in := portfoliorisk.Input{ConfidenceLevel: ptr(rapid.Float64Range(0.5, 0.999).Draw(t, "confidence"))}
		for i := range n {
			in.Positions = append(in.Positions, portfoliorisk.Position{
				Symbol: fmt.Sprint("S", i), MarketValue: ptr(rapid.Float64Range(1, 1e6).Draw(t, "value")),
				Sector:  ptr(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "sector")),
				Returns: rapid.SliceOfN(rapid.Float64Range(-0.5, 0.5), periods, periods).Draw(t, "returns"),
			})
		}
		out, err := portfoliorisk.Evaluate(in)
		if err != nil {
			t.Fatal(err)
		}
		contributions, weights, sectors := 0.0, 0.0, 0.0
		for _, p := range out.Positions {
			weights += p.Weight
			if p.RiskContribution != nil {
				contributions += *p.RiskContribution
			}
		}
		for _, s := range out.Sectors {
			sectors += s.Weight
		}
		if *out.Volatility > 1e-9 && math.Abs(contributions-1) > 1e-6 || math.Abs(weights-1) > 1e-9 || math.Abs(sectors-1) > 1e-9 {
			t.Fatalf("contributions %v, weights %v, sectors %v", contributions, weights, sectors)
		}
		if out.RiskScore < 0 || out.RiskScore > 100 || out.ConcentrationHHI < 1/float64(n)-1e-9 || out.ConcentrationHHI > 1+1e-9 ||
			*out.MaxDrawdown < 0 || *out.MaxDrawdown > 1 || *out.ExpectedShortfall < *out.ValueAtRisk-1e-12 {
			t.Fatalf("got %+v", out)
		}
		if out.DiversificationRatio != nil && *out.DiversificationRatio < 1-1e-9 {
			t.Fatalf("diversification ratio %v", *out.DiversificationRatio)
		}
		other := in
		other.Positions = slices.Clone(in.Positions)
		slices.Reverse(other.Positions)
		for i := range other.Positions {
			other.Positions[i].MarketValue = ptr(*other.Positions[i].MarketValue * 4)
		}
		again, err := portfoliorisk.Evaluate(other)
		if err != nil || again.RiskScore != out.RiskScore || !cmp.Equal(out.Sectors, again.Sectors, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })) {
			t.Fatalf("reversed and in another unit: %v %v", again.RiskScore, out.RiskScore)
		}
	})
}

func TestExtremeReturnsHaveAScore(t *testing.T) {
	gains := strings.TrimSuffix(strings.Repeat("10,", 5000), ",")
	out := ask(t, `"positions":[{"symbol":"A","weight":1}],"portfolioReturns":[`+gains+`]`)
	if out.AnnualizedReturn != nil || *out.MaxDrawdown != 0 || out.RiskScore <= 0 {
		t.Errorf("endless gains: %+v", out)
	}
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, portfoliorisk.Service,
		`{"positions":[{"symbol":"A","marketValue":5,"sector":"x"},{"symbol":"B","marketValue":-1}],"portfolioReturns":[0.1,-0.2,0.3],"benchmarkReturns":[0,0.1,0.2]}`)
}

func BenchmarkHundredPositionsThousandReturns(b *testing.B) {
	in := portfoliorisk.Input{}
	for i := range 100 {
		p := portfoliorisk.Position{Symbol: fmt.Sprint(i), Weight: ptr(0.01)}
		for k := range 1000 {
			p.Returns = append(p.Returns, float64((i*7919+k*104729)%200-100)/5000)
		}
		in.Positions = append(in.Positions, p)
	}
	for b.Loop() {
		if _, err := portfoliorisk.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}
