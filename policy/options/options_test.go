package options_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/policytest"
)

// option contains the parameters that the tests vary: type, spot, strike, years, rate, yield and
// volatility.
type option struct {
	kind             string
	s, k, t, r, q, v float64
}

// values has its fields in the order of the columns of closedForm.
type values struct{ price, d1, d2, delta, gamma, vega, theta, rho, probability, counterpart float64 }

func (o option) input() options.Input {
	return options.Input{OptionType: o.kind, Spot: o.s, Strike: o.k, TimeToExpiryYears: &o.t,
		RiskFreeRate: o.r, DividendYield: &o.q, Volatility: &o.v}
}

func evaluate(t policytest.TB, in options.Input) options.Output {
	t.Helper()
	return policytest.Must(t, options.Evaluate, in)
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), 1e-300)
}

func ExampleEvaluate() {
	years, volatility := 0.5, 0.2
	out, err := options.Evaluate(options.Input{
		OptionType: "call", Spot: 42, Strike: 40, TimeToExpiryYears: &years, RiskFreeRate: 0.1, Volatility: &volatility,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// the example of the Black-Scholes-Merton chapter in Hull, "Options, Futures, and Other
	// Derivatives": call 4.76, put 0.81, d1 0.7693, d2 0.6278
	fmt.Printf("call %.2f put %.2f d1 %.4f d2 %.4f\n", out.Price, out.ParityCounterpartPrice, *out.D1, *out.D2)
	// Output: call 4.76 put 0.81 d1 0.7693 d2 0.6278
}

func TestClosedForm(t *testing.T) {
	for _, tc := range closedForm {
		out := evaluate(t, tc.input())
		got := values{out.Price, *out.D1, *out.D2, out.Greeks.Delta, out.Greeks.Gamma, out.Greeks.Vega,
			out.Greeks.Theta, out.Greeks.Rho, out.ProbabilityInTheMoney, out.ParityCounterpartPrice}
		within := cmp.Comparer(func(a, b float64) bool { return near(a, b, 1.2e-11) })
		if diff := cmp.Diff(tc.want, got, within, cmp.AllowUnexported(values{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.option, diff)
		}
	}
}

// The service gives the worked example of the contract, digit by digit.
func TestWorkedExample(t *testing.T) {
	got := policytest.Members(t, options.Service, options.Service.Example)
	for name, want := range map[string]any{
		"price": 10.161027672, "d1": 0.43511558047, "d2": 0.258338885173, "parityCounterpartPrice": 4.24541401498,
		"probabilityInTheMoney": 0.601927310765, "intrinsicValue": 5.0, "moneyness": "itm", "service": "options-price",
		"impliedVolatility": nil, "exerciseStyle": "european", "timeToExpiryYears": 0.5, "volatilityUsed": 0.25,
		"greeks": map[string]any{"delta": 0.664927768297, "gamma": 0.0204268809485, "vega": 25.5336011856,
			"theta": -7.40842500283, "rho": 28.1658745789},
		"findings": []any{},
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, there := got["earlyExercisePremium"]; there {
		t.Error("a European option has no early-exercise premium")
	}
	if got["impliedVolatility"] != nil {
		t.Error("implied volatility without a market price")
	}
}

func TestDisplayUnits(t *testing.T) {
	out := evaluate(t, option{"put", 90, 100, 2, 0.04, 0.01, 0.3}.input())
	g, d := out.Greeks, out.GreeksDisplay
	if d.Delta != g.Delta || d.Gamma != g.Gamma || !near(d.VegaPer1Pct*100, g.Vega, 1e-11) ||
		!near(d.ThetaPerDay*365, g.Theta, 1e-11) || !near(d.RhoPer1Pct*100, g.Rho, 1e-11) {
		t.Errorf("display %+v of %+v", d, g)
	}
}

func TestDatesAreCountedActual365(t *testing.T) {
	o := option{"call", 100, 95, 0, 0.03, 0, 0.25}
	in := o.input()
	from, to := "2025-03-01", "2026-03-01"
	in.TimeToExpiryYears, in.ValuationDate, in.ExpiryDate = nil, &from, &to
	if out := evaluate(t, in); out.TimeToExpiryYears != 1 {
		t.Errorf("a year of 365 days is %v", out.TimeToExpiryYears)
	}
	to = from
	if out := evaluate(t, in); out.TimeToExpiryYears != 0 || out.Price != 5 {
		t.Errorf("expiry today: %+v", out)
	}
}

func TestLimitsOfTimeAndVolatility(t *testing.T) {
	growth := math.Exp(0.05 * 2)
	for name, tc := range map[string]struct {
		option
		price, delta, theta, rho, probability float64
	}{
		"expired call in the money":     {option{"call", 110, 100, 0, 0.05, 0.02, 0.3}, 10, 1, 0, 0, 1},
		"expired call out of the money": {option{"call", 90, 100, 0, 0.05, 0.02, 0.3}, 0, 0, 0, 0, 0},
		"expired call at the money":     {option{"call", 100, 100, 0, 0.05, 0.02, 0.3}, 0, 0.5, 0, 0, 0.5},
		"expired put in the money":      {option{"put", 90, 100, 0, 0.05, 0.02, 0.3}, 10, -1, 0, 0, 1},
		"expired put at the money":      {option{"put", 100, 100, 0, 0.05, 0.02, 0.3}, 0, -0.5, 0, 0, 0.5},
		"certain call":                  {option{"call", 100, 100, 2, 0.05, 0, 0}, 100 - 100/growth, 1, -5 / growth, 200 / growth, 1},
		"certain call with yield":       {option{"call", 200, 100, 2, 0, 0.05, 0}, 200/growth - 100, 1 / growth, 10 / growth, 200, 1},
		"certain put":                   {option{"put", 50, 100, 2, 0.05, 0, 0}, 100/growth - 50, -1, 5 / growth, -200 / growth, 1},
		"worthless put":                 {option{"put", 100, 100, 2, 0.05, 0, 0}, 0, 0, 0, 0, 0},
		"certain at the forward":        {option{"call", 100, 100, 2, 0.05, 0.05, 0}, 0, 0.5 / growth, 0, 0, 0.5},
	} {
		out := evaluate(t, tc.input())
		got := []float64{out.Price, out.Greeks.Delta, out.Greeks.Theta, out.Greeks.Rho, out.ProbabilityInTheMoney}
		want := []float64{tc.price, tc.delta, tc.theta, tc.rho, tc.probability}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Errorf("%s: got %v, want %v", name, got, want)
				break
			}
		}
		if out.D1 != nil || out.D2 != nil || out.Greeks.Gamma != 0 || out.Greeks.Vega != 0 {
			t.Errorf("%s: %+v", name, out)
		}
		if len(out.Findings) == 0 || out.Findings[0].ID != "degenerate_inputs" {
			t.Errorf("%s: findings %v", name, out.Findings)
		}
	}
}

func draw(t *rapid.T) option {
	kind := rapid.SampledFrom([]string{"call", "put"}).Draw(t, "type")
	s := rapid.Float64Range(20, 500).Draw(t, "spot")
	return option{kind, s, s * rapid.Float64Range(0.4, 2.5).Draw(t, "k"), rapid.Float64Range(0.02, 10).Draw(t, "t"),
		rapid.Float64Range(-0.05, 0.2).Draw(t, "r"), rapid.Float64Range(-0.05, 0.2).Draw(t, "q"),
		rapid.Float64Range(0.05, 1.5).Draw(t, "v")}
}

// Prices satisfy the put-call parity, C - P = S*exp(-qT) - K*exp(-rT), and the Greeks satisfy the
// derivatives of this equation.
func TestPutCallParity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := draw(t)
		o.kind = "call"
		c := evaluate(t, o.input())
		o.kind = "put"
		p := evaluate(t, o.input())
		asset, cash := o.s*math.Exp(-o.q*o.t), o.k*math.Exp(-o.r*o.t)
		scale := o.s + o.k
		for name, off := range map[string]float64{
			"price":       c.Price - p.Price - (asset - cash),
			"counterpart": c.ParityCounterpartPrice - p.Price,
			"delta":       scale * (c.Greeks.Delta - p.Greeks.Delta - math.Exp(-o.q*o.t)),
			"gamma":       c.Greeks.Gamma - p.Greeks.Gamma,
			"vega":        c.Greeks.Vega - p.Greeks.Vega,
			"theta":       c.Greeks.Theta - p.Greeks.Theta - (o.q*asset - o.r*cash),
			"rho":         c.Greeks.Rho - p.Greeks.Rho - o.t*cash,
		} {
			if math.Abs(off) > 1e-9*scale*(1+o.t) {
				t.Fatalf("%s off by %v", name, off)
			}
		}
		if !near(c.ProbabilityInTheMoney+p.ProbabilityInTheMoney, 1, 1e-11) {
			t.Fatal("probabilities do not add to 1")
		}
	})
}

