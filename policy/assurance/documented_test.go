package assurance_test

import (
	"testing"

	"github.com/countersign/countersign/policy/assurance"
)

func TestEveryRuleIsDocumentedWithAnExampleThatRaisesIt(t *testing.T) {
	list, err := assurance.Document()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range list {
		if seen[d.ID] || d.ID == "" || d.Catches == "" || d.Why == "" || d.Instead == "" || d.Finding == nil {
			t.Errorf("%q is told twice or not whole: %+v", d.ID, d)
		}
		seen[d.ID] = true
	}
	rules, _ := assurance.Catalogue()
	for _, rule := range rules {
		if !seen[rule.ID] {
			t.Errorf("%s is not documented", rule.ID)
		}
	}
}
