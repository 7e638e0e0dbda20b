package projections

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/migrations"
)

// TablesByName returns the tables of each read model, for tests outside of this package.
func TablesByName() map[string][]string {
	tables := map[string][]string{}
	for _, p := range all {
		tables[p.name] = p.tables
	}
	return tables
}

// TestEveryReadModelIsShown checks that the declarations of events and the list of read models
// match, so that no type of event names an unknown read model.
func TestEveryReadModelIsShown(t *testing.T) {
	t.Parallel()
	names := []string{webhooks.name}
	for _, p := range all {
		names = append(names, p.name)
		if p.version < 1 || len(p.tables) == 0 || p.apply == nil && p.applyRun == nil || len(p.handles) == 0 {
			t.Errorf("the read model %s lacks a version, tables, apply or applyRun, or a type of event whose row in ledger/events names it", p.name)
		}
		for _, name := range p.signed {
			if !slices.Contains(p.handles, name) {
				t.Errorf("%s is in signed of %s, and its row does not name that read model", name, p.name)
			}
		}
	}
	for _, name := range events.ReadModels() {
		if !slices.Contains(names, name) {
			t.Errorf("the table of events names the read model %s, which is not in all of projections/projections.go", name)
		}
	}
}

func TestEveryReadModelHasItsFile(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	slices.Sort(names)
	if files := migrations.ReadModels(); !slices.Equal(names, files) {
		t.Errorf("the read models are %v, and the files in migrations/readmodels are %v", names, files)
	}
}
