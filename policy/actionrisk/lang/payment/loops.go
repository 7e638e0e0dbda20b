package payment

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Predicates holds the predicates that the wallet, x402 and mcp tables use.
var Predicates = map[string]interp.Predicate{
	"literal-key": func(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, it.Inv != nil && e.LiteralKey(it.Inv)
	},
}

// loopRules returns the rule ids for a payment or transfer inside a loop. The number of rounds
// comes from seq N or {1..N}, and the total payment is the amount times that number. A loop
// without a number also counts as repeated payment.
func loopRules(sh *interp.Process, v *act.Invocation, ids []string) []string {
	pays := func(id string) bool { return strings.HasPrefix(id, "x402.pay") }
	moves := func(id string) bool {
		return pays(id) || strings.HasPrefix(id, act.Transfers) || id == act.PaysUnknown
	}
	text := sh.Env.Action.Command
	if !slices.ContainsFunc(ids, moves) || !scan.HasAny(text, loopWords...) && !slices.Contains(v.Src.Via, "xargs") && !callsItself(sh) {
		return nil
	}
	out := []string{act.PaysAgain}
	if n := loopCount(text); n != nil && slices.ContainsFunc(ids, pays) {
		if a := amounts.ReadPhrase(act.ArgvText(v)).Amount; a.Value != nil && a.Asset != nil {
			total := amounts.Amount{Value: new(big.Rat).Mul(a.Value, n), Asset: a.Asset}
			out = append(out, total.PayRule(true))
		}
	}
	return out
}

// callsItself reports whether a shell function calls itself, directly or through other functions.
func callsItself(sh *interp.Process) bool {
	for i, name := range sh.Calls {
		if slices.Contains(sh.Calls[:i], name) {
			return true
		}
	}
	return false
}

// loopCount returns the N of seq N, seq 1 N or {1..N}, or nil if the text has none.
func loopCount(text string) *big.Rat {
	if _, rest, ok := strings.Cut(text, "seq "); ok {
		end := strings.IndexAny(rest, ");`|\n")
		if end < 0 {
			end = len(rest)
		}
		if fields := strings.Fields(rest[:end]); len(fields) > 0 {
			return amounts.ParseNumber(fields[len(fields)-1])
		}
	}
	if _, rest, ok := strings.Cut(text, ".."); ok {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			return amounts.ParseNumber(rest[:end])
		}
	}
	return nil
}

// payingScript adds the rule ids for an interpreter that runs a payment script with an address or
// a spending limit. The name of the script, or its variables, show that it pays. The limit in its
// variables is the amount.
func payingScript(e *interp.Env, v *act.Invocation, ids *amounts.RuleList) {
	if len(v.Operands) == 0 || !e.In("interpreters", v.Exe) || v.Has("-e") || v.Has("-c") {
		return
	}
	limit, told := spendLimit(v)
	name, _, _ := strings.Cut(scan.Base(v.Operands[0].Text), ".")
	told = told || facts.Says(facts.ToolWords(name), "pay-scripts")
	address := slices.ContainsFunc(v.Operands[1:], func(w act.Word) bool { return strings.Contains(w.Text, "://") })
	if !told || !address && limit == nil {
		return
	}
	a := amounts.Amount{Asset: amounts.AssetOf("usdc"), Value: cmp.Or(limit, amounts.RatOf("0.1"))}
	ids.Add(a.PayRule(false))
	for _, w := range v.Operands[1:] {
		ids.AddAll(amounts.AddressRules(w.Text))
	}
}

// spendLimit returns the spending limit that the variables of a call set, or nil, and reports
// whether a variable names x402 or l402.
func spendLimit(v *act.Invocation) (limit *big.Rat, x402 bool) {
	for _, s := range v.Env {
		words := facts.ToolWords(s.Name)
		x402 = x402 || slices.Contains(words, "x402") || slices.Contains(words, "l402")
		if n := amounts.ParseNumber(strings.TrimPrefix(s.Value.Text, "$")); n != nil && facts.Says(words, "limits") && facts.Says(words, "spending") {
			limit = n
		}
	}
	return limit, x402
}

// loopWords lists words that start a loop or run a command repeatedly.
var loopWords = []string{"while ", "until ", "for ", "xargs ", "parallel ", "watch "}