// Each Greek is a derivative of the price. The test computes it by central differences.
func TestGreeksAreDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := draw(t)
		g := evaluate(t, o.input()).Greeks
		slope := func(h float64, move func(*option, float64)) float64 {
			up, down := o, o
			move(&up, h)
			move(&down, -h)
			return (evaluate(t, up.input()).Price - evaluate(t, down.input()).Price) / (2 * h)
		}
		for name, tc := range map[string][2]float64{
			"delta": {g.Delta, slope(o.s*1e-5, func(o *option, h float64) { o.s += h })},
			"vega":  {g.Vega, slope(1e-5, func(o *option, h float64) { o.v += h })},
			"theta": {-g.Theta, slope(o.t*1e-3, func(o *option, h float64) { o.t += h })},
			"rho":   {g.Rho, slope(1e-6, func(o *option, h float64) { o.r += h })},
		} {
			if math.Abs(tc[0]-tc[1]) > 1e-4*(math.Abs(tc[0])+0.01*o.s) {
				t.Fatalf("%s: %v, difference quotient %v", name, tc[0], tc[1])
			}
		}
	})
}

func TestImpliedVolatilityInvertsThePrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := draw(t)
		priced := evaluate(t, o.input())
		if priced.Greeks.Vega < 1e-3*o.s { // with so small a vega, twelve digits of the price do not determine the volatility
			t.Skip("no vega")
		}
		in := o.input()
		in.Volatility, in.MarketPrice = nil, &priced.Price
		back := evaluate(t, in)
		if back.ImpliedVolatility == nil || math.Abs(*back.ImpliedVolatility-o.v) > 1e-11*priced.Price/priced.Greeks.Vega+1e-11 {
			t.Fatalf("implied %v of %v", back.ImpliedVolatility, o.v)
		}
		if back.VolatilityUsed != *back.ImpliedVolatility || !near(back.Price, priced.Price, 1e-10) {
			t.Fatalf("evaluated at %v", back.VolatilityUsed)
		}
	})
}

