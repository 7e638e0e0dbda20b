package amounts

import (
	"math/big"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// The engine does not compute amounts such as (1n << 256n) - 1n, ~0n, or 0x and 64 times "f". An
// expression with the form of a largest number counts as one, because a text that hides an amount
// may hide any.

// buildsLargest are parts of expressions that compute the largest number of a type.
var buildsLargest = []string{"<<", "~", "**256", "**255", "**128", "**96", "**64", "2^256", "repeat(", "padstart(", "padend(", "ljust(", "rjust(", ".fill(", "'f'*", `"f"*`, "pow(2", "max_safe_integer", "max_value", "maxint", "max_int", "sys.maxsize", "iinfo", "u64::max", "u128::max", "u256::max", "maxu256", "maxu64", "0xffffffffffff"}

// looksLargest reports whether an amount that cannot be computed contains a part in buildsLargest.
func looksLargest(text string) bool {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "2n**", "2**"), "n)", ")")
	return scan.HasAny(text, buildsLargest...)
}

// isTypeMaximum reports whether a value is 2^n - 1 for n of at least 63.
func isTypeMaximum(value *big.Rat) bool {
	if value == nil || !value.IsInt() || value.Num().BitLen() < 63 {
		return false
	}
	n := new(big.Int).Add(value.Num(), big.NewInt(1))
	return n.TrailingZeroBits() == uint(n.BitLen()-1)
}
