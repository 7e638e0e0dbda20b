package options

import "math"

// american returns the value of an American option. european is the value of the European option
// with the same terms, which is never higher.
//
// A binomial tree gives the price. Each Greek is that of the closed form plus the difference that
// early exercise makes in the tree. The error of the tree is nearly the same with and without
// early exercise, so it cancels in that difference.
func (o option) american(european valuation) valuation {
	// Early exercise is never better if it forgoes interest and gains no dividend. Then both
	// styles have the same value.
	if o.call && o.q <= 0 && o.r >= 0 && len(o.dividends) == 0 || !o.call && o.r <= 0 && o.q >= 0 {
		return european
	}
	v := european
	free, held, ok := o.tree()
	if european.degenerate || !ok {
		free.price = 0 // without a tree: the limit of the closed form, or immediate exercise
	}
	v.price = math.Max(free.price, math.Max(european.price, o.intrinsic()))
	switch {
	case v.price <= o.intrinsic() && o.intrinsic() > european.price:
		v.delta, v.gamma, v.vega, v.theta, v.rho = o.sign(), 0, 0, 0, 0
		return v
	case ok && !european.degenerate:
		v.delta += free.delta - held.delta
		v.gamma += free.gamma - held.gamma
		v.vega += o.slope(float64(volatilityBump*o.v), func(p *option, h float64) { p.v += h })
		v.rho += o.slope(rateBump, func(p *option, h float64) { p.r += h; *p = p.escrowed() })
		// Where waiting is better than exercising, theta follows from the Black-Scholes-Merton
		// equation.
		v.theta = float64(o.r*v.price) - float64((o.r-o.q)*o.s*v.delta) - float64(o.v*o.v*o.s*o.s*v.gamma/2)
		for _, d := range o.dividends { // theta for the quoted spot, which includes the dividends
			v.theta -= float64(v.delta * o.r * d.amount * math.Exp(-o.r*d.t))
		}
	}
	return v
}

// americanPrice returns only the price.
func (o option) americanPrice() float64 {
	european := o.european()
	if o.call && o.q <= 0 && o.r >= 0 && len(o.dividends) == 0 || !o.call && o.r <= 0 && o.q >= 0 {
		return european.price
	}
	price := math.Max(european.price, o.intrinsic())
	if free, _, ok := o.tree(); ok && !european.degenerate {
		price = math.Max(price, free.price)
	}
	return price
}

// slope returns the central difference of the early exercise premium when bump changes the option
// by h and by -h. It returns 0 if there is no tree.
func (o option) slope(h float64, bump func(*option, float64)) float64 {
	premium := func(h float64) (float64, bool) {
		p := o
		bump(&p, h)
		free, held, ok := p.tree()
		return math.Max(free.price, p.intrinsic()) - held.price, ok
	}
	up, okUp := premium(h)
	down, okDown := premium(-h)
	if !okUp || !okDown {
		return 0
	}
	return (up - down) / (2 * h)
}

// tree values an option on the Leisen-Reimer tree, with early exercise (free) and without (held):
// the price, and delta and gamma from the nodes of the first two steps. ok is false if a
// probability of the tree is not a number, because volatility or time is nearly zero.
//
// A call is valued as a put with spot and strike, and rate and yield, exchanged (McDonald and
// Schroder 1998). The value of a put is bounded by its strike, so nodes that overflow do no harm.
// With cash dividends this exchange is not possible; then the tree is that of the spot less the
// value of the dividends.
func (o option) tree() (free, held valuation, ok bool) {
	if o.call && len(o.dividends) == 0 {
		put := option{s: o.k, k: o.s, spot: o.k, t: o.t, r: o.q, q: o.r, v: o.v}
		free, held, ok = put.tree()
		return o.exchanged(free), o.exchanged(held), ok
	}
	const n = treeSteps
	t := o.lattice()
	if !t.usable() {
		return free, held, false
	}
	sign := o.sign()
	var with, without branch
	var spots [n + 1]float64
	for j := range spots {
		spots[j] = t.spot(n, j)
		with.values[j] = math.Max(sign*(spots[j]-o.k), 0)
	}
	without = with
	back := math.Exp(-t.logDown)
	for step := n - 1; step >= 0; step-- {
		fresh := step%refresh == 0
		later := o.later(o.t * float64(step) / n)
		for j := 0; j <= step; j++ {
			spots[j] = float64(spots[j] * back)
			if fresh {
				spots[j] = t.spot(step, j)
			}
			with.values[j] = math.Max(float64(t.down*with.values[j])+float64(t.up*with.values[j+1]), sign*(spots[j]+later-o.k))
			without.values[j] = float64(t.down*without.values[j]) + float64(t.up*without.values[j+1])
		}
		with.keep(step)
		without.keep(step)
	}
	free, held = with.valuation(t), without.valuation(t)
	return free, held, !math.IsNaN(free.price + free.delta + free.gamma + held.price + held.delta + held.gamma)
}

