package paymentpolicy

// Bounds that no single field's tag says.
const (
	maxFindings = 500 // of one answer, the most severe first; an agent reads ten
	maxTimeout  = 300 // seconds, the default of policy.maxTimeoutSeconds: x402's own default
)

// amountSlack is how far amountUsd may be from the token amount: half of the
// smallest USDC unit, as text.
const amountSlack = "5e-7"
