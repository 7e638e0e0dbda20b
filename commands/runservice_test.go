package commands_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// A call of a service appends one event, and so does a run of the workflow. The event of a run
// contains the signed receipt, and the receipt contains the workflow.
func TestEventsOfACall(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	_, caller := newKey(t, a, "ada@example.com")
	before := heads(t, a)
	quick, err := a.RunService(t.Context(), quickCall(t, caller, "", "rm -rf /"))
	if err != nil || quick.Remaining != 249 || quick.Replayed {
		t.Fatalf("%+v, %v", quick, err)
	}
	run, err := a.RunService(t.Context(), runCall(t, caller, "", "rm -rf /"))
	if err != nil || run.Remaining != 248 {
		t.Fatalf("%+v, %v", run, err)
	}
	added := since(t, a, before)
	if !slices.Equal(types(added), []string{events.TypeCallCompleted, events.TypeCallCompleted}) {
		t.Fatalf("%v", types(added))
	}
	for i, e := range added {
		if e.Stream != "usage/"+caller.KeyID+"/2026-11" || e.Version != int64(i+1) || e.Actor != caller.KeyID || e.More != 0 {
			t.Errorf("%s, version %d, by %s", e.Stream, e.Version, e.Actor)
		}
	}
	if added[0].KeyID != "" || added[1].KeyID != a.Signer.KeyID() {
		t.Errorf("signed by %q and %q", added[0].KeyID, added[1].KeyID)
	}
	var answered struct {
		WorkflowID string        `json:"workflowId"`
		Receipt    seal.Envelope `json:"receipt"`
	}
	if err := json.Unmarshal(run.Body, &answered); err != nil {
		t.Fatal(err)
	}
	place := answered.Receipt.Ledger
	if place == nil || place.Position != added[1].Position || place.EventHash != added[1].Hash.String() || place.Sequence != added[1].Sequence {
		t.Errorf("the receipt stands at %+v, the event at %d", place, added[1].Position)
	}
	var stored events.CallCompleted
	if err := a.Vault.Open(t.Context(), added[1], &stored); err != nil || stored.Service != "action-safety/run" || stored.PriceCents != 25 || stored.Charge != "free" {
		t.Errorf("%+v, %v", stored, err)
	}
	if !strings.HasPrefix(answered.WorkflowID, "asw_") || workflowOf(t, stored).WorkflowID != answered.WorkflowID {
		t.Errorf("%s keeps %s", stored.Record, answered.WorkflowID)
	}
}

// workflowOf returns the workflow that the receipt of a call contains.
func workflowOf(t *testing.T, call events.CallCompleted) events.Workflow {
	t.Helper()
	var record struct {
		Workflow events.Workflow `json:"workflow"`
	}
	if err := json.Unmarshal(call.Record, &record); err != nil {
		t.Fatal(err)
	}
	return record.Workflow
}

