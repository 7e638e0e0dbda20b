package assurance

import (
	"time"

	"github.com/countersign/countersign/policy/canon"
)

// Values of the verdict that a person gives on a decision that needs a review.
const (
	VerdictApproved = "approved"
	VerdictRejected = "rejected"
)

// ApprovalInput is the request of POST /api/assurance/decisions/{id}/approval.
type ApprovalInput struct {
	Verdict string `json:"verdict" jsonschema:"enum=approved,enum=rejected"`
	Reason  string `json:"reason" jsonschema:"minLength=1,maxLength=1000"`
}

// ParseApproval reads a request strictly: it returns an error for unknown, missing or malformed
// members.
func ParseApproval(text []byte) (ApprovalInput, error) {
	var in ApprovalInput
	err := parse(text, []field{
		{"verdict", true, oneOf(&in.Verdict, VerdictApproved, VerdictRejected)},
		{"reason", true, prose(&in.Reason, maxPurpose)},
	})
	return in, err
}

// ApprovalRecord is the signed record of an approval. It names one decision, contains the hash of
// that decision's record, and expires. The decision's own bytes do not change.
type ApprovalRecord struct {
	Schema                string `json:"schema"`
	ApprovalID            string `json:"approvalId"`
	OrgID                 string `json:"orgId"`
	DecisionID            string `json:"decisionId"`
	DecisionRecordHash    string `json:"decisionRecordHash"`
	BindingHash           string `json:"bindingHash"`
	Verdict               string `json:"verdict" jsonschema:"enum=approved,enum=rejected"`
	Reason                string `json:"reason"`
	ApprovedBy            string `json:"approvedBy"`            // member id of the approver, cus_…
	SelfApproved          bool   `json:"selfApproved,omitzero"` // true if the approver also requested the action; allowed for a team with one admin
	IssuedAt              string `json:"issuedAt" jsonschema:"format=date-time"`
	ValidUntil            string `json:"validUntil" jsonschema:"format=date-time"`
	HumanApprovalIncluded bool   `json:"humanApprovalIncluded"` // always true
}

// Record returns the record of this verdict, issued at the time now.
func (in ApprovalInput) Record(approvalID string, decision DecisionRecord, recordHash, approvedBy string, self bool, now time.Time) ApprovalRecord {
	return ApprovalRecord{
		Schema: ApprovalSchema, ApprovalID: approvalID, OrgID: decision.OrgID, DecisionID: decision.DecisionID,
		DecisionRecordHash: recordHash, BindingHash: decision.BindingHash, Verdict: in.Verdict, Reason: in.Reason,
		ApprovedBy: approvedBy, SelfApproved: self, IssuedAt: canon.Stamp(now), ValidUntil: canon.Stamp(now.Add(ValidFor)),
		HumanApprovalIncluded: true,
	}
}
