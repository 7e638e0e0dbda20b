package paymentpolicy_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy/paymentpolicy"
)

// The file has URLs that were labelled by a person who had not seen the tables of hosts. Of the
// URLs of local or private hosts at least nine in ten are denied or refused; of the public ones at
// most one in twenty.
func TestUnseenHosts(t *testing.T) {
	data, err := os.ReadFile("testdata/unseen_hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, right := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(data)) {
		label, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		address, err := strconv.Unquote(`"` + text + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		body, err := json.Marshal(map[string]any{"payment": map[string]any{"resourceUrl": address, "method": "GET", "scheme": "exact", "network": "base",
			"asset": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "payTo": "0x209693bc6afc0c5328ba36faf03c514ef312287c", "amountUnits": "10000"},
			"policy": map[string]any{"policyId": "p", "version": 1}})
		if err != nil {
			t.Fatal(err)
		}
		denied, said := true, "refused"
		if answer, err := paymentpolicy.Service.Evaluate(body); err == nil {
			var out paymentpolicy.Output
			if err := json.Unmarshal(answer.Body, &out); err != nil {
				t.Fatal(err)
			}
			denied, said = out.Decision == "deny", told(out)
		}
		all[label]++
		if denied == (label == "deny") {
			right[label]++
		} else {
			t.Logf("%s: %s: %s", label, text, said)
		}
	}
	t.Logf("denied or refused: %d of %d; public ones denied: %d of %d", right["deny"], all["deny"], all["open"]-right["open"], all["open"])
	if right["deny"]*10 < all["deny"]*9 || (all["open"]-right["open"])*20 > all["open"] || !slices.Contains([]int{300, 301, 302}, all["deny"]+all["open"]) {
		t.Error("too few are right")
	}
}
