// Package events holds what is stored in the ledger: one struct per type of
// event, apart from what the API shows.
//
// A stored struct changes only by optional members that an old event lacks; what
// is there never moves, is never renamed and never changes its meaning. If the
// golden-bytes test of a type fails, the change is wrong: make a new schema
// version and a pure function that reads the old one.
//
// A member tagged personal:"true" is never stored in the clear: the ledger's
// vault puts a commitment in its place and seals the value (package ledger,
// Vault), so that it can be erased without touching the chain.
package events

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Names of the types of events.
const (
	TypeSigningKeyActivated = "signing_key.activated"
	TypeSigningKeyRetired   = "signing_key.retired"
	TypeKeyRequested        = "key.requested"
	TypeKeyIssued           = "key.issued"
	TypeKeyRevoked          = "key.revoked"
	TypeCallCompleted       = "call.completed"
	TypeWorkflowCompleted   = "workflow.completed"
)

// Types lists every type, so that a projection can say of each whether it
// handles it.
var Types = []string{
	TypeSigningKeyActivated, TypeSigningKeyRetired,
	TypeKeyRequested, TypeKeyIssued, TypeKeyRevoked,
	TypeCallCompleted, TypeWorkflowCompleted,
	TypeCustomerCreated, TypeOrganizationCreated, TypeOrganizationUpdated, TypeMemberAdded, TypeMemberRemoved,
	TypeOrganizationTokenIssued, TypeOrganizationTokenRevoked, TypePolicyDrafted, TypePolicyActivated,
	TypeDecisionRecorded, TypeApprovalRecorded, TypeReceiptRecorded,
	TypeCustomerBound, TypePurchaseFulfilled, TypePurchaseRefunded, TypeSubscriptionUpdated, TypeSubscriptionCharged, TypeInvoicePaid,
	TypeEntitlementGranted, TypeEntitlementRevoked, TypeDownloadConsumed,
	TypeAgentRegistered, TypeAgentVerified, TypeAgentClaimed, TypeAccessTokenRevoked, TypeCreditGranted,
	TypePaymentClaimed, TypePaymentSettled, TypePaymentRefused, TypePaymentUnknown, TypeIdentifierReserved,
	TypeRefundRequested, TypeRefundApproved, TypeRefundSent,
	TypeWebhookCreated, TypeWebhookRotated, TypeWebhookRemoved,
	TypeCheckpointsBegun, TypeRollbackDeclared, TypeSubjectErased, TypeExportCreated, TypeGuardReported,
}

// SigningKey is the record inside signing_key.activated. It is signed by the
// previous key of its purpose, the first by itself.
type SigningKey struct {
	KeyID         string  `json:"keyId"`         // 16 hex digits
	Purpose       string  `json:"purpose"`       // "record" or "checkpoint"
	PublicKey     string  `json:"publicKey"`     // 32 octets, base64
	PreviousKeyID *string `json:"previousKeyId"` // null for the first
	Reason        string  `json:"reason"`        // "first" or "rotated"
}

// SigningKeyActivated is signing_key.activated, schema version 1. Confirmation
// is the new key's own signature over the same record.
type SigningKeyActivated struct {
	Record       jsontext.Value `json:"record"`
	Integrity    seal.Integrity `json:"integrity"`
	Confirmation seal.Integrity `json:"confirmation"`
}

// SigningKeyRetired is signing_key.retired, schema version 1.
type SigningKeyRetired struct {
	KeyID           string `json:"keyId"`
	Reason          string `json:"reason"`                   // "rotated" or "compromised"
	CompromisedFrom int64  `json:"compromisedFrom,omitzero"` // position, with "compromised"
}

// KeyRequested is key.requested, schema version 1: it counts the free keys of an
// e-mail address and month in the stream free_keys/<reference>/<yyyy-mm>, whose
// name holds the address only under a key that can be destroyed; and it lists the
// keys of an account in the stream account_keys/<customer id>.
type KeyRequested struct {
	KeyID string `json:"keyId"`        // key_…
	ID    string `json:"id,omitempty"` // of a key in an account: its public part, which names its stream
}

