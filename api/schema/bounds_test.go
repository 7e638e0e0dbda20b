package schema

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/portfoliorisk"
)

// TestRefusedBodiesAreCheapToRefuse checks that refusing a body allocates memory only in
// proportion to its length. An earlier validator computed a number such as 1e-999999 with a
// million digits, and built a pointer for every value to sort the errors: 80 GB for a body of 800
// KB with one long name.
func TestRefusedBodiesAreCheapToRefuse(t *testing.T) {
	s, err := New(portfoliorisk.Service.Input())
	if err != nil {
		t.Fatal(err)
	}
	position := `{"symbol":"","weight":1e-999999},`
	for _, c := range []struct{ name, body, code, path string }{
		{"numbers of a million digits", `{"positions":[` + strings.Repeat(position, 499) + `{}]}`, "out_of_range", "/positions/0/symbol"},
		{"values below a long name", `{"` + strings.Repeat("n", 400_000) + `":[` + strings.Repeat("0,", 200_000) + `0]}`, "unknown_field", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := s.Validate([]byte(c.body))
			runtime.ReadMemStats(&after)
			var refused *policy.Error
			if !errors.As(err, &refused) || refused.Code != c.code || refused.Path != c.path {
				t.Errorf("%v", err)
			}
			if used, most := after.TotalAlloc-before.TotalAlloc, uint64(300*len(c.body)+1<<20); used > most {
				t.Errorf("%d octets were allocated for %d", used, len(c.body))
			}
		})
	}
}
