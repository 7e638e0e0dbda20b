package projections_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// asked records a decision for a request of an agent. If outcome is not empty, it also records a
// receipt with this outcome.
func asked(t *testing.T, a *commands.App, who organizations.Principal, key, agent, intent, outcome string) {
	t.Helper()
	protocol := "x402"
	if intent[2] == 's' {
		protocol = "mcp"
	}
	d, hash := decided(t, a, who, fmt.Sprintf(`{"protocol":%q,"idempotencyKey":%q,"subject":{"runId":"r"%s},"intent":%s}`, protocol, key, agent, intent))
	if outcome != "" {
		reported(t, a, who, d, hash, outcome)
	}
}

// decided records a decision, and returns it with the hash of its record.
func decided(t *testing.T, a *commands.App, who organizations.Principal, request string) (d assurance.DecisionRecord, hash string) {
	t.Helper()
	r, err := assurance.ParseDecision([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := a.Decide(t.Context(), who, r)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = assurance.ReadDecision(recorded.Envelope.Record); err != nil {
		t.Fatal(err)
	}
	return d, recorded.Envelope.Integrity.RecordHash
}

// reported records a receipt of a decision.
func reported(t *testing.T, a *commands.App, who organizations.Principal, d assurance.DecisionRecord, hash, outcome string) {
	t.Helper()
	receipt, err := assurance.ParseReceipt(fmt.Appendf(nil, `{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":%q,"outcome":%q}`,
		d.DecisionID, hash, d.BindingHash, d.Protocol, outcome))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.BindReceipt(t.Context(), who, receipt); err != nil {
		t.Fatal(err)
	}
}

// Sums by day, agent, payee, tool and rule are correct, and a replay of the ledger gives the same
// sums.
func TestSpend(t *testing.T) {
	t.Parallel()
	a, _ := newApp(t)
	day := func(d int) time.Time { // later than all events recorded with the real clock
		return time.Now().UTC().Truncate(24*time.Hour).AddDate(1, 0, d)
	}
	now := day(1).Add(23 * time.Hour)
	a.Clock = func() time.Time { return now }
	p := start(t, a.Ledger)
	one, two := asToken(t, a, "ada@example.com"), asToken(t, a, "bob@example.com")
	const buy = `{"resourceUrl":"https://%s/x","method":%q,"amountUsd":%s}`
	ada, bob := `,"agentId":"ada"`, `,"agentId":"bob"`
	asked(t, a, one, "1", ada, fmt.Sprintf(buy, "a.example", "GET", "0.25"), "fulfilled")
	asked(t, a, one, "2", ada, fmt.Sprintf(buy, "b.example", "GET", "0.5"), "failed")
	asked(t, a, one, "3", bob, fmt.Sprintf(buy, "a.example", "GET", "7"), "fulfilled") // denied, because the amount is more than 1
	now = now.Add(2 * time.Hour)
	asked(t, a, one, "4", ada, fmt.Sprintf(buy, "a.example", "BREW", "0.1"), "")
	asked(t, a, one, "5", "", `{"serverId":"files","toolName":"read"}`, "")
	asked(t, a, two, "6", ada, fmt.Sprintf(buy, "a.example", "GET", "0.9"), "fulfilled")

	all := projections.SpendFilter{From: day(1), Until: day(3)}
	list := func(f projections.SpendFilter, by string) []projections.Spent {
		t.Helper()
		rows, err := p.Spend(t.Context(), one.OrgID, f, by, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			rows[i].Newest = 0
			if by != projections.SpendDay {
				rows[i].Day = time.Time{}
			}
		}
		return rows
	}
	agents := list(all, projections.SpendAgent)
	if len(agents) != 3 || agents[0].Agent == "" || agents[1].Agent == "" || agents[2].Agent != "" {
		t.Fatalf("agents: %+v", agents)
	}
	bobs, adas := agents[0], agents[1]
	for name, c := range map[string]struct{ got, want any }{
		"total": {list(all, projections.SpendTotal), []projections.Spent{{Allowed: 2, Denied: 1, Reviewed: 2, Violations: 1, AllowedUSD: "0.75", SpentUSD: "7.25"}}},
		"by day": {list(all, projections.SpendDay), []projections.Spent{
			{Day: day(1), Allowed: 2, Denied: 1, Violations: 1, AllowedUSD: "0.75", SpentUSD: "7.25"},
			{Day: day(2), Reviewed: 2, AllowedUSD: "0", SpentUSD: "0"}}},
		"bob": {bobs, projections.Spent{Agent: bobs.Agent, Denied: 1, Violations: 1, AllowedUSD: "0", SpentUSD: "7"}},
		"ada": {adas, projections.Spent{Agent: adas.Agent, Allowed: 2, Reviewed: 1, AllowedUSD: "0.75", SpentUSD: "0.25"}},
		"by target": {list(all, projections.SpendTarget), []projections.Spent{
			{Protocol: "x402", Target: "a.example", Allowed: 1, Denied: 1, Reviewed: 1, Violations: 1, AllowedUSD: "0.25", SpentUSD: "7.25"},
			{Protocol: "x402", Target: "b.example", Allowed: 1, AllowedUSD: "0.5", SpentUSD: "0"},
			{Protocol: "mcp", Target: "files/read", Reviewed: 1, AllowedUSD: "0", SpentUSD: "0"}}},
		"of an agent": {list(projections.SpendFilter{From: day(1), Until: day(2), Agent: adas.Agent}, projections.SpendTarget), []projections.Spent{
			{Protocol: "x402", Target: "a.example", Allowed: 1, AllowedUSD: "0.25", SpentUSD: "0.25"},
			{Protocol: "x402", Target: "b.example", Allowed: 1, AllowedUSD: "0.5", SpentUSD: "0"}}},
		"tools":            {list(projections.SpendFilter{From: day(1), Until: day(3), Protocol: "mcp"}, projections.SpendTotal), []projections.Spent{{Reviewed: 1, AllowedUSD: "0", SpentUSD: "0"}}},
		"of another actor": {list(projections.SpendFilter{From: day(1), Until: day(3), Actors: []string{two.ActorID}}, projections.SpendTotal), []projections.Spent{}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	rules, err := p.Noise(t.Context(), one.OrgID, all, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 2 || rules[0].Decisions() < rules[1].Decisions() || rules[0].Decisions() > 5 {
		t.Errorf("rules: %+v", rules)
	}
	if bobsRules, err := p.Noise(t.Context(), one.OrgID, projections.SpendFilter{From: day(1), Until: day(3), Agent: bobs.Agent}, 1); err != nil || len(bobsRules) != 1 || bobsRules[0].Denied != 1 {
		t.Errorf("bob's rules: %+v, %v", bobsRules, err)
	}
	c, err := projections.Diff(t.Context(), a.Ledger, slog.New(slog.DiscardHandler), "spend")
	if err != nil || len(c.Differences) != 0 || c.Rows < 8 {
		t.Errorf("replayed: %+v, %v", c, err)
	}
}
