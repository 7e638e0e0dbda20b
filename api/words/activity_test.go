package words_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/ledger/events"
)

// TestEveryActivityHasWords checks that every event of the access history has a description and
// belongs to one kind.
func TestEveryActivityHasWords(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, kind := range words.ActivityKinds {
		listed = append(listed, kind.Types...)
	}
	slices.Sort(listed)
	if shown := events.ShownIn("access"); !slices.Equal(listed, shown) {
		t.Errorf("kinds have %v, the access history %v", listed, shown)
	}
	for _, name := range events.ShownIn("access") {
		stored, err := events.Stored(name, 1, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := words.Did(stored); !ok || a.Did == "" {
			t.Errorf("%s has no words", name)
		}
	}
	if a, _ := words.Did(events.OrganizationUpdated{Plan: "business", Name: "Acme"}); a.Did != "changed its name to Acme and its plan to business" {
		t.Error(a.Did)
	}
}
