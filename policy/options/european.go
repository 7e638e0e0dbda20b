package options

import "math"

// option is a request that was read and checked: spot, strike, years, rate, yield and volatility.
// With cash dividends, s is the spot less their present value. Only this part of the price is
// random; the dividends are certain (the escrowed model of Black 1975).
type option struct {
	call             bool
	s, k, t, r, q, v float64
	spot             float64 // as quoted; s is without the value of the dividends
	dividends        []dividend
}

// dividend is an amount per share that is paid t years from now.
type dividend struct{ t, amount float64 }

// later returns the value, at time t, of the dividends that are paid after t.
func (o option) later(t float64) (value float64) {
	for _, d := range o.dividends {
		if d.t > t {
			value += float64(d.amount * math.Exp(-o.r*(d.t-t)))
		}
	}
	return value
}

// escrowed returns the option with s set to the spot less the present value of the dividends.
func (o option) escrowed() option {
	o.s = o.spot - o.later(0)
	return o
}

// quoted converts theta and rho from s to the quoted spot, which includes the value of the
// dividends: that value grows with time at the rate, and falls as the rate rises.
func (o option) quoted(v valuation) valuation {
	for _, d := range o.dividends {
		value := float64(d.amount * math.Exp(-o.r*d.t))
		v.theta -= float64(v.delta * o.r * value)
		v.rho += float64(v.delta * d.t * value)
	}
	return v
}

// valuation is a price with its Greeks, before rounding.
type valuation struct {
	price, counterpart             float64
	d1, d2                         float64 // not defined if degenerate
	delta, gamma, vega, theta, rho float64
	probability                    float64 // of expiring in the money
	degenerate                     bool    // time or volatility is zero, or so small that d1 is not a usable number
}

// sign returns 1 for a call and -1 for a put.
func (o option) sign() float64 {
	if o.call {
		return 1
	}
	return -1
}

func (o option) intrinsic() float64 { return math.Max(float64(o.sign()*(o.spot-o.k)), 0) }

func (o option) forward() float64 { return float64(o.s * math.Exp((o.r-o.q)*o.t)) }

// legs returns the present values of the asset and of the strike at expiry.
func (o option) legs() (asset, cash float64) {
	return float64(o.s * math.Exp(-o.q*o.t)), float64(o.k * math.Exp(-o.r*o.t))
}

// european returns the value by the closed form. The conversions float64() prevent a processor
// from fusing products with additions, so that the result has the same bits everywhere.
func (o option) european() valuation {
	rootT := math.Sqrt(o.t)
	sd := float64(o.v * rootT)
	drift := float64((o.r - o.q) * o.t)
	d1 := (math.Log(o.s/o.k)+drift)/sd + sd/2
	if !(math.Abs(d1) <= maxD1) {
		return o.limit()
	}
	d2 := d1 - sd
	sign := o.sign()
	asset, cash := o.legs()
	density := math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi)
	nd1, nd2 := normal(sign*d1), normal(sign*d2)
	return valuation{
		price:       math.Max(sign*(float64(asset*nd1)-float64(cash*nd2)), 0),
		counterpart: math.Max(sign*(float64(cash*normal(-sign*d2))-float64(asset*normal(-sign*d1))), 0),
		d1:          d1, d2: d2,
		delta: sign * math.Exp(-o.q*o.t) * nd1,
		gamma: math.Exp(-o.q*o.t) * density / (o.s * sd),
		vega:  asset * density * rootT,
		theta: -float64(asset*density*o.v/(2*rootT)) -
			sign*(float64(o.r*cash*nd2)-float64(o.q*asset*nd1)),
		rho:         sign * o.t * cash * nd2,
		probability: nd2,
	}
}

// maxD1 is far beyond every argument for which the normal distribution, as a double, is not 0 or
// 1.
const maxD1 = 1 << 50

// limit returns the limit of the closed form for time or volatility near zero.
func (o option) limit() valuation {
	sign := o.sign()
	yield := math.Exp(-o.q * o.t)
	asset, cash := o.legs()
	ahead := sign * (o.forward() - o.k)
	v := valuation{
		price:       math.Max(sign*(asset-cash), 0),
		counterpart: math.Max(sign*(cash-asset), 0),
		degenerate:  true,
	}
	switch {
	case ahead > 0:
		v.probability, v.delta = 1, sign*yield
		v.rho = sign * o.t * cash
		if o.t > 0 {
			v.theta = sign * (float64(o.q*asset) - float64(o.r*cash))
		}
	case ahead == 0:
		v.probability, v.delta = 0.5, sign*yield/2
	}
	return v
}

// normal is the standard normal distribution function, accurate in both tails.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
