package payments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
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
	Identifier  string // the buyer's own, from the extension payment-identifier; may be empty
	Signed      bool   // the signature of the payer's own key was checked; not set for a claimed payment

	Payload  jsontext.Value // the whole PaymentPayload as received
	Accepted jsontext.Value // the terms in it, one of our offers

	// Time of the claim and the chain's last block then, 0 if it was not asked for. Only a
	// claimed payment has them.
	ClaimedAt time.Time
	HeadBlock int64
}

// Modes of x402.
const (
	ModeOff         = "off"
	ModeDev         = "dev"         // settled in the ledger alone
	ModeFacilitator = "facilitator" // settled on the chain
)

// Settler moves the money of a payment. It stores nothing: the state of a payment is in the
// ledger.
type Settler interface {
	// Mode is "dev" or "facilitator".
	Mode() string
	// Configured reports whether payments are accepted now.
	Configured() bool
	// Head is the last block of the chain, 0 if it is not known. A transfer that is looked for
	// later cannot be in an earlier block.
	Head(ctx context.Context) int64
	// Verify asks whether the payment would settle. The error is a *PaymentRefused, or any
	// other error if that could not be found out.
	Verify(ctx context.Context, p Payment) error
	// Settle moves the money, or finds out whether it has moved. The first attempt is 1. Only a
	// refusal of the first attempt can prove that nothing was broadcast.
	Settle(ctx context.Context, p Payment, attempt int) Settlement
}

// SettlementState is how an attempt to settle ended.
type SettlementState string

// Results of an attempt. Unless one of the first two is proven, it is the third.
const (
	Settled SettlementState = "settled"
	Refused SettlementState = "refused"
	Unknown SettlementState = "unknown"
)

// Settlement is the result of an attempt to settle.
type Settlement struct {
	State       SettlementState
	Transaction string // of a settled payment; of an unknown one the transaction that may have settled it
	Payer       string // as the transfer shows it; empty: the payment's
	Reason      string // of a refusal, or why it is unknown
	Evidence    string // of a settled payment: "facilitator", "chain", "dev" or "operator"
	Extensions  string // what the facilitator answered about the payment's extensions, as in the header EXTENSION-RESPONSES; may be empty
}

// PaymentRefused is a payment that is not accepted. No money has moved, and a new payment may
// be signed.
type PaymentRefused struct {
	Reason  string
	Settled bool // it was claimed before, and refused by the attempt to settle it
}

// Error is the reason, as the protocol names it.
func (p *PaymentRefused) Error() string { return p.Reason }

// SettlementPending is a payment whose result is not known yet. The status is 503, and the
// answer never demands another payment. The same payment sent again gets the answer.
type SettlementPending struct {
	PaymentID   string
	Transaction string    // that may have settled it; empty if none is known
	Until       time.Time // until then the payment can settle; only afterwards can it be found to have expired; zero if not known
	Cause       error     // for the log, if the ledger could not be read; otherwise nil
}

// Error returns the code.
func (*SettlementPending) Error() string { return "settlement_pending" }

// PaymentRequired is a caller with a valid credential that has nothing left to pay with. It may
// sign a payment.
type PaymentRequired struct{}

// Error returns the text for the log.
func (*PaymentRequired) Error() string { return "payment required" }

// States of a claimed payment. The first two are open, the others final.
const (
	PaymentIsClaimed = "claimed"
	PaymentIsUnknown = "unknown"
	PaymentIsSettled = "settled"
	PaymentIsRefused = "refused"
)

// Progress is the fold of payment/<id>. Without a claim it is the zero state.
type Progress struct {
	State     string // empty: nobody has claimed it
	Claim     events.PaymentClaimed
	claimedAt time.Time
	erased    bool // the members that identify the payer cannot be read any more
	Settled   events.PaymentSettled
	refused   events.PaymentRefused
	unknown   events.PaymentUnknown // the last one
	unknowns  int
	Requested *events.RefundRequested
	Refund    string // "requested", "approved" or "sent"; empty: none
	sent      events.RefundSent
	History   ledger.History
}

// Open reports whether the result of the payment is not known yet.
func (s Progress) Open() bool { return s.State == PaymentIsClaimed || s.State == PaymentIsUnknown }

// Stream returns the name of the stream of a payment.
func Stream(id string) string { return "payment/" + id }

// apply folds one event, whose payload read decodes. The other events of the stream, those of
// the paid call, change nothing.
func (s Progress) apply(e ledger.Event, read func(stored any) error) (Progress, error) {
	var err error
	switch e.Type {
	case events.TypePaymentClaimed:
		s.State, s.claimedAt = PaymentIsClaimed, e.Occurred()
		err = read(&s.Claim)
	case events.TypePaymentUnknown:
		s.State = PaymentIsUnknown
		s.unknowns++
		err = read(&s.unknown)
	case events.TypePaymentSettled:
		s.State = PaymentIsSettled
		err = read(&s.Settled)
	case events.TypePaymentRefused:
		s.State = PaymentIsRefused
		err = read(&s.refused)
	case events.TypeRefundRequested:
		s.Refund, s.Requested = "requested", &events.RefundRequested{}
		err = read(s.Requested)
	case events.TypeRefundApproved:
		s.Refund = "approved"
	case events.TypeRefundSent:
		s.Refund = "sent"
		err = read(&s.sent)
	}
	if errors.Is(err, vault.ErrErased) {
		s.erased, err = true, nil
	}
	return s, err
}

