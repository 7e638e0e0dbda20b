package conformance_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/clients/conformance"
)

// TestCasesAreWellFormed checks that cases name only existing answers, because otherwise a case
// would test nothing.
func TestCasesAreWellFormed(t *testing.T) {
	file, answers, err := conformance.Load()
	if err != nil {
		t.Fatal(err)
	}
	faults, seen, used := 0, map[string]bool{}, map[string]bool{}
	for _, c := range file.Cases {
		if seen[c.Name] {
			t.Errorf("%s: there are two", c.Name)
		}
		seen[c.Name] = true
		if !slices.Contains([]string{"gate", "require", "decide", "approved", "pay"}, c.Do) || file.Actions[cmp.Or(c.Action, "command")] == nil || file.Intents[cmp.Or(c.Intent, "tool")] == nil {
			t.Errorf("%s: an unknown do, action or intent", c.Name)
		}
		if c.Must.Error != "" || slices.ContainsFunc(c.Exchange, func(e conformance.Exchange) bool { return e.Fault != "" }) {
			faults++
		}
		receipt := 0
		for _, e := range c.Exchange {
			if strings.HasSuffix(e.Request, " /api/assurance/receipts") {
				receipt++
			}
			var name string
			var answer conformance.Answer
			switch {
			case e.Fault != "" && !slices.Contains([]string{"silence", "cut", "half", "stall", "trickle"}, e.Fault):
				t.Errorf("%s: unknown fault %s", c.Name, e.Fault)
			case e.Answer == nil && e.Fault == "":
				t.Errorf("%s: %s has no answer", c.Name, e.Request)
			case e.Answer == nil:
			case json.Unmarshal(e.Answer, &name) == nil:
				if used[name] = true; answers[name].Status == 0 {
					t.Errorf("%s: there is no answer %q", c.Name, name)
				}
			case json.Unmarshal(e.Answer, &answer) != nil || answer.Status == 0 || answer.Offer != "" && file.Offers[answer.Offer] == nil:
				t.Errorf("%s: %s has an answer that is none", c.Name, e.Request)
			}
		}
		// A function that ran under a decision must have a receipt, even if it failed.
		if ran := c.Must.Ran > 0; slices.Contains([]string{"decide", "approved", "pay"}, c.Do) && ran != (receipt > 0) {
			t.Errorf("%s: it runs %d times, and the receipt is sent %d times", c.Name, c.Must.Ran, receipt)
		}
	}
	for name := range answers {
		if !used[name] {
			t.Errorf("no case has the answer %q", name)
		}
	}
	if faults < 60 {
		t.Errorf("only %d faults", faults)
	}
	t.Logf("%d cases, %d of them faults", len(file.Cases), faults)
}
