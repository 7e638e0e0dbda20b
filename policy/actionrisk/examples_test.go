package actionrisk

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/actionrisk/lang/payment"
	"github.com/countersign/countersign/policy/actionrisk/lang/windows"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// parseExample parses an example of a table and checks that its members are known.
func parseExample(t testing.TB, text string) act.Action {
	_, members, _ := strings.Cut(text, " ## ")
	for _, m := range strings.Fields(members) {
		name, _, _ := strings.Cut(m, "=")
		if !slices.Contains([]string{"environment", "branch", "target", "cwd", "repo", "failClosed"}, name) {
			t.Fatalf("example %q has an unknown member", text)
		}
	}
	return exampleAction(text)
}

// TestExamples checks for every rule that its "yes" examples trigger it, that its "no" examples do
// not, and that it has at least two of each.
func TestExamples(t *testing.T) {
	for _, r := range facts.Rules() {
		if r.Retired {
			continue
		}
		if len(r.Yes) < 2 || len(r.No) < 2 {
			t.Errorf("%s: needs two examples of each kind", r.ID)
		}
		for _, text := range r.Yes {
			if got := Assess(parseExample(t, text)); !slices.Contains(got.RuleIDs(), r.ID) {
				t.Errorf("%s: not raised by %q: %v", r.ID, text, got.RuleIDs())
			}
		}
		for _, text := range r.No {
			if got := Assess(parseExample(t, text)); slices.Contains(got.RuleIDs(), r.ID) {
				t.Errorf("%s: raised by %q", r.ID, text)
			}
		}
	}
}

// TestTables checks that every rule has valid members.
func TestTables(t *testing.T) {
	categories := []string{"destructive", "deployment", "data_mutation", "secrets", "network", "payment", "privilege", "supply_chain"}
	for _, r := range facts.Rules() {
		if r.Title == "" || r.Effect == "" || r.Level < act.Low || r.Level > act.Critical {
			t.Errorf("%s: title, effect or level is missing", r.ID)
		}
		if !slices.Contains(categories, r.Category) {
			t.Errorf("%s: its category is %q, and must be one of %q", r.ID, r.Category, categories)
		}
		if !slices.Contains([]string{"yes", "hard", "no"}, r.Reversible) {
			t.Errorf("%s: reversible is %q, and must be yes, hard or no", r.ID, r.Reversible)
		}
		if strings.Trim(r.Class, "ebcp") != "" {
			t.Errorf("%s: unknown context class %q", r.ID, r.Class)
		}
		if strings.Count(r.ID, ".") < 1 || r.ID != strings.ToLower(r.ID) {
			t.Errorf("%s: an id is domain.tool.effect in lower case", r.ID)
		}
	}
}

// TestPredicatesUsed checks that a table uses every predicate.
func TestPredicatesUsed(t *testing.T) {
	used := map[string]bool{}
	for _, r := range facts.Rules() {
		for _, m := range r.Match {
			for _, w := range m.Where {
				subject, _, _ := strings.Cut(strings.TrimPrefix(w, "!"), " ")
				used[subject] = true
			}
		}
	}
	for _, list := range []map[string]interp.Predicate{judge.ShellPredicates, judge.SecretPredicates, payment.Predicates, windows.Predicates} {
		for name := range list {
			if !used[name] {
				t.Errorf("no table uses the predicate %s", name)
			}
		}
	}
}

// TestTablesStrict checks that every table is strict JSON, because reading a table does not check
// it again.
func TestTablesStrict(t *testing.T) {
	for name, text := range rules.Tables() {
		if err := canon.Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := filepath.Glob("rules/*.json")
	if err != nil || len(files) != len(rules.Tables()) {
		t.Errorf("%d files, %d tables are embedded: %v", len(files), len(rules.Tables()), err)
	}
	if _, bench := frontends(facts.Tables()); bench.Check() != nil {
		t.Error(bench.Check())
	}
}
