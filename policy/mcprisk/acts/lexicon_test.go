package acts

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/meaning"
)

// A deed is only ever found under a verb that the reader of sentences knows.
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
