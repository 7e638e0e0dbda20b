package assurance

import (
	"time"

	"github.com/countersign/countersign/policy/canon"
)

// Verdicts of a person about a decision that needs a review.
const (
	VerdictApproved = "approved"
	VerdictRejected = "rejected"
)

// ApprovalInput is the request of POST /api/assurance/decisions/{id}/approval.
type ApprovalInput struct {
	Verdict string `json:"verdict" jsonschema:"enum=approved,enum=rejected"`
	Reason  string `json:"reason" jsonschema:"minLength=1,maxLength=1000"`
}

// ParseApproval reads a request strictly.
func ParseApproval(text []byte) (ApprovalInput, error) {
	var in ApprovalInput
	err := parse(text, []field{
		{"verdict", true, oneOf(&in.Verdict, VerdictApproved, VerdictRejected)},
		{"reason", true, prose(&in.Reason, maxPurpose)},
	})
	return in, err
}

// ApprovalRecord is the statement of a signed approval. It is bound to one decision and
// expires; the decision's own bytes do not change.
type ApprovalRecord struct {
	Schema                string `json:"schema"`
	ApprovalID            string `json:"approvalId"`
	OrgID                 string `json:"orgId"`
	DecisionID            string `json:"decisionId"`
	DecisionRecordHash    string `json:"decisionRecordHash"`
	BindingHash           string `json:"bindingHash"`
	Verdict               string `json:"verdict" jsonschema:"enum=approved,enum=rejected"`
	Reason                string `json:"reason"`
	ApprovedBy            string `json:"approvedBy"`            // id of a customer, cus_…
	SelfApproved          bool   `json:"selfApproved,omitzero"` // the approver also requested the action; allowed for a team with one admin
	IssuedAt              string `json:"issuedAt" jsonschema:"format=date-time"`
	ValidUntil            string `json:"validUntil" jsonschema:"format=date-time"`
	HumanApprovalIncluded bool   `json:"humanApprovalIncluded"` // always true
}

// Record returns the record of a verdict that is issued now.
func (in ApprovalInput) Record(approvalID string, decision DecisionRecord, recordHash, approvedBy string, self bool, now time.Time) ApprovalRecord {
	return ApprovalRecord{
		Schema: ApprovalSchema, ApprovalID: approvalID, OrgID: decision.OrgID, DecisionID: decision.DecisionID,
		DecisionRecordHash: recordHash, BindingHash: decision.BindingHash, Verdict: in.Verdict, Reason: in.Reason,
		ApprovedBy: approvedBy, SelfApproved: self, IssuedAt: canon.Stamp(now), ValidUntil: canon.Stamp(now.Add(ValidFor)),
		HumanApprovalIncluded: true,
	}
}
