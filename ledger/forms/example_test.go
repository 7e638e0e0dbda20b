package forms_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// denied returns a decision that denied a request of agent-7.
func denied() forms.Event {
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign("application/vnd.svc.decision.v1+json", map[string]any{"decisionId": "asd_1", "decision": "deny", "subject": map[string]any{"agentId": "agent-7"}})
	if err != nil {
		panic(err)
	}
	payload, err := canon.Marshal(map[string]any{"record": signed.Record, "integrity": signed.Integrity})
	if err != nil {
		panic(err)
	}
	e, err := forms.NewEvent("ledger.example.com/0", bundle.Shows{Event: ledger.Event{ID: "evt_1", Position: 1, Tenant: "org_1", Sequence: 1, Stream: "decision/asd_1",
		Type: "decision.recorded", OccurredUS: 1_795_186_800_000_000, Actor: "cus_1", Payload: payload}})
	if err != nil {
		panic(err)
	}
	return e
}

func ExampleOCSF() {
	line := forms.OCSF(denied())
	fmt.Println(line["class_name"], line["activity_name"], line["disposition"], line["severity"], line["actor"])
	// Output: API Activity Decide Blocked Low map[app_name:agent-7 app_uid:agent-7 user:map[uid:cus_1]]
}

func ExampleNewCloudEvent() {
	e := forms.NewCloudEvent("ledger.example.com/0", denied().Event, nil)
	text, _ := json.Marshal(e)
	fmt.Println(string(text))
	// Output: {"specversion":"1.0","id":"evt_1","source":"ledger.example.com/0","type":"countersign.decision.recorded","subject":"decision/asd_1","time":"2026-11-20T15:00:00.000Z","datacontenttype":"application/json","partitionkey":"org_1","position":"1"}
}

func ExampleDSSE() {
	envelope, signed := forms.DSSE(denied())
	fmt.Println(signed, envelope.PayloadType, envelope.Signatures[0].KeyID)
	// Output: true application/vnd.svc.decision.v1+json 139e3940e64b5491
}

func ExampleTLogProof() {
	fmt.Print(string(forms.TLogProof(1, []tree.Hash{tree.Leaf([32]byte{1})}, []byte("ledger.example.com/0\n2\n…\n"))))
	// Output:
	// c2sp.org/tlog-proof@v1
	// index 0
	// G3xkOwScEaT7a2WCLkpeKj2lQiM2bF9FPPN2U2+b9Co=
	//
	// ledger.example.com/0
	// 2
	// …
}

func ExampleTLogPolicy() {
	public := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	fmt.Print(string(forms.TLogPolicy("ledger.example.com/0", []ed25519.PublicKey{public})))
	// Output:
	// log ledger.example.com/0+aa0ddcdc+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop
	// quorum none
}
