package projections

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/migrations"
)

// TestEveryTypeIsHandledOrIgnored: nothing is skipped because nobody thought of it.
func TestEveryTypeIsHandledOrIgnored(t *testing.T) {
	for _, p := range all {
		named := slices.Concat(p.handles, p.ignores)
		for _, eventType := range events.Types {
			n := len(slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name != eventType }))
			if n != 1 {
				t.Errorf("%s names %s %d times, want once in handles or ignores", p.name, eventType, n)
			}
		}
		for _, name := range named {
			if !slices.Contains(events.Types, name) {
				t.Errorf("%s names %s, which is no type", p.name, name)
			}
		}
	}
}

func TestEveryReadModelHasItsFile(t *testing.T) {
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	slices.Sort(names)
	if files := migrations.ReadModels(); !slices.Equal(names, files) {
		t.Errorf("projections %v, files %v", names, files)
	}
}
