package dealanalyzer

import "github.com/countersign/countersign/policy"

// documented describes the findings of this package. Packages cashflow and waterfall describe the
// findings of the analyses that this package runs.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "debt_service_shortfall", Example: `{"debt":{"amount":900,"annualRate":0.15}}`,
			Catches: "in one year the cash flow does not cover the debt service",
			Why:     "the owners must pay the rest, or the lender may demand full repayment",
			Instead: "borrow less, or plan a reserve"},
		{ID: "negative_exit_equity", Example: `{"terminal":{"exitMultiple":1}}`,
			Catches: "at exit the debt is larger than the terminal value",
			Why:     "the sale does not repay the loan",
			Instead: "borrow less, or repay before the exit"},
		{ID: "grid_cell_undefined", Example: `{"terminal":{"method":"gordon","growthRate":0.02,"exitMultiple":null,"metric":null},"sensitivity":{"discountRates":[0.03,0.1],"terminalValues":[0.02,0.04]}}`,
			Catches: "a cell of the sensitivity grid has growth at or above the discount rate",
			Why:     "the terminal value is infinite there, so the cell is null",
			Instead: "leave the pair out of the grid"},
	}
}
