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
	Protocol       string      `json:"protocol" jsonschema:"minLength=1,enum=x402,enum=mcp" jsonschema_description:"Kind of action."`
	Intent         *Intent     `json:"intent" jsonschema_description:"An x402 payment (resourceUrl and method required) or an MCP tool call (serverId and toolName required), as the protocol says; never members of both."`
	Subject        *Subject    `json:"subject,omitempty" jsonschema_description:"Who acts, in which run, and why."`
	Policy         *Policy     `json:"policy,omitempty" jsonschema_description:"Policy that the action is checked against. Without one the verdict is at least needs_review."`
	Settlement     *Settlement `json:"settlement,omitempty" jsonschema_description:"Result of the action, if known."`
	IdempotencyKey string      `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"The same key and body return the same attestation."`
}

// Intent has the members of an x402 payment and of an MCP tool call, so that one schema describes
// both. It also keeps the text as sent, over which the binding hash is computed.
type Intent struct {
	ResourceURL            string   `json:"resourceUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Absolute http or https URL of the purchased resource (x402)."`
	Method                 string   `json:"method,omitempty" jsonschema:"minLength=1,maxLength=32" jsonschema_description:"HTTP method of the paid request (x402)."`
	Scheme                 string   `json:"scheme,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"x402 scheme, for example exact."`
	Network                string   `json:"network,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"CAIP-2 name, for example eip155:8453, or an x402 version 1 name, for example base."`
	Asset                  string   `json:"asset,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Contract of the token, or its symbol, for example USDC."`
	PayTo                  string   `json:"payTo,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Address of the recipient."`
	AmountUnits            string   `json:"amountUnits,omitempty" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$" jsonschema_description:"Amount in the smallest units of the asset, in decimal digits: 1000000 is 1 USDC."`
	AmountUSD              *float64 `json:"amountUsd,omitempty" jsonschema:"minimum=0,maximum=1e9" jsonschema_description:"Amount in US dollars."`
	FacilitatorURL         string   `json:"facilitatorUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"URL of the facilitator that settles."`
	PaymentIdentifier      string   `json:"paymentIdentifier,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The caller's own identifier of the purchase."`
	PaymentPayloadResource string   `json:"paymentPayloadResource,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The resource that the signed payload names."`
	PaymentPayloadMethod   string   `json:"paymentPayloadMethod,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The method that the signed payload names."`

	ServerID          string `json:"serverId,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Name of the MCP server (mcp)."`
	ServerURL         string `json:"serverUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"URL of the MCP server (mcp)."`
	ToolName          string `json:"toolName,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Name of the tool (mcp)."`
	ToolArguments     any    `json:"toolArguments,omitzero" jsonschema_description:"Any JSON value; only its hash enters the record."`
	ToolArgumentsHash string `json:"toolArgumentsHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical toolArguments."`
	DeclaredRisk      string `json:"declaredRisk,omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Risk of the call as declared by the caller (mcp)."`

	raw jsontext.Value
}

// plainIntent is Intent without its method UnmarshalJSONFrom.
type plainIntent Intent

