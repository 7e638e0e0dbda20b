// Package v1 is version 1 of the engine that judges a purchase or call under an organization's
// policy. After its release it does not change: a better engine is added as v2, so that each
// old decision can be evaluated again to the same bytes.
//
// Its input is, in normal form, the active policy, the caller's assertion if there is one, and
// the intent. It evaluates every rule; the decision is the worst effect of the findings:
//
//	allow < needs_review < deny
//
// deny means evidence of a violation, or the absence of something that a require… flag demands.
// needs_review means that a rule applies and its evidence is missing or unknown. Nothing
// unknown becomes allow.
package v1

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/policy/canon"
)

// Version is the name of this engine in records.
const Version = "svc-assurance-engine-v1"

// Protocols of an intent.
const (
	X402 = "x402"
	MCP  = "mcp"
)

// Effects of a finding. The first three are also the decisions, with allow instead of info.
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

// Finding is the result of one rule. Expected and Actual are short texts for people; the values
// themselves are in the intent and the policy.
type Finding struct {
	RuleID   string `json:"ruleId" jsonschema_description:"Id of the rule; its page on this service is /rules/ID."`
	Effect   string `json:"effect" jsonschema:"enum=info,enum=needs_review,enum=deny"`
	Field    string `json:"field"` // member of the intent
	Message  string `json:"message"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Source   string `json:"source" jsonschema:"enum=policy,enum=assertion,enum=always"`
}

// Intent is an intent in normal form, as in the decision record's member normalized. A faulty
// value is stored as it was written, with a flag that says what is wrong. Members of the other
// protocol are absent.
type Intent struct {
	// x402
	Method                 string `json:"method,omitempty"`      // upper case
	ResourceURL            string `json:"resourceUrl,omitempty"` // without userinfo and fragment
	ResourceHasUserinfo    bool   `json:"resourceHasUserinfo,omitzero"`
	ResourceHasFragment    bool   `json:"resourceHasFragment,omitzero"`
	Scheme                 string `json:"scheme,omitempty"`
	Network                string `json:"network,omitempty"` // CAIP-2 if known
	Asset                  string `json:"asset,omitempty"`
	PayTo                  string `json:"payTo,omitempty"`
	PayToInvalid           bool   `json:"payToInvalid,omitzero"`
	AmountUnits            string `json:"amountUnits,omitempty"`
	AmountUnitsInvalid     bool   `json:"amountUnitsInvalid,omitzero"`
	AmountUnitsInUSD       string `json:"amountUnitsInUsd,omitempty"` // exact decimal; absent unless the asset is known
	AmountUSD              string `json:"amountUsd,omitempty"`        // exact decimal
	AmountUSDInvalid       bool   `json:"amountUsdInvalid,omitzero"`  // negative, or not a decimal within the limits
	FacilitatorURL         string `json:"facilitatorUrl,omitempty"`
	FacilitatorHasUserinfo bool   `json:"facilitatorHasUserinfo,omitzero"`
	PaymentIdentifier      string `json:"paymentIdentifier,omitempty"`
	PaymentIdentifierBad   bool   `json:"paymentIdentifierInvalid,omitzero"`
	PaymentPayloadResource string `json:"paymentPayloadResource,omitempty"`
	PaymentPayloadBad      bool   `json:"paymentPayloadResourceInvalid,omitzero"` // not a URL, or with userinfo
	PaymentPayloadMethod   string `json:"paymentPayloadMethod,omitempty"`

	// MCP
	ServerID                string `json:"serverId,omitempty"`
	ServerURL               string `json:"serverUrl,omitempty"`
	ServerHasUserinfo       bool   `json:"serverHasUserinfo,omitzero"`
	ServerHasFragment       bool   `json:"serverHasFragment,omitzero"`
	ToolName                string `json:"toolName,omitempty"`
	ToolArgumentsHash       string `json:"toolArgumentsHash,omitempty"`       // of the arguments; otherwise the given one if it is a hash
	ToolArgumentsGivenHash  string `json:"toolArgumentsGivenHash,omitempty"`  // as written
	ToolArgumentsGiven      bool   `json:"toolArgumentsGiven,omitzero"`       // the arguments themselves were sent
	ToolArgumentsHashBroken bool   `json:"toolArgumentsHashInvalid,omitzero"` // not 64 lower-case hex digits
	DeclaredRisk            string `json:"declaredRisk,omitempty"`
}

// Evaluation is the engine's result.
type Evaluation struct {
	Decision       string
	Findings       []Finding // worst first, then by rule and field
	RulesEvaluated []string  // ids, sorted
}

// Evaluate judges an intent of a protocol under the active rules and, unless it is nil, under
// the assertion. The assertion can only add findings: the stricter of both applies, rule by
// rule.
func Evaluate(protocol string, active Rules, asserted *Rules, in Intent) Evaluation {
	e := &evaluator{}
	e.protocol(protocol, active, in, true)
	if asserted != nil {
		e.protocol(protocol, *asserted, in, false)
	}
	return Evaluation{Decision: Decide(e.findings), Findings: Sort(e.findings), RulesEvaluated: RuleIDs(protocol)}
}

// Decide returns the worst effect among findings.
func Decide(findings []Finding) string {
	decision := Allow
	for _, f := range findings {
		if weight(f.Effect) > weight(decision) {
			decision = f.Effect
		}
	}
	return decision
}

// weight orders effects; info has no weight, like allow.
func weight(effect string) int {
	return max(0, slices.Index([]string{Allow, NeedsReview, Deny}, effect))
}

// Sort sorts findings by effect, worst first, then rule, then field. It returns an empty list
// rather than nil.
func Sort(findings []Finding) []Finding {
	sorted := append([]Finding{}, findings...)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(weight(b.Effect), weight(a.Effect)),
			cmp.Compare(a.RuleID, b.RuleID), cmp.Compare(a.Field, b.Field))
	})
	return sorted
}

// RulesetHash returns the SHA-256 of the canonical catalogue of rules.
func RulesetHash() string {
	text, err := canon.Marshal(Catalogue())
	if err != nil {
		return ""
	}
	return canon.Hash(text)
}

// evaluator collects findings. A rule makes one finding per field: that of the active policy,
// unless the effect under the assertion is worse.
type evaluator struct {
	findings []Finding
	active   bool // evaluating the active policy, not the assertion
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

// say adds a finding of a rule in a policy.
func (e *evaluator) say(effect, ruleID, field, message, expected, actual string) {
	e.add(FromPolicy, Finding{RuleID: ruleID, Effect: effect, Field: field, Message: message, Expected: expected, Actual: actual})
}

// always adds a finding of a rule that always applies.
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

// clip shortens a text for a finding; the record contains the complete value.
func clip(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
