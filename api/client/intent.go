package client

// Intent is a payment (x402) or a tool call (MCP), exactly as it will be executed. It sets the
// members of one protocol. A payment requires ResourceURL and Method, a tool call ServerID and
// ToolName.
type Intent struct {
	ResourceURL            string   `json:"resourceUrl,omitempty"`
	Method                 string   `json:"method,omitempty"`
	Scheme                 string   `json:"scheme,omitempty"`
	Network                string   `json:"network,omitempty"`
	Asset                  string   `json:"asset,omitempty"`
	PayTo                  string   `json:"payTo,omitempty"`
	AmountUnits            string   `json:"amountUnits,omitempty"` // in the smallest unit of the token
	AmountUSD              *float64 `json:"amountUsd,omitempty"`
	FacilitatorURL         string   `json:"facilitatorUrl,omitempty"`
	PaymentIdentifier      string   `json:"paymentIdentifier,omitempty"`
	PaymentPayloadResource string   `json:"paymentPayloadResource,omitempty"`
	PaymentPayloadMethod   string   `json:"paymentPayloadMethod,omitempty"`

	ServerID  string `json:"serverId,omitempty"`
	ServerURL string `json:"serverUrl,omitempty"`
	ToolName  string `json:"toolName,omitempty"`
	// ToolArguments is any JSON value. The function passed to Execute receives it as a
	// jsontext.Value: the JSON text that was decided.
	ToolArguments     any    `json:"toolArguments,omitzero"`
	ToolArgumentsHash string `json:"toolArgumentsHash,omitempty"`
	DeclaredRisk      string `json:"declaredRisk,omitempty"`
}