func TestImpliedVolatilityFarOutAndInTheMoney(t *testing.T) {
	for _, o := range []option{
		{"call", 100, 250, 1, 0.03, 0.01, 0.2}, {"put", 100, 30, 1, 0.03, 0.01, 0.25}, {"call", 100, 80, 1, 0.03, 0.01, 0.2},
		{"call", 100, 100, 100, 0.01, 0.01, 0.05}, {"put", 1e12, 1e12, 1, 0, 0, 9.9}, {"call", 100, 100, 1, 0, 0, 2e-6},
	} {
		priced := evaluate(t, o.input())
		in := o.input()
		in.Volatility, in.MarketPrice = nil, &priced.Price
		if out := evaluate(t, in); math.Abs(*out.ImpliedVolatility-o.v) > 1e-8*o.v {
			t.Errorf("%+v: implied %v", o, *out.ImpliedVolatility)
		}
	}
}

func TestMarketPriceOutsideTheBounds(t *testing.T) {
	o := option{"call", 100, 90, 1, 0.05, 0.01, 0.3}
	asset, cash := 100*math.Exp(-0.01), 90*math.Exp(-0.05)
	for _, p := range []float64{0, 5, asset - cash, asset, 1e12, math.Nextafter(asset, 0)} {
		in := o.input()
		in.MarketPrice = &p
		out := evaluate(t, in)
		if out.ImpliedVolatility != nil || !cmp.Equal(policytest.IDs(out.Findings), []string{"no_implied_volatility"}) {
			t.Errorf("%v: implied %v, findings %v", p, out.ImpliedVolatility, out.Findings)
		}
		in.Volatility = nil
		refused(t, in, "price_outside_no_arbitrage_bounds", "/marketPrice")
	}
	p := 10.0
	expired := option{"call", 100, 90, 0, 0.05, 0.01, 0.3}.input()
	expired.MarketPrice = &p
	if out := evaluate(t, expired); out.ImpliedVolatility != nil {
		t.Error("an expired option has no implied volatility")
	}
	expired.Volatility = nil
	refused(t, expired, "price_outside_no_arbitrage_bounds", "/marketPrice")
}

