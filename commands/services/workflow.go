package services

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/canon"
)

// newWorkflowID returns a new workflow id that belongs to the same partition as home, so that the
// workflow is found there by its id.
func (a *Services) newWorkflowID(home string) string {
	for {
		if id := "asw_" + uuid.NewString(); a.Together(id, home) {
			return id
		}
	}
}

// newWorkflow returns the stored part of a workflow run: its id, the verdict, the action that the
// verdict is about, and its validity.
func newWorkflow(id string, answer []byte, now time.Time) (*events.Workflow, error) {
	var out actionsafety.Output
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, err
	}
	version, hash := actionrisk.Ruleset()
	return &events.Workflow{
		WorkflowID: id,
		Status:     out.Status, Risk: out.Risk, RiskScore: out.RiskScore, Decision: out.Decision,
		RequiresHumanReview: out.RequiresHumanReview, MatchedRuleIDs: out.CommandScore.MatchedRuleIDs,
		ActionBindingVersion: out.ActionBindingVersion, ActionHash: out.ActionHash,
		RulesetVersion: version, RulesetHash: hash,
		Audit: events.Audit{
			CommandScoreRequestID: &out.Audit.CommandScoreRequestID,
			ReviewTriageRequestID: out.Audit.ReviewTriageRequestID,
		},
		CreatedAt: canon.Stamp(now), ExpiresAt: canon.Stamp(now.Add(Retention)),
	}, nil
}

// workflowMembers returns the members of a workflow's answer that depend on time and server. They
// are not part of outputHash.
func workflowMembers(w events.Workflow, baseURL string) map[string]any {
	return map[string]any{
		"workflowId": w.WorkflowID, "createdAt": w.CreatedAt, "expiresAt": w.ExpiresAt,
		"statusUrl": baseURL + "/api/agent-workflows/action-safety/status/" + w.WorkflowID,
	}
}
