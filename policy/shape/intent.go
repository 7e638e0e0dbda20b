package shape

// Intent lists the conditions of requests about what an agent intends to do: the members of
// intent depend on the protocol.
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
