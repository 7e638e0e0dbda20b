package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/vault"
)

// After a rotation the new key-encryption key decrypts everything and the old one nothing, and no
// event has changed. A login without the right, or a wrong old key, changes nothing.
func TestRotateKEK(t *testing.T) {
	t.Parallel()
	db, ctx := ledgertest.New(t), t.Context()
	l := fixture.Open(t, db)
	old, next := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	v := fixture.Must(vault.Open(ctx, l, old))
	var stored []ledger.Event
	for i := range 5 {
		id := fixture.Must(v.Subject(ctx, "service", fmt.Sprint("email:", i), fmt.Sprint("sub_", i)))
		eventID := fmt.Sprint("evt_", i)
		payload := fixture.Must(v.Seal(ctx, "service", eventID, id, events.KeyIssued{Plan: "free", Email: fmt.Sprint(i, "@example.com")}))
		r := fixture.Must(l.Append(ctx, ledger.Append{Tenant: "service", Events: []ledger.Pending{{Stream: fmt.Sprint("key/", i), Expect: ledger.New(), ID: eventID,
			Type: "key.issued", SchemaVersion: 1, Payload: payload}}}))
		stored = append(stored, r.Events...)
	}
	fixture.Erase(t, v, "service", "sub_4")
	if _, err := vault.RotateKEK(ctx, db.OwnerURL, old, next); err == nil || !strings.Contains(err.Error(), "stop every node first") {
		t.Errorf("beside a node: %v", err)
	}
	l.Close()
	owner := db.OwnerURL
	if ledgertest.OnCluster() { // a cluster's own sessions are connected too, and only a superuser can recognize them
		owner = db.SuperURL
	}
	stranger := fixture.Must(pgx.Connect(ctx, db.SuperURL)) // a session whose kind the owner cannot see
	if _, err := vault.RotateKEK(ctx, db.OwnerURL, old, next); err == nil || !strings.Contains(err.Error(), "stop every node first") {
		t.Errorf("beside a session of another login: %v", err)
	}
	_ = stranger.Close(ctx)
	if _, err := vault.RotateKEK(ctx, owner, bytes.Repeat([]byte{9}, 32), next); !errors.Is(err, vault.ErrWrongKEK) || !strings.Contains(err.Error(), "nothing has changed") {
		t.Errorf("a wrong old key: %v", err)
	}
	if _, err := vault.RotateKEK(ctx, "postgres://owner:a/b@canary@db/", old, next); err == nil || strings.Contains(err.Error(), "canary") {
		t.Fatalf("a broken URL with a password: %v", err)
	}
	if _, err := vault.RotateKEK(ctx, db.URL, old, next); err == nil {
		t.Error("the service's login wraps keys")
	}
	l = fixture.Open(t, db)
	fixture.Must(vault.Open(ctx, l, old))
	l.Close()
	if n, err := vault.RotateKEK(ctx, owner, old, next); err != nil || n != 5 { // four data keys and the key of Reference
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := vault.RotateKEK(ctx, owner, old, next); err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
	l = fixture.Open(t, db)
	if _, err := vault.Open(ctx, l, old); !errors.Is(err, vault.ErrWrongKEK) {
		t.Errorf("the old key opens the vault: %v", err)
	}
	fresh := fixture.Must(vault.Open(ctx, l, next))
	for i, e := range stored {
		var p events.KeyIssued
		if err := fresh.Open(ctx, e, &p); i < 4 && (err != nil || p.Email != fmt.Sprint(i, "@example.com")) || i == 4 && !errors.Is(err, vault.ErrErased) {
			t.Errorf("%d: %+v, %v", i, p, err)
		}
	}
	if again := fixture.Must(fresh.Subject(ctx, "service", "email:0", "sub_new")); again != "sub_0" {
		t.Errorf("a subject has another name: %s", again)
	}
	report := fixture.Must(audit.Database(ctx, db.URL, audit.Options{KEK: next}))
	if len(report.Faults) > 0 {
		t.Errorf("%v", report.Faults)
	}
}
