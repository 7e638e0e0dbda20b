package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/assurance"
)

// Arguments of tools are stored encrypted, as the organization's setting requires. No signed
// record contains them, and an erasure of the subject erases them.
func TestArgumentsOfToolsAreKeptForTheReviewer(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	orgID, operator := newOrganization(t, a, "team")
	if _, err := a.DraftAndActivate(t.Context(), operator, []byte(`{"policyId":"default","allowedMcpTools":["read","write"],"reviewMcpRiskAtOrAbove":"critical"}`), "test"); err != nil {
		t.Fatal(err)
	}
	p := memberOf(t, a, orgID, "dev@example.com", "developer")
	for i, w := range []struct {
		setting, risk, subject string
		kept                   bool
	}{
		{"", "low", `,"agentId":"agent-7"`, false}, // the decision is allow, and the organization has no setting
		{"", "critical", `,"agentId":"agent-7"`, true},
		{"always", "low", `,"agentId":"agent-8"`, true},
		{"always", "low", ``, true}, // the request names no agent, so the run has a data key of its own
		{"off", "critical", `,"agentId":"agent-9"`, false},
	} {
		if w.setting != "" {
			if _, err := a.UpdateOrganization(t.Context(), "operator", orgID, organizations.OrganizationChange{Arguments: w.setting, Reason: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := assurance.ParseDecision([]byte(fmt.Sprintf(`{"protocol":"mcp","idempotencyKey":"k%d","subject":{"runId":"run-%[1]d"%s},
			"intent":{"serverId":"files","toolName":"read","declaredRisk":%q,"toolArguments":{"path":"/srv/secret.txt", "limit":10}}}`, i, w.subject, w.risk)))
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := a.Decide(t.Context(), p, r)
		if err != nil {
			t.Fatal(err)
		}
		record, err := assurance.ReadDecision(recorded.Envelope.Record)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := a.ShowDecision(t.Context(), operator, record.DecisionID)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: `{"limit":10,"path":"/srv/secret.txt"}`}[w.kept]
		if string(shown.Arguments) != want || shown.Record.Subject != record.Subject {
			t.Errorf("%+v: %s, want %s", w, shown.Arguments, want)
		}
		stream, err := a.Ledger.Read(t.Context(), orgID, "decision/"+record.DecisionID)
		if err != nil || strings.Contains(string(stream.Events[0].Payload), "secret.txt") || strings.Contains(string(recorded.Envelope.Record), "secret.txt") {
			t.Errorf("%s holds the arguments in the clear: %v", stream.Events[0].Payload, err)
		}
	}
	clean(t, a)
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), `update subject_keys set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = 1 where tenant = $1`, orgID); err != nil {
		t.Fatal(err)
	}
	c.Add(61 * time.Second) // longer than a decrypted data key stays in memory
	waiting, err := a.Ledger.Tenant(t.Context(), orgID, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	erased := 0
	for _, e := range waiting {
		id, isDecision := strings.CutPrefix(e.Stream, "decision/")
		if !isDecision {
			continue
		}
		shown, err := a.ShowDecision(t.Context(), operator, id)
		if err != nil || !shown.Erased || shown.Arguments != nil || shown.Record.Subject.AgentID != "" || shown.Record.Decision == "" {
			t.Errorf("after the erasure: %+v, %v", shown, err)
		}
		erased++
	}
	if erased != 5 {
		t.Errorf("%d decisions", erased)
	}
}
