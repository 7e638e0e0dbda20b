package payment

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// RunPhrase judges src as a sentence that describes a payment. It reports whether a rule matched.
func RunPhrase(e *interp.Env, src *act.Source) bool {
	if !e.Budget.Spend(len(src.Text) / 4) {
		return false
	}
	p := amounts.ReadPhrase(src.Text)
	ids := p.Rules()
	return len(ids) > 0 && e.Money(src, 0, len(src.Text), p.Recipient(), ids...)
}
