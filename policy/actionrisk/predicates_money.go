package actionrisk

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// moneyPredicates are the predicates of the wallet, x402 and mcp tables.
var moneyPredicates = map[string]predicate{
	"literal-key": func(e *engine, it *item, _ []string) (Word, bool) {
		return Word{}, it.inv != nil && e.literalKey(it.inv)
	},
}

// loopRules: a payment or transfer inside a loop is made as often as it runs.
// How often is read from seq N or {1..N}; a loop without a number still counts.
func loopRules(sh *shell, v *invocation, ids []string) []string {
	e := sh.e
	moves := false
	for _, id := range ids {
		moves = moves || strings.HasPrefix(id, "x402.pay") || strings.HasPrefix(id, "wallet.transfer") || id == "x402.unknown-amount"
	}
	text := e.action.Command
	if !moves || !slices.ContainsFunc(loopWords, func(w string) bool { return strings.Contains(text, w) }) && !slices.Contains(v.src.via, "xargs") && !callsItself(sh) {
		return nil
	}
	out := []string{"x402.loop"}
	if n := loopCount(text); n != nil && slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "x402.pay") }) {
		p := readPhrase(argvText(v))
		if p.amount.value != nil && p.amount.asset != nil {
			total := amount{value: new(big.Rat).Mul(p.amount.value, n), asset: p.amount.asset}
			out = append(out, total.payRule(true))
		}
	}
	return out
}

// callsItself: one of the functions that run is running already.
func callsItself(sh *shell) bool {
	for i, name := range sh.calls {
		if slices.Contains(sh.calls[:i], name) {
			return true
		}
	}
	return false
}

var loopWords = []string{"while ", "until ", "for ", "xargs ", "parallel ", "watch "}

// loopCount is the N of seq N, seq 1 N or {1..N}; nil if the text has none.
func loopCount(text string) *big.Rat {
	if _, rest, ok := strings.Cut(text, "seq "); ok {
		end := strings.IndexAny(rest, ");`|\n")
		if end < 0 {
			end = len(rest)
		}
		if fields := strings.Fields(rest[:end]); len(fields) > 0 {
			return parseNumber(fields[len(fields)-1])
		}
	}
	if _, rest, ok := strings.Cut(text, ".."); ok {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			return parseNumber(rest[:end])
		}
	}
	return nil
}

// spendWords make a variable one about payments; limitWords one about their limits;
// switchWords take a limit away if they are true.
var (
	spendWords  = scan.SetOf("x402 payment payments spend spending wallet payout payouts transfer transfers l402 paywall agentkit transaction transactions")
	limitWords  = scan.SetOf("max maximum limit limits cap caps budget policy allowlist whitelist approval approvals guard guardrail guardrails confirm confirmation ceiling threshold")
	switchWords = scan.SetOf("auto skip no disable disabled bypass unlimited ignore allow unsafe")
	payScripts  = scan.SetOf("pay x402 l402 payer buyer")
	noLimits    = scan.SetOf("none unlimited off false disabled disable no infinity inf infinite -1 * any skip never null nil open allow-all allowall")
)

// opensPayments: a variable takes away the limit or the question before payments:
// X402_SPEND_CAP=none, X402_SKIP_CONFIRM=1.
func opensPayments(name, value string) bool {
	if len(name) < 6 || len(value) > 32 || value == "" {
		return false
	}
	words := toolWords(name)
	if !hasWord(words, spendWords) {
		return false
	}
	low := strings.ToLower(value)
	if hasWord(words, limitWords) && !hasWord(words, switchWords) {
		return noLimits[low] || isUnlimited(parseNumber(low), true) || isUnlimitedWord(low) && low != "max"
	}
	switches := slices.Contains(words, "unlimited") || hasWord(words, switchWords) && hasWord(words, limitWords)
	return switches && (low == "1" || low == "true" || low == "yes" || low == "on" || low == "all")
}

// payingScript: a script whose name or variables say that it pays is given an address.
// What its variables say that it may spend is its amount.
func payingScript(e *engine, v *invocation, ids *ruleList) {
	if len(v.operands) == 0 || !slices.Contains(e.groups["interpreters"], v.exe) && v.exe != "tsx" && v.exe != "ts-node" || v.has("-e") || v.has("-c") {
		return
	}
	a, told := amount{asset: assetOf("usdc")}, false
	for _, s := range v.env {
		words := toolWords(s.name)
		told = told || slices.Contains(words, "x402") || slices.Contains(words, "l402")
		if n := parseNumber(strings.TrimPrefix(s.value.Text, "$")); n != nil && hasWord(words, limitWords) && hasWord(words, spendWords) {
			a.value = n
		}
	}
	name, _, _ := strings.Cut(scan.Base(v.operands[0].Text), ".")
	told = told || hasWord(toolWords(name), payScripts)
	paid := slices.ContainsFunc(v.operands[1:], func(w Word) bool { return strings.Contains(w.Text, "://") })
	if !told || !paid && a.value == nil {
		return
	}
	if a.value == nil {
		a.value = ratOf("0.1")
	}
	ids.add(a.payRule(false))
	for _, w := range v.operands[1:] {
		ids.addAll(urlRules(w.Text))
	}
}
