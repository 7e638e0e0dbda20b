package paymentpolicy

// Limits that no struct tag states.
const (
	maxFindings = 500 // largest number of findings in an answer; the most severe are kept
	maxTimeout  = 300 // default of policy.maxTimeoutSeconds in seconds, the default of x402
)

// amountSlack is the tolerated difference in US dollars between amountUsd and the token amount:
// half of the smallest unit of USDC.
const amountSlack = "5e-7"
