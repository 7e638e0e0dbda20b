package actionrisk

import (
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/canon"
)

// TestTheTextOfARulesetHasItsHash checks that the text of the present rule set has the hash that
// verdicts contain.
func TestTheTextOfARulesetHasItsHash(t *testing.T) {
	text, err := RulesetText(facts.RulesetVersion)
	if err != nil {
		t.Fatal(err)
	}
	if got := canon.Hash(text); got != facts.RulesetHash {
		t.Errorf("the tables hash to %s: facts.RulesetHash must be that", got)
	}
}
