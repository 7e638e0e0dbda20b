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

// Payment is an x402 payment as the buyer has signed it: an authorization to transfer Amount units
// of Asset from Payer to PayTo, once, within a time window. The signature does not cover the
// request; only the claim in the ledger binds the payment to a request.
type Payment struct {
	ID          string // pay_ and 32 hex digits, a hash of network, asset, payer and nonce
	Signature   string // 0x and hex digits, as sent
	Network     string // eip155:…
	Asset       string // address of the token contract
	Payer       string
	PayTo       string
	Amount      string // decimal number of the asset's smallest units
	Nonce       string // 0x and 64 hex digits
	ValidAfter  int64  // Unix seconds
	ValidBefore int64  // Unix seconds
	Identifier  string // chosen by the buyer, from the extension payment-identifier; may be empty
	Signed      bool   // the signature was checked with the payer's own key; false for a payment read from its claim

	Payload  jsontext.Value // the complete PaymentPayload as received
	Accepted jsontext.Value // the offer in the payload that the buyer has accepted

	// ClaimedAt is the time of the claim, and HeadBlock the last block at that time, or 0 if it is
	// unknown. Only a payment read from its claim has them.
	ClaimedAt time.Time
	HeadBlock int64
}

// The modes of x402.
const (
	ModeOff         = "off"
	ModeDev         = "dev"         // settled in the ledger only, without money
	ModeFacilitator = "facilitator" // settled on a blockchain by a facilitator
)

// Settler transfers the money of a payment. It stores no state; the ledger does.
type Settler interface {
	// Mode returns "dev" or "facilitator".
	Mode() string
	// Configured reports whether payments are accepted now.
	Configured() bool
	// Head returns the number of the blockchain's last block, or 0 if it is unknown. A payment
	// that is claimed afterwards cannot be in an earlier block.
	Head(ctx context.Context) int64
	// Verify checks whether the payment would settle. It returns *PaymentRefused if not, and
	// another error if it could not find out.
	Verify(ctx context.Context, p Payment) error
	// Settle transfers the money, or finds out whether it was transferred. Attempts are counted
	// from 1. Only a refusal of the first attempt can prove that no transaction was sent.
	Settle(ctx context.Context, p Payment, attempt int) Settlement
}

// SettlementState is the result of an attempt to settle a payment.
type SettlementState string

// The results of an attempt. Settled and Refused must be proven; otherwise the result is Unknown.
const (
	Settled SettlementState = "settled"
	Refused SettlementState = "refused"
	Unknown SettlementState = "unknown"
)

// Settlement describes the result of an attempt to settle a payment.
type Settlement struct {
	State       SettlementState
	Transaction string // transaction that settled the payment; if the state is Unknown, one that may have settled it
	Payer       string // sender of the transfer; empty means the payer of the payment
	Reason      string // why the payment was refused, or why the result is unknown
	Evidence    string // who showed that it was settled: "facilitator", "chain", "dev" or "operator"
	Extensions  string // the facilitator's answer about the payment's extensions, as in the header EXTENSION-RESPONSES; may be empty
}

// PaymentRefused is the error for a payment that is not accepted. No money has moved, so the buyer
// may sign another payment.
type PaymentRefused struct {
	Reason  string
	Settled bool // the payment was claimed, and the attempt to settle it was refused
}

// Error returns the reason in the words of the protocol.
func (p *PaymentRefused) Error() string { return p.Reason }

// SettlementPending is the error for a payment whose result is not known yet. The API answers 503
// and never asks for another payment. Sending the same payment again returns the answer.
type SettlementPending struct {
	PaymentID   string
	Transaction string    // transaction that may have settled the payment; empty if none is known
	Until       time.Time // the payment can settle until this time, so only afterwards can it be found expired; zero if not known
	Cause       error     // for the log; nil if the ledger could be read
}

// Error returns the error code.
func (*SettlementPending) Error() string { return "settlement_pending" }

// PaymentRequired is the error for a caller with a valid credential whose quota and funds are used
// up. The caller may send a signed payment.
type PaymentRequired struct{}

// Error returns the text for the log.
func (*PaymentRequired) Error() string { return "payment required" }

// The states of a claimed payment. The first two are open, the others are final.
const (
	PaymentIsClaimed = "claimed"
	PaymentIsUnknown = "unknown"
	PaymentIsSettled = "settled"
	PaymentIsRefused = "refused"
)

