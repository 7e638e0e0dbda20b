package vault_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/canon"
)

func TestVaultSealsAndOpens(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := fixture.Open(t, db)
	ctx := t.Context()
	kek := bytes.Repeat([]byte{7}, 32)
	v, err := vault.Open(ctx, l, kek)
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Subject(ctx, "service", "email:ada@example.com", "sub_1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Subject(ctx, "service", "email:ada@example.com", "sub_2"); err != nil || again != id {
		t.Errorf("the same person has a second key: %s, %v", again, err)
	}
	payload, err := v.Seal(ctx, "service", "evt_1", id, events.KeyIssued{Plan: "free", Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(payload, []byte("ada@")) || !bytes.Contains(payload, []byte(`"$committed"`)) {
		t.Errorf("the payload shows the person: %s", payload)
	}
	result, err := l.Append(ctx, ledger.Append{Tenant: "service", Events: []ledger.Pending{{
		Stream: "key/1", Expect: ledger.New(), ID: "evt_1", Type: "key.issued", SchemaVersion: 1, Payload: payload}}})
	if err != nil {
		t.Fatal(err)
	}
	e := result.Events[0]
	other, err := vault.Open(ctx, l, kek) // another node
	if err != nil {
		t.Fatal(err)
	}
	var opened events.KeyIssued
	if err := other.Open(ctx, e, &opened); err != nil || opened.Email != "ada@example.com" || opened.Plan != "free" {
		t.Errorf("opened %+v, %v", opened, err)
	}
	moved := e
	moved.ID = "evt_2"
	if err := v.Open(ctx, moved, &opened); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a box of another event: %v", err)
	}
	if _, err := vault.Open(ctx, l, bytes.Repeat([]byte{8}, 32)); !errors.Is(err, vault.ErrWrongKEK) {
		t.Errorf("another KEK: %v", err)
	}
	fixture.Erase(t, v, "service", id)
	fresh, err := vault.Open(ctx, l, kek)
	if err != nil {
		t.Fatal(err)
	}
	var erased events.KeyIssued
	if err := fresh.Open(ctx, e, &erased); !errors.Is(err, vault.ErrErased) || erased.Plan != "free" {
		t.Errorf("after erasure: %+v, %v", erased, err)
	}
	fixture.Clean(t, l, 2) // the chain still verifies
}

// If a subject's data key is destroyed while Subject looks for it, Subject creates a new one.
func TestADataKeyThatIsDestroyedMeanwhileIsReplaced(t *testing.T) {
	t.Parallel()
	ledgertest.Plain(t) // Citus allows no trigger on a distributed table
	db, ctx := ledgertest.New(t), t.Context()
	v := fixture.Must(vault.Open(ctx, fixture.Open(t, db), bytes.Repeat([]byte{7}, 32)))
	first := fixture.Must(v.Subject(ctx, "service", "email:ada@example.com", "sub_1"))
	super := fixture.Must(pgx.Connect(ctx, db.SuperURL))
	defer super.Close(context.WithoutCancel(ctx))
	// The trigger runs after the statement that finds the first key and inserts nothing.
	fixture.Must(super.Exec(ctx, `create function destroy() returns trigger language plpgsql security definer as $$ begin
			update public.subject_keys set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = 1 where key_id = 'sub_1' and destroyed_us is null;
			return null; end $$;
		create trigger destroy after insert on subject_keys for each statement execute function destroy()`))
	if second, err := v.Subject(ctx, "service", "email:ada@example.com", "sub_2"); err != nil || first != "sub_1" || second != "sub_2" {
		t.Errorf("first %q, second %q, %v", first, second, err)
	}
}

// Sealing a body of a megabyte needs memory for only a few copies, because no copy is parsed
// again. A body with the greatest depth can be sealed too.
func TestSealingLargeAndDeepBodies(t *testing.T) {
	db := ledgertest.New(t)
	v, err := vault.Open(t.Context(), fixture.Open(t, db), make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Subject(t.Context(), "service", "email:ada@example.com", "sub_1")
	if err != nil {
		t.Fatal(err)
	}
	seal := func(body string) (ledger.Event, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		payload, err := v.Seal(t.Context(), "service", "evt_1", id, events.CallCompleted{Service: "x", Request: canon.Value(body), Answer: canon.Value(`{}`)})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Event{Tenant: "service", ID: "evt_1", Type: events.TypeCallCompleted, SchemaVersion: 1, Payload: payload}, after.TotalAlloc - before.TotalAlloc
	}
	for _, body := range []string{
		`[` + strings.Repeat(`{"a":1,"b":"x"},`, 1<<16) + `null]`,
		strings.Repeat("[", canon.MaxDepth) + strings.Repeat("]", canon.MaxDepth),
	} {
		e, asked := seal(body)
		for range 3 { // the first uses allocate the tables of the packer
			_, again := seal(body)
			asked = min(asked, again)
		}
		if most := uint64(8*len(body) + 1<<20); asked > most {
			t.Errorf("sealing a body of %d octets asked for %d of memory, want at most %d", len(body), asked, most)
		}
		var opened events.CallCompleted
		if err := v.Open(t.Context(), e, &opened); err != nil {
			t.Fatal(err)
		}
		if again, err := canon.Marshal(opened.Request); err != nil || string(again) != body {
			t.Errorf("a body of %d octets comes back as %.80s, %v", len(body), again, err)
		}
	}
}

// The service's role can create data keys. It can destroy one only together with the event that
// records the erasure.
func TestTheApplicationDestroysNoKeyWithoutAnEvent(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := fixture.Open(t, db)
	v, err := vault.Open(t.Context(), l, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	id := fixture.Must(v.Subject(t.Context(), "org_1", "agent:ada", "sub_1"))
	if found := fixture.Must(v.Find(t.Context(), "org_1", "agent:ada")); found != id {
		t.Errorf("found %q", found)
	}
	conn := fixture.Must(pgx.Connect(t.Context(), db.URL))
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{
		`update subject_keys set wrapped_key = '' where key_id = 'sub_1'`,
		`update subject_keys set destroyed_us = 1 where key_id = 'sub_1'`, `delete from subject_keys`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err == nil {
			t.Errorf("the application may: %s", statement)
		}
	}
	// Without such an event the function does nothing.
	fixture.Must(l.Append(t.Context(), fixture.One("s", ledger.New(), "a")))
	fixture.Must(conn.Exec(t.Context(), `select erase_subject(0::smallint, 1)`))
	if found := fixture.Must(v.Find(t.Context(), "org_1", "agent:ada")); found != id {
		t.Error("the key is gone without an event")
	}
	if _, err := v.Erase(t.Context(), ledger.ServiceTenant, "subject_ref", ledger.Pending{ID: "evt_x", Payload: []byte(`{}`)}); err == nil {
		t.Error("the key that names subjects was erased")
	}
	fixture.Erase(t, v, "org_1", id)
	if found := fixture.Must(v.Find(t.Context(), "org_1", "agent:ada")); found != "" {
		t.Errorf("after erasure: %q", found)
	}
	fixture.Clean(t, l, 2)
}
