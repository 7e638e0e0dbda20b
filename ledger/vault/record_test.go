package vault_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/canon"
)

// A record with personal members verifies in its stored form, even after an erasure, and with its
// own signature once the members are decrypted.
func TestVaultSealsInsideASignedRecord(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	ctx := t.Context()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Activate(ctx, signer, "evt_0"); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(ctx, l, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Subject(ctx, "org_1", "agent:ada", "sub_1")
	if err != nil {
		t.Fatal(err)
	}
	record := jsontext.Value(`{"decision":"allow","decisionId":"1","subject":{"agentId":"ada","runId":"r1"}}`)
	envelope, err := signer.Sign("application/vnd.svc.decision.v1+json", record)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := v.SealRecord(ctx, "org_1", "evt_1", id, signer,
		map[string]jsontext.Value{"record": envelope.Record, "integrity": fixture.Must(canon.Marshal(envelope.Integrity))}, "/record/subject/agentId", "/record/subject/purpose", "/toolArguments")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(payload, []byte(`"ada"`)) || bytes.Count(payload, []byte(`"$committed"`)) != 1 || !bytes.Contains(payload, []byte(`"runId":"r1"`)) {
		t.Errorf("payload %s", payload)
	}
	pending := ledger.Pending{Stream: "decision/1", Expect: ledger.New(), ID: "evt_1", Type: "decision.recorded", SchemaVersion: 1, KeyID: signer.KeyID(), Payload: payload, Agent: id}
	result, err := l.Append(ctx, ledger.Append{Tenant: "org_1", Events: []ledger.Pending{pending}})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Clean(t, l, 2)
	var opened events.DecisionRecorded
	if err := v.Open(ctx, result.Events[0], &opened); err != nil || string(opened.Record) != string(record) {
		t.Fatalf("opened %s, %v", opened.Record, err)
	}
	keys, _, err := l.Partition(0).Keyring(ctx)
	if err != nil || !seal.Good(seal.Envelope{Record: opened.Record, Integrity: opened.Integrity}.Examine(keys)) {
		t.Errorf("the opened record does not verify: %v", err)
	}

	fixture.Erase(t, v, "org_1", id)
	fresh, err := vault.Open(ctx, l, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Open(ctx, result.Events[0], &opened); !errors.Is(err, vault.ErrErased) || !strings.Contains(string(opened.Record), "$committed") {
		t.Errorf("after erasure %s, %v", opened.Record, err)
	}
	fixture.Clean(t, l, 3)

	// The audit finds a record that was changed in the database without the signing key.
	pending.Stream, pending.Type, pending.ID, pending.Agent, pending.Payload = "other/2", "test.happened", "evt_2", "", bytes.Replace(payload, []byte(`"allow"`), []byte(`"deny0"`), 1)
	fixture.Must(l.Append(ctx, ledger.Append{Tenant: "org_1", Events: []ledger.Pending{pending}}))
	report, err := audit.Ledger(ctx, l, nil)
	if err != nil || len(report.Faults) != 1 || report.Faults[0].Position != 4 || report.Faults[0].Column != "payload" {
		t.Errorf("a changed record: %v %v", report.Faults, err)
	}
}
