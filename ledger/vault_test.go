package ledger_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
)

type person struct {
	Plan  string `json:"plan"`
	Email any    `json:"email" personal:"true"`
	Note  any    `json:"note,omitempty" personal:"true"`
}

func TestVaultSealsAndOpens(t *testing.T) {
	db := ledgertest.New(t)
	l := open(t, db)
	ctx := t.Context()
	kek := bytes.Repeat([]byte{7}, 32)
	v, err := l.OpenVault(ctx, kek)
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
	payload, err := v.Seal(ctx, "service", "evt_1", id, person{Plan: "free", Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(payload, []byte("ada@")) || !bytes.Contains(payload, []byte(`"$committed"`)) {
		t.Errorf("the payload shows the person: %s", payload)
	}
	result, err := l.Append(ctx, ledger.Append{Tenant: "service", Drafts: []ledger.Draft{{
		Stream: "key/1", Expect: ledger.New(), ID: "evt_1", Type: "key.issued", SchemaVersion: 1, Payload: payload}}})
	if err != nil {
		t.Fatal(err)
	}
	e := result.Events[0]
	other, err := l.OpenVault(ctx, kek) // another node
	if err != nil {
		t.Fatal(err)
	}
	var opened person
	if err := other.Open(ctx, e, &opened); err != nil || opened.Email != "ada@example.com" || opened.Plan != "free" {
		t.Errorf("opened %+v, %v", opened, err)
	}
	moved := e
	moved.ID = "evt_2"
	if err := v.Open(ctx, moved, &opened); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a box of another event: %v", err)
	}
	if _, err := l.OpenVault(ctx, bytes.Repeat([]byte{8}, 32)); !errors.Is(err, ledger.ErrWrongKEK) {
		t.Errorf("another KEK: %v", err)
	}
	// Erasure comes with its own command; what it does to the row is enough here.
	owner := must(pgx.Connect(ctx, db.OwnerURL))
	defer owner.Close(ctx)
	must(owner.Exec(ctx, `update subject_keys set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = 1 where key_id = $1`, id))
	fresh, err := l.OpenVault(ctx, kek)
	if err != nil {
		t.Fatal(err)
	}
	var erased person
	if err := fresh.Open(ctx, e, &erased); !errors.Is(err, ledger.ErrErased) || erased.Plan != "free" {
		t.Errorf("after erasure: %+v, %v", erased, err)
	}
	clean(t, l, 1) // the chain still verifies
}
