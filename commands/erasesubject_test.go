package commands_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// The names of those who requested and approved an erasure, and the reason, are personal data,
// too. The ledger stores them encrypted with a key that the erasure does not destroy.
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
	wantRefusal(t, err, "invalid_value", "keyId must not name the key that encrypts the reasons of erasures")
	clean(t, a)
}

// If the row of a destroyed data key is restored from a backup, the key still decrypts nothing,
// because the event subject.erased is checked, too.
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
	c.Add(2 * 60e9) // longer than a decrypted data key stays in memory
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

// An export of one agent contains the agent's decision even if the agent's id has quotes or
// backslashes, and even if personal data are left out. The export reports the number of decisions.
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

// After an erasure and a vacuum, no table, index or file of the database contains anything about
// the person. The write-ahead log is an exception, which the documentation names: it contains the
// encrypted data key, but no personal value.
func TestNothingOfAnErasedSubjectIsLeft(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	a := openApp(t, db, newClock())
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p := decider(t, a, orgID)
	const name, purpose = "agent-of-this-erasure-4711", "books-for-the-lady-of-4712"
	r, err := assurance.ParseDecision([]byte(`{"protocol":"mcp","idempotencyKey":"k","subject":{"runId":"r","agentId":"` + name + `","purpose":"` + purpose + `"},"intent":{"serverId":"files","toolName":"read"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Decide(ctx, p, r); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(ctx, db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	held, err := a.Vault.Find(ctx, orgID, "agent:"+name)
	if err != nil || held == "" {
		t.Fatal(held, err)
	}
	var wrapped []byte
	if err := owner.QueryRow(ctx, `select wrapped_key from subject_keys where key_id = $1`, held).Scan(&wrapped); err != nil {
		t.Fatal(err)
	}
	if _, err := a.EraseSubject(ctx, evidence.Erasure{Tenant: orgID, Subject: "agent:" + name, Reason: "asked for", RequestedBy: "cus_1", ApprovedBy: "cus_2"}); err != nil {
		t.Fatal(err)
	}
	if err := vault.Vacuum(ctx, db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{"name": []byte(name), "purpose": []byte(purpose), "wrapped key": wrapped}

	t.Run("no table holds anything of the person", func(t *testing.T) {
		rows, err := owner.Query(ctx, `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(tables) < 10 {
			t.Fatal(tables, err)
		}
		for _, table := range tables {
			for what, secret := range secrets {
				text := string(secret)
				if what == "wrapped key" {
					text = hex.EncodeToString(secret)
				}
				var found int
				if err := owner.QueryRow(ctx, `select count(*) from `+table+` t where strpos(t::text, $1) > 0`, text).Scan(&found); err != nil {
					t.Fatal(err)
				}
				if found > 0 {
					t.Errorf("the %s is in %s", what, table)
				}
			}
		}
	})
	t.Run("no file of the database holds anything of the person", func(t *testing.T) {
		var folder, oid string
		if err := owner.QueryRow(ctx, `select setting, (select oid::text from pg_database where datname = current_database()) from pg_settings where name = 'data_directory'`).Scan(&folder, &oid); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(folder); err != nil {
			t.Skip("the server is on another machine, so its files are not searched")
		}
		if _, err := owner.Exec(ctx, `checkpoint`); err != nil {
			t.Fatal(err)
		}
		seen := 0
		if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // the server may have removed the file meanwhile
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			if strings.HasPrefix(path, filepath.Join(folder, "base", oid)) {
				seen++
			}
			for what, secret := range secrets {
				inLog := strings.HasPrefix(path, filepath.Join(folder, "pg_wal"))
				if bytes.Contains(text, secret) && (!inLog || what != "wrapped key") {
					t.Errorf("the %s is in %s", what, path)
				}
			}
			return nil
		}); err != nil || seen < 50 {
			t.Errorf("%d files of the database in %s, %v", seen, folder, err)
		}
	})
}

// The id of a destroyed data key is also stored outside the database. A database that is restored
// from a backup before the erasure does not decrypt with that key, and reports that the erasure
// must be repeated.
func TestARestoredLedgerDoesNotOpenErasedKeys(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p := decider(t, a, orgID)
	d := decided(t, a, p, "k1", "allow")
	history, err := a.Ledger.Read(ctx, orgID, "decision/"+d.record.DecisionID)
	if err != nil {
		t.Fatal(err)
	}
	held := vault.DataKey(history.Events[0])
	folder := checkpoint.Folder{Path: t.TempDir()}
	if err := folder.KeepErased(a.Ledger.Base(), checkpoint.Erased{Tenant: orgID, KeyID: held}); err != nil { // an erasure stores the id here; the restored database does not have the erasure
		t.Fatal(err)
	}
	kept, err := folder.Erased(a.Ledger.Base())
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	lost := vault.DataKeyOf(kept[0])
	still, err := a.Vault.Refuse(ctx, []vault.DataKeyOf{lost, {Tenant: orgID, KeyID: "sub_none"}})
	if err != nil || len(still) != 1 || still[0] != lost {
		t.Errorf("to repeat: %v, %v", still, err)
	}
	if _, err := a.Vault.Openings(ctx, history.Events[0]); !errors.Is(err, vault.ErrErased) {
		t.Errorf("an erased key opens: %v", err)
	}
	a.KeepErased = func(string, string) error { return errors.New("disk full") }
	again := evidence.Erasure{Tenant: orgID, KeyID: held, Reason: "repeated", RequestedBy: "cus_1", ApprovedBy: "cus_2"}
	if _, err := a.EraseSubject(ctx, again); err == nil {
		t.Error("a key is destroyed whose id could not be kept")
	}
	a.KeepErased = func(tenant, keyID string) error {
		return folder.KeepErased(a.Ledger.Base(), checkpoint.Erased{Tenant: tenant, KeyID: keyID})
	}
	if _, err := a.EraseSubject(ctx, again); err != nil {
		t.Fatal(err)
	}
	if still, err := a.Vault.Refuse(ctx, []vault.DataKeyOf{lost}); err != nil || len(still) != 0 {
		t.Errorf("to repeat after it was repeated: %v, %v", still, err)
	}
}
