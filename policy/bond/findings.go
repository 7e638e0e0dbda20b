package bond

import "github.com/countersign/countersign/policy"

// asLoan turns the example, which is a bond, into a loan.
const asLoan = `"faceValue":null,"couponRate":null,"settlementDate":null,"maturityDate":null,"yieldToMaturity":null,"principal":12000,"termMonths":24`

// documented describes each finding, for bonds and for loans.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "negative_yield", Example: `{"yieldToMaturity":-0.01}`,
			Catches: "the yield to maturity is below zero",
			Why:     "a holder to maturity gets less than the price paid",
			Instead: "compare the bond with cash, or confirm the price"},
		{ID: "distressed_price", Example: `{"yieldToMaturity":0.3}`,
			Catches: "the price is below 40 % of the redemption, or the yield above 25 %",
			Why:     "the price shows that the market expects a default, so the promised flows will probably not be paid",
			Instead: "value the bond by the expected recovery, not by its yield"},
		{ID: "price_far_above_par", Example: `{"yieldToMaturity":null,"cleanPrice":1019}`,
			Catches: "the clean price is more than twice the redemption",
			Why:     "a price applies to faceValue; with a price for another face value, yield and duration are wrong",
			Instead: "send the price for faceValue, or set faceValue to the amount that the price is for"},
		{ID: "rate_looks_like_percent", Example: `{"couponRate":0.75}`,
			Catches: "a rate is so high that it was probably written in percent",
			Why:     "rates are decimals: 0.75 means 75 %",
			Instead: "write 0.75 % as 0.0075, or confirm the rate"},
		{ID: "long_duration", Example: `{"maturityDate":"2060-11-15","couponRate":0.01}`,
			Catches: "the modified duration is above 15 years",
			Why:     "a rise of one percentage point costs more than 15 % of the price",
			Instead: "state the interest rate risk together with the yield, or shorten the maturity"},
		{ID: "zero_coupon", Example: `{"couponRate":0}`,
			Catches: "the bond pays no coupon",
			Why:     "all of its return comes at maturity, and its current yield is zero",
			Instead: "compare the bond by yield to maturity only"},
		{ID: "callable_below_worst", Example: `{"couponRate":0.08,"callSchedule":[{"date":"2027-11-15","price":100}]}`,
			Catches: "a call would lower the yield by more than a basis point",
			Why:     "the issuer calls the bond when that is to its advantage, so the holder may not earn yieldToMaturity",
			Instead: "use yieldToWorst"},
		{ID: "negative_amortization", Unseen: "this service computes the payments, and none of them is below its interest",
			Catches: "a payment is below the interest of its month",
			Why:     "the balance grows, and so does the last payment",
			Instead: "raise the payment above the interest"},
		{ID: "balloon_payment", Example: `{` + asLoan + `,"annualRate":0.06,"balloonAmount":6000}`,
			Catches: "the last payment is more than 1.5 times the level payment",
			Why:     "a large part of the loan is due at once",
			Instead: "plan the refinancing before signing"},
		{ID: "high_rate", Example: `{` + asLoan + `,"annualRate":0.4}`,
			Catches: "the rate is above 36 % a year",
			Why:     "many laws forbid such a rate, or it was written in percent",
			Instead: "write 6 % as 0.06, or check the law that applies"},
		{ID: "early_payoff", Example: `{` + asLoan + `,"annualRate":0.06,"extraMonthlyPayment":500}`,
			Catches: "the loan is repaid before its term",
			Why:     "extra payments end the loan early, which saves the interest of the later months",
			Instead: "check that the contract allows early repayment without a fee"},
		{ID: "zero_rate", Example: `{` + asLoan + `,"annualRate":0}`,
			Catches: "the loan bears no interest",
			Why:     "the lender is then paid by a fee or by a higher purchase price",
			Instead: "compare the total paid with the cash price"},
	}
}
