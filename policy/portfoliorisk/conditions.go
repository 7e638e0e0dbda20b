package portfoliorisk

import "github.com/countersign/countersign/policy/shape"

// Conditions returns the condition that all positions have the same members: weights or market
// values, with or without returns.
func Conditions() []any {
	items := func(schema shape.Schema) shape.Schema {
		return shape.Items("positions", schema)
	}
	return []any{
		shape.Any(items(shape.All(shape.Given("weight"), shape.NoneGiven("marketValue"))), items(shape.All(shape.Given("marketValue"), shape.NoneGiven("weight")))),
		shape.Any(items(shape.Given("returns")), items(shape.NoneGiven("returns"))),
		shape.When(shape.Given("portfolioReturns"), items(shape.NoneGiven("returns"))),
	}
}
