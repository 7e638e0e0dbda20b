package api_test

import (
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands"
)

// TestOverviewSaysWhatEndsSoon: a token that ends within days, and whether the ledger
// has verified itself.
func TestOverviewSaysWhatEndsSoon(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	owner := c.people["owner"]
	owner.want(owner.get("/overview"), 200, "It has not verified itself since this node started")
	if _, err := s.app.IssueToken(t.Context(), c.now(t), commands.TokenOrder{Name: "nightly build", Scopes: []string{"assurance:decide"}, Days: 3}); err != nil {
		t.Fatal(err)
	}
	if check := s.app.Ledger.CheckItselfNow(t.Context(), nil); check.Failed() {
		t.Fatal(check)
	}
	for _, part := range []string{"Keys near their limit", "nightly build", "It verified itself"} {
		owner.want(owner.get("/overview"), 200, part)
	}
	owner.want(owner.get("/ledger"), 200, "It verified itself")
}
