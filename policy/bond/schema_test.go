package bond

import (
	"reflect"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/money"
)

// The type for the schema has every member of Bond and of Loan. The schema requires none of them
// in general, and each of them for its kind of answer.
func TestSchemaNamesTheMembersOfBothParts(t *testing.T) {
	alias := reflect.TypeOf(Output{}.JSONSchemaAlias())
	count := map[string]int{}
	for i := range alias.NumField() {
		f := alias.Field(i)
		tag := f.Tag.Get("json")
		if name, _, _ := strings.Cut(tag, ","); name == "mode" || name == "findings" {
			count["both"]++
			continue
		}
		if !strings.HasSuffix(tag, ",omitempty") || f.Tag.Get("jsonschema_description") == "" {
			t.Errorf("%s: tag %s", f.Name, f.Tag)
		}
		for _, part := range []string{"bond", "loan"} {
			if strings.HasPrefix(f.Tag.Get("jsonschema"), "oneof_required="+part) {
				count[part]++
			}
		}
	}
	want := map[string]int{"both": 2, "bond": reflect.TypeFor[Bond]().NumField(), "loan": reflect.TypeFor[Loan]().NumField()}
	if !reflect.DeepEqual(count, want) {
		t.Errorf("got %v, want %v", count, want)
	}
}

// Evaluate never computes a payment below the interest. The test therefore makes a schedule with
// such a payment, which gives the finding.
func TestNegativeAmortizationIsFound(t *testing.T) {
	l := loan{principal: 100000, monthly: money.Exact(0.01), term: 3, annualRate: 0.12}
	rows := l.amortize(500)
	if rows[0].Principal != -500 || rows[1].Balance != 101005 || rows[2].Balance != 0 {
		t.Errorf("rows %+v", rows)
	}
	out := &Loan{PaymentsCount: 3, MonthlyPayment: 500, FinalPayment: 500}
	if f := l.findings(out, true); len(f) != 1 || f[0].ID != "negative_amortization" {
		t.Errorf("findings %v", f)
	}
	if f := l.findings(out, false); len(f) != 0 {
		t.Errorf("findings %v", f)
	}
}
