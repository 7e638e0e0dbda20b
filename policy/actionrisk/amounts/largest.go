package amounts

import (
	"math/big"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Amounts that a text computes are not computed here: (1n << 256n) - 1n, ~0n, 0x + "f" 64
// times. An expression that has the form of a largest number counts as one, because a text
// that hides an amount may hide any.

// buildsLargest are the ways in which texts build the largest number of a type.
var buildsLargest = []string{"<<", "~", "**256", "**255", "**128", "**96", "**64", "2^256", "repeat(", "padstart(", "padend(", "ljust(", "rjust(", ".fill(", "'f'*", `"f"*`, "pow(2", "max_safe_integer", "max_value", "maxint", "max_int", "sys.maxsize", "iinfo", "u64::max", "u128::max", "u256::max", "maxu256", "maxu64", "0xffffffffffff"}

// looksLargest: an amount that cannot be computed here is built like a largest one.
func looksLargest(text string) bool {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "2n**", "2**"), "n)", ")")
	return scan.HasAny(text, buildsLargest...)
}

// isTypeMaximum: all bits of a type are set that is at least 63 bits wide.
func isTypeMaximum(value *big.Rat) bool {
	if value == nil || !value.IsInt() || value.Num().BitLen() < 63 {
		return false
	}
	n := new(big.Int).Add(value.Num(), big.NewInt(1))
	return n.TrailingZeroBits() == uint(n.BitLen()-1)
}
