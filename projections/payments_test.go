package projections_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// TestPayments checks payments in each of their states, and again after a rebuild.
func TestPayments(t *testing.T) {
	t.Parallel()
	db, ctx := ledgertest.New(t), t.Context()
	log := slog.New(slog.DiscardHandler)
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	l, err := ledger.Open(ctx, db.URL, ledger.Options{Log: log, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	n := 0
	happens := func(id, eventType string, stored any) {
		t.Helper()
		payload, err := canon.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		n++
		_, err = l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{Stream: "payment/" + id, Expect: ledger.Any(100),
			ID: "evt_" + string(rune('a'+n)), Type: eventType, SchemaVersion: 1, Actor: "0xb", Payload: payload}}})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	claim := func(id, mode string) {
		happens(id, events.TypePaymentClaimed, events.PaymentClaimed{PaymentID: id, Operation: "op", Mode: mode, Network: "n", Payer: "0xb", Amount: "10000", PriceCents: 1, Prepared: []events.PreparedEvent{}})
	}
	line := func(id, state, mode, tx, reason, refund string, second int) projections.Payment {
		return projections.Payment{PaymentID: id, State: state, Mode: mode, Operation: "op", Payer: "0xb", Network: "n", Amount: "10000", PriceCents: 1,
			Transaction: tx, Reason: reason, Refund: refund, ClaimedAt: time.Date(2026, 11, 21, 15, 0, second, 0, time.UTC)}
	}
	p := start(t, l)
	claim("pay_1", "dev")
	claim("pay_2", "facilitator")
	claim("pay_3", "facilitator")
	claim("pay_4", "facilitator")
	happens("pay_2", events.TypePaymentUnknown, events.PaymentUnknown{PaymentID: "pay_2", Reason: "settlement_pending", Mode: "facilitator"})
	happens("pay_3", events.TypePaymentUnknown, events.PaymentUnknown{PaymentID: "pay_3", Reason: "settlement_pending", Mode: "facilitator"})
	happens("pay_3", events.TypePaymentSettled, events.PaymentSettled{PaymentID: "pay_3", Transaction: "0x3", Payer: "0xb", Mode: "facilitator", Evidence: "chain"})
	happens("pay_3", events.TypeRefundRequested, events.RefundRequested{PaymentID: "pay_3"})
	happens("pay_4", events.TypePaymentRefused, events.PaymentRefused{PaymentID: "pay_4", Reason: "insufficient_funds", Mode: "facilitator"})
	check := func(t *testing.T, p *projections.Projections) {
		t.Helper()
		all := []projections.Payment{
			line("pay_4", "refused", "facilitator", "", "insufficient_funds", "", 3),
			line("pay_3", "settled", "facilitator", "0x3", "", "requested", 2),
			line("pay_2", "unknown", "facilitator", "", "settlement_pending", "", 1),
			line("pay_1", "claimed", "dev", "", "", "", 0),
		}
		t.Run("payments are listed by state", func(t *testing.T) {
			for state, want := range map[string][]projections.Payment{"": all, "open": all[2:], "settled": all[1:2], "refused": all[:1], "unknown": all[2:3], "claimed": all[3:]} {
				got, err := p.Payments(ctx, state, 10)
				for i := range got {
					got[i].ClaimedAt = got[i].ClaimedAt.UTC()
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%q: %s %v", state, diff, err)
				}
			}
		})
		t.Run("no more are listed than asked for", func(t *testing.T) {
			if got, err := p.Payments(ctx, "", 2); err != nil || len(got) != 2 {
				t.Errorf("%+v, %v", got, err)
			}
		})
		t.Run("the oldest open payment comes first", func(t *testing.T) {
			if open, err := p.OpenPayments(ctx, 10); err != nil || len(open) != 2 || open[0].PaymentID != "pay_1" {
				t.Errorf("the oldest comes first: %+v, %v", open, err)
			}
		})
		t.Run("the summary counts what is open", func(t *testing.T) {
			summary, err := p.PaymentSummary(ctx)
			if err != nil || summary.Claimed != 1 || summary.Unknown != 1 || !summary.Oldest.Equal(time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)) {
				t.Errorf("%+v, %v", summary, err)
			}
		})
		t.Run("refunds are listed by state", func(t *testing.T) {
			if refunds, err := p.Refunds(ctx, "requested", 10); err != nil || len(refunds) != 1 || refunds[0].PaymentID != "pay_3" {
				t.Errorf("%+v, %v", refunds, err)
			}
			if refunds, err := p.Refunds(ctx, "sent", 10); err != nil || len(refunds) != 0 {
				t.Errorf("%+v, %v", refunds, err)
			}
		})
	}
	t.Run("as events are appended", func(t *testing.T) { check(t, p) })
	p.Close()
	if _, err := l.Pool().Exec(ctx, `update projection_checkpoint set version = 0 where name = 'payments'`); err != nil {
		t.Fatal(err)
	}
	again := start(t, l)
	t.Run("after a rebuild", func(t *testing.T) { check(t, again) })
	happens("pay_3", events.TypeRefundApproved, events.RefundApproved{PaymentID: "pay_3"})
	happens("pay_3", events.TypeRefundSent, events.RefundSent{PaymentID: "pay_3", Transaction: "0xf"})
	t.Run("a sent refund is listed", func(t *testing.T) {
		if refunds, err := again.Refunds(ctx, "", 10); err != nil || len(refunds) != 1 || refunds[0].Refund != "sent" || refunds[0].Transaction != "0x3" {
			t.Errorf("%+v, %v", refunds, err)
		}
	})
}
