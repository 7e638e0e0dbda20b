package facts

import (
	"reflect"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Rows that are read when somebody asks say the same as rows that are read at once.
func TestRowsAreReadWhenAsked(t *testing.T) {
	eager, err := Compile(rules.DecodeTable)
	if err != nil {
		t.Fatal(err)
	}
	lazy := Tables()
	if len(lazy.rowsOf) < 1000 || len(lazy.rowsOf) != len(eager.rowsOf) {
		t.Fatalf("%d names, %d", len(lazy.rowsOf), len(eager.rowsOf))
	}
	for name := range lazy.rowsOf {
		a, b := *lazy.Program(name), *eager.Program(name)
		for i := range a.Rules { // whose rules are of two sets
			if a.Rules[i].Rule.ID != b.Rules[i].Rule.ID || a.Rules[i].Place != b.Rules[i].Place {
				t.Fatalf("%s: rule %d", name, i)
			}
		}
		a.Rules, b.Rules = nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %+v, %+v", name, a, b)
		}
	}
}
