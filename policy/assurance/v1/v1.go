// Package v1 is version 1 of the engine that judges a purchase or a call under an organization's
// policy. It does not change after its release: a better engine becomes v2, so that every old
// decision can be evaluated again with the same result, byte for byte.
//
// The engine takes the active policy, the caller's assertion, if there is one, and the intent, all
// in normal form. It evaluates every rule. The decision is the worst effect of the findings:
//
//	allow < needs_review < deny
//
// deny means that a rule is violated, or that something is missing that a require… flag demands.
// needs_review means that a rule applies and that the evidence for it is missing or unknown.
// Missing or unknown evidence never leads to allow.
package v1

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/policy/canon"
)

// Version is the name of this engine in decision records.
const Version = "svc-assurance-engine-v1"

// Protocols of an intent.
const (
	X402 = "x402"
	MCP  = "mcp"
)

// Effects of findings and decisions. A finding has Info, NeedsReview or Deny; a decision is Allow,
// NeedsReview or Deny.
const (
	Info        = "info"
	Allow       = "allow"
	NeedsReview = "needs_review"
	Deny        = "deny"
)

// Sources of a finding: a rule of the active policy, a rule of the caller's assertion, or a
// rule that always applies.
const (
	FromPolicy    = "policy"
	FromAssertion = "assertion"
	Always        = "always"
)

