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

// newWorkflowID makes the id of a workflow that is recorded in the partition of home, where its
// status is looked up.
func (a *Services) newWorkflowID(home string) string {
	for {
		if id := "asw_" + uuid.NewString(); a.Together(id, home) {
			return id
		}
	}
}

// newWorkflow returns what is stored of a run of the complete workflow: the verdict, bound to
// the action, with its id and how long it is valid.
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

// workflowMembers returns the members of the answer that depend on the time and the server.
// They are not part of its outputHash.
func workflowMembers(w events.Workflow, baseURL string) map[string]any {
	return map[string]any{
		"workflowId": w.WorkflowID, "createdAt": w.CreatedAt, "expiresAt": w.ExpiresAt,
		"statusUrl": baseURL + "/api/agent-workflows/action-safety/status/" + w.WorkflowID,
	}
}
