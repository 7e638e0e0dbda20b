package api

import (
	"testing"
)

func TestEveryRuleOfAServiceHasAnExampleThatRaisesIt(t *testing.T) {
	t.Parallel()
	for _, s := range Services() {
		for _, r := range s.Rules {
			if r.Unseen != "" {
				continue
			}
			if _, err := s.Show(r); err != nil {
				t.Error(err)
			}
		}
	}
}
