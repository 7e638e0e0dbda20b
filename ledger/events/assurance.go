package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Types of events in the stream decision/<decision id>, in the tenant of the organization: first
// the decision, then at most one approval and one receipt.
const (
	TypeDecisionRecorded = "decision.recorded"
	TypeApprovalRecorded = "approval.recorded"
	TypeReceiptRecorded  = "receipt.recorded"
)

var assurance = []kind{
	{name: TypeDecisionRecorded, stored: reflect.TypeFor[DecisionRecorded](), shown: in("history", "oversight", "spend", "webhooks"), archived: true, inRecord: []string{"/record/subject/agentId", "/record/subject/purpose", "/toolArguments"},
		series: numbered{"decision", "decision", []string{"allow", "deny", "needs_review"}, agentOfRecord}, golden: []string{
			`{"asserted":{"requireHttps":true},"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"member":"cus_1","record":{"schema":"x"},"toolArguments":{"path":"/x"},"verifyUrl":"u"}`,
			`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"member":"cus_1","record":{"schema":"x"},"verifyUrl":"u"}`,
		}},
	{name: TypeApprovalRecorded, stored: reflect.TypeFor[ApprovalRecorded](), shown: in("history", "oversight", "webhooks"), archived: true,
		series: numbered{"approval", "verdict", []string{"approved", "rejected"}, agentOfDecision}, golden: []string{
			`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"record":{"schema":"x"},"verifyUrl":"u"}`,
		}},
	{name: TypeReceiptRecorded, stored: reflect.TypeFor[ReceiptRecorded](), shown: in("history", "oversight", "spend", "webhooks"), archived: true,
		series: numbered{"receipt", "conformance", []string{"conforming", "inconclusive", "violation"}, agentOfDecision}, golden: []string{
			`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"member":"cus_1","record":{"schema":"x"},"verifyUrl":"u"}`,
		}},
}

// DecisionRecorded is decision.recorded, schema version 1. Record is the signed record; its
// members subject.agentId and subject.purpose are always encrypted (vault.Vault.SealRecord).
// ToolArguments are not part of the record. If the organization keeps them, they are encrypted in
// the same way: reviewers can see them, they can be erased, and the record contains their hash.
type DecisionRecorded struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
	Member    string         `json:"member"`             // cus_… of the member who made the request, or whose token made it
	Asserted  jsontext.Value `json:"asserted,omitempty"` // assertion of the caller in normal form, so that it can be evaluated again

	ToolArguments jsontext.Value `json:"toolArguments,omitempty"` // canonical JSON; encrypted
}

// ApprovalRecorded is approval.recorded, schema version 1.
type ApprovalRecorded struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
}

// ReceiptRecorded is receipt.recorded, schema version 1.
type ReceiptRecorded struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
	Member    string         `json:"member"` // cus_… of the member who submitted it, or whose token did
}
