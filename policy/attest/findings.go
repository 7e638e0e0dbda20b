package attest

import "github.com/countersign/countersign/policy"

// documented says what its own findings are about; those of the payment rules are
// declared by paymentpolicy.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "settlement_not_fulfilled", Example: `{"settlement":{"outcome":"failed"}}`,
			Catches: "the action failed or was rejected",
			Why:     "an attestation of a call that had no effect proves no effect",
			Instead: "look at the outcome before relying on the record"},
		{ID: "no_policy", Example: `{"policy":null}`,
			Catches: "no policy was given",
			Why:     "nothing was checked, so nothing can be allowed",
			Instead: "send the policy that the buyer agreed to"},
		{ID: "no_applicable_rule", Example: `{"policy":{"allowedMcpServers":null,"reviewMcpRiskAtOrAbove":null,"maxUsdPerTransaction":1}}`,
			Catches: "no rule of the policy concerns tools",
			Why:     "a policy that says nothing of a call does not allow it",
			Instead: "add allowedMcpServers or another rule of tools"},
		{ID: "mcp_server_not_allowed", Example: `{"policy":{"allowedMcpServers":["mail"]}}`,
			Catches: "the policy does not allow this server",
			Why:     "its tools were never looked at",
			Instead: "use a server of the list, or have it added"},
		{ID: "mcp_tool_blocked", Example: `{"policy":{"blockedMcpTools":["read"]}}`,
			Catches: "the policy blocks this tool, in any case of its letters",
			Why:     "somebody decided that it must not be called",
			Instead: "use another tool, or have the policy changed"},
		{ID: "mcp_tool_not_allowed", Example: `{"policy":{"allowedMcpTools":["list"]}}`,
			Catches: "the policy lists tools, and this one is not among them",
			Why:     "what is not listed was not agreed to",
			Instead: "use a listed tool, or have it added"},
		{ID: "mcp_arguments_unbound", Example: `{"intent":{"toolArguments":null},"policy":{"requireMcpArgumentBinding":true}}`,
			Catches: "the policy wants the arguments or their hash, and neither is there",
			Why:     "a record without them says that some call was made, and not which",
			Instead: "send toolArguments or toolArgumentsHash"},
		{ID: "mcp_risk_undeclared", Example: `{"intent":{"declaredRisk":null}}`,
			Catches: "the policy has a threshold of risk, and no risk is declared",
			Why:     "it cannot be compared with the threshold",
			Instead: "send declaredRisk"},
		{ID: "mcp_risk_at_or_above_review", Example: `{"intent":{"declaredRisk":"high"}}`,
			Catches: "the declared risk is at or above the threshold of review",
			Why:     "the policy wants a person to look at such calls",
			Instead: "ask the reviewer"},
	}
}
