// Package amounts parses amounts of money, calls of contracts, and payments, and selects their
// rules in the wallet and x402 tables. Units come from a fixed table, never from a price; numbers
// are exact.
package amounts

import (
	"math/big"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// asset is a row of amounts.json.
type asset struct {
	Symbol    string   `json:"symbol"`
	Names     []string `json:"names"`
	Pegged    bool     `json:"pegged,omitempty"` // one unit is one US dollar
	Decimals  int      `json:"decimals"`
	Large     string   `json:"large"` // RatOf parses a number from a table. It panics if the number is invalid.
	Contracts []string `json:"contracts,omitempty"`

	large *big.Rat
}

// amountTable is amounts.json. Its thresholds are fixed; it has no prices.
type amountTable struct {
	Assets []asset `json:"assets"`
	Units  []struct {
		Name  string `json:"name"`
		Asset string `json:"asset"`
		Scale int    `json:"scale"`
	} `json:"units"`
	Others     []string `json:"others"`
	OtherLarge string   `json:"otherLarge"`
	Plain      []string `json:"plain"` // names of assets that are also everyday words
	Pay        struct {
		Small  string `json:"small"`
		Medium string `json:"medium"`
		Large  string `json:"large"`
	} `json:"pay"`

	byName, byContract   map[string]*asset
	unit                 map[string]unit
	other                *asset
	small, medium, large *big.Rat
}

type unit struct {
	asset *asset
	scale int
}

var amounts = sync.OnceValue(func() *amountTable {
	t := &amountTable{byName: map[string]*asset{}, byContract: map[string]*asset{}, unit: map[string]unit{}}
	if err := rules.DecodeTable("amounts", t); err != nil {
		panic("actionrisk: " + err.Error())
	}
	t.other = &asset{Symbol: "token", Decimals: 18, large: RatOf(t.OtherLarge)}
	for i := range t.Assets {
		a := &t.Assets[i]
		a.large = RatOf(a.Large)
		for _, n := range a.Names {
			t.byName[n] = a
		}
		for _, c := range a.Contracts {
			t.byContract[strings.ToLower(c)] = a
		}
	}
	for _, u := range t.Units {
		for i := range t.Assets {
			if t.Assets[i].Symbol == u.Asset {
				t.unit[u.Name] = unit{&t.Assets[i], u.Scale}
			}
		}
	}
	for _, n := range t.Others {
		t.byName[n] = t.other
	}
	t.small, t.medium, t.large = RatOf(t.Pay.Small), RatOf(t.Pay.Medium), RatOf(t.Pay.Large)
	return t
})

// RatOf parses a number of the tables. It panics if the number is invalid.
func RatOf(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("actionrisk: invalid amount " + s)
	}
	return r
}

// Amount is the amount of a transfer or payment, as far as the text states it.
type Amount struct {
	Value     *big.Rat // nil if unknown
	Asset     *asset   // nil if unknown
	Unlimited bool     // the value is the largest possible one, or the text has a word for it
	All       bool     // the whole balance
}

// maxExponent is the largest exponent in 1e78 or 10**78: a uint256 has 78 digits.
const maxExponent = 78

// ParseNumber parses a number with separators, an exponent or a suffix: 1,000.50 1_000 1e18 1000e6
// 10**18 2.5k 0xffff 5n. It returns nil for other texts.
func ParseNumber(s string) *big.Rat {
	if len(s) > scan.MaxNumber {
		return nil
	}
	s = strings.TrimPrefix(strings.ToLower(strings.Trim(s, `"'`)), "+")
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		n, ok := new(big.Int).SetString(hex, 16)
		if !ok || len(hex) > 64 || len(hex) == 40 {
			return nil
		}
		return new(big.Rat).SetInt(n)
	}
	s = strings.NewReplacer(",", "", "_", "", " ", "").Replace(strings.TrimSuffix(s, "n"))
	if base, exp, ok := strings.Cut(s, "**"); ok {
		mul, tail, times := strings.Cut(base, "*") // for example 1000*10**6
		if !times {
			mul, tail = "1", base
		}
		m, b, e := ParseNumber(mul), ParseNumber(tail), ParseNumber(exp)
		if m == nil || b == nil || e == nil {
			return nil
		}
		return product(m, power(b, e))
	}
	if a, b, ok := strings.Cut(s, "*"); ok {
		return product(ParseNumber(a), ParseNumber(b))
	}
	return decimal(s)
}

// product returns a*b, or nil if one of them is nil.
func product(a, b *big.Rat) *big.Rat {
	if a == nil || b == nil {
		return nil
	}
	return new(big.Rat).Mul(a, b)
}

// scales are the suffixes that multiply a number.
var scales = map[byte]int64{'k': 1_000, 'm': 1_000_000, 'b': 1_000_000_000}

