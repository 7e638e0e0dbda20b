package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Types of events about x402 payments and their refunds, in the tenant service. All except
// identifier.reserved are in the stream payment/<payment id>.
const (
	TypePaymentClaimed  = "payment.claimed"
	TypePaymentSettled  = "payment.settled"
	TypePaymentRefused  = "payment.refused"
	TypePaymentUnknown  = "payment.unknown"
	TypeRefundRequested = "refund.requested"
	TypeRefundApproved  = "refund.approved"
	TypeRefundSent      = "refund.sent"

	TypeIdentifierReserved = "identifier.reserved"
)

var payments = []kind{
	{name: TypePaymentClaimed, stored: reflect.TypeFor[PaymentClaimed](), shown: in("payments"), golden: []string{
		`{"amount":"250000","asset":"0xa","engineVersion":"1.0.0","headBlock":7,"identifier":"0123456789abcdef","mode":"facilitator","network":"eip155:84532","nonce":"0xd","operation":"options_price","outputHash":"bb","payTo":"0xc","payer":"0xb","payload":"{\"x402Version\":2}","paymentId":"pay_1","prepared":[{"actor":"0xb","id":"evt_1","joins":true,"keyId":"k","payload":{"a":1},"schemaVersion":1,"stream":"payment/pay_1","type":"call.completed"}],"priceCents":25,"requestHash":"aa","signature":"0xe","subject":"sub_1","validAfter":"0","validBefore":"1800000300"}`,
		`{"amount":"","asset":"","mode":"","network":"","nonce":"","operation":"","payTo":"","payer":"","payload":"","paymentId":"pay_1","prepared":[],"priceCents":0,"requestHash":"","signature":"","subject":"sub_1","validAfter":"","validBefore":""}`,
	}},
	{name: TypePaymentSettled, stored: reflect.TypeFor[PaymentSettled](), shown: in("payments"), golden: []string{
		`{"evidence":"chain","mode":"facilitator","payer":"0xb","paymentId":"pay_1","transaction":"0xf"}`,
		`{"evidence":"facilitator","extensions":"e","mode":"facilitator","payer":"0xb","paymentId":"pay_1","transaction":"0xf"}`,
	}},
	{name: TypePaymentRefused, stored: reflect.TypeFor[PaymentRefused](), shown: in("payments"), golden: []string{
		`{"mode":"facilitator","paymentId":"pay_1","reason":"insufficient_funds"}`,
		`{"evidence":"operator","mode":"facilitator","paymentId":"pay_1","reason":"insufficient_funds"}`,
	}},
	{name: TypePaymentUnknown, stored: reflect.TypeFor[PaymentUnknown](), shown: in("payments"), golden: []string{
		`{"mode":"facilitator","paymentId":"pay_1","reason":"settlement_pending"}`,
		`{"mode":"facilitator","paymentId":"pay_1","reason":"settlement_pending","transaction":"0xf"}`,
	}},
	{name: TypeIdentifierReserved, stored: reflect.TypeFor[IdentifierReserved](), shown: nowhere, golden: []string{
		`{"paymentId":"pay_1"}`,
		`{"contentHash":"aa","paymentId":"pay_1"}`,
	}},
	{name: TypeRefundRequested, stored: reflect.TypeFor[RefundRequested](), shown: in("payments"), golden: []string{
		`{"amount":"250000","asset":"0xa","engineVersion":"1.0.0","network":"eip155:84532","paymentId":"pay_1","recomputedOutputHash":"bb","recordedOutputHash":"aa","to":"0xb"}`,
		`{"amount":"250000","asset":"0xa","cause":"not_downloaded","engineVersion":"1.0.0","network":"eip155:84532","paymentId":"pay_1","recordedOutputHash":"aa","to":"0xb"}`,
	}},
	{name: TypeRefundApproved, stored: reflect.TypeFor[RefundApproved](), shown: in("payments"), golden: []string{
		`{"paymentId":"pay_1","reason":"r"}`,
	}},
	{name: TypeRefundSent, stored: reflect.TypeFor[RefundSent](), shown: in("payments"), golden: []string{
		`{"paymentId":"pay_1","transaction":"0xf"}`,
	}},
}

// A payer's address is personal data like an e-mail address. Everything of a payment that is also
// on the chain identifies the payer: address, nonce, signature, transaction. Such members are
// encrypted with the payer's data key, whose id is also the actor.

