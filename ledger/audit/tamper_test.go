package audit_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// changes contains for each column an expression for another value that the schema allows.
var changes = map[string]string{
	"p":              "p + 1",
	"pos":            "pos + 1000",
	"tenant":         "tenant || 'x'",
	"tseq":           "tseq + 1000",
	"stream":         "stream || 'x'",
	"version":        "version + 1000",
	"event_id":       "event_id || 'x'",
	"type":           "type || 'x'",
	"schema_version": "schema_version + 1",
	"more":           "(more + 1) % 64",
	"occurred_us":    "occurred_us + 1",
	"actor":          "actor || 'x'",
	"key_id":         "key_id || 'x'",
	"idem_key":       "case when idem_key is null then sha256('x') else sha256(idem_key) end, content_hash = coalesce(content_hash, sha256('x'))",
	"content_hash":   "case when content_hash is null then sha256('x') else sha256(content_hash) end, idem_key = coalesce(idem_key, sha256(event_id::bytea))",
	"payload":        "set_byte(payload, octet_length(payload) / 2, (get_byte(payload, octet_length(payload) / 2) + 1) % 256)",
	"payload_hash":   "set_byte(payload_hash, 31, (get_byte(payload_hash, 31) + 1) % 256)",
	"prev":           "set_byte(prev, 0, (get_byte(prev, 0) + 1) % 256)",
	"hash":           "set_byte(hash, 16, (get_byte(hash, 16) + 1) % 256)",
	"series":         "case when series is null then 's' else series || 'x' end, series_n = coalesce(series_n, 1)",
	"series_n":       "coalesce(series_n, 0) + 1000, series = coalesce(series, 's'), series_prev = coalesce(series_prev, sha256('x'))",
	"series_prev":    "case when series_prev is null then sha256('x') else sha256(series_prev) end, series = coalesce(series, 's'), series_n = greatest(series_n, 1000 + pos)",
	"agent":          "case when agent is null then 'a' else agent || 'x' end, agent_n = coalesce(agent_n, 1), series = coalesce(series, 's'), series_n = coalesce(series_n, 1)",
	"agent_n":        "coalesce(agent_n, 0) + 1000, agent_prev = coalesce(agent_prev, sha256('x')), agent = coalesce(agent, 'a'), series = coalesce(series, 's'), series_n = coalesce(series_n, 1)",
	"agent_prev":     "case when agent_prev is null then sha256('x') else sha256(agent_prev) end, agent_n = greatest(agent_n, 1000 + pos), agent = coalesce(agent, 'a'), series = coalesce(series, 's'), series_n = coalesce(series_n, 1)",
}

// An attacker with every right in the database changes any column of any event, or removes,
// inserts or truncates rows. Verification finds every such change.
func TestVerificationFindsEveryChangeInTheDatabase(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	ctx := t.Context()
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Activate(ctx, signer, "evt_key"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		a := fixture.One(fmt.Sprint("a/", i), ledger.New(), fmt.Sprint("a", i))
		a.Events = append(a.Events, fixture.Pending("counter", ledger.Any(9), fmt.Sprint("b", i)))
		numbered := &a.Events[0]
		envelope := fixture.Must(signer.Sign("application/vnd.svc.decision.v1+json", map[string]any{"decision": "deny", "decisionId": fmt.Sprint(i)}))
		numbered.Stream, numbered.Type, numbered.KeyID = fmt.Sprint("decision/", i), "decision.recorded", signer.KeyID()
		numbered.Payload = fixture.Must(canon.Marshal(map[string]any{"integrity": envelope.Integrity, "record": envelope.Record}))
		a.Tenant = fmt.Sprint("org_", i%2)
		if _, err := l.Append(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Clean(t, l, 7)
	super, err := pgx.Connect(ctx, db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(ctx)
	if _, err := super.Exec(ctx, `set session_replication_role = replica; create table kept as table events;
		create table kept_head as table ledger_head`); err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(fixture.Must(super.Query(ctx, `select attname from pg_attribute
		where attrelid = 'events'::regclass and attnum > 0`)), pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	faults := func(t *testing.T, statement string) []audit.Fault {
		t.Helper()
		if _, err := super.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		report, err := audit.Ledger(ctx, l, nil)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if _, err := super.Exec(ctx, `delete from events; insert into events select * from kept;
			delete from ledger_head; insert into ledger_head select * from kept_head`); err != nil {
			t.Fatal(err)
		}
		return report.Faults
	}
	t.Run("a changed column is found in its row", func(t *testing.T) {
		for _, column := range columns {
			if column == "p" && ledgertest.OnCluster() {
				continue // this column selects the server of a row and cannot be changed
			}
			change, known := changes[column]
			if !known {
				t.Errorf("column %s has no change here: add one", column)
				continue
			}
			for row := range 7 {
				found := faults(t, fmt.Sprintf(`update events set %s = %s where pos = %d`, column, change, row+1))
				if len(found) == 0 {
					t.Errorf("row %d, column %s: changed unnoticed", row+1, column)
				}
				named := false
				for _, f := range found {
					at := int64(row + 1)
					named = named || f.Position == at || column == "p" || column == "pos"
				}
				if !named && len(found) > 0 {
					t.Errorf("row %d, column %s: the faults name other rows: %v", row+1, column, found)
				}
			}
		}
	})
	t.Run("a changed set of rows is found", func(t *testing.T) {
		for name, statement := range map[string]string{
			"first row deleted":  `delete from events where pos = 1`,
			"middle row deleted": `delete from events where pos = 4`,
			"tail cut":           `delete from events where pos > 5`,
			"tenant deleted":     `delete from events where tenant = 'org_1'`,
			"rows swapped": `update events set pos = pos + 1000 where pos in (2, 4);
			update events set pos = case pos when 1002 then 4 else 2 end where pos > 1000`,
			"row inserted": `insert into events select p, 8, tenant, 5, stream, 99, event_id, type, schema_version, more,
			occurred_us, actor, key_id, sha256('y'), sha256('y'), payload, payload_hash, prev, hash from kept where pos = 7`,
			"head moved": `update ledger_head set pos = pos + 1`,
		} {
			if len(faults(t, statement)) == 0 {
				t.Errorf("%s: unnoticed", name)
			}
		}
	})
}
