package amounts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// SpendWords make a variable one about payments; LimitWords one about their limits;
// switchWords take a limit away if they are true.
var (
	SpendWords  = scan.SetOf("x402 payment payments spend spending wallet payout payouts transfer transfers l402 paywall agentkit transaction transactions")
	LimitWords  = scan.SetOf("max maximum limit limits cap caps budget policy allowlist whitelist approval approvals guard guardrail guardrails confirm confirmation ceiling threshold")
	switchWords = scan.SetOf("auto skip no disable disabled bypass unlimited ignore allow unsafe")
	PayScripts  = scan.SetOf("pay x402 l402 payer buyer")
	noLimits    = scan.SetOf("none unlimited off false disabled disable no infinity inf infinite -1 * any skip never null nil open allow-all allowall")
)

// OpensPayments: a variable takes away the limit or the question before payments:
// X402_SPEND_CAP=none, X402_SKIP_CONFIRM=1.
func OpensPayments(name, value string) bool {
	if len(name) < 6 || len(value) > 32 || value == "" {
		return false
	}
	words := facts.ToolWords(name)
	if !facts.HasWord(words, SpendWords) {
		return false
	}
	low := strings.ToLower(value)
	if facts.HasWord(words, LimitWords) && !facts.HasWord(words, switchWords) {
		return noLimits[low] || IsUnlimited(ParseNumber(low), true) || IsUnlimitedWord(low) && low != "max"
	}
	switches := slices.Contains(words, "unlimited") || facts.HasWord(words, switchWords) && facts.HasWord(words, LimitWords)
	return switches && (low == "1" || low == "true" || low == "yes" || low == "on" || low == "all")
}
