package commands

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Payment is an x402 payment as its buyer signed it: an authorization to transfer
// Amount units of Asset from Payer to PayTo, once, within a window of time. What
// is signed names no request: only the claim in the ledger binds it to one.
type Payment struct {
	ID          string // pay_ and 32 hex digits, from network, asset, payer and nonce
	Signature   string // 0x and hex, as sent
	Network     string // eip155:…
	Asset       string // address of the token
	Payer       string
	PayTo       string
	Amount      string // decimal, in the asset's smallest unit
	Nonce       string // 0x and 64 hex digits
	ValidAfter  int64  // Unix seconds
	ValidBefore int64  // Unix seconds
	Identifier  string // the buyer's own, from the extension payment-identifier; empty without one

	Payload  jsontext.Value // the whole PaymentPayload as received
	Accepted jsontext.Value // the terms in it, one of our offers

	// Of a claimed payment: when that was, and the chain's last block then, 0 if
	// nobody asked.
	ClaimedAt time.Time
	HeadBlock int64
}

// Modes of x402.
const (
	ModeOff         = "off"
	ModeDev         = "dev"         // settled in the ledger alone
	ModeFacilitator = "facilitator" // settled on the chain
)

// Settler moves the money of a payment. It keeps no state of ours: what a payment
// has come to stands in the ledger.
type Settler interface {
	// Mode is "dev" or "facilitator".
	Mode() string
	// Configured says whether payments are accepted now.
	Configured() bool
	// Head is the last block of the chain, 0 if it is not known: what is looked
	// for later cannot have happened before.
	Head(ctx context.Context) int64
	// Verify asks whether the payment would settle. The error is a
	// *PaymentRefused, or anything else if nobody could be asked.
	Verify(ctx context.Context, p Payment) error
	// Settle moves the money, or finds out whether it has moved. The first attempt
	// is 1: only its refusal can prove that nothing was broadcast.
	Settle(ctx context.Context, p Payment, attempt int) Settlement
}

// SettlementState is how an attempt to settle ended.
type SettlementState string

// What an attempt can end in. Whatever does not prove one of the first two is
// the third.
const (
	Settled SettlementState = "settled"
	Refused SettlementState = "refused"
	Unknown SettlementState = "unknown"
)

// Settlement is what an attempt to settle has shown.
type Settlement struct {
	State       SettlementState
	Transaction string // of what is settled
	Payer       string // as the transfer shows it; empty: the payment's
	Reason      string // of a refusal, or why it is unknown
	Evidence    string // of what is settled: "facilitator", "chain", "dev" or "operator"
}

// PaymentRefused is a payment that is not accepted: nothing moved, and a new one
// may be signed.
type PaymentRefused struct{ Reason string }

// Error is the reason, as the protocol names it.
func (p *PaymentRefused) Error() string { return p.Reason }

// PaymentRequired is a caller that is good and has nothing left to pay with: it
// may sign a payment.
type PaymentRequired struct{}

// Error says so.
func (*PaymentRequired) Error() string { return "payment required" }
