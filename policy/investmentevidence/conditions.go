package investmentevidence

import (
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/shape"
)

// conditions returns the conditions of both analyses, and the condition that a request has at
// least one analysis.
func conditions() []any {
	return []any{shape.AnyGiven("cashFlow", "portfolio"), shape.Within("cashFlow", cashflow.Conditions()...), shape.Within("portfolio", portfoliorisk.Conditions()...)}
}
