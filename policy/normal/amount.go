package normal

import (
	"math/big"
	"strconv"
	"strings"
)

var (
	decimalForm = Pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	maxUnits    = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
)

// UnitsAllowed is the end of an error message: it states which texts Units accepts.
const UnitsAllowed = "must be a whole number in decimal digits without leading zeros, at most 2^256-1"

// Units parses an amount in a token's smallest units: decimal digits without sign or leading
// zeros, at most 2^256-1.
func Units(text string) (*big.Int, error) {
	if len(text) > MaxUnits || !isWhole(text) {
		return nil, ErrAmount
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Cmp(maxUnits) > 0 {
		return nil, ErrAmount
	}
	return n, nil
}

// isWhole reports whether a text is a whole number without sign or leading zero.
func isWhole(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != "" && (text[0] != '0' || len(text) == 1)
}

// Scale returns units / 10^decimals exactly. decimals must be 0 to 36.
func Scale(units *big.Int, decimals int) *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	return new(big.Rat).SetFrac(units, power)
}

// Decimal returns the exact value of a JSON number literal. It returns ErrAmount for a literal of
// more than MaxDecimal characters, and for an exponent beyond MaxExponent, whose value would need
// much memory.
func Decimal(literal string) (*big.Rat, error) {
	if len(literal) > MaxDecimal || !decimalForm(literal) {
		return nil, ErrAmount
	}
	if e := strings.IndexAny(literal, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(literal[e+1:])
		if err != nil || exponent > MaxExponent || exponent < -MaxExponent {
			return nil, ErrAmount
		}
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return nil, ErrAmount
	}
	return r, nil
}

// Float returns the exact value of the shortest decimal that parses to f. This is the number that
// the caller wrote (if it had at most 15 digits), not the nearest binary fraction. f must be
// finite.
func Float(f float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// DecimalString returns the decimal form of a rational number, without exponent and trailing
// zeros: 5/2 is "2.5". It returns ErrAmount for a number without a finite decimal form, such as
// 1/3.
func DecimalString(r *big.Rat) (string, error) {
	digits, exact := r.FloatPrec()
	if !exact {
		return "", ErrAmount
	}
	return r.FloatString(digits), nil
}
