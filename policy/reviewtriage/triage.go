// Package reviewtriage turns the verdict of policy/actionrisk into a packet for a
// human reviewer: whether one is needed, how soon, who, and what to ask. A
// recommendation is never an approval: humanApprovalIncluded is always false.
package reviewtriage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Input is an action with what its caller wishes about the review.
type Input struct {
	actionrisk.Action
	policy.Common
	Priority              string `json:"priority,omitempty" jsonschema:"enum=low,enum=normal,enum=high,enum=urgent" jsonschema_description:"The caller's wish; it can make a review more urgent, never less."`
	RequestedBy           string `json:"requestedBy,omitempty" jsonschema:"minLength=1,maxLength=200"`
	CommandScoreRequestID string `json:"commandScoreRequestId,omitempty" jsonschema:"pattern=^crs_[0-9a-f]{32}$" jsonschema_description:"An earlier score of the same action; recorded only."`
}

// Packet is what a reviewer reads.
type Packet struct {
	Command               string   `json:"command" jsonschema_description:"The command, secrets masked."`
	Reasons               []string `json:"reasons"`
	Questions             []string `json:"questions" jsonschema_description:"What is missing for a decision."`
	Preconditions         []string `json:"preconditions"`
	ReviewerRole          string   `json:"reviewerRole" jsonschema:"enum=none,enum=code-owner,enum=dba,enum=sre-oncall,enum=security,enum=finance"`
	Quorum                int      `json:"quorum" jsonschema:"minimum=0,maximum=2"`
	BlastRadius           string   `json:"blastRadius"`
	Reversibility         string   `json:"reversibility" jsonschema:"enum=yes,enum=hard,enum=no"`
	RollbackPlan          bool     `json:"rollbackPlan" jsonschema_description:"A rollback plan is required before approval."`
	Intent                string   `json:"intent,omitempty"`
	Actor                 string   `json:"actor,omitempty"`
	DiffStat              string   `json:"diffStat,omitempty"`
	RequestedBy           string   `json:"requestedBy,omitempty"`
	CommandScoreRequestID string   `json:"commandScoreRequestId,omitempty"`
}

// Output is the triage of one action.
type Output struct {
	RequestID             string           `json:"requestId" jsonschema:"pattern=^rtr_[0-9a-f]{32}$"`
	Risk                  string           `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`
	RequiresHuman         bool             `json:"requiresHuman"`
	RecommendedAction     string           `json:"recommendedAction" jsonschema:"enum=proceed,enum=proceed_with_controls,enum=request_approval,enum=pause_and_escalate"`
	Queue                 string           `json:"queue" jsonschema:"enum=none,enum=standard,enum=urgent"`
	SLAMinutes            *int             `json:"slaMinutes" jsonschema:"nullable"`
	HumanApprovalIncluded bool             `json:"humanApprovalIncluded" jsonschema:"enum=false"`
	MatchedRuleIDs        []string         `json:"matchedRuleIds"`
	ReviewPacket          Packet           `json:"reviewPacket"`
	ActionBindingVersion  string           `json:"actionBindingVersion"`
	ActionHash            string           `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Findings              []policy.Finding `json:"findings"`
}

// Service is review-triage/submit.
var Service = policy.Declare(policy.Service{
	Name:       "review-triage/submit",
	PriceCents: 25,
	Title:      "Review triage",
	Summary:    "Whether a person must review an action, how soon, in which role, and the packet to decide from.",
	Example:    `{"command":"kubectl delete namespace payments","environment":"production","priority":"high"}`,
	Ruleset:    actionrisk.Ruleset,
	PassesOn:   []string{"command-risk/score"},
}, evaluate)

func evaluate(in Input) (Output, error) {
	if err := actionrisk.Check(in.Action); err != nil {
		return Output{}, err
	}
	if !slices.Contains([]string{"", "low", "normal", "high", "urgent"}, in.Priority) {
		return Output{}, policy.Refuse("invalid_enum", "/priority", "priority must be low, normal, high or urgent")
	}
	if utf8.RuneCountInString(in.RequestedBy) > 200 {
		return Output{}, policy.Refuse("too_long", "/requestedBy", "requestedBy is too long")
	}
	if id := in.CommandScoreRequestID; id != "" && !scoreID(id) {
		return Output{}, policy.Refuse("out_of_range", "/commandScoreRequestId", "commandScoreRequestId is not the id of a score")
	}
	return Triage(in), nil
}

func scoreID(id string) bool {
	hex, ok := strings.CutPrefix(id, "crs_")
	return ok && len(hex) == 32 && strings.Trim(hex, "0123456789abcdef") == ""
}

// Triage is the triage of an input that passed its checks.
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

// queue and time to an answer in minutes. The caller's priority raises only.
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
