package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestWhatIsOffIsNotAdvertised checks that with x402 off and no card provider, no answer and no
// document about payments mentions them.
func TestWhatIsOffIsNotAdvertised(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		n := startNode(t, setup{dev: on})
		terms, _ := n.get("/api/checkout").members(t)["message"].(string)
		if strings.Contains(terms, "x402") != on || strings.Contains(terms, "POST /api/checkout") {
			t.Errorf("x402 %v, no cards: GET /api/checkout says %q", on, terms)
		}
		if text := string(n.get("/auth.md").body); strings.Contains(text, "over x402") != on {
			t.Errorf("x402 %v: /auth.md begins with %.300s", on, text)
		}
		key := n.issueKey()
		n.spend(key, 250)
		a := n.post(quickPath, key, lsBody)
		n.refused(a, http.StatusTooManyRequests, "quota_exhausted", "")
		if pays, said := a.members(t)["payPerCall"]; said != on || on && pays != true {
			t.Errorf("x402 %v: at the quota %v", on, a)
		}
	}
}