// PaymentClaimed is payment.claimed, schema version 1, the first event of its stream. It binds the
// payment to one request. The event contains everything that the answer depends on, so that only
// the settlement is missing: the process that learns of the settlement appends Prepared unchanged.
type PaymentClaimed struct {
	PaymentID   string `json:"paymentId"`
	Operation   string `json:"operation"`   // id of the operation
	RequestHash string `json:"requestHash"` // hash of the request in hex
	PriceCents  int    `json:"priceCents"`
	Mode        string `json:"mode"` // "dev" or "facilitator"

	// The following members are signed by the payer, each in one canonical spelling.
	Network     string `json:"network"`
	Asset       string `json:"asset"`
	Payer       Text   `json:"payer" personal:"true"`
	PayTo       string `json:"payTo"`
	Amount      string `json:"amount"`
	Nonce       Text   `json:"nonce" personal:"true"`
	ValidAfter  string `json:"validAfter"`  // Unix seconds
	ValidBefore string `json:"validBefore"` // Unix seconds
	Signature   Text   `json:"signature" personal:"true"`

	Subject    string `json:"subject"`                              // id of the payer's data key, sub_…
	Identifier Text   `json:"identifier,omitempty" personal:"true"` // the buyer's identifier, from the extension payment-identifier
	Payload    Text   `json:"payload" personal:"true"`              // the PaymentPayload as received, JSON
	HeadBlock  int64  `json:"headBlock,omitzero"`                   // number of the chain's newest block, if the chain was queried

	OutputHash    string          `json:"outputHash,omitempty"`
	EngineVersion string          `json:"engineVersion,omitempty"`
	Prepared      []PreparedEvent `json:"prepared"`
}

// PreparedEvent is an event to append when the payment has settled. Its personal members are
// already encrypted.
type PreparedEvent struct {
	Stream        string         `json:"stream"`
	Joins         bool           `json:"joins,omitzero"` // the stream may have events; otherwise this is its first event
	ID            string         `json:"id"`             // evt_…
	Type          string         `json:"type"`
	SchemaVersion int            `json:"schemaVersion"`
	Actor         string         `json:"actor"`
	KeyID         string         `json:"keyId,omitempty"`
	Payload       jsontext.Value `json:"payload"`
}

// PaymentSettled is payment.settled, schema version 1: the payment has settled. The prepared
// events of the claim follow in the same append.
type PaymentSettled struct {
	PaymentID   string `json:"paymentId"`
	Transaction Text   `json:"transaction" personal:"true"`
	Payer       Text   `json:"payer" personal:"true"`
	Mode        string `json:"mode"`
	Evidence    string `json:"evidence"`             // "facilitator", "chain", "dev" or "operator"
	Extensions  string `json:"extensions,omitempty"` // header EXTENSION-RESPONSES of the facilitator
}

// PaymentRefused is payment.refused, schema version 1: the payment has not settled and will not.
// The prepared events of the claim are never appended.
type PaymentRefused struct {
	PaymentID string `json:"paymentId"`
	Reason    string `json:"reason"`
	Mode      string `json:"mode"`
	Evidence  string `json:"evidence,omitempty"` // "operator" if an operator has refused it
}

// PaymentUnknown is payment.unknown, schema version 1: it is unknown whether an attempt to settle
// has succeeded. There is one for the first such attempt, and one for each later attempt that
// named another transaction. A payment.settled or payment.refused follows.
type PaymentUnknown struct {
	PaymentID   string `json:"paymentId"`
	Reason      string `json:"reason"`
	Mode        string `json:"mode"`
	Transaction Text   `json:"transaction,omitempty" personal:"true"` // transaction that may have settled the payment
}

// CauseNotDownloaded is the cause of a refund of a purchase whose file was never downloaded.
const CauseNotDownloaded = "not_downloaded"

// CauseOperator is the cause of a refund that an operator has requested.
const CauseOperator = "operator"

// RefundRequested is refund.requested, schema version 1, at most once per payment. Its reason is
// one of three: the documented inputs of a settled call do not reproduce its output, nothing of a
// purchase was downloaded, or an operator refunds a settled payment.
type RefundRequested struct {
	PaymentID            string `json:"paymentId"`
	Cause                string `json:"cause,omitempty"` // CauseNotDownloaded or CauseOperator; empty if the output was not reproduced
	RecordedOutputHash   string `json:"recordedOutputHash"`
	RecomputedOutputHash string `json:"recomputedOutputHash,omitempty"` // empty if that engine version is no longer available
	EngineVersion        string `json:"engineVersion"`                  // engine version in the record
	Amount               string `json:"amount"`
	Asset                string `json:"asset"`
	Network              string `json:"network"`
	To                   Text   `json:"to" personal:"true"`
}

// RefundApproved is refund.approved, schema version 1, at most once per payment: the operator
// reserves the amount.
type RefundApproved struct {
	PaymentID string `json:"paymentId"`
	Reason    string `json:"reason,omitempty"`
}

// RefundSent is refund.sent, schema version 1, at most once per payment: the operator has paid the
// amount back, outside of this program.
type RefundSent struct {
	PaymentID   string `json:"paymentId"`
	Transaction Text   `json:"transaction" personal:"true"`
}

// IdentifierReserved is identifier.reserved, schema version 1: a buyer's identifier for a request
// belongs to this payment.
//
// For an identifier of the extension payment-identifier it is the only event of the stream
// payment_identifier/<digits of its key>. It exists only if payment and identifier are in different
// partitions; otherwise the claim's idempotency key is enough.
//
// For an Idempotency-Key it is in the stream payment_key/<reference>, whose last event counts:
// after a payment was refused, the next payment can take the key.
type IdentifierReserved struct {
	PaymentID   string `json:"paymentId"`
	ContentHash string `json:"contentHash,omitempty"` // hash of the request in hex; only for an Idempotency-Key
}
