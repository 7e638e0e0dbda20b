package v1

import "slices"

// Rule is one row of the decision table. Its id never changes.
type Rule struct {
	ID        string   `json:"id"`
	Protocols []string `json:"protocols"`
	Effects   []string `json:"effects"`
	Condition string   `json:"condition"`
}

// catalogue is the decision table, in the order in which the documentation shows it.
var catalogue = []Rule{
	{"policy.no_applicable_rule", []string{X402, MCP}, []string{NeedsReview}, "no rule of the active policy concerns the protocol"},

	{"x402.url.userinfo", []string{X402}, []string{Deny}, "resourceUrl holds userinfo"},
	{"x402.url.scheme", []string{X402}, []string{Deny}, "resourceUrl is not http or https"},
	{"x402.url.fragment", []string{X402}, []string{Info}, "resourceUrl had a fragment, which was dropped"},
	{"x402.https.required", []string{X402}, []string{Deny}, "requireHttps and not https"},
	{"x402.host.blocked", []string{X402}, []string{Deny}, "blockedHosts covers the host"},
	{"x402.host.not_allowed", []string{X402}, []string{Deny}, "allowedHosts is set and none matches"},
	{"x402.host.private", []string{X402}, []string{NeedsReview}, "no allowedHosts, and the host is not on the public internet"},
	{"x402.method.unknown", []string{X402}, []string{NeedsReview}, "the method is not one of GET HEAD POST PUT PATCH DELETE OPTIONS"},
	{"x402.scheme.not_exact", []string{X402}, []string{Deny}, "requireExactScheme and scheme absent or not exact"},
	{"x402.scheme.unknown", []string{X402}, []string{NeedsReview}, "requireExactScheme off, scheme given, neither exact nor upto"},
	{"x402.network.not_allowed", []string{X402}, []string{Deny}, "allowedNetworks is set and the network not in it"},
	{"x402.network.missing", []string{X402}, []string{NeedsReview}, "allowedNetworks is set and the network absent"},
	{"x402.payto.invalid", []string{X402}, []string{Deny}, "payTo is malformed on its network"},
	{"x402.payto.not_allowed", []string{X402}, []string{Deny}, "allowedPayTo is set and payTo not in it"},
	{"x402.payto.missing", []string{X402}, []string{NeedsReview}, "allowedPayTo is set and payTo absent"},
	{"x402.asset.unknown", []string{X402}, []string{NeedsReview}, "maxUsdPerTransaction is set and the units cannot be converted"},
	{"x402.amount.invalid", []string{X402}, []string{Deny}, "an amount is negative or malformed"},
	{"x402.amount.inconsistent", []string{X402}, []string{Deny}, "amountUnits and amountUsd differ"},
	{"x402.amount.over_limit", []string{X402}, []string{Deny}, "the larger of the given amounts is above maxUsdPerTransaction"},
	{"x402.amount.missing", []string{X402}, []string{NeedsReview}, "maxUsdPerTransaction is set and no amount given"},
	{"x402.amount.units_missing", []string{X402}, []string{Info}, "only amountUsd is given"},
	{"x402.binding.missing", []string{X402}, []string{Deny}, "requireResourceBinding and no paymentPayloadResource"},
	{"x402.binding.mismatch", []string{X402}, []string{Deny}, "paymentPayloadResource or paymentPayloadMethod is not the resource or method"},
	{"x402.payment_identifier.missing", []string{X402}, []string{Deny}, "requirePaymentIdentifier and none"},
	{"x402.payment_identifier.invalid", []string{X402}, []string{Deny, NeedsReview}, "paymentIdentifier is malformed: deny with requirePaymentIdentifier, else needs_review"},
	{"x402.facilitator.not_allowed", []string{X402}, []string{Deny}, "facilitatorUrl with userinfo, a blocked host, or not https under requireHttps"},

	{"mcp.server.not_allowed", []string{MCP}, []string{Deny}, "allowedMcpServers is set and serverId not in it"},
	{"mcp.tool.blocked", []string{MCP}, []string{Deny}, "toolName or serverId/toolName equals an entry of blockedMcpTools, in any case"},
	{"mcp.tool.not_allowed", []string{MCP}, []string{Deny}, "allowedMcpTools is set and has neither serverId/toolName nor a toolName without slash"},
	{"mcp.url.not_allowed", []string{MCP}, []string{Deny}, "serverUrl with userinfo, a blocked host, or not https under requireHttps"},
	{"mcp.url.fragment", []string{MCP}, []string{Info}, "serverUrl had a fragment, which was dropped"},
	{"mcp.arguments.hash_invalid", []string{MCP}, []string{Deny}, "toolArgumentsHash is not 64 lower-case hex digits"},
	{"mcp.arguments.hash_mismatch", []string{MCP}, []string{Deny}, "toolArgumentsHash is not that of toolArguments"},
	{"mcp.arguments.unbound", []string{MCP}, []string{Deny}, "requireMcpArgumentBinding and neither toolArguments nor toolArgumentsHash"},
	{"mcp.risk.threshold", []string{MCP}, []string{NeedsReview}, "declaredRisk is at or above reviewMcpRiskAtOrAbove"},
	{"mcp.risk.missing", []string{MCP}, []string{NeedsReview}, "reviewMcpRiskAtOrAbove is set and declaredRisk absent"},
}

// Catalogue returns a copy of the decision table.
func Catalogue() []Rule { return slices.Clone(catalogue) }

// RuleIDs returns the sorted ids of the rules for a protocol.
func RuleIDs(protocol string) []string { return slices.Clone(ruleIDs[protocol]) }

// The ids are computed once, because every decision record lists its rules.
var ruleIDs = map[string][]string{X402: idsOf(X402), MCP: idsOf(MCP)}

func idsOf(protocol string) []string {
	ids := []string{}
	for _, rule := range catalogue {
		if slices.Contains(rule.Protocols, protocol) {
			ids = append(ids, rule.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
