package cashflow

import "github.com/countersign/countersign/policy/shape"

// Conditions returns the members that cash flows and a valuation require.
func Conditions() []any {
	dated := shape.Schema{"required": []any{"cashFlows"}, "properties": shape.Schema{"cashFlows": shape.Schema{"type": "array", "minItems": 1, "items": shape.Schema{"type": "object"}}}}
	flow := shape.Schema{"type": "object", "properties": shape.Schema{
		"date":   shape.Schema{"type": "string", "format": "date"},
		"amount": shape.Schema{"type": "number"},
	}, "required": []any{"date", "amount"}, "additionalProperties": false}
	return []any{
		shape.AnyGiven("cashFlows", "dcf"),
		shape.Properties("cashFlows", shape.Any(shape.Schema{"type": "null"},
			shape.Schema{"type": "array", "items": shape.Schema{"type": "number"}}, shape.Schema{"type": "array", "items": flow})),
		shape.When(shape.Given("financeRate"), shape.Given("reinvestRate")), shape.When(shape.Given("reinvestRate"), shape.Given("financeRate")),
		shape.When(dated, shape.NoneGiven("periodsPerYear", "financeRate")),
		shape.Within("dcf", shape.Terminal("terminalMethod", "terminalGrowthRate", "exitMultiple", "terminalMetric")...),
	}
}
