// Package actionsafety is the complete workflow of one action: the full risk
// score and, where the risk is high or critical, the triage for a person, with
// the decision that follows from both. It decides nothing on its own: score and
// triage are packages actionrisk and reviewtriage, called as if each had been
// asked alone.
package actionsafety

import (
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/reviewtriage"
)

// Input is an action, with a key under which the workflow may be asked for again.
type Input struct {
	actionrisk.Action
	policy.Common
	IdempotencyKey string `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"One key per action you intend; on a retry send the same key."`
}

// Output is the workflow's answer as far as it follows from the action alone;
// workflow id, times and receipt are added when it is recorded.
type Output struct {
	Status               string                 `json:"status" jsonschema:"enum=completed,enum=review_required"`
	Risk                 string                 `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`
	RiskScore            int                    `json:"riskScore" jsonschema:"minimum=0,maximum=100"`
	Decision             string                 `json:"decision" jsonschema:"enum=allow,enum=allow_with_controls,enum=needs_review"`
	RequiresHumanReview  bool                   `json:"requiresHumanReview"`
	CommandScore         actionrisk.ScoreOutput `json:"commandScore"`
	ReviewTriage         *reviewtriage.Output   `json:"reviewTriage" jsonschema:"nullable"`
	Audit                Audit                  `json:"audit"`
	ActionBindingVersion string                 `json:"actionBindingVersion" jsonschema:"enum=svc-action-v1"`
	ActionHash           string                 `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Boundaries           Boundaries             `json:"boundaries"`
	Findings             []policy.Finding       `json:"findings"`
}

// Audit names the two component answers.
type Audit struct {
	CommandScoreRequestID string  `json:"commandScoreRequestId"`
	ReviewTriageRequestID *string `json:"reviewTriageRequestId" jsonschema:"nullable"`
}

// Boundaries says what a workflow is not.
type Boundaries struct {
	HumanApprovalIncluded bool   `json:"humanApprovalIncluded" jsonschema:"enum=false"`
	Note                  string `json:"note"`
}

// Limits are the boundaries of every workflow.
var Limits = Boundaries{Note: "A review recommendation is not a human approval. Human approval needs a connected approval system or a hosted assurance plan."}

// ReceiptDecision is the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Decision }

// Run is the priced service.
var Run = policy.Declare(policy.Service{
	Name:       "action-safety/run",
	Operation:  "agent_action_safety_loop",
	PriceCents: 25,
	Title:      "Action safety workflow",
	Summary:    "Score one action, route it to review if its risk is high or critical, and keep a signed receipt and a status record for 30 days.",
	Example:    `{"command":"git push --force origin main","repo":"acme/payments","branch":"main","environment":"production"}`,
	Signed:     true,
	Workflow:   true,
	Ruleset:    actionrisk.Ruleset,
	PassesOn:   []string{"command-risk/score"},
}, Evaluate)

// Evaluate runs the workflow. It never denies: high and critical need a review.
func Evaluate(in Input) (Output, error) {
	score := actionrisk.ScoreAction(in.Action)
	out := Output{
		Status: "completed", Risk: score.Risk, RiskScore: score.RiskScore, Decision: "allow",
		CommandScore: score, Audit: Audit{CommandScoreRequestID: score.RequestID},
		ActionBindingVersion: score.ActionBindingVersion, ActionHash: score.ActionHash,
		Boundaries: Limits, Findings: score.Findings,
	}
	switch score.Risk {
	case "medium":
		out.Decision = "allow_with_controls"
	case "high", "critical":
		triage := reviewtriage.Triage(reviewtriage.Input{Action: in.Action})
		out.Status, out.Decision, out.RequiresHumanReview = "review_required", "needs_review", true
		out.ReviewTriage, out.Audit.ReviewTriageRequestID = &triage, &triage.RequestID
	}
	return out, nil
}
