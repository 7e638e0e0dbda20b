// Package actionsafety is the complete workflow for one action: the risk score and, if the risk is
// high or critical, the triage for a human reviewer. It calls packages actionrisk and
// reviewtriage, and derives the decision from their answers, which are the same as if each were
// called alone.
package actionsafety

import (
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/reviewtriage"
)

// Input is an action, with a key under which the request can be repeated.
type Input struct {
	actionrisk.Action
	policy.Common
	IdempotencyKey string `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"One key per action you intend; on a retry send the same key."`
}

// Output is the part of the answer that depends only on the action. The command that records the
// answer adds workflow id, times and receipt.
type Output struct {
	Status               string                 `json:"status" jsonschema:"enum=completed,enum=review_required" jsonschema_description:"review_required: a person must decide; completed: no review is needed."`
	Risk                 string                 `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"The highest level of the rules that matched."`
	RiskScore            int                    `json:"riskScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Risk from 0 to 100; a higher value is riskier."`
	Decision             string                 `json:"decision" jsonschema:"enum=allow,enum=allow_with_controls,enum=needs_review" jsonschema_description:"allow for low, allow_with_controls for medium, needs_review for high and critical."`
	RequiresHumanReview  bool                   `json:"requiresHumanReview" jsonschema_description:"Whether a person must decide before the action is executed."`
	CommandScore         actionrisk.ScoreOutput `json:"commandScore" jsonschema_description:"Answer of command-risk/score."`
	ReviewTriage         *reviewtriage.Output   `json:"reviewTriage" jsonschema:"nullable" jsonschema_description:"Answer of review-triage/submit; null for low and medium."`
	Audit                Audit                  `json:"audit" jsonschema_description:"Ids of the answers of score and triage."`
	ActionBindingVersion string                 `json:"actionBindingVersion" jsonschema:"enum=svc-action-v1" jsonschema_description:"Version of the computation of bindingHash or actionHash."`
	ActionHash           string                 `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical action, with which an executor compares the action it runs."`
	Boundaries           Boundaries             `json:"boundaries" jsonschema_description:"States what this answer does not include."`
	Findings             []policy.Finding       `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Audit contains the ids of the answers of score and triage.
type Audit struct {
	CommandScoreRequestID string  `json:"commandScoreRequestId" jsonschema_description:"Id of the score."`
	ReviewTriageRequestID *string `json:"reviewTriageRequestId" jsonschema:"nullable" jsonschema_description:"Id of the triage; null if there was none."`
}

// Boundaries states what a workflow does not include.
type Boundaries struct {
	HumanApprovalIncluded bool   `json:"humanApprovalIncluded" jsonschema:"enum=false" jsonschema_description:"Always false: an approval is a separate record."`
	Note                  string `json:"note" jsonschema_description:"A sentence that states this limit."`
}

// Limits contains the boundaries, which are the same for every workflow.
var Limits = Boundaries{Note: "A review recommendation is not a human approval. Human approval needs a connected approval system or a hosted assurance plan."}

// ReceiptDecision returns the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Decision }

// Run is the declaration of action-safety/run.
var Run = policy.Declare(policy.Service{
	Name:       "action-safety/run",
	Operation:  "agent_action_safety_loop",
	PriceCents: 25,
	Group:      policy.GroupSafety,
	Title:      "Action safety workflow",
	Summary:    "Scores one action, requests a review if its risk is high or critical, and keeps a signed receipt and a status record for 30 days.",
	Example:    `{"command":"git push --force origin main","repo":"acme/payments","branch":"main","environment":"production"}`,
	Signed:     true,
	Workflow:   true,
	Ruleset:    actionrisk.Ruleset,
	PassesOn:   []string{"command-risk/score"},
	BodyLimit:  policy.ActionBody,
}, Evaluate)

// Evaluate runs the workflow. It never denies an action: a high or critical risk leads to a
// review.
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
