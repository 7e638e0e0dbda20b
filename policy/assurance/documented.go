package assurance

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Base requests for the examples of the rules: a policy, and an intent that is judged under it.
// Each example is a merge patch for one of them.
const (
	exampleX402 = `{"protocol":"x402","policy":{"policyId":"p","version":1,"requireHttps":true},"intent":{"resourceUrl":"https://api.example/v1","method":"GET","network":"base",` +
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`
	exampleMCP = `{"protocol":"mcp","policy":{"policyId":"p","version":1,"blockedMcpTools":[]},"intent":{"serverId":"files","toolName":"read","toolArguments":{"path":"/srv/report.txt","limit":10}}}`
)

// Documented is the description of a rule, with its evaluated example.
type Documented struct {
	policy.Rule
	Protocols []string       // protocols of a rule of decisions; empty for warnings and receipts
	Effects   []string       // possible effects; empty for warnings
	Request   jsontext.Value // the evaluated example: a policy with an intent, a policy alone, or a decision with a receipt
	Finding   jsontext.Value
}

// Document returns every rule of the decision table, every warning about a policy and every
// finding of a receipt, each with its evaluated example. It returns an error if an example does
// not trigger its rule.
func Document() (list []Documented, err error) {
	byID := map[string]policy.Rule{}
	for _, r := range documented {
		byID[r.ID] = r
	}
	rules, _ := Catalogue()
	for _, rule := range rules {
		d := Documented{Rule: byID[rule.ID], Protocols: rule.Protocols, Effects: rule.Effects}
		d.ID, d.Catches = rule.ID, rule.Condition
		if err := d.decide(); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	for _, rule := range warnings {
		d := Documented{Rule: rule}
		if err := d.lint(); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	for _, rule := range ofReceipts {
		d := Documented{Rule: rule}
		if err := d.conform(); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	adjusted, err := json.Marshal(Findings(Evaluation{}, true)[0])
	return append(list, Documented{Rule: clockAdjusted, Finding: adjusted}), err
}

// decide evaluates the example of a rule of the decision table.
func (d *Documented) decide() (err error) {
	base := exampleX402
	if strings.HasPrefix(d.ID, "mcp.") {
		base = exampleMCP
	}
	if d.Request, err = policy.Patch([]byte(base), []byte(d.Example)); err != nil {
		return err
	}
	var in struct {
		Protocol string         `json:"protocol"`
		Policy   jsontext.Value `json:"policy"`
		Intent   jsontext.Value `json:"intent"`
	}
	if err := json.Unmarshal(d.Request, &in); err != nil {
		return err
	}
	active, err := ReadPolicy(in.Policy)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	request, err := ParseDecision([]byte(`{"protocol":"` + in.Protocol + `","idempotencyKey":"k","subject":{"runId":"r"},"intent":` + string(in.Intent) + `}`))
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	evaluated, _ := Evaluate(EngineVersion, request.Protocol, active.Rules, nil, request.Normalized)
	for _, f := range evaluated.Findings {
		if f.RuleID == d.ID {
			d.Finding, err = json.Marshal(f)
			return err
		}
	}
	return fmt.Errorf("%s: the example does not trigger the rule", d.ID)
}

// lint evaluates the example of a warning. The example is a policy.
func (d *Documented) lint() (err error) {
	if d.Request, err = policy.Patch([]byte(examplePolicy), []byte(d.Example)); err != nil {
		return err
	}
	draft, err := Lint(d.Request)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	for _, f := range draft.Warnings {
		if f.ID == d.ID {
			d.Finding, err = json.Marshal(f)
			return err
		}
	}
	return fmt.Errorf("%s: the example does not trigger the rule", d.ID)
}

// conform evaluates the example of a receipt's finding. The example is a decision with a report
// about its execution.
func (d *Documented) conform() (err error) {
	if d.Request, err = policy.Patch([]byte(exampleReceipt), []byte(d.Example)); err != nil {
		return err
	}
	var in struct {
		Decision   string         `json:"decision"`
		IssuedAt   time.Time      `json:"issuedAt"`
		ValidUntil time.Time      `json:"validUntil"`
		StoppedAt  time.Time      `json:"stoppedAt"`
		ReportedAt time.Time      `json:"reportedAt"`
		Receipt    jsontext.Value `json:"receipt"`
	}
	if err := json.Unmarshal(d.Request, &in); err != nil {
		return err
	}
	receipt, err := ParseReceipt(in.Receipt)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	decided := Decided{Decision: in.Decision, IssuedAt: in.IssuedAt, ValidUntil: in.ValidUntil, Stopped: in.StoppedAt}
	for _, f := range Conform(decided, receipt, in.ReportedAt).Findings {
		if f.RuleID == d.ID {
			d.Effects = []string{f.Effect}
			d.Finding, err = json.Marshal(f)
			return err
		}
	}
	return fmt.Errorf("%s: the example does not trigger the rule", d.ID)
}

const exampleReceipt = `{"decision":"allow","issuedAt":"2026-11-21T10:00:00Z","validUntil":"2026-11-21T10:15:00Z","reportedAt":"2026-11-21T10:05:00Z",` +
	`"receipt":{"decisionId":"asd_1","decisionRecordHash":"h","bindingHash":"b","protocol":"x402","outcome":"fulfilled","observedAt":"2026-11-21T10:04:00Z",` +
	`"responseStatus":200,"responseBodyHash":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}}`

// ofReceipts describes the findings of receipts.
var ofReceipts = []policy.Rule{
	{ID: "receipt.observed_at_missing", Example: `{"receipt":{"observedAt":null}}`,
		Catches: "the receipt does not say when the action was executed",
		Why:     "the time when the receipt arrived is used instead, which is later",
		Instead: "send observedAt"},
	{ID: "receipt.observed_in_future", Example: `{"receipt":{"observedAt":"2026-11-21T11:00:00Z"}}`,
		Catches: "the time of execution is after the time of the report",
		Why:     "a clock or the claimed time is wrong",
		Instead: "correct the clock of the executor"},
	{ID: "receipt.observed_before_decision", Example: `{"receipt":{"observedAt":"2026-11-21T09:00:00Z"}}`,
		Catches: "the time of execution is before the decision",
		Why:     "the action was executed before a decision existed, or a clock is wrong",
		Instead: "request the decision before executing; correct the clock of the executor"},
	{ID: "receipt.executed_after_deny", Example: `{"decision":"deny","validUntil":null}`,
		Catches: "the action was executed although the decision is deny",
		Why:     "the policy was violated",
		Instead: "find the executor and make it check decisions: see countersign check"},
	{ID: "receipt.executed_without_approval", Example: `{"decision":"needs_review","validUntil":null}`,
		Catches: "the action was executed without a valid approval",
		Why:     "a person had to approve it first",
		Instead: "wait for the approval before executing"},
	{ID: "receipt.after_expiry", Example: `{"reportedAt":"2026-11-21T10:30:00Z","receipt":{"observedAt":"2026-11-21T10:20:00Z"}}`,
		Catches: "the action was executed after the decision had expired",
		Why:     "the circumstances may have changed since the decision",
		Instead: "request a new decision after the expiry"},
	{ID: "receipt.executed_after_stop", Example: `{"stoppedAt":"2026-11-21T10:03:00Z"}`,
		Catches: "the action was executed after an emergency stop, or after the activation of a policy that denies it",
		Why:     "an emergency stop ends all earlier decisions and approvals that it denies",
		Instead: "ask the service just before executing: see countersign check --url"},
	{ID: "receipt.reported_after_stop", Example: `{"stoppedAt":"2026-11-21T10:04:30Z"}`,
		Catches: "the action was reported after a stop, and its claimed time of execution is before the stop",
		Why:     "only the executor's clock says that the action was executed before the stop",
		Instead: "compare observedAt with the log of the executor or with the chain"},
	{ID: "receipt.status_mismatch", Example: `{"receipt":{"responseStatus":500}}`,
		Catches: "the outcome contradicts the status of the response",
		Why:     "one of the two is wrong",
		Instead: "check the response, and report again what it says"},
	{ID: "receipt.response_unbound", Example: `{"receipt":{"responseBodyHash":null}}`,
		Catches: "the receipt does not have both status and hash of the response",
		Why:     "without them it cannot be proved later what was delivered",
		Instead: "send responseStatus and responseBodyHash"},
}

const examplePolicy = `{"policyId":"p","maxUsdPerTransaction":1,"allowedPayTo":["0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984"],"requireHttps":true,"allowedMcpServers":["files"]}`

// clockAdjusted describes the one finding of decisions that is not in the decision table: the
// function Findings adds it.
var clockAdjusted = policy.Rule{ID: ClockAdjusted,
	Catches: "the clock of the node was behind the organization's last record",
	Why:     "the times of records must not go back, so this record got the time of the last one",
	Instead: "synchronize the clock of the node with NTP"}

// warnings describes the warnings about policies.
var warnings = []policy.Rule{
	{ID: "policy.no_x402_rule", Example: `{"maxUsdPerTransaction":null,"allowedPayTo":null,"requireHttps":null}`,
		Catches: "no rule of the policy concerns x402",
		Why:     "every x402 decision then needs a review",
		Instead: "add a limit or a list, if agents may pay"},
	{ID: "policy.no_allowed_pay_to", Example: `{"allowedPayTo":null}`,
		Catches: "no payee list: any address can be paid",
		Why:     "attackers steal payments by changing the recipient",
		Instead: "list the recipients, or accept that payments to new addresses are allowed"},
	{ID: "policy.no_maximum", Example: `{"maxUsdPerTransaction":null}`,
		Catches: "no maximum: one transaction can have any amount",
		Why:     "one wrong number can empty the wallet",
		Instead: "set maxUsdPerTransaction"},
	{ID: "policy.no_mcp_rule", Example: `{"requireHttps":true,"allowedMcpServers":null}`,
		Catches: "no rule of the policy concerns MCP",
		Why:     "every MCP decision then needs a review",
		Instead: "list servers or tools, if agents may call them"},
	{ID: "policy.wide_wildcard", Example: `{"allowedHosts":["*.com"]}`,
		Catches: "a wildcard allows every domain below a top-level domain",
		Why:     "anyone can register a domain there",
		Instead: "name the domain"},
	{ID: "policy.network_alias", Example: `{"allowedNetworks":["base"]}`,
		Catches: "a network is given by an alias",
		Why:     "it is stored as its CAIP-2 name, which decisions compare",
		Instead: "write the CAIP-2 name"},
	{ID: "policy.unknown_network", Example: `{"allowedNetworks":["Base Mainnet"]}`,
		Catches: "a network is neither a CAIP-2 name nor an alias",
		Why:     "only an intent with the same text matches it",
		Instead: "check the spelling"},
}

// documented contains the reason and the remedy for each rule of the decision table. The table
// itself states the condition of the rule.
var documented = []policy.Rule{
	{ID: "policy.no_applicable_rule", Example: `{"policy":{"requireHttps":null,"allowedMcpServers":["files"]}}`,
		Why:     "a policy without rules for a protocol does not allow it",
		Instead: "add a rule for the protocol, or let a person decide"},
	{ID: "x402.url.userinfo", Example: `{"intent":{"resourceUrl":"https://user:secret@api.example/v1"}}`,
		Why:     "credentials in a URL disguise the host, and leak",
		Instead: "send the URL without userinfo"},
	{ID: "x402.url.scheme", Example: `{"intent":{"resourceUrl":"ftp://api.example/v1"},"policy":{"requireHttps":null,"blockedHosts":[]}}`,
		Why:     "only http and https can answer 402",
		Instead: "send the URL that is called"},
	{ID: "x402.url.fragment", Example: `{"intent":{"resourceUrl":"https://api.example/v1#top"}}`,
		Why:     "a server never receives a fragment, so it is not part of the purchase",
		Instead: "leave out the fragment"},
	{ID: "x402.https.required", Example: `{"intent":{"resourceUrl":"http://api.example/v1"}}`,
		Why:     "without https an attacker in the network can change price and recipient",
		Instead: "use https"},
	{ID: "x402.host.blocked", Example: `{"policy":{"blockedHosts":["api.example"]}}`,
		Why:     "the policy forbids purchases from this host",
		Instead: "buy elsewhere"},
	{ID: "x402.host.not_allowed", Example: `{"policy":{"allowedHosts":["other.example"]}}`,
		Why:     "the policy allows only listed hosts",
		Instead: "use a listed host, or ask for the host to be added"},
	{ID: "x402.host.private", Example: `{"intent":{"resourceUrl":"https://169.254.169.254/latest"}}`,
		Why:     "an offer with an internal address makes the buyer call a host that only the buyer can reach",
		Instead: "list the host in allowedHosts, if it is yours"},
	{ID: "x402.method.unknown", Example: `{"intent":{"method":"PROPFIND"}}`,
		Why:     "the effect of an unknown method cannot be judged",
		Instead: "use a known HTTP method"},
	{ID: "x402.scheme.not_exact", Example: `{"policy":{"requireExactScheme":true},"intent":{"scheme":"upto"}}`,
		Why:     "other schemes let the seller take a different amount than shown",
		Instead: "pay with the scheme exact"},
	{ID: "x402.scheme.unknown", Example: `{"intent":{"scheme":"stream"}}`,
		Why:     "the amount that an unknown scheme takes cannot be determined",
		Instead: "let a person read the offer"},
	{ID: "x402.network.not_allowed", Example: `{"policy":{"allowedNetworks":["base-sepolia"]}}`,
		Why:     "money sent on another network is lost for the intended recipient",
		Instead: "pay on an allowed network"},
	{ID: "x402.network.missing", Example: `{"policy":{"allowedNetworks":["base"]},"intent":{"network":null}}`,
		Why:     "without a network the rule cannot be checked",
		Instead: "send network"},
	{ID: "x402.payto.invalid", Example: `{"intent":{"payTo":"0x0000000000000000000000000000000000000000"}}`,
		Why:     "money sent to an invalid address is lost",
		Instead: "ask the seller for the address again"},
	{ID: "x402.payto.not_allowed", Example: `{"policy":{"allowedPayTo":["0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"]}}`,
		Why:     "attackers steal payments by changing the recipient",
		Instead: "compare with the seller's published address"},
	{ID: "x402.payto.missing", Example: `{"policy":{"allowedPayTo":["0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"]},"intent":{"payTo":null}}`,
		Why:     "without a recipient the rule cannot be checked",
		Instead: "send payTo"},
	{ID: "x402.asset.unknown", Example: `{"policy":{"maxUsdPerTransaction":1},"intent":{"asset":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"}}`,
		Why:     "without a conversion the limit in dollars cannot be checked",
		Instead: "pay in USDC, or send amountUsd"},
	{ID: "x402.amount.invalid", Example: `{"intent":{"amountUnits":"-5"}}`,
		Why:     "such an amount cannot be compared with the limit",
		Instead: "send digits without sign"},
	{ID: "x402.amount.inconsistent", Example: `{"intent":{"amountUsd":2.5}}`,
		Why:     "the buyer may see one amount and pay the other",
		Instead: "do not pay; ask for a new offer"},
	{ID: "x402.amount.over_limit", Example: `{"policy":{"maxUsdPerTransaction":0.2}}`,
		Why:     "the policy limits the amount",
		Instead: "buy less, or ask for a higher limit"},
	{ID: "x402.amount.missing", Example: `{"policy":{"maxUsdPerTransaction":1},"intent":{"amountUnits":null}}`,
		Why:     "without an amount the limit cannot be checked",
		Instead: "send amountUnits"},
	{ID: "x402.amount.units_missing", Example: `{"intent":{"amountUnits":null,"amountUsd":0.25}}`,
		Why:     "the payer signs units, so an amount in dollars alone does not bind the payment",
		Instead: "also send amountUnits"},
	{ID: "x402.binding.missing", Example: `{"policy":{"requireResourceBinding":true}}`,
		Why:     "a payload without a resource can be used for another resource",
		Instead: "send paymentPayloadResource"},
	{ID: "x402.binding.mismatch", Example: `{"intent":{"paymentPayloadResource":"https://api.example/v2"}}`,
		Why:     "the payment would buy something else",
		Instead: "do not sign; ask for a new offer"},
	{ID: "x402.payment_identifier.missing", Example: `{"policy":{"requirePaymentIdentifier":true}}`,
		Why:     "without an identifier a retry looks like a second purchase",
		Instead: "give each purchase its own identifier"},
	{ID: "x402.payment_identifier.invalid", Example: `{"intent":{"paymentIdentifier":"a b"}}`,
		Why:     "facilitators refuse such an identifier, or treat two purchases as one",
		Instead: "use 16 to 128 letters, digits, - and _"},
	{ID: "x402.facilitator.not_allowed", Example: `{"intent":{"facilitatorUrl":"http://facilitator.example/"}}`,
		Why:     "a facilitator sees the payment and can withhold it",
		Instead: "use a facilitator with https that is not blocked"},
	{ID: "mcp.server.not_allowed", Example: `{"policy":{"allowedMcpServers":["mail"]}}`,
		Why:     "the tools of this server were not reviewed",
		Instead: "use a listed server, or ask for the server to be added"},
	{ID: "mcp.tool.blocked", Example: `{"policy":{"blockedMcpTools":["read"]}}`,
		Why:     "the policy forbids this tool",
		Instead: "use another tool, or ask for a change of the policy"},
	{ID: "mcp.tool.not_allowed", Example: `{"policy":{"allowedMcpTools":["list"]}}`,
		Why:     "the policy allows only listed tools",
		Instead: "use a listed tool, or ask for the tool to be added"},
	{ID: "mcp.url.not_allowed", Example: `{"policy":{"requireHttps":true},"intent":{"serverUrl":"http://mcp.example/"}}`,
		Why:     "without https an attacker in the network can read the arguments and change the answer",
		Instead: "use https and a host that is not blocked"},
	{ID: "mcp.url.fragment", Example: `{"intent":{"serverUrl":"https://mcp.example/#x"}}`,
		Why:     "a server never receives a fragment, so it is not part of the call",
		Instead: "leave out the fragment"},
	{ID: "mcp.arguments.hash_invalid", Example: `{"intent":{"toolArgumentsHash":"38DAF1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2"}}`,
		Why:     "such a hash cannot be compared with the arguments",
		Instead: "send the SHA-256 of the canonical arguments in lower-case hex"},
	{ID: "mcp.arguments.hash_mismatch", Example: `{"intent":{"toolArgumentsHash":"00daf1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2"}}`,
		Why:     "the decision would be about a different call than the one made",
		Instead: "send the hash of the arguments that are sent"},
	{ID: "mcp.arguments.unbound", Example: `{"policy":{"requireMcpArgumentBinding":true},"intent":{"toolArguments":null}}`,
		Why:     "without arguments the decision does not identify the call",
		Instead: "send toolArguments or toolArgumentsHash"},
	{ID: "mcp.risk.threshold", Example: `{"policy":{"reviewMcpRiskAtOrAbove":"high"},"intent":{"declaredRisk":"high"}}`,
		Why:     "the policy requires a person to review such calls",
		Instead: "ask the reviewer"},
	{ID: "mcp.risk.missing", Example: `{"policy":{"reviewMcpRiskAtOrAbove":"high"}}`,
		Why:     "without a declared risk the threshold cannot be checked",
		Instead: "send declaredRisk"},
}
