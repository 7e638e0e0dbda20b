package events_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// A change of any of these bytes is a new schema version.
func TestGoldenBytesOfPayments(t *testing.T) {
	for _, g := range []struct {
		eventType string
		stored    any
		bytes     string
	}{
		{events.TypePaymentClaimed, events.PaymentClaimed{PaymentID: "pay_1", Operation: "options_price", RequestHash: "aa", PriceCents: 25, Mode: "facilitator",
			Network: "eip155:84532", Asset: "0xa", Payer: "0xb", PayTo: "0xc", Amount: "250000", Nonce: "0xd", ValidAfter: "0", ValidBefore: "1800000300", Signature: "0xe",
			Subject: "sub_1", Identifier: "0123456789abcdef", Payload: `{"x402Version":2}`, HeadBlock: 7, OutputHash: "bb", EngineVersion: "1.0.0",
			Prepared: []events.PreparedEvent{{Stream: "payment/pay_1", Joins: true, ID: "evt_1", Type: "call.completed", SchemaVersion: 1, Actor: "0xb", KeyID: "k", Payload: jsontext.Value(`{"a":1}`)}}},
			`{"amount":"250000","asset":"0xa","engineVersion":"1.0.0","headBlock":7,"identifier":"0123456789abcdef","mode":"facilitator","network":"eip155:84532","nonce":"0xd","operation":"options_price","outputHash":"bb","payTo":"0xc","payer":"0xb","payload":"{\"x402Version\":2}","paymentId":"pay_1","prepared":[{"actor":"0xb","id":"evt_1","joins":true,"keyId":"k","payload":{"a":1},"schemaVersion":1,"stream":"payment/pay_1","type":"call.completed"}],"priceCents":25,"requestHash":"aa","signature":"0xe","subject":"sub_1","validAfter":"0","validBefore":"1800000300"}`},
		{events.TypePaymentClaimed, events.PaymentClaimed{PaymentID: "pay_1", Subject: "sub_1", Prepared: []events.PreparedEvent{}},
			`{"amount":"","asset":"","mode":"","network":"","nonce":"","operation":"","payTo":"","payer":"","payload":"","paymentId":"pay_1","prepared":[],"priceCents":0,"requestHash":"","signature":"","subject":"sub_1","validAfter":"","validBefore":""}`},
		{events.TypePaymentSettled, events.PaymentSettled{PaymentID: "pay_1", Transaction: "0xf", Payer: "0xb", Mode: "facilitator", Evidence: "chain"},
			`{"evidence":"chain","mode":"facilitator","payer":"0xb","paymentId":"pay_1","transaction":"0xf"}`},
		{events.TypePaymentRefused, events.PaymentRefused{PaymentID: "pay_1", Reason: "insufficient_funds", Mode: "facilitator"},
			`{"mode":"facilitator","paymentId":"pay_1","reason":"insufficient_funds"}`},
		{events.TypePaymentUnknown, events.PaymentUnknown{PaymentID: "pay_1", Reason: "settlement_pending", Mode: "facilitator"},
			`{"mode":"facilitator","paymentId":"pay_1","reason":"settlement_pending"}`},
		{events.TypeIdentifierReserved, events.IdentifierReserved{PaymentID: "pay_1"}, `{"paymentId":"pay_1"}`},
		{events.TypeRefundRequested, events.RefundRequested{PaymentID: "pay_1", RecordedOutputHash: "aa", RecomputedOutputHash: "bb", EngineVersion: "1.0.0",
			Amount: "250000", Asset: "0xa", Network: "eip155:84532", To: "0xb"},
			`{"amount":"250000","asset":"0xa","engineVersion":"1.0.0","network":"eip155:84532","paymentId":"pay_1","recomputedOutputHash":"bb","recordedOutputHash":"aa","to":"0xb"}`},
		{events.TypeRefundApproved, events.RefundApproved{PaymentID: "pay_1", Reason: "r"}, `{"paymentId":"pay_1","reason":"r"}`},
		{events.TypeRefundSent, events.RefundSent{PaymentID: "pay_1", Transaction: "0xf"}, `{"paymentId":"pay_1","transaction":"0xf"}`},
	} {
		if got, err := canon.Marshal(g.stored); err != nil || string(got) != g.bytes {
			t.Errorf("%s\ngot  %s, %v\nwant %s", g.eventType, got, err, g.bytes)
		}
		if !slices.Contains(events.Types, g.eventType) {
			t.Errorf("%s is not among the types", g.eventType)
		}
	}
}
