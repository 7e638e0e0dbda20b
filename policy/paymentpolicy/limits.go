package paymentpolicy

// Limits that are not in the tag of a field.
const (
	maxFindings = 500 // per answer, the most severe first
	maxTimeout  = 300 // seconds, the default of policy.maxTimeoutSeconds: x402's own default
)

// amountSlack is the tolerated difference between amountUsd and the token amount: half of the
// smallest USDC unit, as text.
const amountSlack = "5e-7"
