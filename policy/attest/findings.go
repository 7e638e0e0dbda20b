package attest

import "github.com/countersign/countersign/policy"

// documented describes the findings of this package. Package paymentpolicy describes those of the
// payment rules.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "settlement_not_fulfilled", Example: `{"settlement":{"outcome":"failed"}}`,
			Catches: "the action failed or was rejected",
			Why:     "the attestation does not prove that the action had an effect",
			Instead: "check the outcome before relying on the record"},
		{ID: "no_policy", Example: `{"policy":null}`,
			Catches: "no policy was given",
			Why:     "without a policy nothing can be checked or allowed",
			Instead: "send the policy that the buyer agreed to"},
		{ID: "no_applicable_rule", Example: `{"policy":{"allowedMcpServers":null,"reviewMcpRiskAtOrAbove":null,"maxUsdPerTransaction":1}}`,
			Catches: "the policy has no rule about tools",
			Why:     "a policy without rules about tools does not allow a call",
			Instead: "add allowedMcpServers or another rule about tools"},
		{ID: "mcp_server_not_allowed", Example: `{"policy":{"allowedMcpServers":["mail"]}}`,
			Catches: "the policy does not allow this server",
			Why:     "the tools of this server were not reviewed",
			Instead: "use a listed server, or ask for the server to be added"},
		{ID: "mcp_tool_blocked", Example: `{"policy":{"blockedMcpTools":["read"]}}`,
			Catches: "the policy blocks this tool, compared without regard to case",
			Why:     "the policy forbids this tool",
			Instead: "use another tool, or ask for a change of the policy"},
		{ID: "mcp_tool_not_allowed", Example: `{"policy":{"allowedMcpTools":["list"]}}`,
			Catches: "the policy lists allowed tools, and this tool is not one of them",
			Why:     "the policy allows only what is listed",
			Instead: "use a listed tool, or ask for the tool to be added"},
		{ID: "mcp_arguments_unbound", Example: `{"intent":{"toolArguments":null},"policy":{"requireMcpArgumentBinding":true}}`,
			Catches: "the policy requires the arguments or their hash, and neither was sent",
			Why:     "without them the record does not identify the call",
			Instead: "send toolArguments or toolArgumentsHash"},
		{ID: "mcp_risk_undeclared", Example: `{"intent":{"declaredRisk":null}}`,
			Catches: "the policy has a risk threshold, and no risk is declared",
			Why:     "without a risk the threshold cannot be checked",
			Instead: "send declaredRisk"},
		{ID: "mcp_risk_at_or_above_review", Example: `{"intent":{"declaredRisk":"high"}}`,
			Catches: "the declared risk is at or above the review threshold",
			Why:     "the policy requires a person to review such calls",
			Instead: "ask the reviewer"},
	}
}
