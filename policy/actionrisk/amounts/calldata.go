package amounts

import (
	"cmp"
	"math/big"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// maxAmountText is the longest text that is parsed as an amount, in bytes. A uint256 has 78
// digits; separators and a factor may be added.
const maxAmountText = 160

// converted handles a function around an amount. If the function states the unit, such as
// parseEther("1"), it sets a and returns true. If the function only changes the type, such as
// BigInt(5), it returns the function's argument.
func converted(low string, a *Amount) (string, bool) {
	open := strings.IndexByte(low, '(')
	if open <= 0 {
		return low, false
	}
	inner, _ := stores.SplitArg(strings.TrimSuffix(low[open+1:], ")"))
	ends := func(names ...string) bool {
		return scan.HasAnySuffix(low[:open], names...)
	}
	switch {
	case ends("parseether", "toether"):
		a.Value, a.Asset = ParseNumber(inner), cmp.Or(a.Asset, AssetOf("eth"))
		return low, true
	case ends("parseunits", "towei"):
		a.Value = ParseNumber(inner)
		return low, true
	case ends("bigint", "from", "bignumber"):
		return inner, false
	}
	return low, false
}

// CallAmount parses the argument of a call: parseUnits("5", 6), parseEther("1"), 5n, 1e18, or a
// word for the largest value. It converts base units to units of the token.
func CallAmount(arg string, token *asset) Amount {
	a := Amount{Asset: token}
	if len(arg) > maxAmountText {
		return a
	}
	low := strings.ToLower(strings.ReplaceAll(arg, " ", ""))
	if IsUnlimitedWord(arg) {
		a.Unlimited = true
		return a
	}
	if strings.Contains(low, "balance") {
		a.All = true
		return a
	}
	low, done := converted(low, &a)
	if done {
		return a
	}
	if a.named(low) {
		return a
	}
	n := ParseNumber(low)
	a.Unlimited = n == nil && looksLargest(arg)
	a.units(n)
	return a
}

// named parses an amount with its unit, such as "5eth" or "1ether", and reports whether the text
// is one.
func (a *Amount) named(low string) bool {
	if value, ok := strings.CutSuffix(low, "ether"); ok && !strings.Contains(value, "ether") {
		if a.Value = ParseNumber(value); a.Value != nil {
			a.Asset = cmp.Or(a.Asset, AssetOf("eth"))
		}
		return true
	}
	cut := strings.LastIndexAny(low, "0123456789.") + 1
	if cut == 0 || cut == len(low) {
		return false
	}
	as, n := AssetOf(low[cut:]), ParseNumber(low[:cut])
	if as == nil || n == nil {
		return false
	}
	a.Asset, a.Value = as, n
	return true
}

// units sets the amount from a number of base units. It ignores nil.
func (a *Amount) units(n *big.Rat) {
	switch {
	case n == nil:
	case IsUnlimited(n, false), isTypeMaximum(n):
		a.Unlimited, a.Value = true, n
	case a.Asset != nil:
		a.Value = Scaled(n, a.Asset.Decimals)
	default:
		a.Value = guessUnits(n)
	}
}

// guessUnits converts base units of an unknown token: it assumes 18 decimals for a number from
// 1e15 on, 6 decimals from 1e6 on, and none for smaller numbers.
func guessUnits(n *big.Rat) *big.Rat {
	switch {
	case n.Cmp(RatOf("1e15")) >= 0:
		return Scaled(n, 18)
	case n.Cmp(RatOf("1e6")) >= 0:
		return Scaled(n, 6)
	}
	return n
}

// ApproveRule returns the rule for an allowance of this amount.
func ApproveRule(a Amount) string {
	switch {
	case a.Unlimited:
		return act.ApprovesAny
	case a.Value != nil && a.Value.Sign() == 0:
		return act.Revokes
	}
	return act.ApprovesSome
}

// PermitRule returns the rule for a signed permit, by the largest value in its text.
func PermitRule(text string) string {
	low := strings.ToLower(text)
	switch {
	case scan.HasAny(low, "permit", "spender"):
	case scan.HasAny(low, "order", "delegat"):
		return act.SignsBlindly
	default:
		return act.SignsText
	}
	if scan.HasAny(low, "maxuint", "max_uint", "unlimited", "infinite", "uint256).max") {
		return act.PermitsAny
	}
	for _, number := range strings.FieldsFunc(low, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefx", r) }) {
		if number = number[max(strings.IndexAny(number, "0123456789"), 0):]; len(number) >= 48 && IsUnlimited(ParseNumber(number), true) {
			return act.PermitsAny
		}
	}
	return act.PermitsSome
}

// SelectorNames maps 4-byte selectors to the functions that have rules.
var SelectorNames = map[string]string{
	"095ea7b3": "approve", "39509351": "increaseAllowance", "a9059cbb": "transfer", "23b872dd": "transferFrom",
	"a22cb465": "setApprovalForAll", "d505accf": "permit", "f2fde38b": "transferOwnership", "715018a6": "renounceOwnership",
	"2f2ff15d": "grantRole", "d547741f": "revokeRole", "3659cfe6": "upgradeTo", "4f1ef286": "upgradeToAndCall", "ac9650d8": "multicall",
	"42966c68": "burn", "79cc6790": "burnFrom", "42842e0e": "transferFrom", "b88d4fde": "transferFrom", "8fcbaf0c": "permit",
	"87517c45": "approve160", "5ae401dc": "multicall", "1f0464d1": "multicall", "8f283970": "changeAdmin", "6a761202": "execTransaction",
	"d0e30db0": "deposit", "2e1a7d4d": "withdraw", "db2e21bc": "emergencyWithdraw", "853828b6": "withdrawAll", "0d582f13": "addOwnerWithThreshold", "694e80c3": "changeThreshold", "610b5925": "enableModule", "13af4035": "setOwner", "1f931c1c": "diamondCut", "b61d27f6": "execTransaction", "8d80ff0a": "execTransaction", "f242432a": "transferFrom", "2eb2c2d6": "transferFrom", "e318b52b": "swapOwner", "f8dc5dd9": "removeOwner",
}

// ReadSelectors are the selectors of functions that only read.
var ReadSelectors = scan.SetOf("70a08231 dd62ed3e 18160ddd 313ce567 95d89b41 06fdde03 8da5cb5b 6352211e 0902f1ac 50d25bcd 3850c7bd 01ffc9a7 e985e9c5 081812fc c87b56dd 7ecebe00 3644e515 91d14854 5c975abb feaf968c 07a2d13a 38d52e0f 2f745c59 d06ca61f")

// calldata is the arguments of an encoded call in hexadecimal, 32 bytes each.
type calldata struct {
	data  string
	token *asset
}

// number returns argument i, or nil if there is none.
func (c calldata) number(i int) *big.Rat {
	if len(c.data) < (i+1)*64 {
		return nil
	}
	n, ok := new(big.Int).SetString(c.data[i*64:(i+1)*64], 16)
	if !ok {
		return nil
	}
	return new(big.Rat).SetInt(n)
}

// amount returns argument i in units of the token.
func (c calldata) amount(i int) Amount {
	a := Amount{Asset: c.token}
	a.units(c.number(i))
	return a
}

// transfer returns the rules for a transfer. The parameters are the indexes of two arguments: to
// is that of the recipient, i that of the amount.
func (c calldata) transfer(to, i int) []string {
	a, zero := c.amount(i), ""
	if c.isZero(to) {
		zero = "0x0"
	}
	return WithZero(zero, a.TransferRule())
}

// isZero reports whether argument i exists and is zero.
func (c calldata) isZero(i int) bool {
	n := c.number(i)
	return n != nil && n.Sign() == 0
}

// CalldataRules returns the rules for encoded calldata (hexadecimal, without 0x), including the
// calls inside a multicall.
func CalldataRules(data string, token *asset, depth int) []string {
	if len(data) < 8 || depth > 4 {
		return nil
	}
	selector := strings.ToLower(data[:8])
	c := calldata{data[8:], token}
	switch name := SelectorNames[selector]; name {
	case "approve", "increaseAllowance":
		return []string{ApproveRule(c.amount(1))}
	case "approve160":
		a := Amount{Value: c.number(2), Asset: token}
		a.Unlimited = IsUnlimited(a.Value, true)
		return []string{ApproveRule(a)}
	case "transfer":
		return c.transfer(0, 1)
	case "transferFrom":
		return c.transfer(1, 2)
	case "setApprovalForAll":
		return c.rule(c.isZero(1), act.Revokes, act.ApprovesAll)
	case "permit":
		return c.rule(IsUnlimited(c.number(2), false), act.PermitsAny, act.PermitsSome)
	case "multicall":
		return innerCalldata(c.data, token, depth)
	case "":
		if ReadSelectors.Has(selector) {
			return []string{act.SignsText}
		}
		return nil
	default:
		return (&ContractCall{Name: name}).Rules("")
	}
}

// rule returns a list with one of two rules: "then" if the condition "so" is true, and "otherwise"
// if it is false.
func (c calldata) rule(so bool, then, otherwise string) []string {
	if so {
		return []string{then}
	}
	return []string{otherwise}
}

// innerCalldata returns the rules for the calls inside a multicall. It does not use the encoded
// offsets: each 32-byte word that follows a length may begin a call.
func innerCalldata(data string, token *asset, depth int) []string {
	var ids []string
	for i := 64; i+8 <= len(data) && len(ids) < 32; i += 64 {
		length, ok := new(big.Int).SetString(data[i-64:i], 16)
		if !ok || !length.IsInt64() || length.Int64() < 4 || length.Int64() > int64(len(data)) {
			continue
		}
		end := min(len(data), i+int(length.Int64())*2)
		if SelectorNames[strings.ToLower(data[i:i+8])] != "" {
			ids = append(ids, CalldataRules(data[i:end], token, depth+1)...)
		}
	}
	return OrBlind(ids)
}
