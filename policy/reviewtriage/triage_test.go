package reviewtriage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

func TestTriage(t *testing.T) {
	for _, c := range []struct {
		command, environment, priority string
		risk, action, queue, role      string
		sla, quorum                    int
	}{
		{"git status", "", "", "low", "proceed", "none", "none", 0, 0},
		{"git status", "", "urgent", "low", "proceed", "none", "none", 0, 0},
		{"terraform apply", "", "urgent", "medium", "proceed_with_controls", "none", "none", 0, 0},
		{"terraform apply", "production", "low", "high", "request_approval", "standard", "sre-oncall", 240, 1},
		{"git reset --hard", "", "", "high", "request_approval", "standard", "code-owner", 240, 1},
		{"git reset --hard", "", "urgent", "high", "request_approval", "urgent", "code-owner", 30, 1},
		{"git reset --hard", "", "low", "high", "request_approval", "standard", "code-owner", 240, 1},
		{"git push --force origin main", "", "low", "critical", "pause_and_escalate", "urgent", "code-owner", 30, 2},
		{"DELETE FROM users", "", "", "high", "request_approval", "standard", "dba", 240, 1},
		{"cat ~/.ssh/id_rsa", "", "", "high", "request_approval", "standard", "security", 240, 1},
	} {
		got := Triage(Input{Action: actionrisk.Action{Command: c.command, Environment: c.environment}, Priority: c.priority})
		sla := 0
		if got.SLAMinutes != nil {
			sla = *got.SLAMinutes
		}
		if got.Risk != c.risk || got.RecommendedAction != c.action || got.Queue != c.queue || sla != c.sla ||
			got.ReviewPacket.ReviewerRole != c.role || got.ReviewPacket.Quorum != c.quorum || got.HumanApprovalIncluded || got.RequiresHuman != (c.quorum > 0) {
			t.Errorf("%q %q %q: %+v", c.command, c.environment, c.priority, got)
		}
		full := actionrisk.ScoreAction(actionrisk.Action{Command: c.command, Environment: c.environment})
		if got.Risk != full.Risk || !slices.Equal(got.MatchedRuleIDs, full.MatchedRuleIDs) || got.ActionHash != full.ActionHash {
			t.Errorf("%q: triage and score disagree", c.command)
		}
	}
}

func TestPacket(t *testing.T) {
	got := Triage(Input{Action: actionrisk.Action{Command: "kubectl delete namespace x; echo ghp_abcdefghijklmnopqrstuvwxyz0123456789", Intent: "key ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}).ReviewPacket
	if strings.Contains(got.Command, "ghp_abc") || strings.Contains(got.Intent, "ghp_abc") {
		t.Errorf("a secret is shown: %+v", got)
	}
	if !slices.Contains(got.Questions, "Which environment does this reach?") || !got.RollbackPlan || got.Reversibility != "no" || len(got.Preconditions) == 0 {
		t.Errorf("%+v", got)
	}
}

func TestRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                "missing_field /command",
		`{"command":"ls","priority":"now"}`: "invalid_enum /priority",
		`{"command":"ls","commandScoreRequestId":"crs_1"}`:                  "out_of_range /commandScoreRequestId",
		`{"command":"ls","requestedBy":"` + strings.Repeat("x", 201) + `"}`: "too_long /requestedBy",
		`{"command":"ls","nonsense":1}`:                                     "unknown_field ",
	} {
		_, err := Service.Evaluate([]byte(body))
		var refused *policy.Error
		if !errors.As(err, &refused) || refused.Code+" "+refused.Path != want {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	answer, err := Service.Evaluate([]byte(`{"command":"ls","priority":"low","reference":"r"}`))
	if err != nil || !strings.Contains(string(answer.Body), `"requestId":"rtr_`+answer.InputHash[:32]) {
		t.Errorf("%s %v", answer.Body, err)
	}
}
