package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger/events"
)

// payKey sends a call with a payment and an Idempotency-Key.
func (n *node) payKey(path, key string, o x402test.Order, body string) answer {
	n.t.Helper()
	return n.post(path, "", body, "PAYMENT-SIGNATURE", o.Header(), "Idempotency-Key", key)
}

// TestAnIdempotencyKeyBelongsToThePayer checks that two paid calls of one payer with the same key
// and body are charged once.
func TestAnIdempotencyKeyBelongsToThePayer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t)})
	first := n.payKey(quickPath, "deploy-1", n.order(quickPath, "1"), lsBody)
	paid := n.settled(first)
	n.unchanged(func() {
		again := n.payKey(quickPath, "deploy-1", n.order(quickPath, "2"), lsBody)
		if n.settled(again) != paid || !bytes.Equal(again.body, first.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%v %v", again, again.header)
		}
		n.refused(n.payKey(quickPath, "deploy-1", n.order(quickPath, "3"), `{"command":"pwd"}`), 409, ground.CodeKeyReused, "")
		// Without a valid payment, nothing shows whose key it is.
		n.demands(n.post(quickPath, "", lsBody, "Idempotency-Key", "deploy-1"), x402.PaymentIsRequired)
		forged := n.order(quickPath, "4")
		forged.Wallet = x402test.NewWallet("thief")
		n.demands(n.payKey(quickPath, "deploy-1", forged, lsBody), x402.ReasonSignature)
	})
	if f.chain.Transfers() != 1 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
	// Calls with the key of another payer, with the key on another operation, or without a key are
	// different calls.
	other := x402test.NewWallet("another payer").Order(n.unpaid(quickPath), t.Name()+"5", n.clock.Now())
	n.wants(n.payKey(quickPath, "deploy-1", other, lsBody), http.StatusOK)
	n.settled(n.payKey(runPath, "deploy-1", n.order(runPath, "6"), lsBody))
	n.settled(n.pay(quickPath, n.order(quickPath, "7").Header(), lsBody))
	if f.chain.Transfers() != 4 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
}

// TestAnIdempotencyKeyHoldsOverMCPAndForPurchases checks that two payments with the same key and
// body are charged once, also over MCP, where the key is an argument, and for purchases. Another
// body with the same key is refused.
func TestAnIdempotencyKeyHoldsOverMCPAndForPurchases(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t)})
	call := overMCP(services.List()[0].Operation)
	for _, c := range []struct {
		nonce, body string
		status      int
	}{{"1", `{"command":"ls","idempotencyKey":"k"}`, 200}, {"2", `{"command":"ls","idempotencyKey":"k"}`, 200}, {"3", `{"command":"pwd","idempotencyKey":"k"}`, 409}} {
		o := n.order(quickPath, c.nonce)
		o.Resource = ""
		if status := call(n, nil, &o, c.body); status != c.status {
			t.Errorf("%s: %d", c.body, status)
		}
	}
	const kit = "/api/purchase/verification-kit"
	bought := n.payKey(kit, "order-1", n.order(kit, "4"), `{"email":"ada@example.com"}`).members(t)
	again := n.payKey(kit, "order-1", n.order(kit, "5"), `{"email":"ada@example.com"}`).members(t)
	if bought["purchaseId"] == nil || again["purchaseId"] != bought["purchaseId"] {
		t.Errorf("%v, and then %v", bought, again)
	}
	n.refused(n.payKey(kit, "order-1", n.order(kit, "6"), `{"email":"bob@example.com"}`), 409, ground.CodeKeyReused, "")
	n.refused(n.payKey(kit, "order-1", n.order(kit, "7"), `{}`), 409, ground.CodeKeyReused, "")
	if f.chain.Transfers() != 2 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
}

// TestASecondPaymentWithTheKeyOfAnOpenOneIsNotTaken checks a payment whose answer is lost, without
// a chain to ask. If the buyer signs another payment with the same key, the answer names the first
// one as open, and the buyer pays once.
func TestASecondPaymentWithTheKeyOfAnOpenOneIsNotTaken(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.withoutChain(t), wait: 1})
	f.facilitator.Always("settle", x402test.Fault{Kind: x402test.SettleThenDrop})
	o := n.order(quickPath, "1")
	open := n.payKey(quickPath, "k", o, lsBody)
	n.unsettled(open)
	second := n.payKey(quickPath, "k", n.order(quickPath, "2"), lsBody)
	n.unsettled(second)
	if m := second.members(t); m["paymentId"] != open.members(t)["paymentId"] || m["validBefore"] != ground.Stamp(time.Unix(o.Authorization.ValidBefore.Int64(), 0)) {
		t.Errorf("%v, and then %v", open, second)
	}
	if f.chain.Transfers() != 1 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
}

