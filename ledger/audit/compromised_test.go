package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// signedBy appends an event with a record that signer has signed, and returns its position.
func signedBy(t *testing.T, l *ledger.Ledger, signer *seal.Signer, id string) int64 {
	t.Helper()
	envelope := fixture.Must(signer.Sign("application/vnd.svc.test+json", map[string]any{"id": id}))
	result, err := l.Append(t.Context(), ledger.Append{Tenant: "org_1", Events: []ledger.Pending{{Stream: "signed", Expect: ledger.Any(1000), ID: "evt_" + id,
		Type: "test.signed", SchemaVersion: 1, Actor: "test", KeyID: signer.KeyID(),
		Payload: fixture.Must(canon.Marshal(map[string]any{"record": envelope.Record, "integrity": envelope.Integrity}))}}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Events[0].Position
}

// Signatures of a compromised key do not count from the declared position on, and count before it.
// That is not tampering: the ledger verifies, the report names the records without a valid
// signature, and the service continues.
func TestACompromisedKey(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, folder := fixture.OnePartition(t), t.TempDir()
	l := fixture.Open(t, db)
	record, next := fixture.Must(seal.NewSigner(bytes.Repeat([]byte{1}, 32))), fixture.Must(seal.NewSigner(bytes.Repeat([]byte{2}, 32)))
	nextCheckpoint := fixture.Must(seal.NewSigner(bytes.Repeat([]byte{3}, 32)))
	if err := l.Activate(ctx, record, "evt_key"); err != nil {
		t.Fatal(err)
	}
	fixture.Keep(t, l, folder)
	var positions []int64
	for i := range 6 {
		positions = append(positions, signedBy(t, l, record, fmt.Sprint("old_", i)))
		fixture.Covered(t, l, positions[i])
	}
	from := positions[3]
	rotate := func(purpose string, old, with *seal.Signer, from int64, id string) error {
		return l.Rotate(ctx, ledger.Rotation{Purpose: purpose, From: old, To: with, CompromisedFrom: []int64{from}, Actor: "operator",
			EventIDs: [2]string{"evt_" + id + "_a", "evt_" + id + "_r"}})
	}
	for _, wrong := range []int64{0, -1, positions[5] + 1000} {
		if err := rotate(ledger.PurposeRecord, record, next, wrong, "wrong"); err == nil || !strings.Contains(err.Error(), "compromised from") {
			t.Errorf("compromised from %d: %v", wrong, err)
		}
	}
	if err := rotate(ledger.PurposeRecord, record, next, from, "record"); err != nil {
		t.Fatal(err)
	}
	if err := rotate(ledger.PurposeCheckpoint, fixture.CheckpointSigner(t), nextCheckpoint, from, "heads"); err != nil {
		t.Fatal(err)
	}
	signedBy(t, l, next, "new")

	ring, _, err := l.Partition(0).Keyring(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for position, want := range map[int64]string{from - 1: "", from: "the key is compromised", 0: "the key is compromised"} {
		if _, why := ring.Find(record.KeyID(), 0, position); why != want {
			t.Errorf("at %d: %q, want %q", position, why, want)
		}
	}
	report, err := audit.Ledger(context.WithoutCancel(ctx), l, nil)
	if err != nil || len(report.Faults) > 0 {
		t.Fatalf("%v, %v", report.Faults, err)
	}
	gaps := strings.Join(report.Gaps, "\n")
	if want := fmt.Sprintf("the records of 3 events from position %d on, which a compromised key signed", from); !strings.Contains(gaps, want) {
		t.Errorf("want %q in\n%s", want, gaps)
	}
	if !strings.Contains(gaps, "checkpoints would prove, because a compromised key signed them") {
		t.Error(gaps)
	}
	if check := audit.SelfCheck(ctx, l, nil); check.Failed() || check.False != "" {
		t.Errorf("the service's own verification: %+v", check)
	}
	l.Close()
	// A node starts with the new checkpoint key, which has signed no note yet.
	again := fixture.Open(t, db)
	if found, _, err := keeper.CheckOutside(ctx, again, keeper.Options{Signer: nextCheckpoint, Folder: checkpoint.Folder{Path: folder}}); err != nil || !found {
		t.Errorf("the next start: found %v, %v", found, err)
	}
	signedBy(t, again, next, "newer")
}
