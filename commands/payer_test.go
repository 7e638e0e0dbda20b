package commands_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
)

// stored returns all columns of all events as text.
func stored(t *testing.T, a *commands.App) string {
	t.Helper()
	var rows string
	err := a.Ledger.Pool().QueryRow(t.Context(), `select string_agg(e::text, E'\n') from events e`).Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range everything(t, a) {
		rows += string(e.Payload) // the row may contain the payload in compressed form
	}
	return strings.ToLower(rows)
}

func kitOf(a *commands.App) store.Product {
	kit := store.Product{Slug: "kit", PriceCents: 100, FileName: "kit.txt", Content: []byte("kit")}
	a.Products = []store.Product{kit}
	return kit
}

// notReproduced requests a refund for a paid call of a service whose answer differs each time.
func notReproduced(paymentID string) store.RefundOrder {
	broken := policy.Declare(policy.Service{Name: "broken/echo", PriceCents: 1, Bare: true}, func(in echoInput) (echoOutput, error) {
		return echoOutput{in.Command}, nil
	})
	broken.Operation = "purchase_product"
	return store.RefundOrder{PaymentID: paymentID, Service: broken, Request: []byte(`{"slug":"kit"}`)}
}

// All data that identify a payer are encrypted with the payer's data key; none is stored
// unencrypted. After an erasure no node can read them any more: payments are shown without them,
// and a repeated call is refused.
func TestAPayerIsErased(t *testing.T) {
	t.Parallel()
	db, c, b := ledgertest.New(t), newClock(), newBank("facilitator")
	a := openApp(t, db, c)
	a.Settler = b
	kit := kitOf(a)
	call, p := runCall(t, accounts.Caller{}, "", "rm -rf /"), paymentOf(0xabc)
	p.Identifier = "0123456789abcdef"
	transaction := "0x" + strings.Repeat("7e", 32)
	b.script = []answered{{true, payments.Settlement{State: payments.Settled, Transaction: transaction, Payer: p.Payer, Evidence: "chain"}}}
	if !t.Run("a paid call is answered again", func(t *testing.T) {
		paid, err := a.RunPaidService(t.Context(), call, p)
		if err != nil || paid.Payment.Payer != p.Payer || paid.Payment.Transaction != transaction {
			t.Fatalf("%+v, %v", paid, err)
		}
		if again, err := a.RunPaidService(t.Context(), call, p); err != nil || !bytes.Equal(again.Body, paid.Body) || again.Payment.Payer != p.Payer {
			t.Fatalf("again: %+v, %v", again, err)
		}
	}) {
		return
	}
	bought, back := paymentOf(0xdef), "0x"+strings.Repeat("9c", 32)
	if !t.Run("a purchase is refunded", func(t *testing.T) {
		if _, err := a.PurchaseProduct(t.Context(), store.Order{Product: kit}, bought); err != nil {
			t.Fatal(err)
		}
		if r, err := a.RequestRefund(t.Context(), notReproduced(bought.ID)); err != nil || r.Refund == nil || r.Refund.To != p.Payer {
			t.Fatalf("refund: %+v, %v", r, err)
		}
		if _, err := a.ApproveRefund(t.Context(), bought.ID, ""); err != nil {
			t.Fatal(err)
		}
		if r, err := a.SendRefund(t.Context(), bought.ID, back); err != nil || r.Transaction != back {
			t.Fatalf("refund: %+v, %v", r, err)
		}
	}) {
		return
	}
	open := paymentOf(0x123)
	b.script = []answered{lost, timeout, timeout}
	if !t.Run("a payment stays open", func(t *testing.T) {
		if _, err := a.RunPaidService(t.Context(), call, open); err == nil {
			t.Fatal("the open payment has ended")
		}
	}) {
		return
	}
	t.Run("nothing of the payer is stored in the clear", func(t *testing.T) {
		everywhere := stored(t, a)
		for what, clear := range map[string]string{"address": p.Payer, "nonce": p.Nonce, "signature": p.Signature, "identifier": p.Identifier,
			"transaction": transaction, "transaction of the refund": back} {
			for _, form := range []string{clear, strings.TrimPrefix(clear, "0x")} {
				if strings.Contains(everywhere, strings.ToLower(form)) {
					t.Errorf("the payer's %s is stored in the clear", what)
				}
			}
		}
	})

	keyID, err := a.EraseSubject(t.Context(), evidence.Erasure{Tenant: ledger.ServiceTenant, Subject: "payer:" + p.Network + ":" + p.Payer,
		Reason: "asked to be forgotten", RequestedBy: "ada", ApprovedBy: "bob"})
	if err != nil || !strings.HasPrefix(keyID, "sub_") {
		t.Fatalf("%s, %v", keyID, err)
	}
	other := openApp(t, db, c)
	other.Settler = b
	kitOf(other)
	t.Run("no node can read the payer any more", func(t *testing.T) {
		for name, node := range map[string]*commands.App{"this node": a, "another node": other} {
			for _, payment := range []payments.Payment{p, bought} {
				info, err := node.Payment(t.Context(), payment.ID)
				if err != nil || !info.Erased || info.Payer+info.Nonce+info.Transaction != "" || info.State != "settled" || info.Amount != payment.Amount {
					t.Errorf("%s: %+v, %v", name, info, err)
				}
			}
			if r, err := node.Refund(t.Context(), bought.ID); err != nil || r.State != "sent" || r.To+r.Transaction != "" {
				t.Errorf("%s: refund %+v, %v", name, r, err)
			}
			if known, err := node.KnownPayment(t.Context(), p); !known || err != nil {
				t.Errorf("%s: %v, %v", name, known, err)
			}
			_, err := node.RunPaidService(t.Context(), call, p)
			wantRefusal(t, err, ground.CodeErased, "the answer to this payment was erased on request")
			if state, err := node.Settle(t.Context(), open.ID, 2); state != "unknown" || err == nil {
				t.Errorf("%s: an erased payment was settled: %s, %v", name, state, err)
			}
		}
	})
	t.Run("an operator resolves a payment of an erased payer", func(t *testing.T) {
		// An operator can record the result of an open payment of an erased payer. The result is
		// encrypted with a key for this payment alone, so it cannot be linked to the payer's next
		// payment.
		if info, err := other.ResolvePayment(t.Context(), open.ID, transaction); err != nil || info.State != "settled" || info.Payer != "" || info.Transaction != transaction {
			t.Errorf("%+v, %v", info, err)
		}
		if r, err := other.RunPaidService(t.Context(), call, paymentOf(0x456)); err != nil || r.Payment.Payer != p.Payer {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("a claim names nobody without the vault", func(t *testing.T) {
		for _, e := range everything(t, a) {
			if e.Actor == keyID && e.Type == events.TypePaymentClaimed {
				var claim events.PaymentClaimed
				if err := e.Read(&claim); err != nil || claim.Payer+claim.Payload+claim.Signature != "" || claim.Network != p.Network {
					t.Errorf("what is read without the vault: %+v, %v", claim, err)
				}
			}
		}
	})
	clean(t, a)
}