// Progress is the state of the stream payment/<id>. Without a claim it is the zero state.
type Progress struct {
	State     string // empty if the payment is not claimed
	Claim     events.PaymentClaimed
	claimedAt time.Time
	erased    bool // the payer was erased, so encrypted members cannot be read
	Settled   events.PaymentSettled
	refused   events.PaymentRefused
	unknown   events.PaymentUnknown // the last payment.unknown
	unknowns  int
	Requested *events.RefundRequested
	Refund    string // "requested", "approved" or "sent"; empty if no refund was requested
	sent      events.RefundSent
	History   ledger.History
}

// Open reports whether the payment has no final result yet.
func (s Progress) Open() bool { return s.State == PaymentIsClaimed || s.State == PaymentIsUnknown }

// Stream returns the name of the stream of a payment.
func Stream(id string) string { return "payment/" + id }

// apply returns the state after one more event; read decodes its payload. Events of the paid call,
// which are in the same stream, change nothing.
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

// readPaid reads the payload of a payment's event and decrypts it if necessary.
func (a *Payments) readPaid(ctx context.Context, e ledger.Event, stored any) error {
	switch {
	case !events.Sealed(e.Type):
		return e.Read(stored)
	case a.Vault == nil:
		return a.NoVault()
	}
	return a.Vault.Open(ctx, e, stored)
}

// ReadPayment returns the state of a payment, folded from its stream.
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

// payment returns the claimed payment as it was sent. It fails if the payer was erased.
func (s Progress) payment() (Payment, error) {
	c := s.Claim
	if s.erased {
		return Payment{}, fmt.Errorf("payment %s cannot be settled, because its payer was erased; only an operator can resolve it", c.PaymentID)
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

// Payer returns the payer of a payment as a Party. The payer's address is personal data and never
// stored unencrypted. The id of the payer's data key is used as the actor of events instead.
func (a *Payments) Payer(ctx context.Context, tenant, network, address string) (accounts.Party, error) {
	if a.Vault == nil {
		return accounts.Party{}, a.NoVault()
	}
	subject := payerSubject(network, address)
	dataKey, _, err := a.DataKeyOf(ctx, tenant, subject)
	return accounts.Party{Actor: dataKey, DataKey: dataKey, Subject: subject}, err
}

// payerSubject returns the vault's name for a payer. It is the same for upper and lower case.
func payerSubject(network, address string) string {
	return "payer:" + network + ":" + strings.ToLower(address)
}

// party returns the payer of a claimed payment as a Party. If the payer was erased, later events
// are encrypted with a data key for this payment alone.
func (s Progress) party() accounts.Party {
	return accounts.Party{Actor: s.Claim.Subject, DataKey: s.Claim.Subject, Subject: s.History.Stream}
}

// pending returns the error for a payment whose result is not known yet.
func (s Progress) pending(cause error) *SettlementPending {
	p := &SettlementPending{PaymentID: s.Claim.PaymentID, Transaction: string(s.unknown.Transaction), Cause: cause}
	if at := s.validBefore(); at != math.MaxInt64 {
		p.Until = time.Unix(at, 0)
	}
	return p
}

// SettledModes reports whether this ledger has payments that were settled in the ledger only
// (dev), and payments that were settled on a blockchain. It reads the events and no read model,
// because the program calls it at its start, when read models may be outdated.
func (a *Payments) SettledModes(ctx context.Context) (dev, facilitator bool, err error) {
	modes, err := a.Ledger.Directory(ctx, events.SettledModes)
	if err != nil {
		return false, false, fmt.Errorf("read how payments were settled: %w", err)
	}
	dev = slices.Contains(modes, ModeDev)
	facilitator = slices.ContainsFunc(modes, func(mode string) bool { return mode != ModeDev })
	return dev, facilitator, nil
}

// Refunding returns the payment's refund, or nil if none was requested.
func (s Progress) Refunding() *Refund {
	if s.Requested == nil {
		return nil
	}
	r := s.Requested
	return &Refund{State: s.Refund, Amount: r.Amount, Asset: r.Asset, Network: r.Network, To: string(r.To), Transaction: string(s.sent.Transaction)}
}

// Refund is the refund of a payment. The service promises a refund for each settled call whose
// recorded input does not reproduce the answer. The service holds no wallet: an operator approves
// the refund, pays it by other means, and records the transaction.
type Refund struct {
	State       string // "requested", "approved" or "sent"
	Amount      string
	Asset       string
	Network     string
	To          string
	Transaction string // transaction that paid the refund
}

// The states of a refund.
const (
	RefundRequested = "requested"
	RefundApproved  = "approved"
	RefundSent      = "sent"
)
