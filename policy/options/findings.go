package options

import "github.com/countersign/countersign/policy"

// documented describes each finding.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "degenerate_inputs", Example: `{"volatility":0}`,
			Catches: "time or volatility is zero",
			Why:     "the formula has no value there, so its limit is reported",
			Instead: "ask again with the time and volatility that are meant, if zero was a place-holder"},
		{ID: "negative_time_value", Example: `{"optionType":"put","spot":20,"riskFreeRate":0.2,"timeToExpiryYears":2}`,
			Catches: "a European option is worth less than exercising it now would give",
			Why:     "it cannot be exercised before expiry, so the price is right and looks wrong",
			Instead: "compare with the American style before calling it a bargain"},
		{ID: "negative_rate", Example: `{"riskFreeRate":-0.01}`,
			Catches: "the risk-free rate is below zero",
			Why:     "it is allowed, and is often a percentage with a slipped sign",
			Instead: "check the sign and that 3 % is written 0.03"},
		{ID: "rate_looks_like_percent", Example: `{"riskFreeRate":2}`,
			Catches: "a rate is so high that it was probably written in percent",
			Why:     "rates are decimals here: 2 means 200 % a year",
			Instead: "write 2 % as 0.02, or confirm the rate"},
		{ID: "long_expiry", Example: `{"timeToExpiryYears":30}`,
			Catches: "the option runs for more than ten years",
			Why:     "30 days written as 30 years price another option",
			Instead: "divide days by 365 and months by 12, or send valuationDate and expiryDate"},
		{ID: "extreme_volatility", Example: `{"volatility":2.5}`,
			Catches: "the volatility is above 200 % a year",
			Why:     "few underlyings move so much; 25 for 25 % is the usual slip",
			Instead: "write 25 % as 0.25, or confirm the figure"},
		{ID: "near_expiry", Example: `{"timeToExpiryYears":0.001}`,
			Catches: "less than a day is left to expiry",
			Why:     "gamma and theta change within hours, so a figure of the morning is wrong by noon",
			Instead: "ask again just before acting"},
		{ID: "deep_out_of_the_money", Example: `{"strike":900,"volatility":0.2}`,
			Catches: "the strike is more than five standard deviations away",
			Why:     "the price rests on a tail that the model knows little about",
			Instead: "do not trade on the model price alone"},
		{ID: "no_implied_volatility", Example: `{"marketPrice":99.9}`,
			Catches: "no volatility explains the market price",
			Why:     "the price lies outside what the model allows, or is stale",
			Instead: "check the quote and the inputs; the answer uses the volatility that was given"},
	}
}
