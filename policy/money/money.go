// Package money is shared by the finance services. It has amounts that are exact to the cent,
// calendar days, the form of computed numbers, and range checks.
//
// An amount is an integer number of cents. In JSON it is a number with at most two fraction
// digits, written exactly: 56692 cents are 566.92. A product with a rate is computed with the
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

// FromNumber converts a JSON number to an amount. ok is false for a number with more than two
// decimals, and beyond MaxCents.
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

// Exact returns the shortest decimal that parses to x, as a fraction: the number that the caller
// wrote. x must be finite.
func Exact(x float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(x, 'e', -1, 64))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// Round converts r currency units to cents, rounded half to even. If the result would reach
// Overflow, it is Overflow with the sign of r.
func Round(r *big.Rat) Cents { return Cents(100).Times(r) }

// Times returns c*r, rounded half to even. If the result would reach Overflow, it is Overflow with
// the sign of the product.
func (c Cents) Times(r *big.Rat) Cents {
	n := new(big.Int).Mul(big.NewInt(int64(c)), r.Num())
	return ratio(n, r.Denom())
}

// ratio returns n/d rounded half to even. d must be positive.
func ratio(n, d *big.Int) Cents {
	q, rest := new(big.Int).DivMod(n, d, new(big.Int)) // rounds down, so rest >= 0
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

// Plus adds two amounts. Each may have a magnitude of up to Overflow, and the result is limited to
// that magnitude.
func (c Cents) Plus(d Cents) Cents { return max(-Overflow, min(Overflow, c+d)) }

// Float returns the amount in currency units, as the nearest double.
func (c Cents) Float() float64 { return float64(c) / 100 }

// Reportable reports whether an answer can contain the amount exactly.
func (c Cents) Reportable() bool { return c <= MaxCents && c >= -MaxCents }

// String returns the JSON form: no exponent, and at most two fraction digits.
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

// MarshalJSONTo writes the amount in currency units as a JSON number.
func (c Cents) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(c.String()))
}

// JSONSchemaAlias gives an amount the schema of a number.
func (Cents) JSONSchemaAlias() any { return float64(0) }

// Number rounds a computed number to 12 significant digits, as answers contain it. It returns nil,
// which becomes null, for a number that is not finite or is beyond MaxNumber.
func Number(x float64) *float64 {
	if !(math.Abs(x) <= MaxNumber) {
		return nil
	}
	x = policy.Sig12(x)
	return &x
}

// Report rounds the computed numbers of an answer that cannot contain null. The zero value is
// ready to use.
type Report struct{ beyond bool }

// Number returns x rounded to 12 significant digits. If an answer cannot contain x, it returns 0,
// and Err returns an error.
func (r *Report) Number(x float64) float64 {
	if n := Number(x); n != nil {
		return *n
	}
	r.beyond = true
	return 0
}

// Err returns an error if Number was called with a number that an answer cannot contain.
func (r *Report) Err() error {
	if r.beyond {
		return policy.Refuse("out_of_range", "", "the result has numbers beyond 9007199254740991")
	}
	return nil
}
