package actionrisk

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// The whole text of a rule set has the hash that verdicts name: of this release, and
// of each earlier one as its release wrote it down.
func TestTheTextOfARulesetHasItsHash(t *testing.T) {
	want := map[string]string{
		facts.RulesetVersion: facts.RulesetHash,
		"2026.11.18":         "c0d22b1707f03f76ddc1598a755fe5d4197fbb79ada0e266dc115e25be0cde0f",
		"2026.11.19":         "d98583b500a49388da1e51e9b8f0eda51c988beb187452d21fdaae5c786bdf0e",
		"2026.11.20":         "5b233e8f73393eafd346d1e19d72b7c24f05025395fcf874c786b5442bd8a549",
		"2026.11.22":         "0c706fe561f9d91c29b5b55f3e0281119faa6235639c6e7771adf703f0299b1c",
		"2026.11.21":         "a04a43dad8375dc5345486f11dd239c759af643e808733bcac8c043b6dd572ad",
		"2026.11.24":         "563efe3d4df284bc110a444f977faff89ff4cf673be4517b6eb997b2a27ffdd7",
	}
	for _, version := range append(rules.PastVersions(), facts.RulesetVersion) {
		text, err := RulesetText(version)
		if err != nil {
			t.Fatal(err)
		}
		if got := canon.Hash(text); got != want[version] {
			t.Errorf("%s: the tables hash to %s, want %s (of a new one: the RulesetHash of its release)", version, got, want[version])
		}
	}
	if _, err := RulesetText("2026.11.1"); err == nil || slices.Contains(rules.PastVersions(), "2026.11.1") {
		t.Error("a rule set that is not in the tree has a text")
	}
}
