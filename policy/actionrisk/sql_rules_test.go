package actionrisk

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
)

// testExamples checks the examples of the rules whose ids begin with one of the domains.
func testExamples(t *testing.T, domains ...string) {
	t.Helper()
	for _, r := range facts.Rules() {
		if !slices.ContainsFunc(domains, func(d string) bool { return len(r.ID) > len(d) && r.ID[:len(d)+1] == d+"." }) {
			continue
		}
		for _, command := range r.Yes {
			if a := Assess(act.Action{Command: command}); !slices.Contains(a.RuleIDs(), r.ID) {
				t.Errorf("%s: not found in %q: %v", r.ID, command, a.RuleIDs())
			}
		}
		for _, command := range r.No {
			if a := Assess(act.Action{Command: command}); slices.Contains(a.RuleIDs(), r.ID) {
				t.Errorf("%s: found in %q", r.ID, command)
			}
		}
	}
}

func TestMoneyTables(t *testing.T) { testExamples(t, "wallet", "x402", "mcp") }

func TestSQLTables(t *testing.T) { testExamples(t, "sql", "nosql", "orm") }
