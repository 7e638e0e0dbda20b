package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

func openLedger(t *testing.T, db *ledgertest.DB) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func start(t *testing.T, l *ledger.Ledger) *Projections {
	t.Helper()
	p, err := Start(t.Context(), l, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.Patience = time.Minute // long enough for a busy machine
	t.Cleanup(p.Close)
	return p
}

// stopped returns the projection status with its tables, but not running.
func stopped(t *testing.T, l *ledger.Ledger) *run {
	t.Helper()
	p := start(t, l)
	p.Close()
	return p.models["status"].runs[0]
}

// workflowID returns the n-th id of a workflow in the first partition, whose feed these tests
// control. Ids are in the order of n.
func workflowID(n int) string {
	for k := 0; ; k++ {
		if id := fmt.Sprintf("asw_%08d-0000-4000-8000-%012d", n, k); ledger.Home(id, ledgertest.Partitions()) == 0 {
			return id
		}
	}
}

// completed returns a workflow as a receipt contains it.
func completed(n int) events.Workflow {
	score := "crs_00000000000000000000000000000000"
	now := time.Now().UTC()
	return events.Workflow{
		WorkflowID: workflowID(n), Status: "completed", Risk: "low", Decision: "allow", MatchedRuleIDs: []string{},
		ActionBindingVersion: "svc-action-v1", ActionHash: strings.Repeat("a", 64), Audit: events.Audit{CommandScoreRequestID: &score},
		CreatedAt: now.Format("2006-01-02T15:04:05.000Z"), ExpiresAt: now.Add(720 * time.Hour).Format("2006-01-02T15:04:05.000Z"),
	}
}

// appendWorkflow appends the event of a legacy record. If payload is nil, the event has a valid
// payload.
func appendWorkflow(t *testing.T, l *ledger.Ledger, n int, payload []byte) {
	t.Helper()
	if payload == nil {
		var err error
		if payload, err = canon.Marshal(events.WorkflowCompleted{Workflow: completed(n)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Append(t.Context(), ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{
		Stream: "workflow/" + workflowID(n), Expect: ledger.Any(100), ID: fmt.Sprintf("evt_%d_%d", n, time.Now().UnixNano()),
		Type: events.TypeWorkflowCompleted, Actor: "system", Payload: payload}}})
	if err != nil {
		t.Fatal(err)
	}
}

func everything(t *testing.T, l *ledger.Ledger) []ledger.Event {
	t.Helper()
	list, err := l.Partition(0).After(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// state returns all rows and the checkpoint of the read model as text.
func state(t *testing.T, l *ledger.Ledger) string {
	t.Helper()
	var text string
	err := l.Pool().QueryRow(t.Context(), `select
		(select coalesce(string_agg(w::text, '|' order by workflow_id), '') from readmodels.workflow_status w) || ' at ' ||
		(select pos::text || encode(hash, 'hex') from projection_checkpoint where name = 'status' and p = 0)`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rowCount(t *testing.T, l *ledger.Ledger) (n int) {
	t.Helper()
	if err := l.Pool().QueryRow(t.Context(), `select count(*) from readmodels.workflow_status`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// If a batch is delivered twice, or in overlapping parts, its events are applied once.
func TestBatchDeliveredTwiceIsAppliedOnce(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	for n := range 5 {
		appendWorkflow(t, l, n, nil)
	}
	batch := everything(t, l)
	if err := r.step(t.Context(), batch[:3]); err != nil {
		t.Fatal(err)
	}
	if err := r.step(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	want := state(t, l)
	for _, again := range [][]ledger.Event{batch, batch[:1], batch[2:4], batch} {
		if err := r.step(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, state(t, l)); diff != "" {
			t.Fatal(diff)
		}
	}
	if got := rowCount(t, l); got != 5 {
		t.Errorf("%d rows", got)
	}
}

// A crash between apply and commit leaves neither rows nor checkpoint. The next attempt writes
// both.
func TestCrashBetweenApplyAndCommit(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	for n := range 3 {
		appendWorkflow(t, l, n, nil)
	}
	batch, before := everything(t, l), state(t, l)
	r.applyRun = nil // apply each event separately
	good := r.apply
	for crashAt := range batch {
		applied := 0
		ctx, crash := context.WithCancel(t.Context())
		r.apply = func(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
			if err := good(ctx, tx, e); err != nil {
				return err
			}
			if applied == crashAt {
				crash() // the connection is closed before the commit
			}
			applied++
			return nil
		}
		if err := patient(func() error { return r.step(ctx, batch) }); err == nil || applied <= crashAt {
			t.Fatalf("a step that crashed after %d events applied %d: %v", crashAt+1, applied, err)
		}
		if diff := cmp.Diff(before, state(t, l)); diff != "" {
			t.Fatalf("crash after %d events left %s", crashAt+1, diff)
		}
	}
	r.apply = good
	if err := patient(func() error { return r.step(t.Context(), batch) }); err != nil {
		t.Fatal(err)
	}
	if got := rowCount(t, l); got != 3 {
		t.Errorf("%d rows", got)
	}
}

// While another node works on the projection, this node does nothing and tries again later.
func TestTwoNodesDoNotApplyAtOnce(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	appendWorkflow(t, l, 1, nil)
	batch, before := everything(t, l), state(t, l)
	tx, err := l.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.begin(t.Context(), tx, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.step(t.Context(), batch); !errors.Is(err, errElsewhere) {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, state(t, l)); diff != "" {
		t.Error(diff)
	}
	if err := r.step(t.Context(), batch); err != nil || rowCount(t, l) != 1 {
		t.Errorf("afterwards: %v", err)
	}
}

// An event that cannot be applied parks only its own stream. Queries about that stream return
// ErrBehind, all others are answered, and later events of the stream are parked, too.
func TestPoisonEventParksItsStreamOnly(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	appendWorkflow(t, l, 1, nil)
	for n, poison := range map[int]string{2: `{}`, 3: `{"unknown":1}`, 4: `{"workflow":{"expiresAt":"yesterday"}}`} {
		appendWorkflow(t, l, n, []byte(poison))
	}
	appendWorkflow(t, l, 2, nil) // a valid event in the parked stream
	appendWorkflow(t, l, 5, nil)
	ledgertest.Until(t, "four parked events", func() bool { lags, err := p.Lags(t.Context()); return err == nil && lags["status"] == Lag{Parked: 4} })
	for n := 1; n <= 5; n++ {
		_, err := p.Status(t.Context(), workflowID(n))
		if parked := n >= 2 && n <= 4; parked != errors.Is(err, ErrBehind) || !parked && err != nil {
			t.Errorf("workflow %d: %v", n, err)
		}
	}
	if got := rowCount(t, l); got != 2 {
		t.Errorf("%d rows", got)
	}
}

// A panic in apply stops no other projection and no query of existing rows.
func TestPanicInApplyIsAPoisonEvent(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	appendWorkflow(t, l, 1, nil)
	appendWorkflow(t, l, 2, nil)
	r.applyRun = nil // apply each event separately
	good := r.apply
	r.apply = func(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
		if e.Stream == "workflow/"+workflowID(1) {
			panic("poison")
		}
		return good(ctx, tx, e)
	}
	if err := r.handle(ledgerMessage(t, l)); err != nil {
		t.Error(err)
	}
	if got := rowCount(t, l); got != 1 {
		t.Errorf("%d rows", got)
	}
	var parked int
	if err := l.Pool().QueryRow(t.Context(), `select count(*) from projection_dead where name = 'status'`).Scan(&parked); err != nil || parked != 1 {
		t.Errorf("%d parked, %v", parked, err)
	}
}

// A failure of the database parks no event: the step is repeated, however often it fails.
func TestFailuresOfTheDatabaseParkNothing(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	r := stopped(t, l)
	appendWorkflow(t, l, 1, nil)
	appendWorkflow(t, l, 2, nil)
	r.applyRun = nil // apply each event separately
	good, m := r.apply, ledgerMessage(t, l)
	for _, sql := range []string{
		`do $$ begin raise exception 'full' using errcode = '53100'; end $$`,
		`do $$ begin raise exception 'stopping' using errcode = '57P01'; end $$`,
		`do $$ begin raise exception 'locked' using errcode = '55P03'; end $$`,
		`set local statement_timeout = 1; select pg_sleep(1)`,
	} {
		r.apply = func(ctx context.Context, tx pgx.Tx, _ ledger.Event) error { _, err := tx.Exec(ctx, sql); return err }
		for range 2 * tries {
			if err := r.handle(m); err == nil {
				t.Fatalf("%s: the batch was acknowledged", sql)
			}
		}
	}
	r.apply = func(ctx context.Context, tx pgx.Tx, _ ledger.Event) error {
		_ = tx.Conn().Close(ctx)
		_, err := tx.Exec(ctx, `select 1`)
		return err
	}
	for range 2 * tries {
		if err := r.handle(m); err == nil {
			t.Fatal("without a connection the batch was acknowledged")
		}
	}
	r.apply = endedWhileIdle
	for range 2 * tries {
		if err := r.handle(m); err == nil {
			t.Fatal("after its connection was ended the batch was acknowledged")
		}
	}
	r.apply = good
	if err := patient(func() error { return r.handle(m) }); err != nil || rowCount(t, l) != 2 {
		t.Errorf("afterwards: %d rows, %v", rowCount(t, l), err)
	}
}

// endedWhileIdle fails as a step fails on a machine that gives it no processor time: PostgreSQL
// ends a connection that is idle in a transaction for too long.
func endedWhileIdle(ctx context.Context, tx pgx.Tx, _ ledger.Event) error {
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 1`); err != nil {
		return err
	}
	for { // until PostgreSQL says that it ends the connection
		if _, err := tx.Conn().PgConn().ReceiveMessage(ctx); err != nil {
			return err
		}
	}
}

// patient repeats a step while the server still holds the lock of the previous step's lost client.
func patient(step func() error) error {
	err := step()
	for errors.Is(err, errElsewhere) {
		err = step()
	}
	return err
}

// ledgerMessage returns all events of the ledger in one message, as the feed sends it.
func ledgerMessage(t *testing.T, l *ledger.Ledger) *message.Message {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	s := l.Partition(0).Subscriber(func(context.Context) (int64, error) { return 0, nil })
	t.Cleanup(func() { _ = s.Close() })
	messages, err := s.Subscribe(ctx, "events")
	if err != nil {
		t.Fatal(err)
	}
	m := <-messages
	return m
}

// A query on any node sees every event that was appended before the query.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l, other := openLedger(t, db), openLedger(t, db)
	p, q := start(t, l), start(t, other)
	for n := range 20 {
		appendWorkflow(t, l, n, nil)
		for name, node := range map[string]*Projections{"the node that appended": p, "another node": q} {
			if _, err := node.Status(t.Context(), workflowID(n)); err != nil {
				t.Fatalf("%s does not show workflow %d: %v", name, n, err)
			}
		}
	}
	if got := rowCount(t, l); got != 20 {
		t.Errorf("%d rows", got)
	}
}

// If a node does not catch up in time, a query returns ErrBehind. Once it has caught up, the query
// succeeds.
func TestBehindUntilCaughtUp(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := openLedger(t, db)
	p := start(t, l)
	p.Close()
	p.Close() // a second call does nothing
	p.Patience = time.Millisecond
	appendWorkflow(t, l, 1, nil)
	if _, err := p.Status(t.Context(), workflowID(1)); !errors.Is(err, ErrBehind) {
		t.Errorf("stopped: %v", err)
	}
	if lags, err := p.Lags(t.Context()); err != nil || lags["status"].Behind != 1 {
		t.Errorf("lags %v, %v", lags, err)
	}
	q := start(t, openLedger(t, db))
	if _, err := q.Status(t.Context(), workflowID(1)); err != nil {
		t.Errorf("started again: %v", err)
	}
	p.Patience = time.Minute
	if _, err := p.Status(t.Context(), workflowID(1)); err != nil { // reads the other node's checkpoint
		t.Errorf("the stopped node: %v", err)
	}
	if _, err := q.Status(t.Context(), workflowID(2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// A dropped and rebuilt read model has the same bytes.
func TestRebuildGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	for n := range 10 {
		appendWorkflow(t, l, n, nil)
	}
	if _, err := p.Status(t.Context(), workflowID(9)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	want := state(t, l)
	if _, err := l.Pool().Exec(t.Context(), `update projection_checkpoint set version = 0 where name = 'status'`); err != nil {
		t.Fatal(err)
	}
	q := start(t, l)
	if _, err := q.Status(t.Context(), workflowID(9)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, state(t, l)); diff != "" {
		t.Error(diff)
	}
	q.Close()
	if _, err := l.Pool().Exec(t.Context(), `update projection_checkpoint set version = 99 where name = 'status'`); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), l, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "newer program") {
		t.Errorf("a newer read model: %v", err)
	}
}

// Rows older than 30 days are not shown, and deleted a day later.
func TestExpiredRowsAreHiddenThenSwept(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	for n := range 3 {
		appendWorkflow(t, l, n, nil)
	}
	if _, err := p.Status(t.Context(), workflowID(2)); err != nil {
		t.Fatal(err)
	}
	for n, age := range []string{"25 hours", "23 hours"} {
		if _, err := l.Pool().Exec(t.Context(), `update readmodels.workflow_status set expires_at = now() - $2::interval where workflow_id = $1`, workflowID(n), age); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Status(t.Context(), workflowID(n)); !errors.Is(err, ErrNotFound) {
			t.Errorf("expired by %s: %v", age, err)
		}
	}
	if _, err := l.Pool().Exec(t.Context(), status.sweep); err != nil {
		t.Fatal(err)
	}
	if got := rowCount(t, l); got != 2 {
		t.Errorf("%d rows after the sweep, want 2", got)
	}
}

// statusOf returns both shapes of the specification.
func TestStatusOfBothShapes(t *testing.T) {
	t.Parallel()
	w := completed(1)
	w.CreatedAt, w.ExpiresAt = "2026-11-20T15:00:00.000Z", "2026-12-20T15:00:00.000Z"
	w.HumanApprovalIncluded = true // not shown, because it is always false in an answer
	workflow, err := canon.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	record := fmt.Appendf(nil, `{"workflow":%s}`, workflow)
	stored := map[string]any{
		events.TypeCallCompleted: events.CallCompleted{Record: record, Integrity: &seal.Integrity{RecordHash: "h"}, VerifyURL: "https://x/api/verify"},
		// An action binding in a legacy record is not shown.
		events.TypeWorkflowCompleted: events.WorkflowCompleted{Workflow: w},
	}
	const audit = `"audit":{"commandScoreRequestId":"crs_00000000000000000000000000000000","reviewTriageRequestId":null},`
	const boundaries = `"boundaries":{"humanApprovalIncluded":false,"note":"A review recommendation is not a human approval. Human approval needs a connected approval system or a hosted assurance plan."},` +
		`"createdAt":"2026-11-20T15:00:00.000Z","decision":"allow","expiresAt":"2026-12-20T15:00:00.000Z",`
	rest := `"requiresHumanReview":false,"risk":"low","status":"completed","workflowId":"` + workflowID(1) + `"}`
	for eventType, want := range map[string]string{
		events.TypeCallCompleted: `{"actionBindingVersion":"svc-action-v1","actionHash":"` + strings.Repeat("a", 64) + `",` + audit + boundaries +
			`"receipt":{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"","payloadType":"","recordHash":"h","signature":"","signatureAlgorithm":""},` +
			`"ledger":{"eventHash":"` + strings.Repeat("0", 64) + `","position":7,"sequence":5,"tenant":"service"},"record":` + string(record) +
			`,"verify":{"method":"POST","url":"https://x/api/verify"}},` + rest,
		events.TypeWorkflowCompleted: `{` + audit + `"binding":{"available":false,"reason":"legacy_status_record_without_versioned_action_binding"},` + boundaries + rest,
	} {
		payload, err := canon.Marshal(stored[eventType])
		if err != nil {
			t.Fatal(err)
		}
		got, err := statusOf(ledger.Event{Type: eventType, SchemaVersion: events.Newest(eventType), Payload: payload, Position: 7, Tenant: "service", Sequence: 5})
		if err != nil {
			t.Fatal(err)
		}
		text, err := canon.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("%s: %s", eventType, diff)
		}
	}
}

// A workflow run is one event: the record of its receipt contains the workflow. Services without a
// workflow sign receipts, too. Each workflow has one row.
func TestStatusOfARun(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	kept := map[int]events.Workflow{1: completed(1), 2: completed(2)}
	record := func(n int) []byte {
		t.Helper()
		workflow, err := canon.Marshal(kept[n])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `{"receiptId":"asr_%d","workflow":%s}`, n, workflow)
	}
	for i, record := range [][]byte{record(1), []byte(`{"receiptId":"asr_4"}`), record(2), nil} {
		stored := events.CallCompleted{Service: "action-safety/run", Request: map[string]any{}, Answer: map[string]any{}}
		d := ledger.Pending{Stream: "usage/key_1/2026-11", Expect: ledger.Any(100), ID: fmt.Sprintf("evt_%d", i), Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "key_1"}
		if record != nil {
			d.KeyID = "0123456789abcdef"
			stored.Record, stored.Integrity, stored.VerifyURL = record, &seal.Integrity{KeyID: d.KeyID}, "https://x/api/verify"
		}
		var err error
		if d.Payload, err = canon.Marshal(stored); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{d}}); err != nil {
			t.Fatal(err)
		}
	}
	for n, position := range map[int]int64{1: 1, 2: 3} {
		text, err := p.Status(t.Context(), workflowID(n))
		var got StatusRecord
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.WorkflowID != workflowID(n) || got.ActionHash != kept[n].ActionHash || got.ExpiresAt != kept[n].ExpiresAt || got.Receipt == nil ||
			got.Receipt.Ledger.Position != position || !bytes.Equal(got.Receipt.Record, record(n)) {
			t.Errorf("workflow %d: %s, %v", n, text, err)
		}
	}
	if rows := rowCount(t, l); rows != 2 {
		t.Errorf("%d rows", rows)
	}
	if lags, err := p.Lags(t.Context()); err != nil || lags["status"] != (Lag{}) {
		t.Errorf("%+v, %v", lags["status"], err)
	}
}

// Only the payload of a call names its workflow. So while a call is parked, the service cannot say
// that a workflow does not exist.
func TestAParkedRunMayBeAnyWorkflow(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.New(t))
	p := start(t, l)
	appendWorkflow(t, l, 1, nil)
	if _, err := p.Status(t.Context(), workflowID(2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing is parked: %v", err)
	}
	if _, err := l.Append(t.Context(), ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{
		Stream: "usage/key_1/2026-11", Expect: ledger.New(), ID: "evt_1", Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "key_1", KeyID: "k",
		Payload: []byte(`{"integrity":{},"record":{"workflow":{"expiresAt":"yesterday"}}}`)}}}); err != nil {
		t.Fatal(err)
	}
	ledgertest.Until(t, "a parked event", func() bool { lags, err := p.Lags(t.Context()); return err == nil && lags["status"] == Lag{Parked: 1} })
	if _, err := p.Status(t.Context(), workflowID(2)); !errors.Is(err, ErrBehind) {
		t.Errorf("what may be parked: %v", err)
	}
	if _, err := p.Status(t.Context(), workflowID(1)); err != nil {
		t.Errorf("what is there: %v", err)
	}
}
