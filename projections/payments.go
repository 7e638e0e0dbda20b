package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// payments is the read model of payments: the open ones, which must be settled, and the results of
// the others. Decisions about a payment use its stream and never this read model.
var payments = projection{
	name:    "payments",
	tables:  []string{"payments"},
	version: 1,
	handles: events.ShownIn("payments"),
	apply:   applyPayments,
}

func applyPayments(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	stored, err := e.Stored()
	if err != nil {
		return err
	}
	var id, state, transaction, reason, refund string
	switch fact := stored.(type) {
	case events.PaymentClaimed:
		_, err := tx.Exec(ctx, `insert into payments (payment_id, state, mode, operation, payer, network, amount, price_cents, claimed_at, claimed_pos)
			values ($1, 'claimed', $2, $3, $4, $5, $6, $7, $8, $9)`,
			fact.PaymentID, fact.Mode, fact.Operation, e.Actor, fact.Network, fact.Amount, fact.PriceCents, e.Occurred(), e.Position)
		return err
	case events.PaymentSettled:
		id, state, transaction = fact.PaymentID, "settled", string(fact.Transaction)
	case events.PaymentRefused:
		id, state, reason = fact.PaymentID, "refused", fact.Reason
	case events.PaymentUnknown:
		id, state, reason = fact.PaymentID, "unknown", fact.Reason
	case events.RefundRequested:
		id, refund = fact.PaymentID, "requested"
	case events.RefundApproved:
		id, refund = fact.PaymentID, "approved"
	case events.RefundSent:
		id, refund = fact.PaymentID, "sent"
	}
	// An event with a new state replaces the reason. A settled payment has no reason.
	_, err = tx.Exec(ctx, `update payments set state = coalesce(nullif($2, ''), state), transaction = coalesce(nullif($3, ''), transaction),
		reason = case when $2 = '' then reason else $4 end, refund = coalesce(nullif($5, ''), refund) where payment_id = $1`,
		id, state, transaction, reason, refund)
	return err
}

// Payment is one entry of the operator's list of payments.
type Payment struct {
	PaymentID   string    `json:"paymentId"`
	State       string    `json:"state"`
	Mode        string    `json:"mode"`
	Operation   string    `json:"operation"`
	Payer       string    `json:"payer"` // id of the payer's data key, sub_…
	Network     string    `json:"network"`
	Amount      string    `json:"amount"`
	PriceCents  int       `json:"priceCents"`
	Transaction string    `json:"transaction,omitempty"` // always empty in this list, because it is encrypted
	Reason      string    `json:"reason,omitempty"`
	Refund      string    `json:"refund,omitempty"`
	ClaimedAt   time.Time `json:"claimedAt"`
}

const selectPayments = `select payment_id, state, mode, operation, payer, network, amount, price_cents, transaction, reason, refund, claimed_at
	from readmodels.payments where `

func (p *Projections) payments(ctx context.Context, where string, args ...any) ([]Payment, error) {
	return collect(ctx, p, pgx.RowToStructByPos[Payment], selectPayments+where, args...)
}

// OpenPayments lists up to limit payments whose result is unknown, oldest first. It does not wait
// for the newest events; the code that settles payments checks their streams.
func (p *Projections) OpenPayments(ctx context.Context, limit int) ([]Payment, error) {
	return p.payments(ctx, `state in ('claimed', 'unknown') order by claimed_at, claimed_pos limit $1`, limit)
}

// Payments lists up to limit payments, newest first. state selects one state, "open" selects
// payments whose result is unknown, and an empty state selects all. Payments waits until every
// event appended before the call is visible, or returns ErrBehind.
func (p *Projections) Payments(ctx context.Context, state string, limit int) ([]Payment, error) {
	return p.paymentsNow(ctx, `($1 = '' or state = $1 or $1 = 'open' and state in ('claimed', 'unknown')) order by claimed_at desc, claimed_pos desc limit $2`, state, limit)
}

// Refunds lists up to limit payments with a refund, oldest first. state selects one state of the
// refund; empty selects all. It waits as Payments does.
func (p *Projections) Refunds(ctx context.Context, state string, limit int) ([]Payment, error) {
	return p.paymentsNow(ctx, `refund <> '' and ($1 = '' or refund = $1) order by claimed_at, claimed_pos limit $2`, state, limit)
}

// paymentsNow lists payments once every event appended before the call is visible.
func (p *Projections) paymentsNow(ctx context.Context, where string, args ...any) ([]Payment, error) {
	if err := p.waitAll(ctx, payments.name, ""); err != nil {
		return nil, err
	}
	return p.payments(ctx, where, args...)
}

// PaymentSummary counts the payments whose result is unknown.
type PaymentSummary struct {
	Claimed, Unknown int64
	Oldest           time.Time // when the oldest of these payments was claimed; zero if there is none
}

// PaymentSummary returns the number of payments whose result is unknown, and when the oldest of
// them was claimed. It does not wait for the newest events.
func (p *Projections) PaymentSummary(ctx context.Context) (PaymentSummary, error) {
	var s PaymentSummary
	var oldest *time.Time
	err := p.ledger.Pool().QueryRow(ctx, `select count(*) filter (where state = 'claimed'), count(*) filter (where state = 'unknown'),
			min(claimed_at) filter (where state in ('claimed', 'unknown'))
		from readmodels.payments where state in ('claimed', 'unknown')`).Scan(&s.Claimed, &s.Unknown, &oldest)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	if oldest != nil {
		s.Oldest = *oldest
	}
	return s, nil
}