// A receipt is stored in one place only, and each answer contains it.
func TestAReceiptIsStoredOnce(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	_, caller := newKey(t, a, "ada@example.com")
	call := runCall(t, caller, "k", "rm -rf /")
	before := heads(t, a)
	first, err := a.RunService(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var answered struct {
		Receipt seal.Envelope `json:"receipt"`
	}
	if err := json.Unmarshal(first.Body, &answered); err != nil || answered.Receipt.Verify == nil || answered.Receipt.Verify.URL != a.BaseURL+"/api/verify" {
		t.Fatalf("%+v, %v", answered.Receipt, err)
	}
	hash, found := answered.Receipt.Integrity.RecordHash, 0
	added := since(t, a, before)
	for _, e := range added {
		found += bytes.Count(e.Payload, []byte(hash))
		if !vault.Sealed(e) {
			continue
		}
		openings, err := a.Vault.Openings(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range openings {
			found += bytes.Count(o.Value, []byte(hash))
		}
	}
	if found != 1 {
		t.Errorf("the receipt is stored %d times", found)
	}
	r, err := a.RunService(t.Context(), call)
	if err != nil || !r.Replayed || !bytes.Equal(r.Body, first.Body) {
		t.Errorf("again: %s, %v, want %s", r.Body, err, first.Body)
	}
}

// A call that the service refuses is not counted and appends no event.
func TestARefusedCallLeavesNoTrace(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, caller := newKey(t, a, "ada@example.com")
	before := len(everything(t, a))
	for _, command := range []string{"", " ls", "ls\u00a0"} {
		_, err := a.RunService(t.Context(), quickCall(t, caller, "k", command))
		var refused *policy.Error
		if !errors.As(err, &refused) || refused.Path != "/command" {
			t.Errorf("%q: %v", command, err)
		}
	}
	if after := len(everything(t, a)); after != before {
		t.Errorf("%d events", after-before)
	}
	if _, err := a.RunService(t.Context(), quickCall(t, caller, "k", "ls")); err != nil {
		t.Errorf("the key is not free afterwards: %v", err)
	}
}

// A repeated call gets the stored answer, even if the month, the signer or the node has changed
// since.
func TestReplayIsTheStoredAnswer(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	defer clean(t, a)
	key, caller := newKey(t, a, "ada@example.com")
	first, err := a.RunService(t.Context(), runCall(t, caller, "k", "rm -rf /"))
	if err != nil {
		t.Fatal(err)
	}
	c.Add(60 * 24 * time.Hour)
	b := openApp(t, db, c)
	b.Signer, b.BaseURL = nil, "https://elsewhere.example.com"
	for name, node := range map[string]*commands.App{"same node": a, "another node, without signer": b} {
		again, err := node.Authenticate(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		r, err := node.RunService(t.Context(), runCall(t, again, "k", "rm -rf /"))
		if err != nil || !r.Replayed || !bytes.Equal(r.Body, first.Body) || r.Remaining != first.Remaining {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		_, err = node.RunService(t.Context(), runCall(t, again, "k", "rm -rf /tmp"))
		wantRefusal(t, err, ground.CodeKeyReused, "idempotency key was used with different content")
	}
	if _, err := b.RunService(t.Context(), runCall(t, caller, "", "ls")); err == nil {
		t.Error("a node without signer signs")
	}
}

// A call counts for the month in which it is appended.
func TestQuotaOfTheMonth(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	_, caller := newKey(t, a, "ada@example.com")
	for i := range accounts.FreeCallsPerMonth {
		r, err := a.RunService(t.Context(), quickCall(t, caller, "", "ls"))
		if err != nil || r.Remaining != int64(accounts.FreeCallsPerMonth-1-i) {
			t.Fatalf("call %d: %+v, %v", i+1, r, err)
		}
	}
	_, err := a.RunService(t.Context(), quickCall(t, caller, "", "ls"))
	var quota *services.QuotaExhausted
	if !errors.As(err, &quota) || !quota.ResetsAt.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("call 251: %v", err)
	}
	c.Add(11 * 24 * time.Hour)
	if r, err := a.RunService(t.Context(), quickCall(t, caller, "", "ls")); err != nil || r.Remaining != 249 {
		t.Errorf("in December: %+v, %v", r, err)
	}
}

// Nothing signed with a key is appended after the key's retirement, even under load and on a node
// that has the key in memory.
func TestNoWorkflowAfterTheRetirementOfItsKey(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	_, caller := newKey(t, a, "ada@example.com")
	var all sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range 4 {
		all.Go(func() {
			for range 20 {
				_, err := a.RunService(t.Context(), runCall(t, caller, "", "ls"))
				var p *policy.Error
				switch {
				case err == nil:
					answered.Add(1)
				case errors.As(err, &p) && p.Code == ground.CodeNoSigner:
					refused.Add(1)
				default:
					t.Error(err)
				}
				if i == 0 && answered.Load() > 10 {
					retire(t, a)
				}
			}
		})
	}
	all.Wait()
	retired, workflows := map[int16]bool{}, int64(0) // partitions whose key is retired
	for _, e := range everything(t, a) {
		switch {
		case e.Type == events.TypeSigningKeyRetired:
			retired[e.Partition] = true
		case e.KeyID != "" && retired[e.Partition]:
			t.Errorf("a signature at %d follows the retirement", e.Position)
		case e.Type == events.TypeCallCompleted && e.KeyID != "":
			workflows++
		}
	}
	if len(retired) != len(a.Ledger.Partitions()) || workflows != answered.Load() || refused.Load() == 0 {
		t.Errorf("retired %v, %d workflows for %d answers, %d refused", retired, workflows, answered.Load(), refused.Load())
	}
	if _, err := a.RunService(t.Context(), quickCall(t, caller, "", "ls")); err != nil {
		t.Errorf("what is not signed: %v", err)
	}
}

// retire retires the signer's key in each partition where it is active.
func retire(t testing.TB, a *commands.App) {
	t.Helper()
	payload, err := canon.Marshal(events.SigningKeyRetired{KeyID: a.Signer.KeyID(), Reason: "rotated"})
	if err != nil {
		t.Error(err)
		return
	}
	for _, p := range a.Ledger.Partitions() {
		ring, history, err := p.Keyring(t.Context())
		if err != nil || ring[a.Signer.KeyID()].To > 0 {
			return
		}
		_, err = a.Ledger.Append(t.Context(), ledger.Append{Tenant: history.Tenant, Events: []ledger.Pending{{
			Stream: history.Stream, Expect: history.At(), ID: a.NewID("evt_"), Type: events.TypeSigningKeyRetired,
			SchemaVersion: 1, Actor: "operator", Payload: payload}}})
		if err != nil {
			t.Error(err)
		}
	}
}

// Database connections are cut under load, and callers repeat their requests with the same key
// until they get an answer. Each answer that was given is stored once, byte for byte, and nothing
// else is stored.
func TestFaultCallsWhileBackendsAreKilled(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a, b := openApp(t, db, c), openApp(t, db, c)
	_, caller := newKey(t, a, "ada@example.com")
	p := following(t, a)
	const workers, calls = 4, 15
	var journal sync.Map // answers that were given, by key
	stop := make(chan struct{})
	var killing, working sync.WaitGroup
	var done atomic.Int64
	killing.Go(func() { db.Terminate(t, 0.2, done.Load, stop) })
	for w := range workers {
		working.Go(func() {
			for i := range calls {
				key := fmt.Sprintf("%d-%d", w, i)
				for try := 0; ; try++ {
					r, err := []*commands.App{a, b}[(w+try)%2].RunService(t.Context(), runCall(t, caller, key, "rm -rf /srv/"+key))
					if err == nil {
						journal.Store(key, r.Body)
						done.Add(1)
						break
					}
					var down *ground.Unavailable
					if !errors.As(err, &down) || try > 500 {
						t.Errorf("%s: %v", key, err)
						return
					}
				}
			}
		})
	}
	working.Wait()
	close(stop)
	killing.Wait()

	last := openApp(t, db, c)
	defer sound(t, last, p)
	journal.Range(func(key, body any) bool {
		r, err := last.RunService(t.Context(), runCall(t, caller, key.(string), "rm -rf /srv/"+key.(string)))
		if err != nil || !r.Replayed || !bytes.Equal(r.Body, body.([]byte)) {
			t.Errorf("%s: acknowledged %s, stored %s, %v", key, body, r.Body, err)
		}
		return true
	})
	count := map[string]int{}
	for _, e := range everything(t, last) {
		count[e.Type]++
	}
	if count[events.TypeCallCompleted] != workers*calls {
		t.Errorf("%v, want %d calls", count, workers*calls)
	}
}

// After the owner of a key is erased, the key stays valid, on a node that has it in its cache and
// on a new node. Its new calls can be repeated; its earlier answers are refused as erased.
func TestCallsOfAnErasedPersonsKey(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	key, caller := newKey(t, a, "ada@example.com")
	if _, err := a.RunService(t.Context(), runCall(t, caller, "before", "ls")); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.WithoutCancel(t.Context()))
	rows, err := owner.Query(t.Context(), `select tenant, key_id from subject_keys where starts_with(key_id, 'sub_')`)
	if err != nil {
		t.Fatal(err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Tenant, ID string }])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range held {
		erase(t, a, key.Tenant, key.ID)
	}
	c.Add(61 * time.Second) // longer than a decrypted data key stays in memory
	for name, node := range map[string]*commands.App{"node that knew it": a, "new node": openApp(t, db, c)} {
		again, err := node.Authenticate(t.Context(), key)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		first, err := node.RunService(t.Context(), runCall(t, again, name, "ls"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		replay, err := node.RunService(t.Context(), runCall(t, again, name, "ls"))
		if err != nil || !replay.Replayed || !bytes.Equal(replay.Body, first.Body) {
			t.Errorf("%s: %+v, %v", name, replay, err)
		}
		_, err = node.RunService(t.Context(), runCall(t, again, "before", "ls"))
		wantRefusal(t, err, ground.CodeErased, "the answer under this idempotency key was erased")
	}
	clean(t, a)
}

type said struct {
	Word string `json:"word"`
}

func (s said) Statement(id, issuedAt string) any {
	return map[string]string{"id": id, "issuedAt": issuedAt, "word": s.Word}
}

// The declaration of a service states whether and how its answers are signed. The answer of a
// service outside the catalogue is signed as declared, and it is computed only once for a call.
func TestADeclarationSaysWhatIsSigned(t *testing.T) {
	t.Parallel()
	type input struct {
		Word string `json:"word"`
	}
	computed := 0
	made := policy.Declare(policy.Service{Name: "made-up/say", PriceCents: 1, Signed: true, Statement: &policy.Statement{
		IDPrefix: "att_", PayloadType: "application/vnd.svc.made-up.v1+json",
	}}, func(in input) (said, error) { computed++; return said(in), nil })
	a := openApp(t, ledgertest.New(t), newClock())
	_, caller := newKey(t, a, "ada@example.com")
	r, err := a.RunService(t.Context(), services.Call{Service: made, Caller: caller, Body: []byte(`{"word":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	trusted := keyring{a.Signer.KeyID(): a.Signer.Public()}
	e, err := seal.Examiner{Keys: trusted}.Examine(r.Body)
	if err != nil || !e.Valid || !strings.Contains(string(r.Body), `"payloadType":"application/vnd.svc.made-up.v1+json"`) || !strings.Contains(string(r.Body), `"id":"att_`) {
		t.Errorf("%v %+v\n%s", err, e, r.Body)
	}
	if computed != 1 {
		t.Errorf("one call was computed %d times", computed)
	}
	clean(t, a)
}

type keyring map[string]ed25519.PublicKey

func (k keyring) Find(id string, _ int16, _ int64) (ed25519.PublicKey, string) {
	return k[id], "not trusted"
}
