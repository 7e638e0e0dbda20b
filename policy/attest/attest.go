// Package attest makes the statement of a signed attestation of one agent action, an x402 payment
// or an MCP tool call. The statement says which action it was, with a hash over the exact intent,
// and what the verdict under the caller's policy is.
//
// The binding hash is
//
//	sha256hex(C({"actionBindingVersion":"svc-action-v1","intent":INTENT,"protocol":PROTOCOL}))
//
// where C is svc-stable-json-v1 and INTENT is the intent as sent without members that are null.
// For protocol mcp and {"serverId":"files","toolName":"read", "declaredRisk":"low"} it is
// b78e67aa7388fcb7559d1d96e9e8e37829646a8df5d15eaa995b1c1704adcc34 .
//
// This package signs nothing and uses no clock. Evaluate returns the members that are always the
// same for the same input; outputHash covers them. The signer gets the Record from
// Output.Statement, with the id and the time that it passes. The record contains a hash of the
// tool arguments, never the arguments.
package attest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/paymentpolicy"
	"github.com/countersign/countersign/policy/shape"
)

// BindingVersion is the version of the computation of binding hashes, and is part of their input.
const BindingVersion = "svc-action-v1"

// PayloadType is the payload type of the signature of a Record.
const PayloadType = "application/vnd.svc.attestation.v1+json"

const maxFindings = 500 // largest number of findings in an answer; the most severe are kept

// Service is the declaration of assurance/attest.
var Service = policy.Declare(policy.Service{
	Name:       "assurance/attest",
	PriceCents: 5,
	Group:      policy.GroupPayments,
	Title:      "Attestation",
	Summary:    "Attests one agent action (x402 payment or MCP tool call) with a signed record: binding hash, verdict by the caller's policy, and findings. Verification is free.",
	Example: `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{"limit":10,"path":"/srv/report.txt"},"declaredRisk":"low"},` +
		`"subject":{"runId":"run-17"},"policy":{"policyId":"tools","version":2,"allowedMcpServers":["files"],"reviewMcpRiskAtOrAbove":"high"}}`,
	Signed:     true,
	Statement:  &policy.Statement{IDPrefix: "att_", PayloadType: PayloadType},
	Rules:      documented,
	PassesOn:   []string{"payment-policy/decide"},
	Conditions: shape.Intent,
	Reasons:    []string{"arguments_hash_mismatch", "out_of_range"},
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// action is a request that was read and checked.
type action struct {
	in      Input
	members map[string]jsontext.Value // members of the intent as sent, canonical, without those that are null
	x402    paymentpolicy.Intent
	mcp     mcpIntent
	hash    string // SHA-256 of the tool arguments; empty if there are none
}

// Evaluate judges one action and computes its binding hash. It refuses a request that violates its
// schema, and a toolArgumentsHash that is not the hash of toolArguments (arguments_hash_mismatch).
func Evaluate(in Input) (Output, error) {
	a, err := newAction(in)
	if err != nil {
		return Output{}, err
	}
	out, err := a.judge()
	if err != nil {
		return Output{}, err
	}
	out.record = a.record(out)
	return out, nil
}

// BindingHash returns the binding hash of an intent under a protocol. The intent must have no null
// members.
func BindingHash(protocol string, intent any) (string, error) {
	canonical, err := canon.Marshal(intent)
	if err != nil {
		return "", policy.Refuse("invalid_json", "/intent", "intent has no canonical form")
	}
	return bindingHash(protocol, canonical), nil
}

// bindingHash is like BindingHash, for an intent in canonical form.
func bindingHash(protocol string, intent jsontext.Value) string {
	name, _ := canon.Marshal(protocol) // no error, because every protocol name has a canonical form
	return canon.Hash(canon.Object(map[string]jsontext.Value{
		"actionBindingVersion": jsontext.Value(`"` + BindingVersion + `"`), "intent": intent, "protocol": name}))
}

func newAction(in Input) (*action, error) {
	if err := bounds.Check(in); err != nil {
		return nil, err
	}
	a := &action{in: in}
	if err := a.readIntent(); err != nil {
		return nil, err
	}
	if in.Protocol == "x402" {
		return a, a.readX402()
	}
	return a, a.readMCP()
}

// readIntent stores the canonical members of the intent. The arguments may be nearly as long as
// the largest body, so their canonical form is computed once, and they are not parsed again.
func (a *action) readIntent() error {
	text, err := canon.CanonicalChecked(a.in.Intent.raw) // canon.Decode has already checked the text
	if a.in.Intent.raw == nil {
		text, err = canon.Marshal(a.in.Intent)
	}
	if err == nil {
		a.members, err = canon.Members(text)
	}
	if err != nil {
		return policy.Refuse("invalid_json", "/intent", "intent has no canonical form")
	}
	maps.DeleteFunc(a.members, func(_ string, value jsontext.Value) bool { return value.Kind() == 'n' })
	return nil
}

// readX402 reads the members of an x402 intent. It leaves the checks of URL and amount to
// paymentpolicy.
func (a *action) readX402() error {
	if err := a.shape(&a.x402); err != nil {
		return err
	}
	return required("resourceUrl", a.x402.ResourceURL, "method", a.x402.Method)
}

func (a *action) readMCP() error {
	if err := a.shape(&a.mcp); err != nil {
		return err
	}
	if err := required("serverId", a.mcp.ServerID, "toolName", a.mcp.ToolName); err != nil {
		return err
	}
	if a.mcp.ServerURL != "" {
		if _, err := normal.ParseURL(a.mcp.ServerURL); err != nil {
			return policy.Refuse("out_of_range", "/intent/serverUrl", "intent.serverUrl must be an absolute URL")
		}
	}
	given := strings.ToLower(a.mcp.ToolArgumentsHash)
	a.hash = given
	if arguments, has := a.members["toolArguments"]; has {
		if a.hash = canon.Hash(arguments); given != "" && given != a.hash {
			return policy.Refuse("arguments_hash_mismatch", "/intent/toolArgumentsHash", "intent.toolArgumentsHash must be the SHA-256 of the canonical toolArguments")
		}
	}
	return nil
}

// shape decodes the members of the intent into the type of the protocol. For MCP it omits the
// arguments, which that type does not have. It refuses members of the other protocol.
func (a *action) shape(into any) error {
	members := a.members
	if _, has := members["toolArguments"]; has && a.in.Protocol == "mcp" {
		members = maps.Clone(members)
		delete(members, "toolArguments")
	}
	if err := canon.Decode(canon.Object(members), into); err != nil {
		var refused *policy.Error
		if errors.As(err, &refused) && refused.Code == "unknown_field" {
			return policy.Refuse(refused.Code, "/intent"+refused.Path, strings.Replace(refused.Message, "the object", "intent", 1))
		}
		return policy.Refuse("unknown_field", "/intent", "intent must have only members of its protocol")
	}
	return nil
}

func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return policy.Refuse("missing_field", "/intent/"+pairs[i], "intent."+pairs[i]+" is required")
		}
	}
	return nil
}