// KeyIssued is key.issued, schema version 1, first in the stream key/<key id>.
type KeyIssued struct {
	KeyID      string `json:"keyId"` // key_…
	Plan       string `json:"plan"`  // "free"
	SecretHash string `json:"secretHash"`
	Email      any    `json:"email" personal:"true"`
	Subject    string `json:"subject"`              // data key id under which calls with this key are sealed
	CustomerID string `json:"customerId,omitempty"` // cus_… in whose account it was issued
}

// KeyRevoked is key.revoked, schema version 1.
type KeyRevoked struct {
	KeyID  string `json:"keyId"`
	Reason string `json:"reason"`
}

// CallCompleted is call.completed, schema version 1: one answered call. It stands
// in the stream of what paid for it: usage/<key or customer id>/<yyyy-mm>,
// pass/<subscription>/<period start>, credit/<client id>, payment/<payment id>.
type CallCompleted struct {
	Service        string          `json:"service"` // path suffix
	Version        string          `json:"version"`
	Charge         string          `json:"charge"` // "free", "pass", "credit" or "x402"
	PriceCents     int             `json:"priceCents"`
	UsedCents      int             `json:"usedCents,omitzero"`  // of the pass or credit, with this call
	PaymentID      string          `json:"paymentId,omitempty"` // pay_…, of an x402 call
	InputHash      string          `json:"inputHash"`
	OutputHash     string          `json:"outputHash"`
	RulesetVersion string          `json:"rulesetVersion,omitempty"`
	RulesetHash    string          `json:"rulesetHash,omitempty"`
	Request        any             `json:"request" personal:"true"`
	Answer         any             `json:"answer" personal:"true"` // without its receipt, which stands in the clear
	Record         jsontext.Value  `json:"record,omitempty"`       // the signed receipt, where the service gives one; that of a run holds its workflow
	Integrity      *seal.Integrity `json:"integrity,omitempty"`
	VerifyURL      string          `json:"verifyUrl,omitempty"`
}

// WorkflowCompleted is workflow.completed, schema version 0, the only event of
// workflow/<asw id>: what the specification calls a legacy status record, without action
// binding and receipt. This program reads it and appends none: a run keeps its workflow
// in the receipt of its call.completed.
type WorkflowCompleted struct {
	Workflow Workflow `json:"workflow"`
}

// Workflow is what is kept of a workflow: the member of that name in its receipt's
// record. Times are RFC 3339, UTC, milliseconds.
type Workflow struct {
	WorkflowID            string   `json:"workflowId"`
	Status                string   `json:"status"`
	Risk                  string   `json:"risk"`
	RiskScore             int      `json:"riskScore"`
	Decision              string   `json:"decision"`
	RequiresHumanReview   bool     `json:"requiresHumanReview"`
	MatchedRuleIDs        []string `json:"matchedRuleIds"`
	ActionBindingVersion  string   `json:"actionBindingVersion,omitempty"`
	ActionHash            string   `json:"actionHash,omitempty"`
	RulesetVersion        string   `json:"rulesetVersion,omitempty"`
	RulesetHash           string   `json:"rulesetHash,omitempty"`
	Audit                 Audit    `json:"audit"`
	CreatedAt             string   `json:"createdAt"`
	ExpiresAt             string   `json:"expiresAt"`
	HumanApprovalIncluded bool     `json:"humanApprovalIncluded"` // always false
}

// Audit names the two component answers behind a workflow.
type Audit struct {
	CommandScoreRequestID *string `json:"commandScoreRequestId"`
	ReviewTriageRequestID *string `json:"reviewTriageRequestId"`
}

// Archived lists the types whose payloads may leave the database when they are old:
// nearly all of its size, and nothing that is looked at again unless somebody asks for
// that very record. What decisions and credentials rest on is of other types.
var Archived = []string{TypeCallCompleted, TypeWorkflowCompleted, TypeDecisionRecorded, TypeApprovalRecorded, TypeReceiptRecorded, TypeGuardReported}
