package waterfall

import "github.com/countersign/countersign/policy"

// byDeals turns the example into dated events of two deals, of which the first makes a profit and
// the second a loss.
const byDeals = `{"contributedCapital":null,"distributableAmount":null,"holdingPeriodYears":null,"style":"american","events":[` +
	`{"date":"2020-01-01","type":"contribution","amount":1000000,"dealId":"a"},{"date":"2021-01-01","type":"distribution","amount":2000000,"dealId":"a"},` +
	`{"date":"2020-01-01","type":"contribution","amount":1000000,"dealId":"b"},{"date":"2022-01-01","type":"distribution","amount":100000,"dealId":"b"}]}`

// documented describes each finding.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "number_out_of_range", Example: `{"contributedCapital":0.01,"distributableAmount":1000000000000,"holdingPeriodYears":0.01}`,
			Catches: "a value is too large for an exact number",
			Why:     "programs would read different values, so the value is null or the largest exact number",
			Instead: "send all amounts in thousands or millions"},
		{ID: "capital_not_returned", Example: `{"distributableAmount":3000000}`,
			Catches: "the investors have not received all of their capital",
			Why:     "every later distribution goes to them first",
			Instead: "pay no carry before unreturnedCapital is zero"},
		{ID: "preferred_return_unpaid", Example: `{"distributableAmount":5000000}`,
			Catches: "the investors have not received all of their preferred return",
			Why:     "it is paid before the catch-up, and grows until it is paid",
			Instead: "show unpaidPreferredReturn to the investors"},
		{ID: "catch_up_incomplete", Example: `{"distributableAmount":5600000}`,
			Catches: "the catch-up of the general partner is not complete",
			Why:     "the general partner gets a larger part of the next distributions than the carry rate",
			Instead: "inform the investors before the next distribution"},
		{ID: "carry_above_headline", Example: byDeals,
			Catches: "the carry is a larger part of the profit than the carry rate",
			Why:     "the carry was paid deal by deal, and a later deal made a loss",
			Instead: "check the clawback"},
		{ID: "clawback_due", Example: byDeals,
			Catches: "the general partner got more carry than the whole fund earns up to the last event",
			Why:     "the general partner owes the difference to the investors",
			Instead: "claim clawback.amount under the agreement"},
	}
}
