// Package v1 is version 1 of the engine that judges a purchase intent under an
// organization's policy. It is frozen once released: a better engine is a v2
// beside it, so that each old decision can be evaluated again to the same bytes.
//
// It sees three things, all in normal form, and nothing else: the active policy,
// the caller's assertion if there is one, and the intent. Every rule is
// evaluated; the decision is the worst effect among the findings:
//
//	allow < needs_review < deny
//
// deny is evidence of a violation, or something a require… flag asks for and
// that is not there. needs_review is a rule that applies and whose evidence is
// missing or unknown. Nothing unknown becomes allow.
package v1

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/policy/canon"
)

// Version is how records name this engine.
const Version = "svc-assurance-engine-v1"

// Protocols of an intent.
const (
	X402 = "x402"
	MCP  = "mcp"
)

// Effects of a finding; the first three are also the decisions, with allow in
// the place of info.
const (
	Info        = "info"
	Allow       = "allow"
	NeedsReview = "needs_review"
	Deny        = "deny"
)

// Sources of a finding: the rule stands in the active policy, in the caller's
// assertion, or holds whatever the policy says.
const (
	FromPolicy    = "policy"
	FromAssertion = "assertion"
	Always        = "always"
)

// Finding is what one rule has to say about the intent. Expected and Actual are
// short texts for people; the values are those of the intent and the policy.
type Finding struct {
	RuleID   string `json:"ruleId" jsonschema_description:"Its page is /rules/ID, below the address of the service."`
	Effect   string `json:"effect" jsonschema:"enum=info,enum=needs_review,enum=deny"`
	Field    string `json:"field"` // member of the intent
	Message  string `json:"message"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Source   string `json:"source" jsonschema:"enum=policy,enum=assertion,enum=always"`
}

// Intent is an intent in normal form, as the decision record's member normalized
// has it. What is wrong with a value is said beside it: the value then stands as
// it was written. Members of the other protocol are absent.
type Intent struct {
	// x402
	Method                 string `json:"method,omitempty"`      // upper case
	ResourceURL            string `json:"resourceUrl,omitempty"` // without userinfo and fragment
	ResourceHasUserinfo    bool   `json:"resourceHasUserinfo,omitzero"`
	ResourceHasFragment    bool   `json:"resourceHasFragment,omitzero"`
	Scheme                 string `json:"scheme,omitempty"`
	Network                string `json:"network,omitempty"` // CAIP-2 where known
	Asset                  string `json:"asset,omitempty"`
	PayTo                  string `json:"payTo,omitempty"`
	PayToInvalid           bool   `json:"payToInvalid,omitzero"`
	AmountUnits            string `json:"amountUnits,omitempty"`
	AmountUnitsInvalid     bool   `json:"amountUnitsInvalid,omitzero"`
	AmountUnitsInUSD       string `json:"amountUnitsInUsd,omitempty"` // exact decimal; absent unless the asset is known
	AmountUSD              string `json:"amountUsd,omitempty"`        // exact decimal
	AmountUSDInvalid       bool   `json:"amountUsdInvalid,omitzero"`  // negative, or not a decimal of bearable size
	FacilitatorURL         string `json:"facilitatorUrl,omitempty"`
	FacilitatorHasUserinfo bool   `json:"facilitatorHasUserinfo,omitzero"`
	PaymentIdentifier      string `json:"paymentIdentifier,omitempty"`
	PaymentIdentifierBad   bool   `json:"paymentIdentifierInvalid,omitzero"`
	PaymentPayloadResource string `json:"paymentPayloadResource,omitempty"`
	PaymentPayloadBad      bool   `json:"paymentPayloadResourceInvalid,omitzero"` // no URL, or with userinfo
	PaymentPayloadMethod   string `json:"paymentPayloadMethod,omitempty"`

	// MCP
	ServerID                string `json:"serverId,omitempty"`
	ServerURL               string `json:"serverUrl,omitempty"`
	ServerHasUserinfo       bool   `json:"serverHasUserinfo,omitzero"`
	ServerHasFragment       bool   `json:"serverHasFragment,omitzero"`
	ToolName                string `json:"toolName,omitempty"`
	ToolArgumentsHash       string `json:"toolArgumentsHash,omitempty"`       // of the arguments, else the given one if it is a hash
	ToolArgumentsGivenHash  string `json:"toolArgumentsGivenHash,omitempty"`  // as written
	ToolArgumentsGiven      bool   `json:"toolArgumentsGiven,omitzero"`       // the arguments themselves were there
	ToolArgumentsHashBroken bool   `json:"toolArgumentsHashInvalid,omitzero"` // not 64 lower-case hex digits
	DeclaredRisk            string `json:"declaredRisk,omitempty"`
}

// Evaluation is the engine's whole answer.
type Evaluation struct {
	Decision       string
	Findings       []Finding // worst first, then by rule and field
	RulesEvaluated []string  // ids, sorted
}

// Evaluate judges an intent of a protocol under the active rules, and under
// those of the assertion too if there is one (else nil). The assertion can only
// add findings: what is in force is the stricter of both, rule by rule.
func Evaluate(protocol string, active Rules, asserted *Rules, in Intent) Evaluation {
	e := &evaluator{}
	e.protocol(protocol, active, in, true)
	if asserted != nil {
		e.protocol(protocol, *asserted, in, false)
	}
	return Evaluation{Decision: Decide(e.findings), Findings: Sort(e.findings), RulesEvaluated: RuleIDs(protocol)}
}

// Decide is the worst effect among findings.
func Decide(findings []Finding) string {
	decision := Allow
	for _, f := range findings {
		if weight(f.Effect) > weight(decision) {
			decision = f.Effect
		}
	}
	return decision
}

// weight orders effects; an info weighs what an allow does: nothing.
func weight(effect string) int {
	return max(0, slices.Index([]string{Allow, NeedsReview, Deny}, effect))
}

// Sort orders findings: effect, worst first, then rule, then field. It returns
// an empty list rather than none.
func Sort(findings []Finding) []Finding {
	sorted := append([]Finding{}, findings...)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(weight(b.Effect), weight(a.Effect)),
			cmp.Compare(a.RuleID, b.RuleID), cmp.Compare(a.Field, b.Field))
	})
	return sorted
}

// RulesetHash is the SHA-256 of the canonical rule catalogue.
func RulesetHash() string {
	text, err := canon.Marshal(Catalogue())
	if err != nil {
		return ""
	}
	return canon.Hash(text)
}

// evaluator collects findings. A rule speaks once about a field: the active
// policy before the assertion, unless the assertion's effect is worse.
type evaluator struct {
	findings []Finding
	active   bool // the pass of the active policy, not of the assertion
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

// say adds a finding of a rule that stands in a policy.
func (e *evaluator) say(effect, ruleID, field, message, expected, actual string) {
	e.add(FromPolicy, Finding{RuleID: ruleID, Effect: effect, Field: field, Message: message, Expected: expected, Actual: actual})
}

// always adds a finding that no policy has to ask for.
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

// clip keeps what findings repeat short; the whole value stands in the record.
func clip(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
