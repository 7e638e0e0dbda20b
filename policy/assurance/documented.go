package assurance

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Requests that the examples of rules change: a policy, and an intent under it.
const (
	exampleX402 = `{"protocol":"x402","policy":{"policyId":"p","version":1,"requireHttps":true},"intent":{"resourceUrl":"https://api.example/v1","method":"GET","network":"base",` +
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`
	exampleMCP = `{"protocol":"mcp","policy":{"policyId":"p","version":1,"blockedMcpTools":[]},"intent":{"serverId":"files","toolName":"read","toolArguments":{"path":"/srv/report.txt","limit":10}}}`
)

// Documented is a rule in words, with an example that was just evaluated.
type Documented struct {
	policy.Rule
	Protocols []string       // of decisions; empty for what is said about a policy
	Effects   []string       // of decisions
	Request   jsontext.Value // what was evaluated: policy and intent, a policy, or decision and receipt
	Finding   jsontext.Value
}

// Document is every rule of the decision table, every warning about a policy and every
// finding of a receipt, with its example evaluated. The error is that of an example that does not raise its rule.
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
	return fmt.Errorf("%s: the example does not raise it", d.ID)
}

// lint reads the example of a warning, a policy.
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
	return fmt.Errorf("%s: the example does not raise it", d.ID)
}

// conform holds the example of a finding of receipts, a decision and what was reported
// about it, against each other.
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
	return fmt.Errorf("%s: the example does not raise it", d.ID)
}

const exampleReceipt = `{"decision":"allow","issuedAt":"2026-11-21T10:00:00Z","validUntil":"2026-11-21T10:15:00Z","reportedAt":"2026-11-21T10:05:00Z",` +
	`"receipt":{"decisionId":"asd_1","decisionRecordHash":"h","bindingHash":"b","protocol":"x402","outcome":"fulfilled","observedAt":"2026-11-21T10:04:00Z",` +
	`"responseStatus":200,"responseBodyHash":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}}`

// ofReceipts say what each finding of a receipt is about.
var ofReceipts = []policy.Rule{
	{ID: "receipt.observed_at_missing", Example: `{"receipt":{"observedAt":null}}`,
		Catches: "the receipt does not say when it happened",
		Why:     "the time of receipt stands for it, which is later",
		Instead: "send observedAt"},
	{ID: "receipt.observed_in_future", Example: `{"receipt":{"observedAt":"2026-11-21T11:00:00Z"}}`,
		Catches: "it is claimed to have happened after it was reported",
		Why:     "one of the two clocks is wrong, or the claim",
		Instead: "set the clock of the executor"},
	{ID: "receipt.observed_before_decision", Example: `{"receipt":{"observedAt":"2026-11-21T09:00:00Z"}}`,
		Catches: "it is claimed to have happened before the decision",
		Why:     "then nobody had decided",
		Instead: "ask before executing; set the clock of the executor"},
	{ID: "receipt.executed_after_deny", Example: `{"decision":"deny","validUntil":null}`,
		Catches: "it was executed although the decision is deny",
		Why:     "the policy was not kept",
		Instead: "find out what executed it, and stop it there: see countersign check"},
	{ID: "receipt.executed_without_approval", Example: `{"decision":"needs_review","validUntil":null}`,
		Catches: "it was executed without an approval in force",
		Why:     "a person was to decide, and had not",
		Instead: "wait for the approval before executing"},
	{ID: "receipt.after_expiry", Example: `{"reportedAt":"2026-11-21T10:30:00Z","receipt":{"observedAt":"2026-11-21T10:20:00Z"}}`,
		Catches: "it was executed after the decision had expired",
		Why:     "what was true when it was decided may not have been true any more",
		Instead: "ask again when the time is over"},
	{ID: "receipt.executed_after_stop", Example: `{"stoppedAt":"2026-11-21T10:03:00Z"}`,
		Catches: "it was executed after an emergency stop, or after another policy that denies it was activated",
		Why:     "a stop ends every decision and approval that was given before it and that it denies",
		Instead: "ask the service just before executing: see countersign check --url"},
	{ID: "receipt.reported_after_stop", Example: `{"stoppedAt":"2026-11-21T10:04:30Z"}`,
		Catches: "it is claimed to have been executed before a stop, and was reported after the stop",
		Why:     "only the executor's clock says that it was in time",
		Instead: "compare observedAt with the log of the executor or with the chain"},
	{ID: "receipt.status_mismatch", Example: `{"receipt":{"responseStatus":500}}`,
		Catches: "outcome and status of the answer contradict each other",
		Why:     "one of both is wrong",
		Instead: "look at the answer, and report again what it says"},
	{ID: "receipt.response_unbound", Example: `{"receipt":{"responseBodyHash":null}}`,
		Catches: "the answer is not bound by status and hash",
		Why:     "nobody can show later what was delivered",
		Instead: "send responseStatus and responseBodyHash"},
}

const examplePolicy = `{"policyId":"p","maxUsdPerTransaction":1,"allowedPayTo":["0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984"],"requireHttps":true,"allowedMcpServers":["files"]}`

// clockAdjusted is of no rule of the table: the recorder says it.
var clockAdjusted = policy.Rule{ID: ClockAdjusted,
	Catches: "the clock of the node was behind the last record of the organization",
	Why:     "records must not go back in time, so this one was given the time of the last",
	Instead: "set the clock of the node by NTP"}

// warnings say what each warning about a policy is about.
var warnings = []policy.Rule{
	{ID: "policy.no_x402_rule", Example: `{"maxUsdPerTransaction":null,"allowedPayTo":null,"requireHttps":null}`,
		Catches: "no rule of the policy concerns x402",
		Why:     "every x402 decision then needs a review",
		Instead: "add a limit or a list, if agents may pay"},
	{ID: "policy.no_allowed_pay_to", Example: `{"allowedPayTo":null}`,
		Catches: "any recipient may be paid",
		Why:     "changing the recipient is how payments are stolen",
		Instead: "list the recipients, or accept that every new one is paid"},
	{ID: "policy.no_maximum", Example: `{"maxUsdPerTransaction":null}`,
		Catches: "one transaction may have any amount",
		Why:     "one wrong number empties the wallet",
		Instead: "set maxUsdPerTransaction"},
	{ID: "policy.no_mcp_rule", Example: `{"requireHttps":true,"allowedMcpServers":null}`,
		Catches: "no rule of the policy concerns MCP",
		Why:     "every MCP decision then needs a review",
		Instead: "list servers or tools, if agents may call them"},
	{ID: "policy.wide_wildcard", Example: `{"allowedHosts":["*.com"]}`,
		Catches: "a wildcard allows a whole top-level domain",
		Why:     "anybody can register a name below it",
		Instead: "name the domain"},
	{ID: "policy.network_alias", Example: `{"allowedNetworks":["base"]}`,
		Catches: "a network is written by an alias",
		Why:     "it is kept as its CAIP-2 name, which is what decisions compare",
		Instead: "write the CAIP-2 name, to see what is compared"},
	{ID: "policy.unknown_network", Example: `{"allowedNetworks":["Base Mainnet"]}`,
		Catches: "a network is neither a CAIP-2 name nor an alias",
		Why:     "only an intent with the same text matches it",
		Instead: "check the spelling"},
}

// documented says of each rule of the decision table why it counts and what to do; what
// it catches stands in the table.
var documented = []policy.Rule{
	{ID: "policy.no_applicable_rule", Example: `{"policy":{"requireHttps":null,"allowedMcpServers":["files"]}}`,
		Why:     "a policy that says nothing of a protocol does not allow it",
		Instead: "add a rule that concerns the protocol, or let a person decide"},
	{ID: "x402.url.userinfo", Example: `{"intent":{"resourceUrl":"https://user:secret@api.example/v1"}}`,
		Why:     "it makes one host look like another, and leaks what it holds",
		Instead: "send the address without it"},
	{ID: "x402.url.scheme", Example: `{"intent":{"resourceUrl":"ftp://api.example/v1"},"policy":{"requireHttps":null,"blockedHosts":[]}}`,
		Why:     "only http and https can answer 402",
		Instead: "send the address that is called"},
	{ID: "x402.url.fragment", Example: `{"intent":{"resourceUrl":"https://api.example/v1#top"}}`,
		Why:     "a server never sees it, so it is no part of what is bought",
		Instead: "leave it out"},
	{ID: "x402.https.required", Example: `{"intent":{"resourceUrl":"http://api.example/v1"}}`,
		Why:     "whoever is between can change price and recipient",
		Instead: "use https"},
	{ID: "x402.host.blocked", Example: `{"policy":{"blockedHosts":["api.example"]}}`,
		Why:     "somebody decided that nothing is bought there",
		Instead: "buy elsewhere"},
	{ID: "x402.host.not_allowed", Example: `{"policy":{"allowedHosts":["other.example"]}}`,
		Why:     "what is not listed was not agreed to",
		Instead: "use a listed host, or have it added"},
	{ID: "x402.host.private", Example: `{"intent":{"resourceUrl":"https://169.254.169.254/latest"}}`,
		Why:     "an offer that points inside makes the buyer fetch what only the buyer can reach",
		Instead: "list the host in allowedHosts, if it is yours"},
	{ID: "x402.method.unknown", Example: `{"intent":{"method":"PROPFIND"}}`,
		Why:     "nobody can say what such a call does",
		Instead: "use a method of HTTP that is known"},
	{ID: "x402.scheme.not_exact", Example: `{"policy":{"requireExactScheme":true},"intent":{"scheme":"upto"}}`,
		Why:     "other schemes let the seller take another amount than was shown",
		Instead: "pay with the scheme exact"},
	{ID: "x402.scheme.unknown", Example: `{"intent":{"scheme":"stream"}}`,
		Why:     "nobody can say what it would take",
		Instead: "let a person read the offer"},
	{ID: "x402.network.not_allowed", Example: `{"policy":{"allowedNetworks":["base-sepolia"]}}`,
		Why:     "money on another network is gone for whoever watches this one",
		Instead: "pay on an allowed network"},
	{ID: "x402.network.missing", Example: `{"policy":{"allowedNetworks":["base"]},"intent":{"network":null}}`,
		Why:     "it cannot be compared with the list",
		Instead: "send network"},
	{ID: "x402.payto.invalid", Example: `{"intent":{"payTo":"0x0000000000000000000000000000000000000000"}}`,
		Why:     "money sent there is lost",
		Instead: "ask the seller for the address again"},
	{ID: "x402.payto.not_allowed", Example: `{"policy":{"allowedPayTo":["0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"]}}`,
		Why:     "changing the recipient is how payments are stolen",
		Instead: "compare with the seller's published address"},
	{ID: "x402.payto.missing", Example: `{"policy":{"allowedPayTo":["0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"]},"intent":{"payTo":null}}`,
		Why:     "it cannot be compared with the list",
		Instead: "send payTo"},
	{ID: "x402.asset.unknown", Example: `{"policy":{"maxUsdPerTransaction":1},"intent":{"asset":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"}}`,
		Why:     "the limit in dollars would be kept by chance only",
		Instead: "pay in USDC, or send amountUsd"},
	{ID: "x402.amount.invalid", Example: `{"intent":{"amountUnits":"-5"}}`,
		Why:     "it cannot be compared with the limit",
		Instead: "send digits without sign"},
	{ID: "x402.amount.inconsistent", Example: `{"intent":{"amountUsd":2.5}}`,
		Why:     "one of both is shown and the other is taken",
		Instead: "trust neither; ask for a new offer"},
	{ID: "x402.amount.over_limit", Example: `{"policy":{"maxUsdPerTransaction":0.2}}`,
		Why:     "the policy sets it",
		Instead: "buy less, or have the limit raised"},
	{ID: "x402.amount.missing", Example: `{"policy":{"maxUsdPerTransaction":1},"intent":{"amountUnits":null}}`,
		Why:     "it cannot be compared with the limit",
		Instead: "send amountUnits"},
	{ID: "x402.amount.units_missing", Example: `{"intent":{"amountUnits":null,"amountUsd":0.25}}`,
		Why:     "units are what is signed; dollars are what is meant",
		Instead: "send amountUnits, too"},
	{ID: "x402.binding.missing", Example: `{"policy":{"requireResourceBinding":true}}`,
		Why:     "a payload without a resource can be spent on another one",
		Instead: "send paymentPayloadResource"},
	{ID: "x402.binding.mismatch", Example: `{"intent":{"paymentPayloadResource":"https://api.example/v2"}}`,
		Why:     "the money would buy something else than was asked for",
		Instead: "do not sign; ask for a new offer"},
	{ID: "x402.payment_identifier.missing", Example: `{"policy":{"requirePaymentIdentifier":true}}`,
		Why:     "a retry cannot be told from a second purchase",
		Instead: "give each purchase an identifier of its own"},
	{ID: "x402.payment_identifier.invalid", Example: `{"intent":{"paymentIdentifier":"a b"}}`,
		Why:     "facilitators refuse it, or take two purchases for one",
		Instead: "use 16 to 128 letters, digits, - and _"},
	{ID: "x402.facilitator.not_allowed", Example: `{"intent":{"facilitatorUrl":"http://facilitator.example/"}}`,
		Why:     "whoever settles sees the payment and may withhold it",
		Instead: "use a facilitator over https that nobody blocked"},
	{ID: "mcp.server.not_allowed", Example: `{"policy":{"allowedMcpServers":["mail"]}}`,
		Why:     "its tools were never looked at",
		Instead: "use a server of the list, or have it added"},
	{ID: "mcp.tool.blocked", Example: `{"policy":{"blockedMcpTools":["read"]}}`,
		Why:     "somebody decided that it must not be called",
		Instead: "use another tool, or have the policy changed"},
	{ID: "mcp.tool.not_allowed", Example: `{"policy":{"allowedMcpTools":["list"]}}`,
		Why:     "what is not listed was not agreed to",
		Instead: "use a listed tool, or have it added"},
	{ID: "mcp.url.not_allowed", Example: `{"policy":{"requireHttps":true},"intent":{"serverUrl":"http://mcp.example/"}}`,
		Why:     "whoever is between reads the arguments and changes the answer",
		Instead: "use https and a host that nobody blocked"},
	{ID: "mcp.url.fragment", Example: `{"intent":{"serverUrl":"https://mcp.example/#x"}}`,
		Why:     "a server never sees it, so it is no part of the call",
		Instead: "leave it out"},
	{ID: "mcp.arguments.hash_invalid", Example: `{"intent":{"toolArgumentsHash":"38DAF1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2"}}`,
		Why:     "it cannot be compared with the arguments",
		Instead: "send the SHA-256 of the canonical arguments in lower-case hex"},
	{ID: "mcp.arguments.hash_mismatch", Example: `{"intent":{"toolArgumentsHash":"00daf1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2"}}`,
		Why:     "another call would be decided about than is made",
		Instead: "hash the arguments that are sent"},
	{ID: "mcp.arguments.unbound", Example: `{"policy":{"requireMcpArgumentBinding":true},"intent":{"toolArguments":null}}`,
		Why:     "a decision without them is about some call, and not about this one",
		Instead: "send toolArguments or toolArgumentsHash"},
	{ID: "mcp.risk.threshold", Example: `{"policy":{"reviewMcpRiskAtOrAbove":"high"},"intent":{"declaredRisk":"high"}}`,
		Why:     "the policy wants a person to look at such calls",
		Instead: "ask the reviewer"},
	{ID: "mcp.risk.missing", Example: `{"policy":{"reviewMcpRiskAtOrAbove":"high"}}`,
		Why:     "it cannot be compared with the threshold",
		Instead: "send declaredRisk"},
}
