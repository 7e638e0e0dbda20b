package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Who asked for an erasure, who approved it and why are personal as well: the ledger
// stores them sealed, under a key that the erasure does not destroy.
func TestAnErasureKeepsItsReasonSealed(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	a := openApp(t, db, newClock())
	orgID, _ := newOrganization(t, a, "team")
	held, err := a.Vault.Subject(t.Context(), orgID, "agent:agent-7", "sub_01JD3Z8W5T0000000000000001")
	if err != nil {
		t.Fatal(err)
	}
	said := evidence.Erasure{Tenant: orgID, Subject: "agent:agent-7", Reason: "Ada Lovelace asked by e-mail",
		RequestedBy: "ada@example.com", ApprovedBy: "bob@example.com"}
	if _, err := a.EraseSubject(t.Context(), said); err != nil {
		t.Fatal(err)
	}
	history, err := a.Ledger.Read(t.Context(), orgID, "subject/"+held)
	if err != nil || len(history.Events) != 1 {
		t.Fatal(len(history.Events), err)
	}
	e := history.Events[0]
	for _, personal := range []string{"Lovelace", "ada@", "bob@"} {
		if strings.Contains(string(e.Payload), personal) {
			t.Errorf("%q is stored in the clear: %s", personal, e.Payload)
		}
	}
	var opened events.SubjectErased
	if err := a.Vault.Open(t.Context(), e, &opened); err != nil || string(opened.Reason) != said.Reason ||
		string(opened.RequestedBy) != said.RequestedBy || string(opened.ApprovedBy) != said.ApprovedBy || opened.KeyID != held {
		t.Errorf("%+v, %v", opened, err)
	}

	own, err := a.Vault.Find(t.Context(), orgID, "erasures")
	if err != nil || own == "" {
		t.Fatal(own, err)
	}
	said.Subject, said.KeyID = "", own
	_, err = a.EraseSubject(t.Context(), said)
	wantRefusal(t, err, "invalid_value", "keyId must not name the key of the erasures themselves: it seals who asked for each of them, and why")
	clean(t, a)
}

// A data key that is restored from a backup decrypts nothing, because the event
// subject.erased counts, not only the row.
func TestAKeyThatIsPutBackOpensNothing(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p, err := a.AuthenticateOrganization(t.Context(), newToken(t, a, operator).Token)
	if err != nil {
		t.Fatal(err)
	}
	d := decided(t, a, p, "k1", "allow")
	held, err := a.Vault.Find(t.Context(), orgID, "agent:agent-7")
	if err != nil || held == "" {
		t.Fatal(held, err)
	}
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	for _, statement := range []string{
		`create temp table kept as select * from subject_keys where key_id = '` + held + `'`,
		"",
		`delete from subject_keys where key_id = '` + held + `'`,
		`insert into subject_keys select * from kept`,
	} {
		if statement == "" {
			erase(t, a, orgID, held)
			continue
		}
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	c.Add(2 * 60e9) // no node has the key in memory any more
	history, err := a.Ledger.Read(t.Context(), orgID, "decision/"+d.record.DecisionID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Vault.Openings(t.Context(), history.Events[0]); !errors.Is(err, vault.ErrErased) {
		t.Errorf("the restored key opens the event: %v", err)
	}
	if _, err := a.Decide(t.Context(), p, decisionRequest(t, "k2", "allow")); err == nil {
		t.Error("the restored key seals new events")
	}
}

// An export of one agent shows its decisions, whatever characters the id has, and also
// where personal members are left out; the number of decisions is reported.
func TestAnExportOfOneAgentShowsItsDecisions(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	checkpoints, err := seal.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err == nil {
		err = keeper.Start(t.Context(), a.Ledger, keeper.Options{Signer: checkpoints, Folder: checkpoint.Folder{Path: t.TempDir()}, Every: 10 * time.Millisecond},
			func() string { return a.NewID("evt_") })
	}
	if err != nil {
		t.Fatal(err)
	}
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p, err := a.AuthenticateOrganization(t.Context(), newToken(t, a, operator).Token)
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string]string{`CORP\svc-agent`: `CORP\\svc-agent`, `say "hi"`: `say \"hi\"`, `"quoted"`: `\"quoted\"`, "plain": "plain"}
	n := 0
	for _, escaped := range agents {
		n++
		r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"run-1","agentId":"%s"},"intent":%s}`, n, escaped, intentFor["allow"]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Decide(t.Context(), p, r); err != nil {
			t.Fatal(err)
		}
	}
	for agent := range agents {
		for _, without := range []bool{false, true} {
			e := evidence.Export{Tenant: orgID, Actor: "operator", Folder: t.TempDir()}
			e.Filters.Agent, e.Filters.NoPersonal = agent, without
			if got, err := a.ExportHistory(t.Context(), e); err != nil || got.Decisions != 1 {
				t.Errorf("agent %s, without personal members %v: %d decisions, %v", agent, without, got.Decisions, err)
			}
		}
	}
	e := evidence.Export{Tenant: orgID, Actor: "operator", Folder: t.TempDir()}
	e.Filters.Agent = "nobody"
	var refused *policy.Error
	if _, err := a.ExportHistory(t.Context(), e); !errors.As(err, &refused) || refused.Code != ground.CodeNotFound {
		t.Errorf("an agent that no decision names: %v", err)
	}
}
