package bond

import "github.com/countersign/countersign/policy/shape"

// conditions returns the members that a bond and a loan require and exclude.
func conditions() []any {
	lists := []any{shape.Filled("couponSteps"), shape.Filled("amortization"), shape.Filled("callSchedule"), shape.Filled("putSchedule")}
	loan := shape.All(shape.AllGiven("annualRate", "termMonths"), shape.Not(shape.Is("mode", "bond")), shape.Not(shape.Any(lists...)),
		shape.NoneGiven("faceValue", "couponRate", "frequency", "settlementDate", "maturityDate", "yearsToMaturity", "dayCount", "basis",
			"issueDate", "firstCouponDate", "lastCouponDate", "lastPeriod", "redemption", "yieldToMaturity", "cleanPrice", "dirtyPrice"))
	dated := shape.All(shape.AllGiven("settlementDate", "maturityDate"), shape.When(shape.Given("firstCouponDate"), shape.Given("issueDate")), shape.Not(shape.AllGiven("dayCount", "basis")))
	undated := shape.All(shape.NoneGiven("settlementDate", "maturityDate", "dayCount", "basis", "issueDate", "firstCouponDate", "lastCouponDate"), shape.Not(shape.Any(lists...)))
	bond := shape.All(shape.Given("couponRate"), shape.Not(shape.Is("mode", "loan")),
		shape.Schema{"oneOf": shape.EachGiven("yieldToMaturity", "cleanPrice", "dirtyPrice")},
		shape.NoneGiven("annualRate", "termMonths", "startDate", "balloonAmount", "interestOnlyMonths", "extraMonthlyPayment", "upfrontFees", "includeSchedule"),
		shape.Not(shape.All(shape.Given("redemption"), shape.Filled("amortization"))),
		shape.Schema{"if": shape.Given("yearsToMaturity"), "then": undated, "else": dated})
	return []any{shape.Either(shape.Given("principal"), loan, bond)}
}