// judge returns the verdict with its findings and the binding hash.
func (a *action) judge() (Output, error) {
	var err error
	hash := bindingHash(a.in.Protocol, canon.Object(a.members))
	out := Output{Verdict: "allow", BindingHash: hash, ActionBindingVersion: BindingVersion}
	if a.in.Protocol == "x402" {
		if out.Verdict, out.Findings, err = a.judgeX402(); err != nil {
			return Output{}, err
		}
	} else {
		out.Verdict, out.Findings = a.judgeMCP()
	}
	if s := a.in.Settlement; s != nil && s.Outcome != "fulfilled" {
		out.Findings = append(out.Findings, policy.Finding{ID: "settlement_not_fulfilled", Severity: "high", Path: "/settlement/outcome", Message: "the action was not fulfilled"})
		if out.Verdict == "allow" {
			out.Verdict = "needs_review"
		}
	}
	out.Findings = policy.SortFindings(out.Findings)
	if len(out.Findings) > maxFindings {
		out.Findings, out.FindingsTruncated = out.Findings[:maxFindings], true
	}
	return out, nil
}

// judgeX402 applies the rules of paymentpolicy to the intent.
func (a *action) judgeX402() (string, []policy.Finding, error) {
	decided, err := paymentpolicy.Evaluate(paymentpolicy.Input{Payment: paymentpolicy.Payment{Intent: a.x402}, Policy: a.in.Policy.x402()})
	if err != nil {
		return "", nil, moved(err)
	}
	var findings []policy.Finding
	for _, f := range decided.Findings {
		findings = append(findings, policy.Finding{ID: f.ID, Severity: f.Severity, Path: toIntent(f.Path), Message: f.Message,
			Evidence: "expected " + f.Expected + ", got " + f.Actual})
	}
	return decided.Decision, findings, nil
}

