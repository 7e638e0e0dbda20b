package events

import (
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

// DecisionRecorded is decision.recorded, schema version 1. Record is the signed
// record; its members subject.agentId and subject.purpose are never stored in
// the clear (vault.Vault.SealRecord). ToolArguments, which no record holds, are
// kept beside it in the same way where the organization wants that: what a
// reviewer sees, erasable, and bound to the record by their hash in it.
type DecisionRecorded struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
	Member    string         `json:"member"`             // cus_… who asked; for a token whose it is
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
	Member    string         `json:"member"` // cus_… who brought it; for a token whose it is
}
