package commands_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// A call whose answer can be reproduced is not refunded, however often a refund is requested.
func TestReproducedAnswerIsNotRefunded(t *testing.T) {
	t.Parallel()
	a := paidApp(t, newBank("dev"))
	call := runCall(t, accounts.Caller{}, "", "rm -rf /")
	if _, err := a.RunPaidService(t.Context(), call, paymentOf(1)); err != nil {
		t.Fatal(err)
	}
	before := len(everything(t, a))
	order := store.RefundOrder{PaymentID: paymentOf(1).ID, Service: call.Service, Request: call.Body}
	for range 2 {
		r, err := a.RequestRefund(t.Context(), order)
		if err != nil || !r.Reproduced || r.Refund != nil || r.RecordedOutputHash != r.RecomputedOutputHash || r.EngineVersion != policy.Version {
			t.Errorf("%+v, %v", r, err)
		}
	}
	services := func(string) (policy.Service, bool) { return call.Service, true }
	if good, err := a.Recheck(t.Context(), order.PaymentID, services); !good || err != nil {
		t.Errorf("%v, %v", good, err)
	}
	other := order
	other.Request = quickCall(t, accounts.Caller{}, "", "ls").Body
	_, err := a.RequestRefund(t.Context(), other)
	wantRefusal(t, err, ground.CodeOtherRequest, "the payment was made for another request: send the operation and body that were paid for")
	other = order
	other.Service = actionrisk.Quick
	_, err = a.RequestRefund(t.Context(), other)
	wantRefusal(t, err, ground.CodeOtherRequest, "the payment was made for another request: send the operation and body that were paid for")
	other = order
	other.PaymentID = paymentOf(2).ID
	_, err = a.RequestRefund(t.Context(), other)
	wantRefusal(t, err, ground.CodeNotFound, "payment not found: its id is computed from network, asset, payer and nonce of the signed payment")
	_, err = a.ApproveRefund(t.Context(), order.PaymentID, "")
	wantRefusal(t, err, ground.CodeNotFound, "refund not found")
	if n := len(everything(t, a)); n != before {
		t.Errorf("%d events", n-before)
	}
}

type echoInput struct {
	Command string `json:"command"`
}

type echoOutput struct {
	Answer string `json:"answer"`
}

// A call whose input does not give the recorded answer is refunded. The refund is requested,
// approved and paid, each step once and in this order. A call that was not charged is not
// refunded.
func TestRefundOfAnAnswerThatDoesNotReproduce(t *testing.T) {
	t.Parallel()
	b := newBank("dev")
	a := paidApp(t, b)
	drift := ""
	broken := policy.Declare(policy.Service{Name: "broken/echo", PriceCents: 1, Bare: true}, func(in echoInput) (echoOutput, error) {
		drift += "!"
		return echoOutput{in.Command + drift}, nil
	})
	call := quickCall(t, accounts.Caller{}, "", "ls")
	call.Service = broken
	if _, err := a.RunPaidService(t.Context(), call, paymentOf(1)); err != nil {
		t.Fatal(err)
	}
	order := store.RefundOrder{PaymentID: paymentOf(1).ID, Service: broken, Request: call.Body}
	for range 3 {
		r, err := a.RequestRefund(t.Context(), order)
		if err != nil || r.Reproduced || r.Refund == nil || r.Refund.State != "requested" || r.Refund.To != paymentOf(1).Payer || r.Refund.Amount != "10000" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	requests := 0
	for _, e := range everything(t, a) {
		if e.Type == events.TypeRefundRequested {
			requests++
		}
	}
	if requests != 1 {
		t.Errorf("requested %d times", requests)
	}
	services := func(service policy.Service) func(string) (policy.Service, bool) {
		return func(operation string) (policy.Service, bool) { return service, operation == service.Operation }
	}
	if good, err := a.Recheck(t.Context(), order.PaymentID, services(broken)); good || err != nil {
		t.Errorf("an answer that does not reproduce: %v, %v", good, err)
	}
	newer := broken
	newer.Ruleset = func() (version, hash string) { return "2099.1.1", strings.Repeat("0", 64) }
	if good, err := a.Recheck(t.Context(), order.PaymentID, services(newer)); !good || err != nil {
		t.Errorf("an answer under other rules raises the alarm: %v, %v", good, err)
	}
	if good, err := a.Recheck(t.Context(), order.PaymentID, services(actionrisk.Quick)); !good || err != nil {
		t.Errorf("a service that is not there any more: %v, %v", good, err)
	}
	_, err := a.SendRefund(t.Context(), order.PaymentID, "0xabc")
	wantRefusal(t, err, organizations.CodeConflict, "the refund is requested, not approved")
	for range 2 {
		if r, err := a.ApproveRefund(t.Context(), order.PaymentID, "drift"); err != nil || r.State != "approved" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for range 2 {
		if r, err := a.SendRefund(t.Context(), order.PaymentID, "0xabc"); err != nil || r.State != "sent" || r.Transaction != "0xabc" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	_, err = a.SendRefund(t.Context(), order.PaymentID, "0xdef")
	wantRefusal(t, err, organizations.CodeConflict, "the refund is sent, not approved")
	_, err = a.ApproveRefund(t.Context(), order.PaymentID, "again")
	wantRefusal(t, err, organizations.CodeConflict, "the refund is sent, not requested")
	// The paid answer stays the same after the refund.
	if r, err := a.RunPaidService(t.Context(), call, paymentOf(1)); err != nil || !r.Replayed {
		t.Errorf("%+v, %v", r, err)
	}
	b.script = []answered{refused}
	_, _ = a.RunPaidService(t.Context(), call, paymentOf(2))
	order.PaymentID = paymentOf(2).ID
	_, err = a.RequestRefund(t.Context(), order)
	wantRefusal(t, err, ground.CodeNotSettled, "the payment was refused, so nothing was charged")
}

// An operator can refund a settled payment even if its answer was right. A payment is refunded
// only once, and only if it was charged.
func TestAnOperatorRefundsAnyCharge(t *testing.T) {
	t.Parallel()
	b := newBank("dev")
	a := paidApp(t, b)
	call := quickCall(t, accounts.Caller{}, "", "ls")
	if _, err := a.RunPaidService(t.Context(), call, paymentOf(1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := a.RequestRefundAsOperator(t.Context(), paymentOf(1).ID)
		if err != nil || r.State != "requested" || r.To != paymentOf(1).Payer || r.Amount != "10000" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if r, err := a.ApproveRefund(t.Context(), paymentOf(1).ID, "goodwill"); err != nil || r.State != "approved" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := a.RequestRefundAsOperator(t.Context(), paymentOf(1).ID); err != nil || r.State != "approved" {
		t.Errorf("requested after it was approved: %+v, %v", r, err)
	}
	requests := 0
	for _, e := range everything(t, a) {
		if e.Type == events.TypeRefundRequested {
			requests++
		}
	}
	if requests != 1 {
		t.Errorf("requested %d times", requests)
	}
	_, err := a.RequestRefundAsOperator(t.Context(), paymentOf(2).ID)
	wantRefusal(t, err, ground.CodeNotFound, "payment not found")
	b.script = []answered{refused}
	_, _ = a.RunPaidService(t.Context(), call, paymentOf(3))
	_, err = a.RequestRefundAsOperator(t.Context(), paymentOf(3).ID)
	wantRefusal(t, err, ground.CodeNotSettled, "the payment is refused, so there is nothing to refund")
}
