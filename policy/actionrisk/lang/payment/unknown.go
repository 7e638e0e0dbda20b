package payment

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// New payment programs appear faster than the tables can list them. For an unknown program the
// arguments decide: words that pay, an amount and a recipient.

// unknownMove returns the rule id for a program that no table lists and that has a verb for paying
// or moving money among its first three operands. The rule is act.Transfers if the call also has a
// wallet address and an amount, act.MayPay for weaker signs, and "" otherwise.
func unknownMove(e *interp.Env, v *act.Invocation) string {
	if len(v.Operands) == 0 || !e.Stranger(v.Exe) || e.In("speakers", v.Exe) {
		return ""
	}
	first := v.Operands[:min(3, len(v.Operands))]
	i := slices.IndexFunc(first, func(w act.Word) bool { return e.In("paying-words", w.Text) || e.In("moving-words", w.Text) })
	if i < 0 {
		return ""
	}
	verb := first[i].Text
	address := slices.ContainsFunc(v.Argv[1:], func(w act.Word) bool { return amounts.IsAddress(w.Text) })
	amount := saysAmount(e, v, address)
	switch {
	case address && amount:
		return act.Transfers
	case address, amount && verb != "send", e.In("paying-words", verb) && slices.ContainsFunc(v.Argv[1:], isURL):
		return act.MayPay
	}
	return ""
}

func isURL(w act.Word) bool {
	_, _, _, ok := hosts.Split(w.Text)
	return ok
}

// saysAmount reports whether the call contains an amount of money: an option for amounts, or a
// number with a currency sign, with a unit, or in a call that also has an address.
func saysAmount(e *interp.Env, v *act.Invocation, address bool) bool {
	if slices.ContainsFunc(v.Opts, func(o act.Option) bool { return e.In("amount-options", o.Name) }) {
		return true
	}
	for i, w := range v.Operands {
		unit := i+1 < len(v.Operands) && amounts.AssetOf(v.Operands[i+1].Text) != nil
		if isNumber(w.Text) && (unit || address || strings.ContainsAny(w.Text, "$€£")) {
			return true
		}
	}
	return false
}

// isNumber reports whether the text is a plain number, with or without a currency sign: 5, 12.50,
// $5.
func isNumber(t string) bool {
	rest := strings.TrimLeft(strings.TrimLeft(t, "$€£"), "0123456789")
	return t != "" && strings.Trim(strings.TrimPrefix(rest, "."), "0123456789") == ""
}
