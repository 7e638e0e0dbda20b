// Package money is shared by the finance services: amounts that are exact to the cent, calendar
// days, the form of computed numbers, and range checks.
//
// An amount is an integer number of cents. In JSON it is a number with at most two fraction
// digits, printed exactly: 56692 cents are 566.92. Products with a rate are computed with the
// exact decimal that the caller wrote (0.0649 is 649/10000, not the nearest double) and rounded
// once, half to even: 0.125 becomes 0.12 and 0.135 becomes 0.14.
package money

import (
	"math"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Cents is an amount of money in hundredths of the currency unit.
type Cents int64

// FromNumber converts a JSON number to an amount. It returns false for more than two decimals
// and beyond MaxCents.
func FromNumber(x float64) (Cents, bool) {
	if !(math.Abs(x) <= float64(MaxCents)/100) {
		return 0, false
	}
	r := Exact(x)
	r.Mul(r, big.NewRat(100, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	c := Cents(r.Num().Int64())
	return c, c <= MaxCents && c >= -MaxCents
}

// Exact returns the decimal that the shortest form of x shows, as a fraction. x must be finite.
func Exact(x float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(x, 'e', -1, 64))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// Round returns r currency units in cents, rounded half to even. The result is Overflow (with
// the sign of r) if it would not be below Overflow.
func Round(r *big.Rat) Cents { return Cents(100).Times(r) }

// Times returns c*r, rounded half to even. The result is Overflow (with the sign of the
// product) if it would not be below Overflow.
func (c Cents) Times(r *big.Rat) Cents {
	n := new(big.Int).Mul(big.NewInt(int64(c)), r.Num())
	return ratio(n, r.Denom())
}

// ratio divides n by d > 0 and rounds half to even.
func ratio(n, d *big.Int) Cents {
	q, rest := new(big.Int).DivMod(n, d, new(big.Int)) // floor: rest >= 0
	switch rest.Lsh(rest, 1).Cmp(d) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, big.NewInt(int64(q.Bit(0))))
	}
	switch {
	case q.CmpAbs(big.NewInt(int64(Overflow))) < 0:
		return Cents(q.Int64())
	case q.Sign() < 0:
		return -Overflow
	}
	return Overflow
}

// Plus adds two amounts. Their magnitude may be up to Overflow, and the sum is limited to
// Overflow.
func (c Cents) Plus(d Cents) Cents { return max(-Overflow, min(Overflow, c+d)) }

// Float returns the amount in currency units, as the nearest double.
func (c Cents) Float() float64 { return float64(c) / 100 }

// Reportable reports whether the amount can be printed exactly.
func (c Cents) Reportable() bool { return c <= MaxCents && c >= -MaxCents }

// String returns the JSON form: no exponent, at most two fraction digits.
func (c Cents) String() string {
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	text := sign + strconv.FormatUint(n/100, 10)
	if rest := n % 100; rest%10 != 0 {
		text += "." + strconv.FormatUint(rest/10, 10) + strconv.FormatUint(rest%10, 10)
	} else if rest != 0 {
		text += "." + strconv.FormatUint(rest/10, 10)
	}
	return text
}

// MarshalJSONTo writes the amount as a JSON number.
func (c Cents) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(c.String()))
}

// JSONSchemaAlias gives an amount the schema of a number.
func (Cents) JSONSchemaAlias() any { return float64(0) }

// Number returns a computed number in the form of answers: 12 significant digits. It returns
// nil (null) for a number that is not finite or beyond MaxNumber, which canonical JSON cannot
// represent exactly.
func Number(x float64) *float64 {
	if !(math.Abs(x) <= MaxNumber) {
		return nil
	}
	x = policy.Sig12(x)
	return &x
}

// Report collects the computed numbers of an answer that cannot express them as null. The zero
// value is ready to use.
type Report struct{ beyond bool }

// Number returns x with 12 significant digits. If x cannot be represented, Err returns an
// error.
func (r *Report) Number(x float64) float64 {
	if n := Number(x); n != nil {
		return *n
	}
	r.beyond = true
	return 0
}

// Err refuses the request if one of its numbers cannot be represented.
func (r *Report) Err() error {
	if r.beyond {
		return policy.Refuse("out_of_range", "", "the result has numbers beyond 9007199254740991")
	}
	return nil
}
