package shape

// Intent returns the conditions of the member intent: the members that an x402 or an MCP intent
// requires, and that it has no members of the other protocol.
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
