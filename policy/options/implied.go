package options

import "math"

// implied returns the volatility at which the European price is p. ok is false if p is outside the
// no-arbitrage bounds, or the volatility is outside the bracket.
//
// It solves for the out-of-the-money option. By parity the price of the in-the-money option is
// that price plus a constant, and rounding may lose the part that depends on volatility. The price
// rises with volatility, and has its inflection at sqrt(2*|ln(F/K)|/T), where Newton's method
// starts (Manaster and Koehler 1982). If a step leaves the bracket, implied bisects.
func (o option) implied(p float64) (float64, bool) {
	asset, cash := o.legs()
	lower, upper := math.Max(asset-cash, 0), asset
	if !o.call {
		lower, upper = math.Max(cash-asset, 0), cash
	}
	if o.t == 0 || !(p > lower && p < upper) {
		return 0, false
	}
	side := o
	side.call = asset < cash
	target := p - lower
	price := func(v float64) valuation { side.v = v; return side.european() }

	low, high := lowestVolatility, float64(maxVolatility)
	if price(low).price > target || price(high).price < target {
		return 0, false
	}
	v := math.Sqrt(2 * math.Abs(math.Log(asset/cash)) / o.t)
	for range solveSteps {
		if !(v > low && v < high) {
			v = low + (high-low)/2
		}
		at := price(v)
		if at.price < target {
			low = v
		} else {
			high = v
		}
		next := v - (at.price-target)/at.vega
		if math.Abs(next-v) <= 1e-15*v || high-low <= 1e-15*high {
			break
		}
		v = next
	}
	return math.Max(low, math.Min(high, v)), true
}

// impliedAmerican returns the volatility at which the American price is p. ok is false if p is not
// above the value of immediate exercise, or the volatility is outside the bracket. The price rises
// with volatility. The search is the Illinois variant of false position, with a bisection every
// fourth step.
func (o option) impliedAmerican(p float64) (float64, bool) {
	price := func(v float64) float64 { o.v = v; return o.americanPrice() - p }
	if o.t == 0 || !(p > o.intrinsic()) {
		return 0, false
	}
	low, high := math.Log(lowestVolatility), math.Log(maxVolatility)
	below, above := price(lowestVolatility), price(maxVolatility)
	if !(below <= 0 && above >= 0) {
		return 0, false
	}
	for step := range solveSteps {
		if high-low <= 1e-11 || above == below {
			break
		}
		next := low - below*(high-low)/(above-below)
		if step%4 == 3 || !(next > low && next < high) {
			next = low + (high-low)/2
		}
		switch at := price(math.Exp(next)); {
		case at == 0:
			return math.Exp(next), true
		case at < 0:
			low, below, above = next, at, above/2
		default:
			high, above, below = next, at, below/2
		}
	}
	return math.Exp(low + (high-low)/2), true
}
