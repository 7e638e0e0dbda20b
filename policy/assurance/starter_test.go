package assurance_test

import (
	"testing"

	"github.com/countersign/countersign/policy/assurance"
)

// Lint accepts every starter policy that we offer.
func TestStartersCanBeDrafted(t *testing.T) {
	for _, s := range assurance.Starters() {
		text, ok := s.Text()
		if !ok || s.About == "" {
			t.Fatalf("%s has no text", s.Name)
		}
		if _, err := assurance.Lint([]byte(text)); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, ok := (assurance.Starter{Name: "../policy"}).Text(); ok {
		t.Error("a name leads out")
	}
}
