package investmentevidence

import "github.com/countersign/countersign/policy"

// documented describes the finding of this package. Packages cashflow and portfoliorisk describe
// the findings of the analyses that this package runs.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "no_evidence", Example: `{"portfolio":null,"cashFlow":{"cashFlows":null,"discountRate":null,"dcf":{"cashFlows":[10,11,12],"discountRate":0.1}}}`,
			Catches: "no check has data",
			Why:     "without a check there is no basis for a verdict",
			Instead: "send cash flows with a discount rate in addition to the dcf, or a portfolio"},
	}
}
