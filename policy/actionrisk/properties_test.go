package actionrisk_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/reviewtriage"
	"github.com/go-json-experiment/json"
)

// actions returns the examples of all tables and some cases of testdata/hidden.
func actions(t testing.TB) []actionrisk.Action {
	var out []actionrisk.Action
	for _, r := range actionrisk.Rules() {
		for _, text := range slices.Concat(r.Yes, r.No) {
			out = append(out, actionrisk.Action{Command: text})
		}
	}
	for _, name := range []string{"stop1", "allow1", "stop2", "allow2"} {
		data, err := os.ReadFile("testdata/hidden/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(data), "\n@ ")[1:] {
			part, _, _ = strings.Cut(part, "\n## ")
			out = append(out, actionrisk.Action{Command: strings.TrimSpace(part)})
		}
	}
	return out
}

// TestServicesAgree checks that the quick gate, score, triage and workflow give an action the same
// risk and rules.
func TestServicesAgree(t *testing.T) {
	environments := []string{"", "production", "development"}
	checks := 0
	for i, a := range actions(t) {
		a.Environment = environments[i%3]
		a.FailClosedOnUnmatched = i%2 == 0
		body, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var quick struct {
			Risk           string   `json:"risk"`
			MatchedRuleIDs []string `json:"matchedRuleIds"`
		}
		answer, err := actionrisk.Quick.Evaluate(body)
		if err != nil {
			continue // an example that begins or ends with white space
		}
		if err := json.Unmarshal(answer.Body, &quick); err != nil {
			t.Fatal(err)
		}
		score := actionrisk.ScoreAction(a)
		triage := reviewtriage.Triage(reviewtriage.Input{Action: a})
		run, err := actionsafety.Evaluate(actionsafety.Input{Action: a})
		if err != nil {
			t.Fatal(err)
		}
		checks++
		for name, got := range map[string]string{"score": score.Risk, "triage": triage.Risk, "run": run.Risk, "run's score": run.CommandScore.Risk} {
			if got != quick.Risk {
				t.Errorf("%q: %s says %s, the quick gate %s", a.Command, name, got, quick.Risk)
			}
		}
		for name, got := range map[string][]string{"score": score.MatchedRuleIDs, "triage": triage.MatchedRuleIDs, "run": run.CommandScore.MatchedRuleIDs} {
			if !slices.Equal(got, quick.MatchedRuleIDs) {
				t.Errorf("%q: %s matches %v, the quick gate %v", a.Command, name, got, quick.MatchedRuleIDs)
			}
		}
		if (run.ReviewTriage != nil) != (quick.Risk == "high" || quick.Risk == "critical") {
			t.Errorf("%q: triage of the workflow at %s", a.Command, quick.Risk)
		}
	}
	if checks < 1000 {
		t.Errorf("only %d actions", checks)
	}
}
