package investmentevidence

import (
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/shape"
)

// conditions are those of the two analyses, of which at least one is asked for.
func conditions() []any {
	return []any{shape.AnyGiven("cashFlow", "portfolio"), shape.Within("cashFlow", cashflow.Conditions()...), shape.Within("portfolio", portfoliorisk.Conditions()...)}
}