// exchanged converts the value of the exchanged put to that of the call. C(S,K) = P(K,S) is
// homogeneous of degree one, so Euler's theorem gives the derivatives by the call's spot from
// those by the put's spot.
func (o option) exchanged(put valuation) valuation {
	ratio := o.k / o.s
	return valuation{price: put.price, delta: (put.price - float64(o.k*put.delta)) / o.s, gamma: put.gamma * ratio * ratio}
}

// lattice contains the parameters of a tree: the discounted probabilities of an up step and a down
// step, and what each adds to the logarithm of the spot.
type lattice struct {
	s, up, down, logUp, logDown float64
}

func (o option) lattice() lattice {
	dt := o.t / treeSteps
	sd := float64(o.v * math.Sqrt(o.t))
	drift := float64((o.r - o.q) * o.t)
	d1 := (math.Log(o.s/o.k)+drift)/sd + sd/2
	up, down := peizerPratt(d1 - sd)
	upAsset, downAsset := peizerPratt(d1)
	discount := math.Exp(-o.r * dt)
	return lattice{
		s: o.s, up: up * discount, down: down * discount,
		logUp: drift/treeSteps + math.Log(upAsset/up), logDown: drift/treeSteps + math.Log(downAsset/down),
	}
}

// usable reports whether the steps are finite numbers.
func (t lattice) usable() bool {
	sum := t.logUp + t.logDown
	return !math.IsNaN(sum) && !math.IsInf(t.logUp, 0) && !math.IsInf(t.logDown, 0)
}

// spot returns the price of the underlying after a number of steps, of which ups are up.
func (t lattice) spot(steps, ups int) float64 {
	return float64(t.s * math.Exp(float64(float64(ups)*t.logUp)+float64(float64(steps-ups)*t.logDown)))
}

// branch is one backward pass through the tree. It keeps the values at the nodes of steps 1 and 2.
type branch struct {
	values        [treeSteps + 1]float64
	first, second [3]float64
}

func (b *branch) keep(step int) {
	switch step {
	case 2:
		copy(b.second[:], b.values[:3])
	case 1:
		copy(b.first[:], b.values[:2])
	}
}

func (b *branch) valuation(t lattice) valuation {
	low, middle, high := t.spot(2, 0), t.spot(2, 1), t.spot(2, 2)
	upper := (b.second[2] - b.second[1]) / (high - middle)
	lower := (b.second[1] - b.second[0]) / (middle - low)
	return valuation{
		price: b.values[0],
		delta: (b.first[1] - b.first[0]) / (t.spot(1, 1) - t.spot(1, 0)),
		gamma: (upper - lower) / ((high - low) / 2),
	}
}

// peizerPratt is the second inversion of Peizer and Pratt. It returns the probability of an up
// step with which a binomial distribution of treeSteps steps ends above its middle with
// probability N(z), and the probability of a down step. Both have full accuracy.
func peizerPratt(z float64) (up, down float64) {
	const n = treeSteps
	x := z / (n + 1.0/3 + 0.1/(n+1))
	e := math.Exp(-x * x * (n + 1.0/6))
	small := e / (2 * (1 + math.Sqrt(1-e))) // equals (1-sqrt(1-e))/2, without cancellation
	if z < 0 {
		return small, 1 - small
	}
	return 1 - small, small
}
