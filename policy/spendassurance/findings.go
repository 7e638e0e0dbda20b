package spendassurance

import "github.com/countersign/countersign/policy"

// documented describes the findings of this package. Packages paymentpolicy, walletscreen and
// evidence describe the findings of the checks that this package runs.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "wallet_not_screened", Example: `{"wallet":null}`,
			Catches: "no wallet was given, so the recipient was not screened",
			Why:     "the policy may require a screening of the recipient",
			Instead: "send wallet with the known facts about the recipient"},
		{ID: "evidence_not_verified", Example: `{"evidence":null}`,
			Catches: "no evidence was given, so nothing was verified",
			Why:     "the payment was judged only by its terms",
			Instead: "send evidence after the purchase"},
	}
}