// readPaid reads an event of a payment and decrypts its personal members.
func (a *Payments) readPaid(ctx context.Context, e ledger.Event, stored any) error {
	switch {
	case !events.Sealed(e.Type):
		return e.Read(stored)
	case a.Vault == nil:
		return a.NoVault()
	}
	return a.Vault.Open(ctx, e, stored)
}

// ReadPayment folds a payment's stream.
func (a *Payments) ReadPayment(ctx context.Context, id string) (Progress, error) {
	history, err := a.Ledger.Read(ctx, a.ServiceOf(id), Stream(id))
	s := Progress{History: history}
	for _, e := range history.Events {
		if err == nil {
			s, err = s.apply(e, func(stored any) error { return a.readPaid(ctx, e, stored) })
		}
	}
	return s, err
}

// payment is the claimed payment as it was sent.
func (s Progress) payment() (Payment, error) {
	c := s.Claim
	if s.erased {
		return Payment{}, fmt.Errorf("%s cannot be settled any more: its payer was erased, so only an operator can resolve it", c.PaymentID)
	}
	p := Payment{
		ID: c.PaymentID, Signature: string(c.Signature), Network: c.Network, Asset: c.Asset, Payer: string(c.Payer), PayTo: c.PayTo,
		Amount: c.Amount, Nonce: string(c.Nonce), Identifier: string(c.Identifier), Payload: jsontext.Value(c.Payload),
		ClaimedAt: s.claimedAt, HeadBlock: c.HeadBlock,
	}
	var sent struct {
		Accepted jsontext.Value `json:"accepted"`
	}
	err := json.Unmarshal(p.Payload, &sent)
	p.Accepted = sent.Accepted
	for _, n := range []struct {
		text string
		into *int64
	}{{c.ValidAfter, &p.ValidAfter}, {c.ValidBefore, &p.ValidBefore}} {
		if err == nil {
			*n.into, err = strconv.ParseInt(n.text, 10, 64)
		}
	}
	if err != nil {
		return Payment{}, fmt.Errorf("read the claim of %s: %w", c.PaymentID, err)
	}
	return p, nil
}

// Payer returns the payer of a payment as a party. The payer's address is personal data and
// never stored unencrypted: the id of the payer's data key in the payment's tenant stands for
// it.
func (a *Payments) Payer(ctx context.Context, tenant, network, address string) (accounts.Party, error) {
	if a.Vault == nil {
		return accounts.Party{}, a.NoVault()
	}
	subject := payerSubject(network, address)
	dataKey, _, err := a.DataKeyOf(ctx, tenant, subject)
	return accounts.Party{Actor: dataKey, DataKey: dataKey, Subject: subject}, err
}

// payerSubject names a payer to the vault. The case of an address makes no difference.
func payerSubject(network, address string) string {
	return "payer:" + network + ":" + strings.ToLower(address)
}

// party returns the payer of a claimed payment. If the payer was erased, what is recorded later
// is encrypted with a key for this payment alone.
func (s Progress) party() accounts.Party {
	return accounts.Party{Actor: s.Claim.Subject, DataKey: s.Claim.Subject, Subject: s.History.Stream}
}

// pending returns the error for a payment whose result is not known.
func (s Progress) pending(cause error) *SettlementPending {
	p := &SettlementPending{PaymentID: s.Claim.PaymentID, Transaction: string(s.unknown.Transaction), Cause: cause}
	if at := s.validBefore(); at != math.MaxInt64 {
		p.Until = time.Unix(at, 0)
	}
	return p
}

// SettledModes reports how the payments of this ledger were settled: in the ledger alone (dev),
// or on a chain. It reads the directory, so that the start of the program waits for no read
// model.
func (a *Payments) SettledModes(ctx context.Context) (dev, facilitator bool, err error) {
	modes, err := a.Ledger.Directory(ctx, events.SettledModes)
	if err != nil {
		return false, false, fmt.Errorf("read by what payments were settled: %w", err)
	}
	dev = slices.Contains(modes, ModeDev)
	facilitator = slices.ContainsFunc(modes, func(mode string) bool { return mode != ModeDev })
	return dev, facilitator, nil
}

// Refunding returns the payment's refund, or nil.
func (s Progress) Refunding() *Refund {
	if s.Requested == nil {
		return nil
	}
	r := s.Requested
	return &Refund{State: s.Refund, Amount: r.Amount, Asset: r.Asset, Network: r.Network, To: string(r.To), Transaction: string(s.sent.Transaction)}
}

// Refund is the refund of a payment. One is promised for every settled call whose documented
// inputs do not reproduce the output. The service holds no wallet: an operator approves the
// refund, pays it with other means and records the transaction.
type Refund struct {
	State       string // "requested", "approved" or "sent"
	Amount      string
	Asset       string
	Network     string
	To          string
	Transaction string // that paid it
}

// States of a refund.
const (
	RefundRequested = "requested"
	RefundApproved  = "approved"
	RefundSent      = "sent"
)
