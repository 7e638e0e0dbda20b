package attest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/paymentpolicy"
)

// Input is one action to attest.
type Input struct {
	policy.Common
	Protocol       string      `json:"protocol" jsonschema:"minLength=1,enum=x402,enum=mcp"`
	Intent         *Intent     `json:"intent" jsonschema_description:"An x402 payment (resourceUrl and method required) or an MCP tool call (serverId and toolName required), as the protocol says; never members of both."`
	Subject        *Subject    `json:"subject,omitempty"`
	Policy         *Policy     `json:"policy,omitempty" jsonschema_description:"Without a policy the verdict is at least needs_review."`
	Settlement     *Settlement `json:"settlement,omitempty" jsonschema_description:"What happened, where it is known already."`
	IdempotencyKey string      `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// Intent holds the members of both shapes, so that one schema describes them.
// It keeps the text it was sent as: the binding hash is over that.
type Intent struct {
	ResourceURL            string   `json:"resourceUrl,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	Method                 string   `json:"method,omitempty" jsonschema:"minLength=1,maxLength=32"`
	Scheme                 string   `json:"scheme,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	Network                string   `json:"network,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	Asset                  string   `json:"asset,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	PayTo                  string   `json:"payTo,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	AmountUnits            string   `json:"amountUnits,omitempty" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$"`
	AmountUSD              *float64 `json:"amountUsd,omitempty" jsonschema:"minimum=0,maximum=1e9"`
	FacilitatorURL         string   `json:"facilitatorUrl,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	PaymentIdentifier      string   `json:"paymentIdentifier,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	PaymentPayloadResource string   `json:"paymentPayloadResource,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	PaymentPayloadMethod   string   `json:"paymentPayloadMethod,omitempty" jsonschema:"minLength=1,maxLength=2048"`

	ServerID          string `json:"serverId,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	ServerURL         string `json:"serverUrl,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	ToolName          string `json:"toolName,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	ToolArguments     any    `json:"toolArguments,omitzero" jsonschema_description:"Any JSON value; only its hash enters the record."`
	ToolArgumentsHash string `json:"toolArgumentsHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical toolArguments."`
	DeclaredRisk      string `json:"declaredRisk,omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`

	raw jsontext.Value
}

// plainIntent is Intent without its way of being read.
type plainIntent Intent

// UnmarshalJSONFrom reads an intent and keeps its text. The arguments may be most of
// a megabyte: they stay text, of which no tree is built.
func (i *Intent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var read struct {
		plainIntent
		ToolArguments jsontext.Value `json:"toolArguments"`
	}
	start := dec.InputOffset()
	rest := bytes.Clone(dec.UnreadBuffer())
	if err := json.UnmarshalDecode(dec, &read); err != nil {
		return err
	}
	*i = Intent(read.plainIntent)
	if len(read.ToolArguments) > 0 && read.ToolArguments.Kind() != 'n' {
		i.ToolArguments = read.ToolArguments
	}
	if length := dec.InputOffset() - start; length > 0 && length <= int64(len(rest)) {
		i.raw = jsontext.Value(bytes.TrimLeft(rest[:length], " \t\r\n:,"))
	}
	return nil
}

// mcpIntent is the MCP shape alone; members of the other shape are unknown to it.
type mcpIntent struct {
	ServerID          string `json:"serverId"`
	ServerURL         string `json:"serverUrl"`
	ToolName          string `json:"toolName"`
	ToolArgumentsHash string `json:"toolArgumentsHash"`
	DeclaredRisk      string `json:"declaredRisk"`
}

// Subject says for whom the action is.
type Subject struct {
	RunID   string `json:"runId" jsonschema:"minLength=1,maxLength=200"`
	AgentID string `json:"agentId,omitempty" jsonschema:"minLength=1,maxLength=200"`
	Purpose string `json:"purpose,omitempty" jsonschema:"minLength=1,maxLength=1000"`
}

// Policy is the specification's policy table.
type Policy struct {
	PolicyID                 string   `json:"policyId" jsonschema:"minLength=1,maxLength=200"`
	Version                  int      `json:"version" jsonschema:"minimum=1,maximum=9007199254740991"`
	MaxUSDPerTransaction     *float64 `json:"maxUsdPerTransaction,omitempty" jsonschema:"minimum=0,maximum=1e12"`
	AllowedNetworks          []string `json:"allowedNetworks,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048"`
	AllowedPayTo             []string `json:"allowedPayTo,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048"`
	AllowedHosts             []string `json:"allowedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048"`
	BlockedHosts             []string `json:"blockedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048"`
	AllowedMCPServers        []string `json:"allowedMcpServers,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048"`
	AllowedMCPTools          []string `json:"allowedMcpTools,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Tool names, or serverId/toolName; exact."`
	BlockedMCPTools          []string `json:"blockedMcpTools,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"As allowedMcpTools, without regard to case; blocked wins."`
	RequireExactScheme       bool     `json:"requireExactScheme,omitempty"`
	RequireHTTPS             *bool    `json:"requireHttps,omitempty" jsonschema_description:"Default true."`
	RequireResourceBinding   bool     `json:"requireResourceBinding,omitempty"`
	RequirePaymentIdentifier bool     `json:"requirePaymentIdentifier,omitempty"`
	RequireMCPArguments      bool     `json:"requireMcpArgumentBinding,omitempty"`
	ReviewMCPRiskAtOrAbove   string   `json:"reviewMcpRiskAtOrAbove,omitempty" jsonschema:"enum=medium,enum=high,enum=critical"`
}

