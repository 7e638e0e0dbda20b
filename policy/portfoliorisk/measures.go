package portfoliorisk

import (
	"math"
	"math/big"
	"slices"

	"github.com/countersign/countersign/policy/money"
)

// measures contains statistics of the portfolio's returns. A statistic that is not defined is NaN.
type measures struct {
	volatility, sharpe, sortino, drawdown, calmar, annualized  float64
	valueAtRisk, shortfall, beta, omega, tracking, information float64
}

func (p *portfolio) measure() measures {
	r := p.returns
	root := math.Sqrt(p.perYear)
	deviation := math.Sqrt(covariance(r, r))
	excess := mean(r) - p.riskFree
	m := measures{volatility: deviation * root, sharpe: math.NaN(), sortino: math.NaN(), calmar: math.NaN(), beta: math.NaN(), omega: p.omega(), tracking: math.NaN(), information: math.NaN()}
	if deviation >= noDeviation {
		m.sharpe = float64(excess / deviation * root)
	}
	if below := p.downside(); below > 0 {
		m.sortino = excess * p.perYear / (below * root)
	}
	m.drawdown, m.annualized = drawdown(r), p.annualized()
	if m.drawdown > 0 {
		m.calmar = m.annualized / m.drawdown
	}
	quantile := quantile(r, p.confidence)
	var tail money.Compensated
	n := 0
	for _, x := range r {
		if x <= quantile {
			tail.Add(x)
			n++
		}
	}
	m.valueAtRisk = -quantile
	m.shortfall = -tail.Float() / float64(n)
	if p.benchmark != nil {
		if v := covariance(p.benchmark, p.benchmark); math.Sqrt(v) >= noDeviation {
			m.beta = covariance(r, p.benchmark) / v
		}
		active := make([]float64, len(r))
		for i := range r {
			active[i] = r[i] - p.benchmark[i]
		}
		spread := math.Sqrt(covariance(active, active))
		m.tracking = spread * root
		if spread >= noDeviation {
			m.information = float64(mean(active) / spread * root)
		}
	}
	return m
}

// downside returns the downside deviation: the root of the mean squared shortfall below the
// risk-free rate.
func (p *portfolio) downside() float64 {
	var squares money.Compensated
	for _, x := range p.returns {
		if below := math.Min(x-p.riskFree, 0); below < 0 {
			squares.Add(float64(below * below))
		}
	}
	return math.Sqrt(squares.Float() / float64(len(p.returns)))
}

// omega returns the sum of the gains above the risk-free rate divided by the sum of the shortfalls
// below it.
func (p *portfolio) omega() float64 {
	var above, below money.Compensated
	for _, x := range p.returns {
		if excess := x - p.riskFree; excess > 0 {
			above.Add(excess)
		} else {
			below.Add(-excess)
		}
	}
	if below.Float() <= 0 {
		return math.NaN()
	}
	return above.Float() / below.Float()
}

// drawdown returns the largest relative loss from a peak; the start counts as a peak. It tracks
// wealth divided by its peak, which cannot overflow.
func drawdown(r []float64) float64 {
	worst, level := 0.0, 1.0
	for _, x := range r {
		level = math.Min(level*(1+x), 1)
		worst = math.Max(worst, 1-level)
	}
	return worst
}

// annualized returns the compound annual return, or NaN if the wealth ends below zero.
func (p *portfolio) annualized() float64 {
	var logs money.Compensated
	sign := 1.0
	for _, x := range p.returns {
		switch {
		case x == -1:
			return -1
		case x < -1:
			sign = -sign
		}
		logs.Add(math.Log(math.Abs(1 + x)))
	}
	if sign < 0 {
		return math.NaN()
	}
	return math.Expm1(logs.Float() * p.perYear / float64(len(p.returns)))
}

func mean(x []float64) float64 {
	var sum money.Compensated
	for _, v := range x {
		sum.Add(v)
	}
	return sum.Float() / float64(len(x))
}

// covariance returns the sample covariance (divisor n-1).
func covariance(a, b []float64) float64 {
	ma, mb := mean(a), mean(b)
	var sum money.Compensated
	for i := range a {
		sum.Add(float64((a[i] - ma) * (b[i] - mb)))
	}
	return sum.Float() / float64(len(a)-1)
}

// quantile returns the (1-confidence)-quantile of type 7 of Hyndman and Fan, as in R, NumPy and
// spreadsheets (PERCENTILE.INC): linear between the order statistics at (n-1)*(1-confidence). It
// computes this position as an exact fraction, so that a quantile at an observation is exactly
// that observation.
func quantile(x []float64, confidence float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	at := new(big.Rat).Sub(big.NewRat(1, 1), money.Exact(confidence))
	at.Mul(at, big.NewRat(int64(len(sorted)-1), 1))
	whole := new(big.Int).Quo(at.Num(), at.Denom())
	part, _ := at.Sub(at, new(big.Rat).SetInt(whole)).Float64()
	i := int(whole.Int64())
	if part == 0 {
		return sorted[i]
	}
	return sorted[i] + float64(part*(sorted[i+1]-sorted[i]))
}
