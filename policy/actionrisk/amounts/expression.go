package amounts

import (
	"math/big"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Amounts that a text computes: 5n * 10n ** 6n, (1n << 256n) - 1n, ~0n, 0x + "f" 64
// times. What cannot be computed here but is built the way that largest numbers are
// is taken for one: whoever hides an amount is not taken at his word.

// exprReader evaluates an arithmetic expression of whole numbers and decimals.
type exprReader struct {
	text string
	pos  int
	left int // steps that remain
	bad  bool
}

// evaluate is the value of an arithmetic expression, nil if it is none.
func evaluate(text string) *big.Rat {
	r := exprReader{text: strings.ToLower(text), left: 64}
	v := r.binary(0)
	if r.space(); r.bad || r.pos != len(r.text) {
		return nil
	}
	return v
}

// exprLevels are the operators from the loosest to the tightest.
var exprLevels = [][]string{{"|"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "//", "/", "%"}}

func (r *exprReader) space() {
	for r.pos < len(r.text) && (r.text[r.pos] == ' ' || r.text[r.pos] == '\n') {
		r.pos++
	}
}

// operator reads one of the operators; "*" is none where "**" stands.
func (r *exprReader) operator(list []string) string {
	r.space()
	rest := r.text[r.pos:]
	for _, op := range list {
		if strings.HasPrefix(rest, op) && !(op == "*" && strings.HasPrefix(rest, "**")) {
			r.pos += len(op)
			return op
		}
	}
	return ""
}

func (r *exprReader) binary(level int) *big.Rat {
	if r.left--; r.left < 0 {
		r.bad = true
	}
	if r.bad {
		return nil
	}
	if level == len(exprLevels) {
		return r.power()
	}
	left := r.binary(level + 1)
	for !r.bad && left != nil {
		op := r.operator(exprLevels[level])
		if op == "" {
			break
		}
		left = r.apply(op, left, r.binary(level+1))
	}
	return left
}

func (r *exprReader) power() *big.Rat {
	base := r.unary()
	if r.operator([]string{"**", "^"}) == "" || base == nil {
		return base
	}
	exp := r.power()
	if exp == nil {
		r.bad = true
		return nil
	}
	if v := power(base, exp); v != nil {
		return v
	}
	r.bad = true
	return nil
}

func (r *exprReader) unary() *big.Rat {
	if r.left--; r.left < 0 {
		r.bad = true
		return nil
	}
	switch r.operator([]string{"~", "-", "+", "("}) {
	case "~": // of the 256 bits that a contract takes
		if v := r.unary(); v != nil && v.IsInt() && v.Sign() >= 0 && v.Num().BitLen() <= 256 {
			all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
			return new(big.Rat).SetInt(all.Sub(all, v.Num()))
		}
	case "-":
		if v := r.unary(); v != nil {
			return v.Neg(v)
		}
	case "+":
		return r.unary()
	case "(":
		v := r.binary(0)
		if r.operator([]string{")"}) != "" {
			return v
		}
	default:
		return r.number()
	}
	r.bad = true
	return nil
}

// numberCalls only change the type of their argument.
var numberCalls = []string{"bigint(", "number(", "int(", "uint256(", "decimal(", "bignumber.from("}

func (r *exprReader) number() *big.Rat {
	r.space()
	for _, call := range numberCalls {
		if strings.HasPrefix(r.text[r.pos:], call) {
			r.pos += len(call) - 1
			return r.unary()
		}
	}
	from := r.pos
	for r.pos < len(r.text) && (scan.IsNameByte(r.text[r.pos]) || r.text[r.pos] == '.' || r.text[r.pos] == '\'' || r.text[r.pos] == '"') {
		r.pos++
	}
	v := ParseNumber(r.text[from:r.pos])
	r.bad = r.bad || v == nil
	return v
}

func (r *exprReader) apply(op string, a, b *big.Rat) *big.Rat {
	r.bad = r.bad || b == nil
	if r.bad {
		return nil
	}
	switch op {
	case "+":
		return a.Add(a, b)
	case "-":
		return a.Sub(a, b)
	case "*":
		return a.Mul(a, b)
	case "/", "//":
		if b.Sign() != 0 {
			return a.Quo(a, b)
		}
	default:
		if v := bitwise(op, a, b); v != nil {
			return v
		}
	}
	r.bad = true
	return nil
}

// bitwise applies an operator of whole numbers.
func bitwise(op string, a, b *big.Rat) *big.Rat {
	if !a.IsInt() || !b.IsInt() || a.Num().BitLen() > 512 || b.Sign() < 0 {
		return nil
	}
	x, y, out := a.Num(), b.Num(), new(big.Int)
	switch op {
	case "&":
		out.And(x, y)
	case "|":
		out.Or(x, y)
	case "%":
		if y.Sign() == 0 {
			return nil
		}
		out.Mod(x, y)
	case "<<", ">>":
		if y.BitLen() > 10 {
			return nil
		}
		if out.Lsh(x, uint(y.Int64())); op == ">>" {
			out.Rsh(x, uint(y.Int64()))
		}
	default:
		return nil
	}
	return new(big.Rat).SetInt(out)
}

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