// UnmarshalJSONFrom decodes an intent and keeps its text. It keeps the arguments, which may be
// nearly as long as the largest body, as text instead of parsing them.
func (i *Intent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var read struct {
		plainIntent
		ToolArguments jsontext.Value `json:"toolArguments" jsonschema_description:"Any JSON value; only its hash enters the record."`
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

// mcpIntent has only the members of an MCP call. Decoding it refuses the members of an x402
// intent.
type mcpIntent struct {
	ServerID          string `json:"serverId"`
	ServerURL         string `json:"serverUrl"`
	ToolName          string `json:"toolName"`
	ToolArgumentsHash string `json:"toolArgumentsHash"`
	DeclaredRisk      string `json:"declaredRisk"`
}

// Subject names who acts, in which run and for what purpose.
type Subject struct {
	RunID   string `json:"runId" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Id of the run in which the agent acts."`
	AgentID string `json:"agentId,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Id of the agent."`
	Purpose string `json:"purpose,omitempty" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"Why the agent takes the action."`
}

// Policy is the caller's policy for x402 payments and MCP tool calls.
type Policy struct {
	PolicyID                 string   `json:"policyId" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Name of the policy."`
	Version                  int      `json:"version" jsonschema:"minimum=1,maximum=9007199254740991" jsonschema_description:"Version of the policy, counted from 1."`
	MaxUSDPerTransaction     *float64 `json:"maxUsdPerTransaction,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Largest amount of one payment, in US dollars."`
	AllowedNetworks          []string `json:"allowedNetworks,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed networks; absent: any, empty: none."`
	AllowedPayTo             []string `json:"allowedPayTo,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed recipients; absent: any, empty: none."`
	AllowedHosts             []string `json:"allowedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed hosts, exact or *.domain; absent: any, empty: none."`
	BlockedHosts             []string `json:"blockedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Blocked hosts, with all their subdomains."`
	AllowedMCPServers        []string `json:"allowedMcpServers,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed MCP servers; absent: any, empty: none."`
	AllowedMCPTools          []string `json:"allowedMcpTools,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed tools, each in the form toolName or serverId/toolName, compared exactly."`
	BlockedMCPTools          []string `json:"blockedMcpTools,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Blocked tools, in the forms of allowedMcpTools but compared without regard to case; overrides allowedMcpTools."`
	RequireExactScheme       bool     `json:"requireExactScheme,omitempty" jsonschema_description:"Only the scheme exact is allowed. Default false."`
	RequireHTTPS             *bool    `json:"requireHttps,omitempty" jsonschema_description:"Only https is allowed. Default true."`
	RequireResourceBinding   bool     `json:"requireResourceBinding,omitempty" jsonschema_description:"paymentPayloadResource must be given. Default false."`
	RequirePaymentIdentifier bool     `json:"requirePaymentIdentifier,omitempty" jsonschema_description:"paymentIdentifier must be given. Default false."`
	RequireMCPArguments      bool     `json:"requireMcpArgumentBinding,omitempty" jsonschema_description:"toolArguments or their hash must be given. Default false."`
	ReviewMCPRiskAtOrAbove   string   `json:"reviewMcpRiskAtOrAbove,omitempty" jsonschema:"enum=medium,enum=high,enum=critical" jsonschema_description:"A declaredRisk at or above this level needs a review by a person."`
}

// RefusesNull is a marker: a schema that is made from a type with this method does not allow null
// for any member, because many programs write null for an empty list.
func (Policy) RefusesNull() {}

// x402 returns the rules of the policy for payments.
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

// Settlement is the result of the action, as the caller observed it.
type Settlement struct {
	Outcome          string   `json:"outcome" jsonschema:"minLength=1,enum=fulfilled,enum=failed,enum=rejected" jsonschema_description:"Result of the action."`
	SettlementID     string   `json:"settlementId,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Id of the settlement."`
	ObservedAt       string   `json:"observedAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the result was observed, RFC 3339."`
	EvidenceHashes   []string `json:"evidenceHashes,omitempty" jsonschema:"maxItems=100,minLength=1,maxLength=256" jsonschema_description:"Hashes of the evidence; SHA-256 in hexadecimal digits is recorded in lower case."`
	ResponseStatus   *int     `json:"responseStatus,omitempty" jsonschema:"minimum=100,maximum=599" jsonschema_description:"HTTP status of the answer."`
	ResponseBodyHash string   `json:"responseBodyHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the body in hexadecimal digits of either case, recorded in lower case."`
}

// folded returns a copy of the settlement with its SHA-256 hashes in lower case.
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

// Output is the part of the answer that is always the same for the same input. The signer adds the
// members record, integrity, verifyUrl and receipt.
type Output struct {
	Verdict              string           `json:"verdict" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"The strictest result: deny, then needs_review, then allow."`
	BindingHash          string           `json:"bindingHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical intent, null members left out, with its protocol."`
	ActionBindingVersion string           `json:"actionBindingVersion" jsonschema:"enum=svc-action-v1" jsonschema_description:"Version of the computation of bindingHash or actionHash."`
	Findings             []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
	FindingsTruncated    bool             `json:"findingsTruncated,omitzero" jsonschema_description:"True if there were more than 500 findings; the most severe are kept."`

	record Record // the record to be signed, without id and time
}

// Statement returns the Record to be signed, with id and time.
func (o Output) Statement(id, issuedAt string) any {
	o.record.AttestationID, o.record.IssuedAt = id, issuedAt
	return o.record
}

// ReceiptDecision returns the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Verdict }

// Record is the attestation that is signed. Members may be added to the type, but none may be
// renamed, moved or removed. AttestationID and IssuedAt are empty until Statement sets them. No
// number in a record has a fraction.
type Record struct {
	AttestationID string        `json:"attestationId" jsonschema_description:"Id of the attestation."`
	Protocol      string        `json:"protocol" jsonschema_description:"Kind of action."`
	Subject       *Subject      `json:"subject" jsonschema:"nullable" jsonschema_description:"Who acted, as sent."`
	IntentSummary IntentSummary `json:"intentSummary" jsonschema_description:"The action without its secrets and arguments."`
	PolicyRef     *PolicyRef    `json:"policyRef" jsonschema:"nullable" jsonschema_description:"The policy that was applied."`
	Verdict       string        `json:"verdict" jsonschema_description:"allow, deny or needs_review."`
	FindingIDs    []string      `json:"findingIds" jsonschema_description:"Ids of the findings."`
	Settlement    *Settlement   `json:"settlement" jsonschema:"nullable" jsonschema_description:"Result of the action, as sent."`
	IssuedAt      string        `json:"issuedAt" jsonschema_description:"When it was attested, RFC 3339 UTC."`
	BindingHash   string        `json:"bindingHash" jsonschema_description:"SHA-256 of the canonical intent, null members left out, with its protocol."`
}

// IntentSummary identifies the action without its path, query and arguments.
type IntentSummary struct {
	Host          string `json:"host,omitempty" jsonschema_description:"Host that is paid (x402)."`
	Method        string `json:"method,omitempty" jsonschema_description:"HTTP method (x402)."`
	Network       string `json:"network,omitempty" jsonschema_description:"CAIP-2 name of the network (x402)."`
	PayTo         string `json:"payTo,omitempty" jsonschema_description:"First six and last four characters of the recipient (x402)."`
	ServerID      string `json:"serverId,omitempty" jsonschema_description:"Name of the MCP server (mcp)."`
	ToolName      string `json:"toolName,omitempty" jsonschema_description:"Name of the tool (mcp)."`
	ArgumentsHash string `json:"argumentsHash,omitempty" jsonschema_description:"SHA-256 of the canonical arguments (mcp)."`
}

// PolicyRef names the policy under which the verdict was made.
type PolicyRef struct {
	PolicyID string `json:"policyId" jsonschema_description:"Name of the policy."`
	Version  int    `json:"version" jsonschema_description:"Version of the policy, counted from 1."`
}