// Finding is the result of one rule. Expected and Actual are short texts for people; the complete
// values are in the policy and the intent.
type Finding struct {
	RuleID   string `json:"ruleId" jsonschema_description:"Id of the rule; its page on this service is /rules/ID."`
	Effect   string `json:"effect" jsonschema:"enum=info,enum=needs_review,enum=deny"`
	Field    string `json:"field"` // name of the intent's member
	Message  string `json:"message"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Source   string `json:"source" jsonschema:"enum=policy,enum=assertion,enum=always"`
}

// Intent is an intent in normal form. The decision record contains it in the member normalized. An
// invalid value is stored as written, with a flag that says what is wrong. Members of the other
// protocol are absent.
type Intent struct {
	// members of an x402 intent
	Method                 string `json:"method,omitempty"`      // in upper case
	ResourceURL            string `json:"resourceUrl,omitempty"` // without userinfo and fragment
	ResourceHasUserinfo    bool   `json:"resourceHasUserinfo,omitzero"`
	ResourceHasFragment    bool   `json:"resourceHasFragment,omitzero"`
	Scheme                 string `json:"scheme,omitempty"`
	Network                string `json:"network,omitempty"` // CAIP-2 name, if the network is known
	Asset                  string `json:"asset,omitempty"`
	PayTo                  string `json:"payTo,omitempty"`
	PayToInvalid           bool   `json:"payToInvalid,omitzero"`
	AmountUnits            string `json:"amountUnits,omitempty"`
	AmountUnitsInvalid     bool   `json:"amountUnitsInvalid,omitzero"`
	AmountUnitsInUSD       string `json:"amountUnitsInUsd,omitempty"` // exact decimal; present only if the asset is known
	AmountUSD              string `json:"amountUsd,omitempty"`        // exact decimal
	AmountUSDInvalid       bool   `json:"amountUsdInvalid,omitzero"`  // negative, or not a decimal within the limits
	FacilitatorURL         string `json:"facilitatorUrl,omitempty"`
	FacilitatorHasUserinfo bool   `json:"facilitatorHasUserinfo,omitzero"`
	PaymentIdentifier      string `json:"paymentIdentifier,omitempty"`
	PaymentIdentifierBad   bool   `json:"paymentIdentifierInvalid,omitzero"`
	PaymentPayloadResource string `json:"paymentPayloadResource,omitempty"`
	PaymentPayloadBad      bool   `json:"paymentPayloadResourceInvalid,omitzero"` // not a URL, or with userinfo
	PaymentPayloadMethod   string `json:"paymentPayloadMethod,omitempty"`

	// members of an MCP intent
	ServerID                string `json:"serverId,omitempty"`
	ServerURL               string `json:"serverUrl,omitempty"`
	ServerHasUserinfo       bool   `json:"serverHasUserinfo,omitzero"`
	ServerHasFragment       bool   `json:"serverHasFragment,omitzero"`
	ToolName                string `json:"toolName,omitempty"`
	ToolArgumentsHash       string `json:"toolArgumentsHash,omitempty"`       // hash of the arguments; if only a valid hash was sent, that hash
	ToolArgumentsGivenHash  string `json:"toolArgumentsGivenHash,omitempty"`  // the sent hash, as written
	ToolArgumentsGiven      bool   `json:"toolArgumentsGiven,omitzero"`       // true if the arguments themselves were sent
	ToolArgumentsHashBroken bool   `json:"toolArgumentsHashInvalid,omitzero"` // the sent hash is not 64 lower-case hex digits
	DeclaredRisk            string `json:"declaredRisk,omitempty"`
}

// Evaluation is the decision of the engine with its findings.
type Evaluation struct {
	Decision       string
	Findings       []Finding // worst first, then by rule and field
	RulesEvaluated []string  // sorted ids of the evaluated rules
}

// Evaluate judges an intent of a protocol under the active policy and, if asserted is not nil,
// also under the caller's assertion. An assertion can only add findings or make their effects
// worse.
func Evaluate(protocol string, active Rules, asserted *Rules, in Intent) Evaluation {
	e := &evaluator{}
	e.protocol(protocol, active, in, true)
	if asserted != nil {
		e.protocol(protocol, *asserted, in, false)
	}
	return Evaluation{Decision: Decide(e.findings), Findings: Sort(e.findings), RulesEvaluated: RuleIDs(protocol)}
}

// Decide returns the worst effect of the findings, or Allow if there are none.
func Decide(findings []Finding) string {
	decision := Allow
	for _, f := range findings {
		if weight(f.Effect) > weight(decision) {
			decision = f.Effect
		}
	}
	return decision
}

// weight returns the rank of an effect; a higher rank is worse. Info has rank 0, like Allow.
func weight(effect string) int {
	return max(0, slices.Index([]string{Allow, NeedsReview, Deny}, effect))
}

// Sort returns the findings sorted by effect, worst first, then by rule, then by field. It returns
// an empty list rather than nil.
func Sort(findings []Finding) []Finding {
	sorted := append([]Finding{}, findings...)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(weight(b.Effect), weight(a.Effect)),
			cmp.Compare(a.RuleID, b.RuleID), cmp.Compare(a.Field, b.Field))
	})
	return sorted
}

// RulesetHash returns the SHA-256 of the catalogue in canonical JSON.
func RulesetHash() string {
	text, err := canon.Marshal(Catalogue())
	if err != nil {
		return ""
	}
	return canon.Hash(text)
}

// evaluator collects findings, at most one per rule and field. The finding under the active policy
// remains, unless the effect under the assertion is worse.
type evaluator struct {
	findings []Finding
	active   bool // true while it evaluates the active policy, false for the assertion
}

func (e *evaluator) protocol(protocol string, r Rules, in Intent, active bool) {
	e.active = active
	if active && !r.Concern(protocol) {
		e.add(FromPolicy, Finding{RuleID: "policy.no_applicable_rule", Effect: NeedsReview, Field: "protocol",
			Message: "no rule of the active policy concerns this protocol", Expected: "a rule for " + protocol, Actual: "none"})
	}
	if protocol == X402 {
		e.x402(r, in)
	} else {
		e.mcp(r, in)
	}
}

// say adds a finding of a rule that the policy, or the assertion, contains.
func (e *evaluator) say(effect, ruleID, field, message, expected, actual string) {
	e.add(FromPolicy, Finding{RuleID: ruleID, Effect: effect, Field: field, Message: message, Expected: expected, Actual: actual})
}

// always adds a finding of a rule that applies under every policy.
func (e *evaluator) always(effect, ruleID, field, message, expected, actual string) {
	e.add(Always, Finding{RuleID: ruleID, Effect: effect, Field: field, Message: message, Expected: expected, Actual: actual})
}

func (e *evaluator) add(source string, f Finding) {
	f.Source = source
	if source == FromPolicy && !e.active {
		f.Source = FromAssertion
	}
	f.Expected, f.Actual = clip(f.Expected), clip(f.Actual)
	for i, old := range e.findings {
		if old.RuleID == f.RuleID && old.Field == f.Field {
			if weight(f.Effect) > weight(old.Effect) {
				e.findings[i] = f
			}
			return
		}
	}
	e.findings = append(e.findings, f)
}

// clip shortens a text for a finding; the decision record contains the complete value.
func clip(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
