package api_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/audit"
)

// TestOverviewSaysWhatEndsSoon checks that the overview shows a token that expires within days,
// and the result of the ledger's self-check.
func TestOverviewSaysWhatEndsSoon(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	owner := c.people["owner"]
	owner.want(owner.get("/overview"), 200, "This node has not verified the ledger since its start")
	if _, err := s.app.IssueToken(t.Context(), c.now(t), organizations.TokenOrder{Name: "nightly build", Scopes: []string{"assurance:decide"}, Days: 3}); err != nil {
		t.Fatal(err)
	}
	if check := audit.SelfCheck(t.Context(), s.app.Ledger, nil); check.Failed() {
		t.Fatal(check)
	}
	for _, part := range []string{"Keys near their limit", "nightly build", "This node verified the ledger"} {
		owner.want(owner.get("/overview"), 200, part)
	}
	owner.want(owner.get("/ledger"), 200, "This node verified the ledger")
}

// TestAnAlteredLedgerSaysSoEverywhere checks that after a read detects an alteration, the page of
// the ledger, /readyz and every refusal contain the same sentence, even if the last self-check
// found nothing. A later self-check that finds nothing ends this.
func TestAnAlteredLedgerSaysSoEverywhere(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	s := newSite(t, db)
	c := newCrew(t, s, "team", "acme.example")
	owner, auditor := c.people["owner"], c.people["auditor"]
	id := c.decide(t, decisionBody("k1", weather)).decision(t).Record.DecisionID
	if check := audit.SelfCheck(t.Context(), s.app.Ledger, nil); check.Failed() {
		t.Fatal(check)
	}
	const sentence = "the ledger was altered: stored events differ from those that were appended"
	owner.want(owner.get("/ledger"), 200, `<span class="badge allow">intact</span>`)
	change := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), db.SuperURL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), `set session_replication_role = replica; update events set actor = `+sql+` where stream = 'decision/`+id+`'`); err != nil {
			t.Fatal(err)
		}
	}
	change(`actor || 'x'`)
	auditor.want(auditor.get("/api/assurance/decisions/"+id), 503, `{"error":"`+sentence+`"}`)
	auditor.want(auditor.get("/decisions/"+id), 503, sentence)
	auditor.want(auditor.get("/readyz"), 200, `"ledger":"`+sentence+`"`)
	for _, page := range []string{"/ledger", "/overview"} {
		got := owner.get(page)
		if strings.Contains(got.body, ">intact<") || !strings.Contains(strings.ToLower(got.body), sentence) {
			t.Errorf("%s: %d is green, or says something else", page, got.status)
		}
	}
	change(`left(actor, -1)`)
	if check := audit.SelfCheck(t.Context(), s.app.Ledger, nil); check.Failed() {
		t.Fatal(check)
	}
	auditor.want(auditor.get("/api/assurance/decisions/"+id), 200, id)
	owner.want(owner.get("/ledger"), 200, `<span class="badge allow">intact</span>`)
}
