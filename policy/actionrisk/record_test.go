package actionrisk

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/go-json-experiment/json"
)

// TestSaferWays checks that every safer way of a rule is not stopped and does not trigger the rule
// again, and that every rule that stops an action names an alternative.
func TestSaferWays(t *testing.T) {
	for _, r := range facts.Rules() {
		record, ok := RecordOf(r.ID)
		if !ok || r.Retired {
			continue
		}
		if r.Level >= act.High && record.Instead == "" {
			t.Errorf("%s: stops, and proposes nothing", r.ID)
		}
		for _, way := range record.Safer {
			if got := Assess(way.Action); got.Risk >= act.High || r.Level > act.Low && slices.Contains(got.RuleIDs(), r.ID) {
				t.Errorf("%s: its safer way %q is %v %v", r.ID, way.Command, got.Risk, got.RuleIDs())
			}
		}
	}
	for id := range saferWays() {
		if facts.Tables().Rule(id) == nil {
			t.Errorf("safer.json: no rule %s", id)
		}
	}
}

// TestRecords checks that every rule has a page with judged examples, and that the list of all
// rules without examples is below 64 KB.
func TestRecords(t *testing.T) {
	for _, s := range Summaries() {
		record, ok := RecordOf(s.ID)
		if !ok || record.Catches == "" || len(record.CatchesNot) == 0 || record.Why == "" || !s.Retired && (len(record.Raised) < 2 || len(record.NotRaised) < 2) {
			t.Errorf("%s: %+v", s.ID, record)
		}
	}
	if _, ok := RecordOf("no.such.rule"); ok {
		t.Error("a rule that does not exist has a page")
	}
	text, err := json.Marshal(Summaries())
	if err != nil || len(text) > 64<<10 {
		t.Errorf("the list takes %d bytes, %v", len(text), err)
	}
}
