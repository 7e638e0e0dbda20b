package money

import (
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Growth factors are computed with decimals, so that they are the same on every machine, and exact
// if the exact value has at most keptDigits digits. A product that ends in exactly half a cent is
// then rounded to even, and does not depend on the rounding error of a double.
const (
	workDigits = 60 // digits of each intermediate result
	keptDigits = 50 // digits of a factor; the digits after them may contain rounding errors
)

var (
	work = apd.BaseContext.WithPrecision(workDigits)
	kept = apd.BaseContext.WithPrecision(keptDigits)
	one  = apd.New(1, 0)
)

// Growth returns compound growth without the principal: (1+rate)^periods - 1. rate must be at
// least 0, and periods from 0 to 1e6. About 48 digits are correct.
func Growth(rate, periods *big.Rat) *big.Rat {
	base := onePlus(rate)
	whole := new(big.Int).Quo(periods.Num(), periods.Denom())
	factor := power(base, int(whole.Int64()))
	if rest := new(big.Rat).Sub(periods, new(big.Rat).SetInt(whole)); rest.Sign() > 0 {
		factor = times(factor, fraction(base, rest))
	}
	return added(factor)
}

// Yearly computes growth at an annual rate over a number of days (ACT/365 Fixed). It computes
// complete years of 365 days as integer powers. Make one with NewYearly.
type Yearly struct{ base, daily *apd.Decimal }

// NewYearly prepares growth at an annual rate of at least 0.
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

// power returns base^n by repeated squaring.
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

// added returns factor - 1 as a fraction, with the factor rounded to keptDigits.
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

// ignore drops the conditions and errors of apd. The operands here are positive and of moderate
// size, so only rounding can occur.
func ignore(apd.Condition, error) {}
