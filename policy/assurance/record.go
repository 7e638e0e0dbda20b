package assurance

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	v1 "github.com/countersign/countersign/policy/assurance/v1"
	"github.com/countersign/countersign/policy/canon"
)

// Schemas of the records, and the payload types of their signatures.
const (
	DecisionSchema = "svc-assurance-decision-v1"
	ReceiptSchema  = "svc-assurance-receipt-v1"
	ApprovalSchema = "svc-assurance-approval-v1"

	DecisionType = "application/vnd.svc.decision.v1+json"
	ReceiptType  = "application/vnd.svc.assurance-receipt.v1+json"
	ApprovalType = "application/vnd.svc.approval.v1+json"
)

// DecisionRecord is the signed record of a decision. Its members change only together with a new
// schema name. Their order in this type does not matter, because the record is signed in canonical
// form.
type DecisionRecord struct {
	Schema              string         `json:"schema"`
	DecisionID          string         `json:"decisionId"`
	OrgID               string         `json:"orgId"`
	Environment         string         `json:"environment" jsonschema:"enum=dev,enum=live"`
	IssuedAt            string         `json:"issuedAt" jsonschema:"format=date-time"`
	ValidUntil          *string        `json:"validUntil" jsonschema:"nullable"` // null if the decision is not allow
	Protocol            string         `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	Subject             Subject        `json:"subject"`
	Intent              jsontext.Value `json:"intent"`
	Normalized          Intent         `json:"normalized"`
	AssuranceActionHash string         `json:"assuranceActionHash"`
	BindingHash         string         `json:"bindingHash"`
	IdempotencyKeyHash  string         `json:"idempotencyKeyHash"`
	Policy              RecordPolicy   `json:"policy"`
	EngineVersion       string         `json:"engineVersion"`
	RulesetHash         string         `json:"rulesetHash"`
	Decision            string         `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Findings            []Finding      `json:"findings"`
	RulesEvaluated      []string       `json:"rulesEvaluated"`
	Approval            RecordApproval `json:"approval"`
	Supersedes          *string        `json:"supersedes" jsonschema:"nullable"` // always null
}

// RecordPolicy names the policy under which the decision was made.
type RecordPolicy struct {
	PolicyID          string    `json:"policyId"`
	Version           int64     `json:"version"`
	PolicyHash        string    `json:"policyHash"`
	ActivatedSequence int64     `json:"activatedSequence"` // sequence number of the activation in the organization's chain
	Asserted          *Asserted `json:"asserted" jsonschema:"nullable"`
}

// Asserted contains the hash of the caller's assertion and the fields in which it is stricter than
// the active policy.
type Asserted struct {
	PolicyHash     string   `json:"policyHash"`
	StricterFields []string `json:"stricterFields"`
}

// RecordApproval reports whether a person must approve the action. A decision record never
// contains the approval, which is a separate record.
type RecordApproval struct {
	Required              bool    `json:"required" jsonschema_description:"Whether a person must approve first. GET /api/assurance/decisions/{decisionId}/approval returns the approval."`
	ApprovalID            *string `json:"approvalId" jsonschema:"nullable" jsonschema_description:"Always null: the approval is a separate record."`
	HumanApprovalIncluded bool    `json:"humanApprovalIncluded"` // always false
}

// Ruling contains all values from which a decision record is made.
type Ruling struct {
	DecisionID, OrgID, Environment string
	IssuedAt                       time.Time
	ClockAdjusted                  bool // true if the node's clock was behind the organization's last record
	Request                        DecisionRequest
	Policy                         StoredPolicy
	ActivatedSequence              int64
	Stricter                       []string // fields in which the assertion is stricter; nil without an assertion
	Evaluation                     Evaluation
}

// Record returns the decision record of a ruling.
func (r Ruling) Record() (DecisionRecord, error) {
	binding, err := Binding{
		OrgID: r.OrgID, DecisionID: r.DecisionID, Decision: r.Evaluation.Decision,
		AssuranceActionHash: r.Request.ActionHash, SubjectHash: r.Request.SubjectHash,
		PolicyHash: r.Policy.Hash, PolicyID: r.Policy.PolicyID, Version: r.Policy.Version,
	}.Hash()
	if err != nil {
		return DecisionRecord{}, err
	}
	record := DecisionRecord{
		Schema: DecisionSchema, DecisionID: r.DecisionID, OrgID: r.OrgID, Environment: r.Environment,
		IssuedAt: canon.Stamp(r.IssuedAt), Protocol: r.Request.Protocol, Subject: r.Request.Subject,
		Intent: r.Request.Intent, Normalized: r.Request.Normalized,
		AssuranceActionHash: r.Request.ActionHash, BindingHash: binding,
		IdempotencyKeyHash: KeyHash(r.Request.IdempotencyKey),
		Policy: RecordPolicy{PolicyID: r.Policy.PolicyID, Version: r.Policy.Version, PolicyHash: r.Policy.Hash,
			ActivatedSequence: r.ActivatedSequence},
		EngineVersion: EngineVersion, RulesetHash: rulesetHash,
		Decision: r.Evaluation.Decision, Findings: Findings(r.Evaluation, r.ClockAdjusted),
		RulesEvaluated: r.Evaluation.RulesEvaluated,
		Approval:       RecordApproval{Required: r.Evaluation.Decision == NeedsReview},
	}
	if record.Decision == Allow {
		until := canon.Stamp(r.IssuedAt.Add(ValidFor))
		record.ValidUntil = &until
	}
	if r.Request.Assertion != nil {
		record.Policy.Asserted = &Asserted{r.Request.Assertion.Hash, r.Stricter}
	}
	return record, nil
}

// Findings returns the findings of an evaluation. If clockAdjusted is true, it adds the finding
// clock.adjusted: the time of the record is not that of the node's clock.
func Findings(e Evaluation, clockAdjusted bool) []Finding {
	if !clockAdjusted {
		return e.Findings
	}
	return v1.Sort(append([]Finding{{RuleID: ClockAdjusted, Effect: v1.Info, Field: "issuedAt", Source: v1.Always,
		Message: "the clock was behind the last record", Expected: "not before the last record", Actual: "raised to it"}}, e.Findings...))
}

// ClockAdjusted is the id of the only finding of a decision that the engine does not make.
const ClockAdjusted = "clock.adjusted"

// ReadStamp parses a time of a record.
func ReadStamp(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }
