package projections_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// derivedApp returns a small ledger with rows in every read model. Its projections are stopped, so
// nothing repairs the changes of a test.
func derivedApp(t *testing.T) (*ledger.Ledger, *ledgertest.DB) {
	a, db := newApp(t)
	l, ctx := a.Ledger, t.Context()
	p := start(t, l)
	defer p.Close()
	token := asToken(t, a, "ada@example.com")
	for i, method := range []string{"GET", "GET", "BREW"} {
		r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"r%d","agentId":"a"},
			"intent":{"resourceUrl":"https://api.example/","method":%q,"amountUsd":0.5}}`, i, i, method))
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := a.Decide(ctx, token, r)
		if err != nil {
			t.Fatal(err)
		}
		d, err := assurance.ReadDecision(recorded.Envelope.Record)
		if err != nil {
			t.Fatal(err)
		}
		if method == "BREW" {
			continue
		}
		receipt, err := assurance.ParseReceipt(fmt.Appendf(nil, `{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"rejected","settlementId":"s"}`,
			d.DecisionID, recorded.Envelope.Integrity.RecordHash, d.BindingHash))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.BindReceipt(ctx, token, receipt); err != nil {
			t.Fatal(err)
		}
	}
	happens := func(stream, eventType string, stored any) {
		t.Helper()
		payload, err := canon.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{Stream: stream, Expect: ledger.Any(100),
			ID: a.NewID("evt_"), Type: eventType, SchemaVersion: events.Newest(eventType), Actor: "key_1", Payload: payload}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"pay_1", "pay_2"} {
		happens("payment/"+id, events.TypePaymentClaimed, events.PaymentClaimed{PaymentID: id, Operation: "op", Mode: "dev", Network: "n", Amount: "1", PriceCents: 1, Prepared: []events.PreparedEvent{}})
	}
	happens("payment/pay_2", events.TypePaymentUnknown, events.PaymentUnknown{PaymentID: "pay_2", Reason: "lost", Mode: "dev"})
	now := time.Now().UTC()
	const workflow = "asw_00000000-0000-4000-8000-000000000001"
	happens("workflow/"+workflow, events.TypeWorkflowCompleted, events.WorkflowCompleted{Workflow: events.Workflow{WorkflowID: workflow, Status: "completed",
		Risk: "low", Decision: "allow", MatchedRuleIDs: []string{},
		CreatedAt: canon.Stamp(now), ExpiresAt: canon.Stamp(now.Add(time.Hour))}})
	happens("usage/key_1/2026-11", events.TypeCallCompleted, events.CallCompleted{Service: "op", Charge: "free"})
	for { // wait until every read model has caught up
		lags, err := p.Lags(ctx)
		if err != nil {
			t.Fatal(err)
		}
		behind := int64(0)
		for _, lag := range lags {
			behind += lag.Behind
		}
		if behind == 0 {
			return l, db
		}
	}
}

// For every column of every derived table, the test changes each value in turn, and it deletes and
// adds rows. Diff finds each change with its table and row.
func TestDiffFindsEveryChangedValue(t *testing.T) {
	t.Parallel()
	l, db := derivedApp(t)
	ctx := context.Background()
	owner, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	exec := func(t *testing.T, statement string) {
		t.Helper()
		if _, err := owner.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	list := func(t *testing.T, query string, args ...any) []string {
		t.Helper()
		rows, err := owner.Query(ctx, query, args...)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	diff := func(t *testing.T, name string) projections.Compared {
		t.Helper()
		c, err := projections.Diff(ctx, l, slog.New(slog.DiscardHandler), name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	changes := map[string]string{"text": "coalesce(%[1]s, '') || 'x'", "bigint": "coalesce(%[1]s, 0) + 1000000", "boolean": "not %[1]s", "integer": "%[1]s + 1",
		"text[]": "%[1]s || 'x'::text", "date": "%[1]s + 1", "numeric": "%[1]s + 1", "timestamp with time zone": "%[1]s + interval '1 microsecond'"}
	changed, found := 0, 0
	for name, tables := range projections.TablesByName() {
		t.Run(name, func(t *testing.T) {
			if c := diff(t, name); len(c.Differences) > 0 || c.Rows == 0 {
				t.Fatalf("%s: %+v", name, c)
			}
			for _, bare := range tables {
				table := "readmodels." + bare
				exec(t, `drop table if exists kept; create temp table kept as select * from `+table)
				for _, constraint := range list(t, `select conname::text from pg_constraint where conrelid = $1::regclass and contype in ('c', 'p')`, table) {
					if !strings.HasSuffix(constraint, "_pkey") {
						exec(t, `alter table `+table+` drop constraint `+constraint)
					}
				}
				check := func(what string) {
					changed++
					c := diff(t, name)
					if slices.ContainsFunc(c.Differences, func(d projections.Difference) bool { return d.Table == bare && d.Key != "" }) {
						found++
					} else {
						t.Errorf("%s of %s: %+v", what, table, c.Differences)
					}
					exec(t, `delete from `+table+`; insert into `+table+` select * from kept`)
				}
				rows := len(list(t, `select ctid::text from `+table))
				columns := list(t, `select attname || '=' || format_type(atttypid, null) from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`, table)
				for n := range rows {
					place := func() string { return list(t, `select ctid::text from `+table+` order by ctid`)[n] }
					for _, column := range columns {
						column, kind, _ := strings.Cut(column, "=")
						if changes[kind] == "" {
							t.Fatalf("%s.%s: no change for type %s", table, column, kind)
						}
						value := fmt.Sprintf(changes[kind], column)
						exec(t, `update `+table+` set `+column+` = `+value+` where ctid = '`+place()+`'`)
						check(fmt.Sprintf("%s, row %d", column, n))
					}
					exec(t, `delete from `+table+` where ctid = '`+place()+`'`)
					check(fmt.Sprintf("missing row %d", n))
				}
				key := strings.Split(columns[0], "=")[0]
				exec(t, `insert into `+table+` select (jsonb_populate_record(k, jsonb_build_object('`+key+`', k.`+key+` || 'x'))).* from kept k limit 1`)
				check("a row too many")
				exec(t, `drop table kept`)
			}
		})
	}
	t.Logf("%d of %d changed values and rows were found", found, changed)
}
