package payment

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// Tables of payment programs age quickly. The arguments of an unknown program are judged
// instead: words that pay, an amount and a recipient.

// unknownMove is the effect of a program that no table knows and whose words say that it
// pays or moves money: to a wallet's address with an amount, or something less.
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

// saysAmount: an option is made for an amount of money, or a number is one by its sign, by
// its unit, or because an address stands with it.
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

// isNumber: 5, 12.50, $5.
func isNumber(t string) bool {
	rest := strings.TrimLeft(strings.TrimLeft(t, "$€£"), "0123456789")
	return t != "" && strings.Trim(strings.TrimPrefix(rest, "."), "0123456789") == ""
}
