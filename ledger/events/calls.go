package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Types of events about the answers of services.
const (
	TypeCallCompleted     = "call.completed"
	TypeWorkflowCompleted = "workflow.completed"
)

var calls = []kind{
	{name: TypeCallCompleted, stored: reflect.TypeFor[CallCompleted](), shown: in("status", "uses"), archived: true, golden: []string{
		`{"answer":{"price":1.5},"charge":"free","inputHash":"aa","outputHash":"bb","priceCents":25,"request":{"spot":100},"service":"options/price","version":"1.0.0"}`,
		`{"answer":{"price":1.5},"charge":"x402","inputHash":"aa","integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"outputHash":"bb","paymentId":"pay_1","priceCents":25,"record":{"receiptId":"asr_1"},"request":{"spot":100},"rulesetHash":"cc","rulesetVersion":"1","service":"options/price","usedCents":50,"verifyUrl":"u","version":"1.0.0"}`,
	}},
	{name: TypeWorkflowCompleted, stored: reflect.TypeFor[WorkflowCompleted](), shown: in("status"), archived: true, legacy: true, golden: []string{
		`{"workflow":{"actionBindingVersion":"svc-action-v1","actionHash":"aa","audit":{"commandScoreRequestId":"crs_1","reviewTriageRequestId":null},"createdAt":"2026-11-21T15:00:00.000Z","decision":"allow","expiresAt":"2026-12-21T15:00:00.000Z","humanApprovalIncluded":false,"matchedRuleIds":["git.push_force"],"requiresHumanReview":false,"risk":"low","riskScore":5,"rulesetHash":"bb","rulesetVersion":"1","status":"completed","workflowId":"asw_1"}}`,
	}},
}

// CallCompleted is call.completed, schema version 1: one answered call. It is in the stream of the
// fund that has paid for it: usage/<key or customer id>/<yyyy-mm>, pass/<subscription>/<period
// start>, credit/<client id>, payment/<payment id>.
type CallCompleted struct {
	Service        string          `json:"service"` // path of the service, such as options/price
	Version        string          `json:"version"`
	Charge         string          `json:"charge"` // "free", "pass", "credit" or "x402"
	PriceCents     int             `json:"priceCents"`
	UsedCents      int             `json:"usedCents,omitzero"`  // cents used of the pass or credit, including this call
	PaymentID      string          `json:"paymentId,omitempty"` // pay_…, only for an x402 call
	InputHash      string          `json:"inputHash"`
	OutputHash     string          `json:"outputHash"`
	RulesetVersion string          `json:"rulesetVersion,omitempty"`
	RulesetHash    string          `json:"rulesetHash,omitempty"`
	Request        any             `json:"request" personal:"true"`
	Answer         any             `json:"answer" personal:"true"` // without the receipt, which is stored unencrypted
	Record         jsontext.Value  `json:"record,omitempty"`       // signed receipt, if the service gives one; the receipt of a workflow run contains the workflow
	Integrity      *seal.Integrity `json:"integrity,omitempty"`
	VerifyURL      string          `json:"verifyUrl,omitempty"`
}

// WorkflowCompleted is workflow.completed, schema version 0, the only event of the stream
// workflow/<asw id>. The specification calls it a legacy status record, without action binding and
// receipt. This program reads such events but does not append them: today a workflow is in the
// receipt of its call.completed.
type WorkflowCompleted struct {
	Workflow Workflow `json:"workflow"`
}

// Workflow is the stored form of a workflow, which is the member workflow of a receipt's record.
// Times are RFC 3339, UTC, milliseconds.
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

// Audit names the two component answers from which a workflow was computed.
type Audit struct {
	CommandScoreRequestID *string `json:"commandScoreRequestId"`
	ReviewTriageRequestID *string `json:"reviewTriageRequestId"`
}
