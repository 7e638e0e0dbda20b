package shape

// Intent returns the conditions of the member intent: which members an x402 intent and an MCP
// intent require, and that an intent has no members of the other protocol.
func Intent() []any {
	payment := []string{"resourceUrl", "method", "scheme", "network", "asset", "payTo", "amountUnits", "amountUsd", "facilitatorUrl",
		"paymentIdentifier", "paymentPayloadResource", "paymentPayloadMethod"}
	tool := []string{"serverId", "serverUrl", "toolName", "toolArguments", "toolArgumentsHash", "declaredRisk"}
	intent := func(required, foreign []string) Schema {
		return Within("intent", AllGiven(required...), NoneGiven(foreign...))
	}
	return []any{
		When(Is("protocol", "x402"), intent(payment[:2], tool)),
		When(Is("protocol", "mcp"), intent([]string{"serverId", "toolName"}, payment)),
	}
}
