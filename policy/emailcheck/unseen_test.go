package emailcheck_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/emailcheck"
)

// rightly reports whether the answer is correct for the label of an address.
func rightly(label string, out emailcheck.Output) bool {
	kind, domain, _ := strings.Cut(label, ":")
	switch kind {
	case "reject":
		return out.Recommendation == "reject"
	case "doubt":
		return out.Recommendation != "accept"
	case "typo":
		return out.Suggestion != nil && *out.Suggestion == "ann@"+domain
	}
	return out.Recommendation == "accept" && out.Suggestion == nil
}

// The addresses were labelled by a person who had not seen the rules and lists. At least nine in
// ten bad addresses must be found, and at most one in twenty good addresses may be doubted.
func TestUnseenAddresses(t *testing.T) {
	data, err := testdata.ReadFile("testdata/unseen.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, right := map[bool]int{}, map[bool]int{}
	for line := range strings.Lines(string(data)) {
		label, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		email, err := strconv.Unquote(`"` + quoteQuotes(text) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		good := label == "accept"
		all[good]++
		if out := check(t, email); rightly(label, out) {
			right[good]++
		} else {
			t.Logf("%s: %s: %s %s %d %v", label, text, out.Diagnosis, out.Recommendation, out.DeliverabilityScore, out.Suggestion != nil)
		}
	}
	t.Logf("bad ones caught: %d of %d; good ones doubted: %d of %d", right[false], all[false], all[true]-right[true], all[true])
	if right[false]*10 < all[false]*9 || (all[true]-right[true])*20 > all[true] {
		t.Error("too few are right")
	}
}
