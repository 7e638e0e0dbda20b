package amounts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// noLimits are values of a setting that remove a limit.
var noLimits = scan.SetOf("none unlimited off false disabled disable no infinity inf infinite -1 * any skip never null nil open allow-all allowall")

// OpensPayments reports whether a variable removes a limit on payments or the confirmation before
// them: X402_SPEND_CAP=none, X402_SKIP_CONFIRM=1.
func OpensPayments(name, value string) bool {
	if len(name) < 6 || len(value) > 32 || value == "" || !facts.Says(facts.ToolWords(name), "spending") {
		return false
	}
	words := facts.ToolWords(name)
	low, limits, switches := strings.ToLower(value), facts.Says(words, "limits"), facts.Says(words, "switches")
	if limits && !switches {
		return noLimits.Has(low) || IsUnlimited(ParseNumber(low), true) || IsUnlimitedWord(low) && low != "max"
	}
	return (slices.Contains(words, "unlimited") || switches && limits) && slices.Contains([]string{"1", "true", "yes", "on", "all"}, low)
}
