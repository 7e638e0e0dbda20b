package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Types of a decision's stream, decision/<decision id> in the tenant of its
// organization: the decision first, then at most one approval and one receipt.
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

// DecisionRecorded is decision.recorded, schema version 1. Record is the signed
// record; its members subject.agentId and subject.purpose are never stored in
// the clear (vault.Vault.SealRecord). ToolArguments are not part of the record. If
// the organization wants to keep them, they are sealed in the same way: reviewers see
// them, they can be erased, and the record has their hash.
type DecisionRecorded struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
	Member    string         `json:"member"`             // cus_… who asked, or whose token did
	Asserted  jsontext.Value `json:"asserted,omitempty"` // the caller's assertion in normal form, to evaluate it again

	ToolArguments jsontext.Value `json:"toolArguments,omitempty"` // canonical; sealed
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
	Member    string         `json:"member"` // cus_… who brought it, or whose token did
}