// decimal parses a decimal number with an exponent or a suffix of one letter.
func decimal(s string) *big.Rat {
	scale := int64(1)
	if n := len(s); n > 1 && scales[s[n-1]] > 0 {
		scale, s = scales[s[n-1]], s[:n-1]
	}
	if s == "" || len(s) > 100 || strings.Trim(s, "0123456789.e-+") != "" {
		return nil
	}
	if mantissa, exp, ok := strings.Cut(s, "e"); ok && (mantissa == "" || badExponent(exp)) {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r.Mul(r, new(big.Rat).SetInt64(scale))
}

// badExponent reports whether an exponent is invalid or gives a number with too many digits.
func badExponent(exp string) bool {
	n := 0
	for _, c := range strings.TrimLeft(exp, "+-") {
		n = n*10 + int(c-'0')
	}
	return len(exp) > 3 || strings.TrimLeft(exp, "+-0123456789") != "" || n > maxExponent
}

func power(base, exp *big.Rat) *big.Rat {
	if !base.IsInt() || !exp.IsInt() || exp.Num().BitLen() > 9 || exp.Sign() < 0 || exp.Num().Int64() > 256 || base.Num().BitLen() > 64 {
		return nil
	}
	return new(big.Rat).SetInt(new(big.Int).Exp(base.Num(), exp.Num(), nil))
}

// Scaled converts base units to units of an asset with this number of decimals.
func Scaled(value *big.Rat, decimals int) *big.Rat {
	return new(big.Rat).Quo(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
}

// AssetOf returns the asset that has this name or contract address, or nil.
func AssetOf(name string) *asset {
	t := amounts()
	name = strings.ToLower(strings.Trim(name, ".,;:()\"'"))
	if a := t.byName[name]; a != nil {
		return a
	}
	return t.byContract[name]
}

// IsLarge reports whether the amount reaches the asset's threshold for large transfers.
func (a Amount) IsLarge() bool {
	if a.Unlimited || a.All {
		return true
	}
	if a.Value == nil {
		return false
	}
	as := a.Asset
	if as == nil {
		as = amounts().other
	}
	return a.Value.Cmp(as.large) >= 0
}

// TransferRule returns the rule for a transfer of this amount.
func (a Amount) TransferRule() string {
	switch {
	case a.All:
		return act.Drains
	case a.IsLarge():
		return act.TransfersMuch
	}
	return act.Transfers
}

// PayRule returns the rule for an x402 payment of this amount. complete means that the network and
// the recipient are stated.
func (a Amount) PayRule(complete bool) string {
	t := amounts()
	switch {
	case a.Unlimited:
		return act.PaysAny
	case a.All:
		return act.PaysVeryLarge
	case a.Value == nil:
		return act.PaysUnknown
	case a.Asset == nil || !a.Asset.Pegged:
		if a.IsLarge() {
			return act.PaysVeryLarge
		}
		return act.PaysUnknown
	case a.Value.Cmp(t.large) > 0:
		return act.PaysVeryLarge
	case a.Value.Cmp(t.medium) > 0:
		return act.PaysLarge
	case a.Value.Cmp(t.small) > 0:
		return act.PaysMedium
	case complete:
		return act.PaysSmall
	}
	return act.PaysSmallPart
}

var (
	unlimited256 = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 255))
	Unlimited64  = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 63)) // for networks with amounts of 64 bits
	unlimited160 = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 159))
)

// IsUnlimited reports whether a value is at least 2^255. narrow means that the value is a uint160;
// then 2^159 is enough.
func IsUnlimited(value *big.Rat, narrow bool) bool {
	if value == nil {
		return false
	}
	if narrow {
		return value.Cmp(unlimited160) >= 0
	}
	return value.Cmp(unlimited256) >= 0
}

// unlimitedWords are words for the largest amount.
var unlimitedWords = []string{"maxuint256", "max_uint256", "uint256max", "maxuint", "max_uint", "unlimited", "infinite", "infinity", "type(uint256).max", "uint256.max",
	"constants.maxuint256", "ethers.maxuint256", "ethers.constants.maxuint256", "2**256-1", "2n**256n-1n", "2^256-1", "~uint256(0)", "uint(-1)", "uint256(-1)", "maxuint160", "max_uint160", "max"}

// IsUnlimitedWord reports whether an argument is a word for the largest amount.
func IsUnlimitedWord(s string) bool {
	s = strings.ToLower(strings.NewReplacer(" ", "", `"`, "", "'", "").Replace(s))
	if s == "-1" || s == "all" {
		return true
	}
	for _, w := range unlimitedWords {
		if s == w || strings.HasSuffix(s, "."+w) {
			return true
		}
	}
	return scan.HasAny(s, "maxuint256", "max_uint256", "uint256).max")
}

// IsZeroAddress reports whether a text is the zero address or another one that no key controls.
func IsZeroAddress(s string) bool {
	s = strings.ToLower(strings.Trim(s, `"' ,.;`))
	return len(s) == 42 && s[:2] == "0x" && strings.Trim(s[2:], "0") == "" || s == "0x000000000000000000000000000000000000dead" ||
		s == "0x0" || s == "address(0)" || s == "zeroaddress" || s == "constants.addresszero" || s == "ethers.zeroaddress" || s == "11111111111111111111111111111111"
}

// IsAddress reports whether a text is an address: 0x and 40 hexadecimal digits, or such an address
// shortened with "…", a name of a naming service, or base58 with the length of a Solana or
// Bitcoin address.
func IsAddress(s string) bool {
	s = strings.Trim(s, `"'.,;()`)
	if strings.HasPrefix(s, "0x") {
		return len(s) == 42 && IsHexText(s[2:]) || strings.Contains(s, "…") || strings.Contains(s, "...") && len(s) < 24
	}
	if namingService(s) {
		return len(s) > 4
	}
	return len(s) >= 26 && len(s) <= 44 && isBase58(s)
}

// namingService reports whether a text is a name of a naming service, or has a prefix that only
// addresses have.
func namingService(s string) bool {
	if scan.HasAnySuffix(s, ".eth", ".sol", ".near") {
		return true
	}
	return scan.HasAnyPrefix(s, "bc1q", "bc1p", "tb1q")
}

// isBase58 reports whether a text is in base58 and has digits, lower-case and capital letters.
func isBase58(s string) bool {
	return strings.Trim(s, "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ") == "" && strings.ContainsAny(s, "123456789") &&
		strings.ToUpper(s) != s && strings.ToLower(s) != s
}

// IsHexText reports whether a text has only hexadecimal digits.
func IsHexText(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return len(s) > 0
}
