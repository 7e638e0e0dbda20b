package api

import (
	"net/http"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk"
)

// TestEveryRuleHasAPageOfData checks that the list is small, that each rule in it can be read with
// its reason, and that an unknown rule is not found.
func TestEveryRuleHasAPageOfData(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	list := n.get("/api/rules")
	n.wants(list, http.StatusOK)
	if len(list.body) > 64<<10 {
		t.Errorf("the list has %d octets", len(list.body))
	}
	for _, r := range actionrisk.Summaries() {
		a := n.get("/api/rules/" + r.ID)
		n.wants(a, http.StatusOK)
		m := a.members(t)
		if m["id"] != r.ID || m["why"] == "" || m["catches"] == "" {
			t.Errorf("%s: %v", r.ID, m)
		}
	}
	n.wants(n.get("/api/rules/no.such.rule"), http.StatusNotFound)
}
