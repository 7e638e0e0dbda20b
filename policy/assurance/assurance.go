// Package assurance judges purchases and calls that an agent is about to make, and the
// executions that it reports, for organizations with an active policy.
//
//	decision  ParseDecision -> Compare (the caller's assertion) -> Evaluate -> DecisionRecord
//	receipt   ParseReceipt  -> Conform                                     -> ReceiptRecord
//	policy    Lint          -> WithVersion                                 -> the active policy's bytes
//
// Everything is pure: the caller provides ids, times and signatures. The rules are in one
// package per engine version (v1), which is not changed after its release, so that old
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
// A contains, in normal form, the members that are present of method, resourceUrl, scheme,
// network, asset, payTo, amountUnits (without it amountUsd, as its decimal text) and
// paymentIdentifier; for MCP of serverId, serverUrl, toolName, toolArgumentsHash. The executor
// computes assuranceActionHash from the pending call alone, just before it acts, so that an
// approval of one call cannot be used for another.
//
// The normal form has the method in upper case; URLs with scheme and host in lower case and
// ASCII, without default port, userinfo or fragment, and with a path of at least "/"; the
// network by its CAIP-2 name; EVM addresses in lower case; amountUsd as decimal text without
// trailing zeros; everything else unchanged. The record's member normalized shows it. For a
// call in normal form the computation takes 20 lines of Python or 24 of TypeScript
// (testdata/recipe, run by the tests, in which numbers in arguments are integers). A call in
// another spelling gets another hash there and is not made. "countersign check" accepts any
// spelling, and also checks the signatures.
//
// Worked example: x402, GET https://api.weather.example/v1/forecast?city=Oslo,
// scheme exact, network eip155:8453, asset
// 0x833589fcd6edb6e08f4c7c32d4f71b54bda02913, payTo
// 0x1f9840a85d5af5bf1d1762f925bdaddc4201f984, amountUnits 250000 has the action
// hash 156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf.
package assurance

import (
	v1 "github.com/countersign/countersign/policy/assurance/v1"
	"github.com/countersign/countersign/policy/canon"
)

// EngineVersion is the engine that judges new decisions.
const EngineVersion = v1.Version

// The names of the versioned engine, as the rest of the program uses them.
type (
	// Finding is the result of one rule.
	Finding = v1.Finding
	// Intent is an intent in normal form.
	Intent = v1.Intent
	// Rules is a policy in normal form.
	Rules = v1.Rules
	// Evaluation is the engine's result.
	Evaluation = v1.Evaluation
	// Rule is a row of the decision table.
	Rule = v1.Rule
)

// Protocols and decisions.
const (
	X402        = v1.X402
	MCP         = v1.MCP
	Allow       = v1.Allow
	Deny        = v1.Deny
	NeedsReview = v1.NeedsReview
)

// Evaluate judges an intent with the engine of a version. ok is false if this program does not
// have that version.
func Evaluate(engine, protocol string, active Rules, asserted *Rules, in Intent) (e Evaluation, ok bool) {
	if engine != v1.Version {
		return Evaluation{}, false
	}
	return v1.Evaluate(protocol, active, asserted, in), true
}

// Catalogue returns the decision table of the present engine, with its hash.
func Catalogue() (rules []Rule, hash string) { return v1.Catalogue(), rulesetHash }

// rulesetHash is computed once, because the catalogue never changes.
var rulesetHash = v1.RulesetHash()

// hashOf returns H(domain + C(x)). Every x here has a canonical form: strings, integers and
// canonical values.
func hashOf(domain string, x any) (string, error) {
	text, err := canon.Marshal(x)
	if err != nil {
		return "", err
	}
	return canon.Hash(append([]byte(domain), text...)), nil
}