func refused(t *testing.T, in options.Input, code, path string) {
	t.Helper()
	_, err := options.Evaluate(in)
	policytest.Refused(t, in, err, code, path)
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"optionType":"straddle","spot":1,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":1}`:                              {"invalid_enum", "/optionType"},
		`{"optionType":"call","spot":0,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":1}`:                                  {"out_of_range", "/spot"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1}`:                                                        {"missing_field", "/timeToExpiryYears"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"valuationDate":"2025-01-01"}`:                           {"missing_field", "/expiryDate"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"expiryDate":"2025-01-01"}`:                              {"missing_field", "/valuationDate"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"valuationDate":"2025-01-02","expiryDate":"2025-01-01"}`: {"inconsistent_input", "/expiryDate"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"valuationDate":"2025-01-02","expiryDate":"2025-02-30"}`: {"invalid_date", "/expiryDate"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"valuationDate":"1900-01-01","expiryDate":"2199-12-31"}`: {"out_of_range", "/expiryDate"},
		`{"optionType":"call","spot":1,"strike":1,"riskFreeRate":0,"volatility":1,"timeToExpiryYears":1,"expiryDate":"2025-02-20"}`:        {"mutually_exclusive", "/timeToExpiryYears"},
		`{"optionType":"call","spot":1,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0}`:                                                 {"missing_field", "/volatility"},
		`{"optionType":"call","spot":1,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":1,"exerciseStyle":"bermudan"}`:       {"invalid_enum", "/exerciseStyle"},
		`{"optionType":"put","spot":1,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"marketPrice":0,"exerciseStyle":"american"}`:       {"price_outside_no_arbitrage_bounds", "/marketPrice"},
		`{"optionType":"put","spot":1,"strike":1,"timeToExpiryYears":100,"riskFreeRate":-2,"volatility":0.2}`:                              {"out_of_range", ""},
		`{"optionType":"call","spot":1,"strike":1e-300,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":0.2}`:                           {"out_of_range", ""},
		`{"optionType":"call","spot":1,"strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":1,"style":"x"}`:                      {"unknown_field", ""},
		`{"optionType":"call","spot":"1","strike":1,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":1}`:                                {"wrong_type", "/spot"},
	} {
		_, err := options.Service.Evaluate([]byte(text))
		policytest.Refused(t, text, err, want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, options.Service, options.Service.Example,
		`{"optionType":"call","spot":100,"strike":95,"timeToExpiryYears":1,"riskFreeRate":0,"volatility":0.2,"marketPrice":10}`)
	if n != 14 {
		t.Errorf("%d limits tried", n)
	}
}

func TestFindings(t *testing.T) {
	for id, o := range map[string]option{
		"negative_time_value":   {"put", 10, 100, 2, 0.1, 0, 0.2},
		"negative_rate":         {"call", 100, 100, 1, -0.01, 0, 0.2},
		"extreme_volatility":    {"call", 100, 100, 1, 0.01, 0, 2.01},
		"near_expiry":           {"call", 100, 100, 1.0 / 366, 0.01, 0, 0.2},
		"deep_out_of_the_money": {"call", 100, 300, 1, 0.01, 0, 0.2},
		"degenerate_inputs":     {"call", 100, 100, 1, 0.01, 0, 0},
	} {
		if got := policytest.IDs(evaluate(t, o.input()).Findings); !cmp.Equal(got, []string{id}) {
			t.Errorf("%+v: got %v, want %s", o, got, id)
		}
	}
	for _, o := range []option{
		{"call", 100, 100, 1.0 / 365, 0, 0, 2}, {"call", 300, 100, 1, 0, 0, 0.2}, {"put", 300, 100, 1, 0, 0, 0.5},
	} {
		if got := evaluate(t, o.input()).Findings; len(got) != 0 {
			t.Errorf("%+v: got %v", o, got)
		}
	}
}

func TestMoneyness(t *testing.T) {
	for _, tc := range []struct {
		kind string
		spot float64
		want string
	}{
		{"call", 100, "atm"}, {"call", 100.0000001, "atm"}, {"call", 100.0000002, "itm"}, {"put", 100.0000002, "otm"},
		{"call", 99, "otm"}, {"put", 99, "itm"}, {"put", 99.9999999, "atm"},
	} {
		out := evaluate(t, option{tc.kind, tc.spot, 100, 1, 0, 0, 0.2}.input())
		if out.Moneyness != tc.want {
			t.Errorf("%s at %v: got %s, want %s", tc.kind, tc.spot, out.Moneyness, tc.want)
		}
	}
}

// FuzzEvaluate checks that every request is answered or refused without a panic, and always in the
// same way.
func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, options.Service,
		`{"optionType":"put","spot":1e-9,"strike":1e12,"timeToExpiryYears":100,"riskFreeRate":-2,"volatility":10,"exerciseStyle":"american"}`,
		`{"optionType":"put","spot":10,"strike":12,"valuationDate":"2025-01-01","expiryDate":"2026-01-01","riskFreeRate":0,"marketPrice":3}`)
}

func BenchmarkEuropean(b *testing.B) {
	in := closedForm[0].input()
	for b.Loop() {
		if _, err := options.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImpliedVolatility(b *testing.B) {
	in := closedForm[0].input()
	in.MarketPrice = &closedForm[0].want.price
	for b.Loop() {
		if _, err := options.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}
