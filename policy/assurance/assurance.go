// Package assurance judges purchases and calls that an agent is about to make, and the executions
// that it reports, for organizations with an active policy.
//
//	decision  ParseDecision -> Compare (the caller's assertion) -> Evaluate -> DecisionRecord
//	receipt   ParseReceipt  -> Conform                                     -> ReceiptRecord
//	policy    Lint          -> WithVersion                                 -> the active policy's bytes
//
// All functions are pure: the caller passes ids, times and signatures. Each version of the engine
// has its own package of rules (v1). A package does not change after its release, so that old
// decisions can be evaluated again.
//
// # Hashes
//
// C(x) is the canonical JSON of x, H the lower-case hex SHA-256.
//
//	toolArgumentsHash    H(C(toolArguments))
//	policyHash           H(C(policy)), its version included
//	subjectHash          H(C(subject))
//	idempotencyKeyHash   H(the key's UTF-8)
//	assuranceActionHash  H("svc-assurance-action-v1\n" + C({"intent": A, "protocol": p}))
//	bindingHash          H("svc-assurance-binding-v1\n" + C({"v": 1, orgId, decisionId, decision,
//	                       assuranceActionHash, subjectHash, policyHash, policyId, version}))
//
// For x402, A contains those of these members that the intent has, in normal form: method,
// resourceUrl, scheme, network, asset, payTo, amountUnits (or, if it is absent, amountUsd as
// decimal text) and paymentIdentifier. For MCP, A contains serverId, serverUrl, toolName and
// toolArgumentsHash. The executor computes assuranceActionHash from the pending call alone, just
// before it executes the call, so that an approval of one call cannot be used for another.
//
// In the normal form, the method is in upper case. URLs have scheme and host in lower case and
// ASCII, no default port, no userinfo, no fragment, and a path of at least "/". The network has
// its CAIP-2 name. EVM addresses are in lower case. amountUsd is decimal text without trailing
// zeros. Everything else is unchanged. The record shows the normal form in its member normalized.
//
// For a call in normal form, 20 lines of Python or 24 of TypeScript compute the hash
// (testdata/recipe; the tests run them; numbers in arguments must be integers). For another
// spelling of the call they compute another hash, so the executor does not make the call.
// "countersign check" accepts any spelling, and also checks the signatures.
//
// Worked example: x402, GET https://api.weather.example/v1/forecast?city=Oslo, scheme exact,
// network eip155:8453, asset 0x833589fcd6edb6e08f4c7c32d4f71b54bda02913, payTo
// 0x1f9840a85d5af5bf1d1762f925bdaddc4201f984, amountUnits 250000 has the action hash
// 156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf.
package assurance

import (
	v1 "github.com/countersign/countersign/policy/assurance/v1"
	"github.com/countersign/countersign/policy/canon"
)

// EngineVersion names the engine that judges new decisions.
const EngineVersion = v1.Version

// Types of the present engine. Other packages use them under these names, without the engine's
// version.
type (
	// Finding is the result of one rule.
	Finding = v1.Finding
	// Intent is the intent of a request in normal form.
	Intent = v1.Intent
	// Rules is a policy in normal form.
	Rules = v1.Rules
	// Evaluation is the decision of the engine with its findings.
	Evaluation = v1.Evaluation
	// Rule is one row of the decision table.
	Rule = v1.Rule
)

// Values of protocol and decision in requests and records.
const (
	X402        = v1.X402
	MCP         = v1.MCP
	Allow       = v1.Allow
	Deny        = v1.Deny
	NeedsReview = v1.NeedsReview
)

// Evaluate judges an intent with the engine of this version. ok is false if the program does not
// contain that version.
func Evaluate(engine, protocol string, active Rules, asserted *Rules, in Intent) (e Evaluation, ok bool) {
	if engine != v1.Version {
		return Evaluation{}, false
	}
	return v1.Evaluate(protocol, active, asserted, in), true
}

// Catalogue returns the decision table of the present engine and the hash of the table.
func Catalogue() (rules []Rule, hash string) { return v1.Catalogue(), rulesetHash }

// The hash is computed once, because the catalogue never changes.
var rulesetHash = v1.RulesetHash()

// hashOf returns H(domain + C(x)). It must be called only with values that have a canonical form:
// strings, integers and canonical JSON.
func hashOf(domain string, x any) (string, error) {
	text, err := canon.Marshal(x)
	if err != nil {
		return "", err
	}
	return canon.Hash(append([]byte(domain), text...)), nil
}
