package options

import "github.com/countersign/countersign/policy"

// documented describes each finding.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "degenerate_inputs", Example: `{"volatility":0}`,
			Catches: "time or volatility is zero",
			Why:     "the formula has no value there, so its limit is reported",
			Instead: "if zero was a placeholder, send the real time and volatility"},
		{ID: "negative_time_value", Example: `{"optionType":"put","spot":20,"riskFreeRate":0.2,"timeToExpiryYears":2}`,
			Catches: "a European option is worth less than the payoff of an exercise today",
			Why:     "the option cannot be exercised before expiry, so the low price is correct",
			Instead: "compare with the price of an American option before you buy"},
		{ID: "negative_rate", Example: `{"riskFreeRate":-0.01}`,
			Catches: "the risk-free rate is below zero",
			Why:     "negative rates exist, but a negative rate is often an error of sign or a percentage",
			Instead: "check the sign, and write 3 % as 0.03"},
		{ID: "rate_looks_like_percent", Example: `{"riskFreeRate":2}`,
			Catches: "a rate is so high that it was probably written in percent",
			Why:     "rates are decimals: 2 means 200 % a year",
			Instead: "write 2 % as 0.02, or confirm the rate"},
		{ID: "long_expiry", Example: `{"timeToExpiryYears":30}`,
			Catches: "the time to expiry is more than ten years",
			Why:     "a time of 30 days that is sent as 30 years gives the price of another option",
			Instead: "divide days by 365 and months by 12, or send valuationDate and expiryDate"},
		{ID: "extreme_volatility", Example: `{"volatility":2.5}`,
			Catches: "the volatility is above 200 % a year",
			Why:     "few underlyings move so much; the usual error is 25 instead of 0.25",
			Instead: "write 25 % as 0.25, or confirm the volatility"},
		{ID: "near_expiry", Example: `{"timeToExpiryYears":0.001}`,
			Catches: "less than a day is left to expiry",
			Why:     "gamma and theta change within hours, so an earlier value is soon wrong",
			Instead: "request the analysis again just before you trade"},
		{ID: "deep_out_of_the_money", Example: `{"strike":900,"volatility":0.2}`,
			Catches: "the strike is more than five standard deviations away",
			Why:     "the price depends on rare events, for which the model is not reliable",
			Instead: "do not trade on the model price alone"},
		{ID: "no_implied_volatility", Example: `{"marketPrice":99.9}`,
			Catches: "no volatility gives the market price",
			Why:     "the price is outside the range that the model allows, or it is old",
			Instead: "check the quote and the inputs; the answer uses the volatility that was sent"},
	}
}