// RefusesNull marks a policy for the schemas that are made of it: none of its members
// may be null, since many programs write null for an empty list.
func (Policy) RefusesNull() {}

// x402 is the part of the policy that concerns payments.
func (p *Policy) x402() *paymentpolicy.Policy {
	if p == nil {
		return nil
	}
	return &paymentpolicy.Policy{
		PolicyID: p.PolicyID, Version: p.Version, MaxUSDPerTransaction: p.MaxUSDPerTransaction,
		AllowedNetworks: p.AllowedNetworks, AllowedPayTo: p.AllowedPayTo, AllowedHosts: p.AllowedHosts, BlockedHosts: p.BlockedHosts,
		RequireExactScheme: p.RequireExactScheme, RequireHTTPS: p.RequireHTTPS,
		RequireResourceBinding: p.RequireResourceBinding, RequirePaymentIdentifier: p.RequirePaymentIdentifier,
	}
}

// Settlement is what the caller observed.
type Settlement struct {
	Outcome          string   `json:"outcome" jsonschema:"minLength=1,enum=fulfilled,enum=failed,enum=rejected"`
	SettlementID     string   `json:"settlementId,omitempty" jsonschema:"minLength=1,maxLength=2048"`
	ObservedAt       string   `json:"observedAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time"`
	EvidenceHashes   []string `json:"evidenceHashes,omitempty" jsonschema:"maxItems=100,minLength=1,maxLength=256"`
	ResponseStatus   *int     `json:"responseStatus,omitempty" jsonschema:"minimum=100,maximum=599"`
	ResponseBodyHash string   `json:"responseBodyHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$"`
}

// folded is the settlement with its SHA-256 hashes in lower case.
func (s *Settlement) folded() *Settlement {
	if s == nil {
		return nil
	}
	lower := *s
	lower.ResponseBodyHash = strings.ToLower(s.ResponseBodyHash)
	lower.EvidenceHashes = slices.Clone(s.EvidenceHashes)
	for i, hash := range lower.EvidenceHashes {
		if len(hash) == 64 && strings.Trim(hash, "0123456789abcdefABCDEF") == "" {
			lower.EvidenceHashes[i] = strings.ToLower(hash)
		}
	}
	return &lower
}

// Output is the part of the answer that the same input always gives. The signed
// members (record, integrity, verifyUrl, receipt) are added by whoever signs.
type Output struct {
	Verdict              string           `json:"verdict" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	BindingHash          string           `json:"bindingHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	ActionBindingVersion string           `json:"actionBindingVersion" jsonschema:"enum=svc-action-v1"`
	Findings             []policy.Finding `json:"findings"`
	FindingsTruncated    bool             `json:"findingsTruncated,omitzero"`

	record Record // what is to be signed, but for its id and time
}

// Statement is the Record that is to be signed.
func (o Output) Statement(id, issuedAt string) any {
	o.record.AttestationID, o.record.IssuedAt = id, issuedAt
	return o.record
}

// ReceiptDecision is what the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Verdict }

// Record is the attestation that is signed. Members may be added; none is renamed,
// moved or removed. AttestationID and IssuedAt are empty until the signer sets
// them. No number in it has a fraction.
type Record struct {
	AttestationID string        `json:"attestationId"`
	Protocol      string        `json:"protocol"`
	Subject       *Subject      `json:"subject" jsonschema:"nullable"`
	IntentSummary IntentSummary `json:"intentSummary"`
	PolicyRef     *PolicyRef    `json:"policyRef" jsonschema:"nullable"`
	Verdict       string        `json:"verdict"`
	FindingIDs    []string      `json:"findingIds"`
	Settlement    *Settlement   `json:"settlement" jsonschema:"nullable"`
	IssuedAt      string        `json:"issuedAt"`
	BindingHash   string        `json:"bindingHash"`
}

// IntentSummary says which action it was, without path, query or arguments.
type IntentSummary struct {
	Host          string `json:"host,omitempty"`
	Method        string `json:"method,omitempty"`
	Network       string `json:"network,omitempty"`
	PayTo         string `json:"payTo,omitempty"`
	ServerID      string `json:"serverId,omitempty"`
	ToolName      string `json:"toolName,omitempty"`
	ArgumentsHash string `json:"argumentsHash,omitempty"`
}

// PolicyRef names the policy the verdict is under.
type PolicyRef struct {
	PolicyID string `json:"policyId"`
	Version  int    `json:"version"`
}
