package commands_test

import (
	"testing"

	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// olderAnswer is an answer of the quick gate in the format of an earlier program version.
type olderAnswer struct {
	Risk           string   `json:"risk"`
	MatchedRuleIDs []string `json:"matchedRuleIds"`
	Gone           string   `json:"gone"`
}

// older returns the quick gate of an earlier program version with its rule set.
func older(version, hash string, judge func(actionrisk.Action) actionrisk.Assessment) policy.Service {
	s := actionrisk.Quick
	s.Ruleset = func() (string, string) { return version, hash }
	return policy.Declare(s, func(a actionrisk.Action) (olderAnswer, error) {
		got := judge(a)
		return olderAnswer{Risk: got.Risk.String(), MatchedRuleIDs: got.RuleIDs(), Gone: "by now"}, nil
	})
}

// Gate verdicts are evaluated again with the rule set that they name, even if other members of the
// answer have changed. The replay finds a false verdict, and reports a verdict whose rule set this
// program does not have.
func TestVerdictsAreReplayedByTheRuleSetTheyName(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, caller := newKey(t, a, "ada@example.com")
	version, hash := actionrisk.Ruleset()
	lenient := func(actionrisk.Action) actionrisk.Assessment {
		return actionrisk.Assess(actionrisk.Action{Command: "ls"})
	}
	for _, s := range []policy.Service{
		actionrisk.Quick,
		older(version, hash, actionrisk.Assess),
		older(version, hash, lenient),
		older(version, canon.Hash([]byte("other tables")), actionrisk.Assess), // this program has a rule set of that version, but with another hash
		older("2026.10.1", hash, actionrisk.Assess),
	} {
		call := quickCall(t, caller, "", "rm -rf /")
		call.Service = s
		if _, err := a.RunService(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.ReplayDecisions(t.Context(), evidence.Replay{Services: []policy.Service{actionrisk.Quick}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdicts != (evidence.VerdictReplay{Verdicts: 5, Equal: 2, VerdictAlone: 1}) {
		t.Errorf("%+v", r.Verdicts)
	}
	if len(r.Different) != 1 || r.Different[0].What != "risk" || r.Different[0].Recorded != "low" || r.Different[0].Replayed != "critical" {
		t.Errorf("different %+v", r.Different)
	}
	if len(r.NotReplayable) != 2 || r.NotReplayable[0].Count != 1 || r.NotReplayable[0].Reason != "rule set 2026.10.1 "+hash[:12] {
		t.Errorf("not replayable %+v", r.NotReplayable)
	}
}
