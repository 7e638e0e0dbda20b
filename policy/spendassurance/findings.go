package spendassurance

import "github.com/countersign/countersign/policy"

// documented says what its own findings are about; those of the parts are declared by
// paymentpolicy, walletscreen and evidence.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "wallet_not_screened", Example: `{"wallet":null}`,
			Catches: "no wallet was given, so the recipient was not screened",
			Why:     "the policy may want to know whom it pays",
			Instead: "send wallet with what is known of the recipient"},
		{ID: "evidence_not_verified", Example: `{"evidence":null}`,
			Catches: "no evidence was given, so nothing was verified",
			Why:     "the payment is judged by its terms alone",
			Instead: "send evidence after the purchase"},
	}
}