// TestARefusedPaymentLeavesTheKey checks that the next payment can use the key of a refused
// payment, because that one paid for nothing.
func TestARefusedPaymentLeavesTheKey(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t)})
	f.facilitator.Next("settle", x402test.Fault{Kind: x402test.Refuse, Reason: "insufficient_funds"})
	n.demands(n.payKey(quickPath, "k", n.order(quickPath, "1"), lsBody), "insufficient_funds")
	n.settled(n.payKey(quickPath, "k", n.order(quickPath, "2"), lsBody))
	n.demands(n.payKey(quickPath, "k", n.order(quickPath, "1"), lsBody), "insufficient_funds")
	n.settled(n.payKey(quickPath, "k", n.order(quickPath, "3"), lsBody))
	if f.chain.Transfers() != 1 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
}

// TestEightPaymentsWithOneKeyAtOnce checks that eight concurrent payments of one payer with one
// key at two nodes lead to one transfer.
func TestEightPaymentsWithOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	db := Databases.New(t)
	var all []*node
	for range 2 {
		all = append(all, startNode(t, setup{on: db, clock: f.clock, settler: f.settler(t)}))
	}
	orders, answers := make([]x402test.Order, 8), make([]answer, 8)
	for i := range orders {
		orders[i] = all[0].order(quickPath, fmt.Sprint(i))
	}
	parallel(len(answers), func(i int) {
		var err error
		if answers[i], err = all[i%2].try(http.MethodPost, quickPath, lsBody, append(asJSON(""), "PAYMENT-SIGNATURE", orders[i].Header(), "Idempotency-Key", "k")...); err != nil {
			t.Error(err)
		}
	})
	for i, a := range answers {
		all[0].settled(a)
		if !bytes.Equal(a.body, answers[0].body) {
			t.Errorf("answer %d is %v", i, a)
		}
	}
	if f.chain.Transfers() != 1 {
		t.Errorf("%d transfers", f.chain.Transfers())
	}
}

// TestTheTransactionOfAnOpenPaymentIsTold checks that buyer and operator get the transaction of a
// pending settlement, and that it is encrypted like the payer.
func TestTheTransactionOfAnOpenPaymentIsTold(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	settler := f.withoutChain(t)
	n := startNode(t, setup{clock: f.clock, settler: settler})
	told := &pendingSettler{Settler: settler} // names no transaction yet
	n.app.Settler, n.app.Settling = told, nil
	o := n.order(quickPath, "1")
	open := n.pay(quickPath, o.Header(), lsBody)
	n.unsettled(open)
	id := open.members(t)["paymentId"].(string)
	hash := x402.Keccak([]byte("pending")).String()
	told.transaction = hash
	for range 2 { // the same transaction is recorded once
		if state, err := n.app.Settle(t.Context(), id, 2); err != nil || state != payments.PaymentIsUnknown {
			t.Fatalf("%s, %v", state, err)
		}
	}
	response, err := x402.ReadResponse(n.pay(quickPath, o.Header(), lsBody).header.Get(x402.HeaderResponse))
	if err != nil || response.Transaction != hash || response.Success {
		t.Errorf("%+v, %v", response, err)
	}
	if info, err := n.app.Payment(t.Context(), id); err != nil || info.Transaction != hash || info.Reason != x402.ReasonPending {
		t.Errorf("%+v, %v", info, err)
	}
	unknowns := 0
	for _, what := range n.recorded() {
		if what == events.TypePaymentUnknown {
			unknowns++
		}
	}
	if unknowns != 2 {
		t.Errorf("%v", n.recorded())
	}
	n.absent(hash)
}

// pendingSettler is a facilitator that names a transaction and reports it as pending.
type pendingSettler struct {
	payments.Settler
	transaction string
}

// Settle implements payments.Settler.
func (p *pendingSettler) Settle(context.Context, payments.Payment, int) payments.Settlement {
	return payments.Settlement{State: payments.Unknown, Reason: x402.ReasonPending, Transaction: p.transaction}
}

// saysExtensions is a settler whose facilitator reports on the extensions of a payment.
type saysExtensions struct {
	payments.Settler
	said string
}

// Settle implements payments.Settler.
func (e saysExtensions) Settle(ctx context.Context, p payments.Payment, attempt int) payments.Settlement {
	s := e.Settler.Settle(ctx, p, attempt)
	s.Extensions = e.said
	return s
}

// TestExtensionResponsesArePassedOn checks that the payer gets the facilitator's report on the
// extensions of a payment.
func TestExtensionResponsesArePassedOn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: saysExtensions{f.settler(t), "e30="}})
	o := n.order(quickPath, "1")
	for range 2 {
		a := n.pay(quickPath, o.Header(), lsBody)
		n.settled(a)
		if a.header.Get("EXTENSION-RESPONSES") != "e30=" {
			t.Errorf("%v", a.header)
		}
	}
}
