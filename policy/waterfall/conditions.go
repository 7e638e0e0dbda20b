package waterfall

import "github.com/countersign/countersign/policy/shape"

// conditions returns the members that one distribution requires, and those that dated events
// require.
func conditions() []any {
	simple := []string{"contributedCapital", "distributableAmount", "holdingPeriodYears"}
	return []any{
		shape.Either(shape.Given("events"),
			shape.All(shape.NoneGiven(simple...), shape.Not(shape.Any(shape.Is("compounding", "quarterly"), shape.Is("compounding", "monthly")))),
			shape.All(shape.AllGiven(simple...), shape.Not(shape.Is("style", "american")))),
		shape.Either(shape.Given("hurdles"), shape.NoneGiven("preferredReturnRate", "carryRate", "catchUpRate"), shape.Given("preferredReturnRate")),
		shape.When(shape.Is("style", "american"), shape.Items("events", shape.Given("dealId"))),
	}
}
