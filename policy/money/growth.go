package money

import (
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Growth factors are computed in decimal, so that they are the same on every machine and exact
// if the exact value has fewer digits than are kept. So a product that ends in half a cent is
// rounded to even, and not by the error of a double.
const (
	workDigits = 60 // digits of each step
	keptDigits = 50 // digits of a factor; the digits that are cut are rounding errors of its steps
)

var (
	work = apd.BaseContext.WithPrecision(workDigits)
	kept = apd.BaseContext.WithPrecision(keptDigits)
	one  = apd.New(1, 0)
)

// Growth returns what compound growth adds to 1: (1+rate)^periods - 1, for rate >= 0 and 0 <=
// periods <= 1e6, exact to about 48 digits after the first.
func Growth(rate, periods *big.Rat) *big.Rat {
	base := onePlus(rate)
	whole := new(big.Int).Quo(periods.Num(), periods.Denom())
	factor := power(base, int(whole.Int64()))
	if rest := new(big.Rat).Sub(periods, new(big.Rat).SetInt(whole)); rest.Sign() > 0 {
		factor = times(factor, fraction(base, rest))
	}
	return added(factor)
}

// Yearly computes growth at an annual rate over days, ACT/365 Fixed. Complete years of 365 days
// are integer powers. Use NewYearly.
type Yearly struct{ base, daily *apd.Decimal }

// NewYearly prepares growth at rate >= 0.
func NewYearly(rate *big.Rat) Yearly {
	base := onePlus(rate)
	return Yearly{base, fraction(base, big.NewRat(1, 365))}
}

// Growth returns (1+rate)^(days/365) - 1 for days >= 0.
func (y Yearly) Growth(days int) *big.Rat {
	factor := power(y.base, days/365)
	if rest := days % 365; rest > 0 {
		factor = times(factor, power(y.daily, rest))
	}
	return added(factor)
}

func onePlus(rate *big.Rat) *apd.Decimal {
	d := new(apd.Decimal)
	ignore(work.Quo(d, decimal(rate.Num()), decimal(rate.Denom())))
	ignore(work.Add(d, d, one))
	return d
}

func decimal(n *big.Int) *apd.Decimal {
	return apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(n), 0)
}

func times(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	ignore(work.Mul(d, a, b))
	return d
}

// power returns base^n by squaring.
func power(base *apd.Decimal, n int) *apd.Decimal {
	result, square := new(apd.Decimal).Set(one), base
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = times(result, square)
		}
		if n > 1 {
			square = times(square, square)
		}
	}
	return result
}

// fraction returns base^part for base >= 1 and 0 < part < 1.
func fraction(base *apd.Decimal, part *big.Rat) *apd.Decimal {
	exponent, d := new(apd.Decimal), new(apd.Decimal)
	ignore(work.Quo(exponent, decimal(part.Num()), decimal(part.Denom())))
	ignore(work.Pow(d, base, exponent))
	return d
}

// added returns the factor less 1, as a fraction.
func added(factor *apd.Decimal) *big.Rat {
	d := new(apd.Decimal)
	ignore(kept.Round(d, factor))
	r := new(big.Rat).SetInt(d.Coeff.MathBigInt())
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(d.Exponent, -d.Exponent))), nil))
	if d.Exponent < 0 {
		r.Quo(r, scale)
	} else {
		r.Mul(r, scale)
	}
	return r.Sub(r, big.NewRat(1, 1))
}

// ignore drops the conditions that apd reports: the operands here are positive and of moderate
// size, so only rounding can occur.
func ignore(apd.Condition, error) {}
