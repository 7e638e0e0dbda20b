package options_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/policytest"
)

// The values are from Hull, "Options, Futures, and Other Derivatives". A European call on a share
// of 40 with dividends of 0.50 in two and five months is worth 3.67 (example on Black-Scholes with
// dividends). An American put on a share of 52 with a dividend of 2.06 in three and a half months
// is worth 4.21 with 100 steps (section on known dollar dividends).
func TestCashDividends(t *testing.T) {
	call := policytest.Ask(t, options.Evaluate, `"optionType":"call","spot":40,"strike":40,"riskFreeRate":0.09,"volatility":0.3,"timeToExpiryYears":0.5,
		"dividends":[{"timeYears":0.16666666666666666,"amount":0.5},{"timeYears":0.4166666666666667,"amount":0.5}]`)
	if math.Abs(call.Price-3.67) > 0.005 || math.Abs(*call.D1-0.2020) > 0.001 || call.MoneynessRatio != 1 || call.Moneyness != "atm" {
		t.Errorf("call %v, d1 %v", call.Price, *call.D1)
	}
	put := policytest.Ask(t, options.Evaluate, `"optionType":"put","spot":52,"strike":50,"riskFreeRate":0.1,"volatility":0.4,"timeToExpiryYears":0.4166666666666667,"exerciseStyle":"american",
		"dividends":[{"timeYears":0.2916666666666667,"amount":2.06}]`)
	if math.Abs(put.Price-4.21) > 0.02 {
		t.Errorf("American put %v", put.Price)
	}
	// Dividends with dates give the same value as those with times. An American call is worth more
	// than a European one, because it can be exercised before a dividend.
	dated := policytest.Ask(t, options.Evaluate, `"optionType":"call","spot":100,"strike":90,"riskFreeRate":0.05,"volatility":0.2,"valuationDate":"2026-01-01","expiryDate":"2026-12-31","dividends":[{"date":"2026-12-01","amount":8}],"exerciseStyle":"american"`)
	timed := policytest.Ask(t, options.Evaluate, fmt.Sprintf(`"optionType":"call","spot":100,"strike":90,"riskFreeRate":0.05,"volatility":0.2,"timeToExpiryYears":%v,"dividends":[{"timeYears":%v,"amount":8}],"exerciseStyle":"american"`, 364.0/365, 334.0/365))
	if dated.Price != timed.Price || *dated.EarlyExercisePremium < 1 {
		t.Errorf("by date %v, by time %v, premium %v", dated.Price, timed.Price, *dated.EarlyExercisePremium)
	}
}

// The Greeks are the derivatives of the price by the quoted spot.
func TestGreeksWithCashDividends(t *testing.T) {
	price := func(style string, spot, rate, years float64) options.Output {
		return policytest.Ask(t, options.Evaluate, fmt.Sprintf(`"optionType":"call","spot":%v,"strike":95,"riskFreeRate":%v,"volatility":0.25,"timeToExpiryYears":%v,"exerciseStyle":%q,"dividends":[{"timeYears":%v,"amount":3}]`, spot, rate, years, style, years-0.6))
	}
	for style, within := range map[string]float64{"european": 1e-6, "american": 2e-3} {
		at := price(style, 100, 0.05, 1)
		const h = 1e-3
		for name, pair := range map[string][2]float64{
			"delta": {at.Greeks.Delta, (price(style, 100+h, 0.05, 1).Price - price(style, 100-h, 0.05, 1).Price) / (2 * h)},
			"rho":   {at.Greeks.Rho, (price(style, 100, 0.05+h, 1).Price - price(style, 100, 0.05-h, 1).Price) / (2 * h)},
			"theta": {at.Greeks.Theta, -(price(style, 100, 0.05, 1+h).Price - price(style, 100, 0.05, 1-h).Price) / (2 * h)},
		} {
			if math.Abs(pair[0]-pair[1]) > within*math.Max(1, math.Abs(pair[1]))*20 {
				t.Errorf("%s %s: %v, slope %v", style, name, pair[0], pair[1])
			}
		}
	}
}

func TestRefusalsOfDividends(t *testing.T) {
	const base = `{"optionType":"call","spot":100,"strike":90,"riskFreeRate":0.05,"volatility":0.2,"timeToExpiryYears":1,`
	for members, want := range map[string][2]string{
		`"dividends":[{"timeYears":0.5,"amount":8}],"dividendYield":0.01}`: {"mutually_exclusive", "/dividends"},
		`"dividends":[{"timeYears":1.5,"amount":8}]}`:                      {"inconsistent_input", "/dividends/0"},
		`"dividends":[{"timeYears":0.5,"amount":108}]}`:                    {"inconsistent_input", "/dividends"},
		`"dividends":[{"amount":8}]}`:                                      {"missing_field", "/dividends/0/timeYears"},
		`"dividends":[{"date":"2026-01-01","amount":8}]}`:                  {"mutually_exclusive", "/dividends/0/date"},
		`"dividends":[{"timeYears":0.5,"amount":0}]}`:                      {"out_of_range", "/dividends/0/amount"},
	} {
		_, err := options.Service.Evaluate([]byte(base + members))
		policytest.Refused(t, members, err, want[0], want[1])
	}
}

// The implied volatility of an American price gives that price, and is the volatility from which
// the price was computed.
func TestImpliedVolatilityOfAnAmericanOption(t *testing.T) {
	for _, option := range []string{
		`"optionType":"put","spot":40,"strike":44,"riskFreeRate":0.0488,"timeToExpiryYears":0.5833,"exerciseStyle":"american"`,
		`"optionType":"call","spot":100,"strike":95,"riskFreeRate":0.03,"dividendYield":0.07,"timeToExpiryYears":1,"exerciseStyle":"american"`,
		`"optionType":"call","spot":100,"strike":95,"riskFreeRate":0.03,"timeToExpiryYears":1,"exerciseStyle":"american","dividends":[{"timeYears":0.5,"amount":4}]`,
	} {
		for _, volatility := range []float64{0.1, 0.25, 0.8} {
			out := policytest.Ask(t, options.Evaluate, option+fmt.Sprintf(`,"volatility":%v`, volatility))
			if out.Price <= out.IntrinsicValue { // immediate exercise is best, so any low volatility gives this price
				continue
			}
			back := policytest.Ask(t, options.Evaluate, option+fmt.Sprintf(`,"marketPrice":%v`, out.Price))
			if back.ImpliedVolatility == nil || math.Abs(*back.ImpliedVolatility-volatility) > 1e-6 || math.Abs(back.Price-out.Price) > 1e-8 {
				t.Errorf("%s at %v: price %v, implied %v, price again %v", option, volatility, out.Price, *back.ImpliedVolatility, back.Price)
			}
		}
	}
}
