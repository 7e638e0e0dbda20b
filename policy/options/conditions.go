package options

import "github.com/countersign/countersign/policy/shape"

// conditions returns the conditions that time and dividends are given in one form, and that there
// is a market price or a volatility.
func conditions() []any {
	dividends := func(schema shape.Schema) shape.Schema {
		return shape.Items("dividends", schema)
	}
	return []any{
		shape.AnyGiven("marketPrice", "volatility"),
		shape.When(shape.Filled("dividends"), shape.NoneGiven("dividendYield")),
		shape.Either(shape.Given("valuationDate"), dividends(shape.All(shape.Given("date"), shape.NoneGiven("timeYears"))), dividends(shape.All(shape.Given("timeYears"), shape.NoneGiven("date")))),
		shape.Either(shape.Given("timeToExpiryYears"), shape.NoneGiven("valuationDate", "expiryDate"), shape.AllGiven("valuationDate", "expiryDate")),
	}
}
