package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/policy/actionrisk"
)

// TestGateAllowWritesWhatTheGuardReads, and keeps what else is in the file.
func TestGateAllowWritesWhatTheGuardReads(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Chdir(folder)
	if err := os.WriteFile(".countersign.json", []byte(`{"denyFrom":"critical"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	rule := actionrisk.ScoreAction(actionrisk.Action{Command: "git push --force origin topic"}).MatchedRuleIDs[0]
	var out bytes.Buffer
	if code := run([]string{"gate", "allow", rule, "--here", "--for", "1d", "--reason", "release"}, &out, &out); code != 0 {
		t.Fatalf("%d: %s", code, out.String())
	}
	x, err := guard.ReadExceptions(folder)
	if err != nil || x.DenyFrom != "critical" || len(x.Allow) != 1 || x.Allow[0].Rule != rule {
		t.Fatalf("%+v, %v", x, err)
	}
	until, err := time.Parse(time.RFC3339, x.Allow[0].Until)
	if left := time.Until(until); err != nil || left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("until %s", x.Allow[0].Until)
	}
	if code := run([]string{"gate", "allow", "no.such.rule", "--reason", "x"}, &out, &out); code != 2 {
		t.Error("a rule that is none")
	}
}
