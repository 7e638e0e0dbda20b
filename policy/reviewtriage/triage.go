// Package reviewtriage turns the verdict of package actionrisk into a packet for a human reviewer:
// whether a review is required, how soon, by which role, and which questions to ask. Its
// recommendation is never an approval: humanApprovalIncluded is always false.
package reviewtriage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Input is an action, with the caller's priority and references for the review.
type Input struct {
	actionrisk.Action
	policy.Common
	Priority              string `json:"priority,omitempty" jsonschema:"enum=low,enum=normal,enum=high,enum=urgent" jsonschema_description:"The caller's priority; it can make a review more urgent, never less."`
	RequestedBy           string `json:"requestedBy,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"The person or system that requests the review."`
	CommandScoreRequestID string `json:"commandScoreRequestId,omitempty" jsonschema:"pattern=^crs_[0-9a-f]{32}$" jsonschema_description:"Id of an earlier score of the same action. It is only recorded."`
}

// Packet is the information that a reviewer gets.
type Packet struct {
	Command               string   `json:"command" jsonschema_description:"The command, with secrets masked."`
	Reasons               []string `json:"reasons" jsonschema_description:"Reasons for a review."`
	Questions             []string `json:"questions" jsonschema_description:"Open questions before a decision."`
	Preconditions         []string `json:"preconditions" jsonschema_description:"Checks before an approval."`
	ReviewerRole          string   `json:"reviewerRole" jsonschema:"enum=none,enum=code-owner,enum=dba,enum=sre-oncall,enum=security,enum=finance" jsonschema_description:"Who should review."`
	Quorum                int      `json:"quorum" jsonschema:"minimum=0,maximum=2" jsonschema_description:"How many reviewers are needed, 0 to 2."`
	BlastRadius           string   `json:"blastRadius" jsonschema_description:"Systems and data that the action may affect."`
	Reversibility         string   `json:"reversibility" jsonschema:"enum=yes,enum=hard,enum=no" jsonschema_description:"Whether the action can be undone."`
	RollbackPlan          bool     `json:"rollbackPlan" jsonschema_description:"Whether a rollback plan is required before an approval."`
	Intent                string   `json:"intent,omitempty" jsonschema_description:"As sent, with secrets masked."`
	Actor                 string   `json:"actor,omitempty" jsonschema_description:"As sent, with secrets masked."`
	DiffStat              string   `json:"diffStat,omitempty" jsonschema_description:"As sent, with secrets masked."`
	RequestedBy           string   `json:"requestedBy,omitempty" jsonschema_description:"As sent, with secrets masked."`
	CommandScoreRequestID string   `json:"commandScoreRequestId,omitempty" jsonschema_description:"As sent."`
}

// Output is the triage of one action.
type Output struct {
	RequestID             string           `json:"requestId" jsonschema:"pattern=^rtr_[0-9a-f]{32}$" jsonschema_description:"Id of the answer: rtr_ and the first 32 digits of inputHash."`
	Risk                  string           `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"The highest level of the rules that matched."`
	RequiresHuman         bool             `json:"requiresHuman" jsonschema_description:"Whether a person must decide before the action is executed."`
	RecommendedAction     string           `json:"recommendedAction" jsonschema:"enum=proceed,enum=proceed_with_controls,enum=request_approval,enum=pause_and_escalate" jsonschema_description:"Recommended action."`
	Queue                 string           `json:"queue" jsonschema:"enum=none,enum=standard,enum=urgent" jsonschema_description:"Queue for the review."`
	SLAMinutes            *int             `json:"slaMinutes" jsonschema:"nullable" jsonschema_description:"Time limit of the review in minutes; null without a review."`
	HumanApprovalIncluded bool             `json:"humanApprovalIncluded" jsonschema:"enum=false" jsonschema_description:"Always false: an approval is a separate record."`
	MatchedRuleIDs        []string         `json:"matchedRuleIds" jsonschema_description:"Ids of the rules that matched."`
	ReviewPacket          Packet           `json:"reviewPacket" jsonschema_description:"Information for the reviewer."`
	ActionBindingVersion  string           `json:"actionBindingVersion" jsonschema_description:"Version of the computation of bindingHash or actionHash."`
	ActionHash            string           `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical action, with which an executor compares the action it runs."`
	Findings              []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Service is the declaration of review-triage/submit.
var Service = policy.Declare(policy.Service{
	Name:       "review-triage/submit",
	PriceCents: 25,
	Group:      policy.GroupSafety,
	Title:      "Review triage",
	Summary:    "Determines whether a person must review an action, how soon and in which role, and collects the information for the decision.",
	Example:    `{"command":"kubectl delete namespace payments","environment":"production","priority":"high"}`,
	Ruleset:    actionrisk.Ruleset,
	PassesOn:   []string{"command-risk/score"},
	BodyLimit:  policy.ActionBody,
}, evaluate)

func evaluate(in Input) (Output, error) {
	if err := actionrisk.Check(in.Action); err != nil {
		return Output{}, err
	}
	if !slices.Contains([]string{"", "low", "normal", "high", "urgent"}, in.Priority) {
		return Output{}, policy.Refuse("invalid_enum", "/priority", "priority must be low, normal, high or urgent")
	}
	if utf8.RuneCountInString(in.RequestedBy) > 200 {
		return Output{}, policy.Refuse("too_long", "/requestedBy", "requestedBy must have at most 200 characters")
	}
	if id := in.CommandScoreRequestID; id != "" && !scoreID(id) {
		return Output{}, policy.Refuse("out_of_range", "/commandScoreRequestId", "commandScoreRequestId must be crs_ and 32 lower-case hexadecimal digits")
	}
	return Triage(in), nil
}

func scoreID(id string) bool {
	hex, ok := strings.CutPrefix(id, "crs_")
	return ok && len(hex) == 32 && strings.Trim(hex, "0123456789abcdef") == ""
}

// Triage returns the triage of an input that was checked before.
func Triage(in Input) Output {
	got := actionrisk.Assess(in.Action)
	out := Output{
		RequestID: actionrisk.RequestID("rtr_", in), Risk: got.Risk.String(), RequiresHuman: got.RequiresApproval,
		RecommendedAction: recommended(got.Risk), MatchedRuleIDs: got.RuleIDs(),
		ActionBindingVersion: actionrisk.BindingVersion, ActionHash: actionrisk.Hash(in.Action),
		Findings: actionrisk.ScoreAction(in.Action).Findings,
	}
	out.Queue, out.SLAMinutes = queue(got.Risk, in.Priority)
	out.ReviewPacket = packet(in, got)
	return out
}

func recommended(l actionrisk.Level) string {
	return [...]string{"proceed", "proceed_with_controls", "request_approval", "pause_and_escalate"}[l]
}

// queue returns the queue and the time limit in minutes, or nil if there is none. The caller's
// priority can make a review more urgent, never less.
func queue(l actionrisk.Level, priority string) (string, *int) {
	standard, urgent := 240, 30
	switch {
	case l == actionrisk.Critical, l == actionrisk.High && priority == "urgent":
		return "urgent", &urgent
	case l == actionrisk.High:
		return "standard", &standard
	}
	return "none", nil
}