// toIntent converts a pointer into a request of paymentpolicy to the pointer of the same member in
// this request.
func toIntent(path string) string {
	if rest, ok := strings.CutPrefix(path, "/payment"); ok {
		return "/intent" + rest
	}
	return path
}

func moved(err error) error {
	if refusal, ok := err.(*policy.Error); ok {
		return policy.Refuse(refusal.Code, toIntent(refusal.Path), strings.Replace(refusal.Message, "payment.", "intent.", 1))
	}
	return err
}

var riskLevels = []string{"low", "medium", "high", "critical"}

// judgeMCP applies the policy's rules about MCP tools. A blocked tool's name matches in any case;
// an allowed tool's name must match exactly.
func (a *action) judgeMCP() (string, []policy.Finding) {
	verdict := "allow"
	var findings []policy.Finding
	say := func(effect, id, severity, path, message string) {
		findings = append(findings, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
		if effect == "deny" || verdict == "allow" {
			verdict = effect
		}
	}
	p := a.in.Policy
	if p == nil {
		say("needs_review", "no_policy", "medium", "/policy", "no policy was given")
		return verdict, findings
	}
	if p.AllowedMCPServers == nil && p.AllowedMCPTools == nil && p.BlockedMCPTools == nil && !p.RequireMCPArguments && p.ReviewMCPRiskAtOrAbove == "" {
		say("needs_review", "no_applicable_rule", "medium", "/policy", "no rule of the policy concerns tools, so none was checked")
		return verdict, findings
	}
	names := []string{a.mcp.ToolName, a.mcp.ServerID + "/" + a.mcp.ToolName}
	if p.AllowedMCPServers != nil && !slices.Contains(p.AllowedMCPServers, a.mcp.ServerID) {
		say("deny", "mcp_server_not_allowed", "high", "/intent/serverId", "the policy does not allow this server")
	}
	blocked := slices.ContainsFunc(p.BlockedMCPTools, func(entry string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(entry, name) })
	})
	allowed := p.AllowedMCPTools == nil || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.AllowedMCPTools, name) })
	switch {
	case blocked:
		say("deny", "mcp_tool_blocked", "critical", "/intent/toolName", "the policy blocks this tool")
	case !allowed:
		say("deny", "mcp_tool_not_allowed", "high", "/intent/toolName", "the policy does not allow this tool")
	}
	if p.RequireMCPArguments && a.hash == "" {
		say("deny", "mcp_arguments_unbound", "high", "/intent/toolArguments", "the policy requires the arguments or their hash")
	}
	if threshold := p.ReviewMCPRiskAtOrAbove; threshold != "" {
		switch {
		case a.mcp.DeclaredRisk == "":
			say("needs_review", "mcp_risk_undeclared", "medium", "/intent/declaredRisk", "the policy has a risk threshold and no risk is declared")
		case slices.Index(riskLevels, a.mcp.DeclaredRisk) >= slices.Index(riskLevels, threshold):
			say("needs_review", "mcp_risk_at_or_above_review", "medium", "/intent/declaredRisk", "the declared risk is at or above the review threshold")
		}
	}
	return verdict, findings
}

// record returns the record to be signed, without id and time.
func (a *action) record(out Output) Record {
	r := Record{Protocol: a.in.Protocol, Subject: a.in.Subject, Verdict: out.Verdict, Settlement: a.in.Settlement.folded(), BindingHash: out.BindingHash, FindingIDs: []string{}}
	if a.in.Policy != nil {
		r.PolicyRef = &PolicyRef{a.in.Policy.PolicyID, a.in.Policy.Version}
	}
	for _, f := range out.Findings {
		r.FindingIDs = append(r.FindingIDs, f.ID)
	}
	slices.Sort(r.FindingIDs)
	r.FindingIDs = slices.Compact(r.FindingIDs)
	if a.in.Protocol == "mcp" {
		r.IntentSummary = IntentSummary{ServerID: a.mcp.ServerID, ToolName: a.mcp.ToolName, ArgumentsHash: a.hash}
		return r
	}
	u, _ := normal.ParseURLAnyHost(a.x402.ResourceURL) // no error, because judgeX402 accepted the URL
	r.IntentSummary = IntentSummary{Host: u.Host, Method: strings.ToUpper(a.x402.Method), Network: normal.Network(a.x402.Network)}
	if a.x402.PayTo != "" {
		r.IntentSummary.PayTo = normal.MaskAddress(a.x402.PayTo)
	}
	return r
}
