package acts

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/meaning"
)

// Every verb in the table of deeds must be a verb that package meaning knows, because otherwise no
// clause has it.
func TestEveryDeedIsAVerb(t *testing.T) {
	var unknown []string
	for verb := range deeds() {
		first, _, _ := strings.Cut(verb, " ")
		if !meaning.IsVerb(first) && first != "do" {
			unknown = append(unknown, first)
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		t.Errorf("verbs that package meaning does not know: %s", strings.Join(slices.Compact(unknown), " "))
	}
}
