// Package options prices one European or American option on an asset with a continuous dividend
// yield or cash dividends, and finds the volatility that a market price implies.
//
// European prices and Greeks are those of the closed form of Black, Scholes and Merton (Merton
// 1973, "Theory of Rational Option Pricing"). With forward F = S*exp((r-q)*T), discount factor D =
// exp(-r*T) and
//
//	d1 = (ln(F/K) + v*v*T/2) / (v*sqrt(T))      d2 = d1 - v*sqrt(T)
//
// a call is worth S*exp(-q*T)*N(d1) - K*D*N(d2) and a put K*D*N(-d2) - S*exp(-q*T)*N(-d1). For S
// 100, K 95, T 0.5, r 0.03, q 0.01, v 0.25 the call is worth 10.161027672. American prices are
// those of the binomial tree of Leisen and Reimer (1996, "Binomial models for option valuation")
// with 1001 steps. Cash dividends are escrowed (Black 1975): their present value is subtracted
// from the spot, and only the rest of the spot is random.
//
// Rates are decimals per year, continuously compounded. Volatility is a decimal per year. Times
// are years. Prices are in the currency of spot and strike.
package options

import (
	"fmt"
	"math"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// Service is the declaration of options/price.
var Service = policy.Declare(policy.Service{
	Name:       "options/price",
	PriceCents: 25,
	Group:      policy.GroupFinance,
	Title:      "Option price and Greeks",
	Summary: "Prices a European (Black-Scholes-Merton) or American option with d1, d2, Greeks in canonical and display units, " +
		"intrinsic and time value, moneyness, the parity price of the other side and, from a market price, the implied volatility; with a dividend yield or cash dividends.",
	Example:    `{"optionType":"call","spot":100,"strike":95,"timeToExpiryYears":0.5,"riskFreeRate":0.03,"dividendYield":0.01,"volatility":0.25}`,
	Rules:      documented,
	Conditions: conditions,
	Reasons:    []string{"price_outside_no_arbitrage_bounds", "inconsistent_input", "out_of_range"},
	Charts:     charts,
}, Evaluate)

// Input is one option with its market data.
type Input struct {
	policy.Common
	OptionType string  `json:"optionType" jsonschema:"enum=call,enum=put" jsonschema_description:"Right to buy (call) or to sell (put)."`
	Spot       float64 `json:"spot" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Price of the underlying now, in currency."`
	Strike     float64 `json:"strike" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Exercise price, in currency."`

	TimeToExpiryYears *float64 `json:"timeToExpiryYears,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Years to expiry. Send either this member, or valuationDate and expiryDate."`
	ValuationDate     *string  `json:"valuationDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day of the valuation, YYYY-MM-DD; the time is counted ACT/365 Fixed."`
	ExpiryDate        *string  `json:"expiryDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day of expiry, YYYY-MM-DD, not before valuationDate."`

	RiskFreeRate  float64    `json:"riskFreeRate" jsonschema:"minimum=-2,maximum=2" jsonschema_description:"Continuously compounded annual rate as a decimal (0.05 is 5 %)."`
	DividendYield *float64   `json:"dividendYield,omitempty" jsonschema:"minimum=-2,maximum=2,default=0" jsonschema_description:"Continuous annual dividend yield as a decimal."`
	Dividends     []Dividend `json:"dividends,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Cash dividends until expiry, instead of dividendYield. Their present value is subtracted from the spot (escrowed model)."`
	Volatility    *float64   `json:"volatility,omitempty" jsonschema:"minimum=0,maximum=10" jsonschema_description:"Annual volatility as a decimal. Send volatility, marketPrice or both."`
	MarketPrice   *float64   `json:"marketPrice,omitempty" jsonschema:"minimum=0,maximum=1000000000000" jsonschema_description:"Observed price of the option, in currency, from which the implied volatility is computed."`
	ExerciseStyle *string    `json:"exerciseStyle,omitempty" jsonschema:"enum=european,enum=american,default=european" jsonschema_description:"european: exercise at expiry only; american: at any time until expiry."`
}

// Dividend is an amount of cash that one share pays before expiry.
type Dividend struct {
	TimeYears *float64 `json:"timeYears,omitempty" jsonschema:"exclusiveMinimum=0,maximum=100" jsonschema_description:"Years from the valuation to the dividend, not after expiry. Send it with timeToExpiryYears."`
	Date      *string  `json:"date,omitempty" jsonschema:"format=date" jsonschema_description:"Day of the dividend, YYYY-MM-DD, after valuationDate and not after expiryDate. Send it with these two."`
	Amount    float64  `json:"amount" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Dividend of one share, in currency."`
}

// Greeks are the sensitivities of the price in canonical units.
type Greeks struct {
	Delta float64 `json:"delta" jsonschema_description:"Change of the price per 1 of spot."`
	Gamma float64 `json:"gamma" jsonschema_description:"Change of delta per 1 of spot."`
	Vega  float64 `json:"vega" jsonschema_description:"Change of the price per 1.00 (100 points) of volatility."`
	Theta float64 `json:"theta" jsonschema_description:"Change of the price per year that passes."`
	Rho   float64 `json:"rho" jsonschema_description:"Change of the price per 1.00 (100 points) of the risk-free rate."`
}

// GreeksDisplay contains the sensitivities of Greeks, converted to the units that traders quote.
type GreeksDisplay struct {
	Delta       float64 `json:"delta" jsonschema_description:"Change of the price per 1 of spot."`
	Gamma       float64 `json:"gamma" jsonschema_description:"Change of delta per 1 of spot."`
	VegaPer1Pct float64 `json:"vegaPer1Pct" jsonschema_description:"Change of the price per point of volatility (vega / 100)."`
	ThetaPerDay float64 `json:"thetaPerDay" jsonschema_description:"Change of the price per calendar day (theta / 365)."`
	RhoPer1Pct  float64 `json:"rhoPer1Pct" jsonschema_description:"Change of the price per point of the rate (rho / 100)."`
}

// Output is the valuation. Prices are in the currency of spot and strike.
type Output struct {
	Price                  float64          `json:"price" jsonschema_description:"Model price, in currency."`
	D1                     *float64         `json:"d1" jsonschema:"nullable" jsonschema_description:"The term d1 of the formula; null if time or volatility is zero."`
	D2                     *float64         `json:"d2" jsonschema:"nullable" jsonschema_description:"The term d2 of the formula; null if time or volatility is zero."`
	Greeks                 Greeks           `json:"greeks" jsonschema_description:"Sensitivities in canonical units."`
	GreeksDisplay          GreeksDisplay    `json:"greeksDisplay" jsonschema_description:"Sensitivities in display units."`
	IntrinsicValue         float64          `json:"intrinsicValue" jsonschema_description:"Value of immediate exercise, at least 0."`
	TimeValue              float64          `json:"timeValue" jsonschema_description:"Price less intrinsic value; may be negative for European options."`
	Moneyness              string           `json:"moneyness" jsonschema:"enum=itm,enum=atm,enum=otm" jsonschema_description:"Whether the option is in, at or out of the money, by spot and strike."`
	MoneynessRatio         float64          `json:"moneynessRatio" jsonschema_description:"Spot / strike."`
	Forward                float64          `json:"forward" jsonschema_description:"Forward price of the underlying at expiry."`
	DiscountFactor         float64          `json:"discountFactor" jsonschema_description:"Value now of 1 at expiry."`
	ProbabilityInTheMoney  float64          `json:"probabilityInTheMoney" jsonschema_description:"Risk-neutral probability, from 0 to 1, that the option expires in the money."`
	TimeToExpiryYears      float64          `json:"timeToExpiryYears" jsonschema_description:"Years to expiry, as used in the formula."`
	VolatilityUsed         float64          `json:"volatilityUsed" jsonschema_description:"Volatility from which price and Greeks are computed: the one sent, else the implied one."`
	ImpliedVolatility      *float64         `json:"impliedVolatility" jsonschema:"nullable" jsonschema_description:"Volatility at which the model price is marketPrice; null if there is none, or without marketPrice."`
	ParityCounterpartPrice float64          `json:"parityCounterpartPrice" jsonschema_description:"European price of the put for a call, and of the call for a put, by put-call parity."`
	ExerciseStyle          string           `json:"exerciseStyle" jsonschema:"enum=european,enum=american" jsonschema_description:"The exercise style as sent, or the default."`
	EarlyExercisePremium   *float64         `json:"earlyExercisePremium,omitempty" jsonschema_description:"American price less European price, at least 0; American options only."`
	Findings               []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Evaluate prices one option. The codes of its errors are missing_field, mutually_exclusive,
// invalid_enum, invalid_date, inconsistent_input, price_outside_no_arbitrage_bounds, and
// out_of_range (for an input, or for a result that JSON cannot represent exactly).
func Evaluate(in Input) (Output, error) {
	o, american, err := read(in)
	if err != nil {
		return Output{}, err
	}
	var findings []policy.Finding
	var implied *float64
	// Compute the implied volatility. It is used for the price if no volatility was sent.
	if in.MarketPrice != nil {
		find := o.implied
		if american {
			find = o.impliedAmerican
		}
		v, ok := find(*in.MarketPrice)
		switch {
		case ok:
			implied = &v
		case in.Volatility == nil:
			return Output{}, policy.Refuse("price_outside_no_arbitrage_bounds", "/marketPrice",
				"marketPrice must have an implied volatility between 0.000001 and 10")
		default:
			findings = append(findings, policy.Finding{ID: "no_implied_volatility", Severity: "medium", Path: "/marketPrice",
				Message: "No volatility between 0.000001 and 10 explains the market price."})
		}
		if in.Volatility == nil {
			o.v = v
		}
	}
	// Value the option. The answer for an American option also needs the European value.
	european := o.quoted(o.european())
	shown := european
	if american {
		shown = o.american(european)
	}
	out, err := answer(o, shown, european)
	if err != nil {
		return Output{}, err
	}
	out.ExerciseStyle = "european"
	if american {
		out.ExerciseStyle = "american"
		out.EarlyExercisePremium = money.Number(shown.price - european.price)
	}
	if implied != nil {
		out.ImpliedVolatility = money.Number(*implied)
	}
	out.Findings = policy.SortFindings(append(findings, o.findings(shown, out)...))
	return out, nil
}

// read reads and checks an input. It returns the option, and whether it is American.
func read(in Input) (option, bool, error) {
	var c money.Check
	c.OneOf("/optionType", in.OptionType, "call", "put")
	c.Above("/spot", in.Spot, 0, maxPrice)
	c.Above("/strike", in.Strike, 0, maxPrice)
	years := readTime(&c, in)
	c.Between("/riskFreeRate", in.RiskFreeRate, -maxRate, maxRate)
	yield := money.Or(in.DividendYield, 0)
	c.Between("/dividendYield", yield, -maxRate, maxRate)
	c.Between("/volatility", money.Or(in.Volatility, 0), 0, maxVolatility)
	c.Between("/marketPrice", money.Or(in.MarketPrice, 0), 0, maxPrice)
	style := money.Or(in.ExerciseStyle, "european")
	c.OneOf("/exerciseStyle", style, "european", "american")
	if in.MarketPrice == nil && in.Volatility == nil {
		c.Missing("/volatility")
	}
	o := option{
		call: in.OptionType == "call", k: in.Strike, t: years, spot: in.Spot,
		r: in.RiskFreeRate, q: yield, v: money.Or(in.Volatility, 0),
	}
	o.readDividends(&c, in)
	o = o.escrowed()
	if c.Err() == nil && !(o.s > 0) {
		c.Refuse("inconsistent_input", "/dividends", "dividends must have a present value below spot")
	}
	return o, style == "american", c.Err()
}

// readDividends reads and checks the cash dividends and their times.
func (o *option) readDividends(c *money.Check, in Input) {
	if len(in.Dividends) > 0 && in.DividendYield != nil {
		c.Exclusive("/dividends", "dividendYield")
	}
	c.Length("/dividends", len(in.Dividends), 0, maxDividends)
	for i, d := range in.Dividends {
		path := fmt.Sprintf("/dividends/%d", i)
		own := dividend{money.Or(d.TimeYears, 0), d.Amount}
		c.Above(path+"/amount", d.Amount, 0, maxPrice)
		switch byDate := in.ValuationDate != nil; {
		case byDate && d.TimeYears != nil:
			c.Exclusive(path+"/timeYears", "valuationDate")
		case byDate && d.Date == nil:
			c.Missing(path + "/date")
		case byDate && c.Err() == nil:
			own.t = float64(c.Day(path+"/date", *d.Date)-c.Day("/valuationDate", *in.ValuationDate)) / daysPerYear
		case !byDate && d.Date != nil:
			c.Exclusive(path+"/date", "timeToExpiryYears")
		case !byDate && d.TimeYears == nil:
			c.Missing(path + "/timeYears")
		}
		if c.Err() == nil && !(own.t > 0 && own.t <= o.t) {
			c.Refuse("inconsistent_input", path, "dividends must be paid after the valuation and not later than expiry")
		}
		o.dividends = append(o.dividends, own)
	}
}

// readTime returns the years to expiry. The request must give them in exactly one way.
func readTime(c *money.Check, in Input) float64 {
	if in.TimeToExpiryYears != nil {
		if in.ValuationDate != nil || in.ExpiryDate != nil {
			c.Exclusive("/timeToExpiryYears", "valuationDate with expiryDate")
		}
		c.Between("/timeToExpiryYears", *in.TimeToExpiryYears, 0, maxYears)
		return *in.TimeToExpiryYears
	}
	if in.ValuationDate == nil && in.ExpiryDate == nil {
		c.Missing("/timeToExpiryYears")
		return 0
	}
	if in.ValuationDate == nil {
		c.Missing("/valuationDate")
		return 0
	}
	if in.ExpiryDate == nil {
		c.Missing("/expiryDate")
		return 0
	}
	days := c.Day("/expiryDate", *in.ExpiryDate) - c.Day("/valuationDate", *in.ValuationDate)
	if days < 0 {
		c.Refuse("inconsistent_input", "/expiryDate", "expiryDate must not be before valuationDate")
	}
	years := float64(days) / daysPerYear
	c.Between("/expiryDate", max(years, 0), 0, maxYears)
	return years
}

// answer returns the answer for a valuation. european is the value of the European option, from
// which the price of the other side of the put-call parity is computed.
func answer(o option, v, european valuation) (Output, error) {
	var n money.Report
	sign := o.sign()
	intrinsic := o.intrinsic()
	out := Output{
		Price: n.Number(v.price),
		Greeks: Greeks{n.Number(v.delta), n.Number(v.gamma), n.Number(v.vega),
			n.Number(v.theta), n.Number(v.rho)},
		GreeksDisplay: GreeksDisplay{n.Number(v.delta), n.Number(v.gamma), n.Number(v.vega / 100),
			n.Number(v.theta / daysPerYear), n.Number(v.rho / 100)},
		IntrinsicValue:         n.Number(intrinsic),
		TimeValue:              n.Number(v.price - intrinsic),
		Moneyness:              "otm",
		MoneynessRatio:         n.Number(o.spot / o.k),
		Forward:                n.Number(o.forward()),
		DiscountFactor:         n.Number(math.Exp(-o.r * o.t)),
		ProbabilityInTheMoney:  n.Number(v.probability),
		TimeToExpiryYears:      n.Number(o.t),
		VolatilityUsed:         n.Number(o.v),
		ParityCounterpartPrice: n.Number(european.counterpart),
	}
	if !v.degenerate {
		out.D1, out.D2 = money.Number(v.d1), money.Number(v.d2)
	}
	if math.Abs(o.spot-o.k) <= atTheMoney*o.k {
		out.Moneyness = "atm"
	} else if sign*(o.spot-o.k) > 0 {
		out.Moneyness = "itm"
	}
	return out, n.Err()
}

// findings returns the findings about unusual terms and results of an option.
func (o option) findings(v valuation, out Output) []policy.Finding {
	var f []policy.Finding
	add := func(id, severity, path, message string) {
		f = append(f, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
	}
	if v.degenerate {
		add("degenerate_inputs", "info", "", "Time or volatility is zero: the limit of the formula is reported.")
	}
	if out.TimeValue < -atTheMoney*o.k { // a smaller difference is rounding error
		add("negative_time_value", "info", "", "The price is below the value of immediate exercise, which a European option does not allow.")
	}
	if o.r < 0 {
		add("negative_rate", "info", "/riskFreeRate", "The risk-free rate is negative.")
	}
	for _, x := range []struct {
		path string
		rate float64
	}{{"/riskFreeRate", o.r}, {"/dividendYield", o.q}} {
		if x.rate > percentRate {
			add("rate_looks_like_percent", "medium", x.path, "The rate is above 50 % a year; 5 % is written 0.05.")
		}
	}
	if o.t > longExpiry {
		add("long_expiry", "low", "", "The option runs for more than ten years; the time is in years, not days or months.")
	}
	if o.v > extremeVolatility {
		add("extreme_volatility", "medium", "/volatility", "The volatility is above 200 % a year.")
	}
	if o.t > 0 && o.t < nearExpiryYears {
		add("near_expiry", "low", "", "Less than a day to expiry: gamma and theta change fast.")
	}
	if !v.degenerate && math.Abs(v.d2) > deepD2 && out.Moneyness == "otm" {
		add("deep_out_of_the_money", "info", "", "The strike is more than five standard deviations away.")
	}
	return f
}
