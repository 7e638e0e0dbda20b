package events_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// A change of any of these bytes is a new schema version.
func TestGoldenBytesOfADecisionsStream(t *testing.T) {
	const integrity = `{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""}`
	signed := seal.Integrity{RecordHash: "h", KeyID: "k", Signature: "s"}
	record := jsontext.Value(`{"schema":"x"}`)
	for _, g := range []struct {
		stored any
		bytes  string
	}{
		{events.DecisionRecorded{Record: record, Integrity: signed, VerifyURL: "u", Member: "cus_1"},
			`{"integrity":` + integrity + `,"member":"cus_1","record":{"schema":"x"},"verifyUrl":"u"}`},
		{events.DecisionRecorded{Record: record, Integrity: signed, VerifyURL: "u", Member: "cus_1", Asserted: jsontext.Value(`{"requireHttps":true}`)},
			`{"asserted":{"requireHttps":true},"integrity":` + integrity + `,"member":"cus_1","record":{"schema":"x"},"verifyUrl":"u"}`},
		{events.DecisionRecorded{Record: record, Integrity: signed, VerifyURL: "u", Member: "cus_1", ToolArguments: jsontext.Value(`{"path":"/x"}`)},
			`{"integrity":` + integrity + `,"member":"cus_1","record":{"schema":"x"},"toolArguments":{"path":"/x"},"verifyUrl":"u"}`},
		{events.ApprovalRecorded{Record: record, Integrity: signed, VerifyURL: "u"},
			`{"integrity":` + integrity + `,"record":{"schema":"x"},"verifyUrl":"u"}`},
		{events.ReceiptRecorded{Record: record, Integrity: signed, VerifyURL: "u", Member: "cus_1"},
			`{"integrity":` + integrity + `,"member":"cus_1","record":{"schema":"x"},"verifyUrl":"u"}`},
	} {
		if got, err := canon.Marshal(g.stored); err != nil || string(got) != g.bytes {
			t.Errorf("%T\ngot  %s, %v\nwant %s", g.stored, got, err, g.bytes)
		}
	}
}
