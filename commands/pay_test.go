package commands_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// bank is a settler with answers that a test sets. Like a blockchain it transfers the money of a
// payment at most once. It records the attempts.
type bank struct {
	mode string

	mu      sync.Mutex
	verify  error
	script  []answered // results of the next attempts; later attempts succeed
	moved   map[string]bool
	asked   int
	attempt []int
	during  func() // called once, during the next attempt
}

// answered is the result of an attempt: whether the money moves, and the settler's answer in the
// field says. If that answer has no State, it reports the payment as settled.
type answered struct {
	moves bool
	says  payments.Settlement
}

func newBank(mode string) *bank { return &bank{mode: mode, moved: map[string]bool{}} }

// Mode implements payments.Settler.
func (b *bank) Mode() string { return b.mode }

// Configured implements payments.Settler.
func (b *bank) Configured() bool { return true }

// Head implements payments.Settler.
func (b *bank) Head(context.Context) int64 { return 7 }

// Verify implements payments.Settler.
func (b *bank) Verify(context.Context, payments.Payment) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return b.verify
}

// Settle implements payments.Settler.
func (b *bank) Settle(_ context.Context, p payments.Payment, attempt int) payments.Settlement {
	b.mu.Lock()
	during := b.during
	b.during = nil
	b.mu.Unlock()
	if during != nil {
		during()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempt = append(b.attempt, attempt)
	next := answered{moves: true}
	if len(b.script) > 0 {
		next, b.script = b.script[0], b.script[1:]
	}
	if next.moves {
		b.moved[p.ID] = true
	}
	if next.says.State == "" {
		return payments.Settlement{State: payments.Settled, Transaction: "tx:" + p.ID, Evidence: "facilitator"}
	}
	return next.says
}

func (b *bank) transfers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.moved)
}

var (
	lost    = answered{true, payments.Settlement{State: payments.Unknown, Reason: "unexpected_settle_error"}}
	timeout = answered{false, payments.Settlement{State: payments.Unknown, Reason: "unexpected_settle_error"}}
	refused = answered{false, payments.Settlement{State: payments.Refused, Reason: "insufficient_funds"}}
	expired = answered{false, payments.Settlement{State: payments.Refused, Reason: "authorization_expired_unused"}}
)

// paymentOf returns payment number n, with the fields that api/x402 reads from a request.
func paymentOf(n int) payments.Payment {
	return payments.Payment{
		ID: fmt.Sprintf("pay_%032x", n), Signature: fmt.Sprintf("0x%0130x", n), Network: "eip155:84532", Asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
		Payer: "0x2595b01b6f646B1d5A5939fE555f7e6AC6D0bfE4", PayTo: "0x329EdA9C18561571bA257177847A993E354e81b7", Amount: "10000",
		Nonce: fmt.Sprintf("0x%064x", n), ValidAfter: 0, ValidBefore: 1_800_000_300,
		Payload: jsontext.Value(`{"x402Version":2,"accepted":{"scheme":"exact"}}`), Accepted: jsontext.Value(`{"scheme":"exact"}`),
	}
}

func paidApp(t *testing.T, b *bank) *commands.App {
	a := openApp(t, ledgertest.New(t), newClock())
	a.Settler = b
	t.Cleanup(func() { clean2(t, a) })
	return a
}

// clean2 is clean for a function that t.Cleanup calls, when the test's context has ended.
func clean2(t *testing.T, a *commands.App) {
	t.Helper()
	report, err := audit.Ledger(context.Background(), a.Ledger, nil)
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v %v", err, report.Faults)
	}
}

func types(list []ledger.Event) []string {
	var names []string
	for _, e := range list {
		names = append(names, e.Type)
	}
	return names
}

// The stream of a paid workflow has the events of claim, settlement and answer. Sending the same
// payment again adds none.
func TestEventsOfAPaidCall(t *testing.T) {
	t.Parallel()
	b := newBank("dev")
	a := paidApp(t, b)
	before, from := len(everything(t, a)), heads(t, a)
	call := runCall(t, accounts.Caller{}, "", "rm -rf /")
	first, err := a.RunPaidService(t.Context(), call, paymentOf(1))
	if err != nil || first.Charge != "x402" || first.Payment.Transaction == "" || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	added := since(t, a, from)
	want := []string{events.TypePaymentClaimed, events.TypePaymentSettled, events.TypeCallCompleted}
	if !slices.Equal(types(added), want) || added[0].More != 0 || added[1].More != 1 {
		t.Fatalf("%v", types(added))
	}
	for _, e := range added {
		if e.Stream != "payment/"+paymentOf(1).ID || !strings.HasPrefix(e.Actor, "sub_") || e.Actor != added[0].Actor {
			t.Errorf("%s stands in %s, by %s", e.Type, e.Stream, e.Actor)
		}
	}
	var stored events.CallCompleted
	if err := a.Vault.Open(t.Context(), added[2], &stored); err != nil || stored.Charge != "x402" || stored.PaymentID != paymentOf(1).ID || stored.PriceCents != 25 {
		t.Errorf("%+v, %v", stored, err)
	}
	if !bytes.Contains(first.Body, []byte(`"paymentId":"`+paymentOf(1).ID+`"`)) || !bytes.Contains(first.Body, []byte(`"settlement":"dev"`)) {
		t.Errorf("the receipt names neither payment nor mode: %s", first.Body)
	}
	a.Signer = nil // stored answers can be returned without a signing key
	again, err := a.RunPaidService(t.Context(), call, paymentOf(1))
	if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) || again.Payment.Transaction != first.Payment.Transaction {
		t.Errorf("%+v, %v", again, err)
	}
	if b.transfers() != 1 || len(everything(t, a)) != before+3 {
		t.Errorf("%d transfers", b.transfers())
	}
}

// A payment pays only for the request that it was claimed for.
func TestReplayRulesOfAPayment(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	quick := quickCall(t, accounts.Caller{}, "", "ls")
	if _, err := a.RunPaidService(t.Context(), quick, paymentOf(1)); err != nil {
		t.Fatal(err)
	}
	other := paymentOf(1)
	for name, call := range map[string]services.Call{"other body": quickCall(t, accounts.Caller{}, "", "ls /tmp"), "other service": runCall(t, accounts.Caller{}, "", "ls")} {
		_, err := a.RunPaidService(t.Context(), call, other)
		wantRefusal(t, err, ground.CodeOtherRequest, "this payment was made for another request")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	forged := paymentOf(1)
	forged.Signature = paymentOf(2).Signature
	var no *payments.PaymentRefused
	if _, err := a.RunPaidService(t.Context(), quick, forged); !errors.As(err, &no) || no.Reason != "invalid_exact_evm_signature" {
		t.Errorf("another signature: %v", err)
	}
	if known, err := a.KnownPayment(t.Context(), forged); !known || !errors.As(err, &no) {
		t.Errorf("another signature: %v, %v", known, err)
	}
	if known, err := a.KnownPayment(t.Context(), paymentOf(2)); known || err != nil {
		t.Errorf("a new payment: %v, %v", known, err)
	}
	if b.transfers() != 1 {
		t.Errorf("%d transfers", b.transfers())
	}
}

// A payment identifier can be used for one payment, and cannot affect a payment of another payer.
func TestPaymentIdentifier(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	quick := quickCall(t, accounts.Caller{}, "", "ls")
	first, second := paymentOf(1), paymentOf(2)
	first.Identifier, second.Identifier = "0123456789abcdef", "0123456789abcdef"
	if _, err := a.RunPaidService(t.Context(), quick, first); err != nil {
		t.Fatal(err)
	}
	for _, call := range []services.Call{quick, quickCall(t, accounts.Caller{}, "", "ls /tmp")} {
		_, err := a.RunPaidService(t.Context(), call, second)
		wantRefusal(t, err, ground.CodeOtherRequest, "this payment identifier was used with another payment")
	}
	squatter := paymentOf(3)
	squatter.Identifier = paymentOf(4).ID
	if _, err := a.RunPaidService(t.Context(), quick, squatter); err != nil {
		t.Fatal(err)
	}
	if _, err := a.RunPaidService(t.Context(), quick, paymentOf(4)); err != nil {
		t.Errorf("somebody's payment is spoilt: %v", err)
	}
	second.Identifier = ""
	if _, err := a.RunPaidService(t.Context(), quick, second); err != nil {
		t.Errorf("the payment is lost with its identifier: %v", err)
	}
	if b.transfers() != 4 {
		t.Errorf("%d transfers", b.transfers())
	}
}

// A payment is neither claimed nor settled if it does not verify, or if the answer that it pays
// for cannot be computed.
func TestNothingIsClaimedBeforeItVerifies(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	before := len(everything(t, a))
	b.verify = &payments.PaymentRefused{Reason: "insufficient_funds"}
	var no *payments.PaymentRefused
	if _, err := a.RunPaidService(t.Context(), quickCall(t, accounts.Caller{}, "", "ls"), paymentOf(1)); !errors.As(err, &no) || no.Settled || no.Reason != "insufficient_funds" {
		t.Errorf("%v", err)
	}
	b.verify = errors.New("connection refused")
	_, err := a.RunPaidService(t.Context(), quickCall(t, accounts.Caller{}, "", "ls"), paymentOf(1))
	wantRefusal(t, err, payments.CodeNoFacilitator, "payment facilitator unavailable; nothing was charged")
	b.verify, b.asked = nil, 0
	if _, err := a.RunPaidService(t.Context(), quickCall(t, accounts.Caller{}, "", " ls"), paymentOf(1)); err == nil || b.asked != 0 {
		t.Errorf("an invalid request was verified %d times: %v", b.asked, err)
	}
	a.Signer = nil
	_, err = a.RunPaidService(t.Context(), runCall(t, accounts.Caller{}, "", "ls"), paymentOf(1))
	wantRefusal(t, err, ground.CodeNoSigner, "signing is unavailable, nothing was written or charged")
	if n := len(everything(t, a)); n != before || b.transfers() != 0 || len(b.attempt) != 0 {
		t.Errorf("%d events, %d transfers, attempts %v", n-before, b.transfers(), b.attempt)
	}
}

// A purchase whose payment is refused creates no customer.
func TestARefusedPurchaseLeavesNoTrace(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	before := len(everything(t, a))
	product := store.Product{Slug: "kit", Kind: store.OneTime, PriceCents: 100, FileName: "kit.zip", Content: []byte("kit")}
	for _, verify := range []error{&payments.PaymentRefused{Reason: "insufficient_funds"}, errors.New("connection refused")} {
		b.verify = verify
		if _, err := a.PurchaseProduct(t.Context(), store.Order{Product: product, Email: "ada@example.com"}, paymentOf(1)); err == nil {
			t.Error("bought for nothing")
		}
	}
	if n := len(everything(t, a)); n != before || b.asked != 2 {
		t.Errorf("%d events, verified %d times", n-before, b.asked)
	}
}

// No payment is taken for a request that is too large to be stored.
func TestNobodyPaysForWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	_, caller := newKey(t, a, "ada@example.com")
	before := len(everything(t, a))
	call := quickCall(t, caller, "", "ls")
	for _, size := range []int{600 << 10, 2 << 20} {
		noise := make([]byte, size) // random bytes, because repeated bytes would be compressed
		rand.NewChaCha8([32]byte{}).Read(noise)
		answer := base64.StdEncoding.EncodeToString(noise)
		call.Service = policy.Declare(policy.Service{Name: "large/answer", PriceCents: 1, Bare: true}, func(echoInput) (echoOutput, error) {
			return echoOutput{answer}, nil
		})
		_, err := a.RunPaidService(t.Context(), call, paymentOf(1))
		wantRefusal(t, err, "too_large", "request and answer are too large to be stored")
	}
	_, err := a.RunService(t.Context(), call)
	wantRefusal(t, err, "too_large", "request and answer are too large to be stored")
	if n := len(everything(t, a)); n != before || b.asked != 0 {
		t.Errorf("%d events, verified %d times", n-before, b.asked)
	}
}

// A refusal is final only if it is the result of the first attempt, or if the blockchain proves
// it. As long as the result of a payment is unknown, the answer is "unknown" and never asks for
// another payment.
func TestThreeOutcomesOfSettling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []answered
		ends   string
		events []string
	}{
		"settled":                   {nil, "settled", []string{"payment.claimed", "payment.settled", "call.completed"}},
		"refused":                   {[]answered{refused}, "refused", []string{"payment.claimed", "payment.refused"}},
		"lost, then found":          {[]answered{lost}, "settled", []string{"payment.claimed", "payment.unknown", "payment.settled", "call.completed"}},
		"lost, then refused":        {[]answered{lost, refused}, "settled", []string{"payment.claimed", "payment.unknown", "payment.settled", "call.completed"}},
		"never heard of":            {[]answered{timeout, timeout, refused}, "unknown", []string{"payment.claimed", "payment.unknown"}},
		"unused, as the chain says": {[]answered{timeout, expired}, "refused", []string{"payment.claimed", "payment.unknown", "payment.refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank("facilitator")
			a := paidApp(t, b)
			before := heads(t, a)
			b.script = c.script
			_, err := a.RunPaidService(t.Context(), quickCall(t, accounts.Caller{}, "", "ls"), paymentOf(1))
			var no *payments.PaymentRefused
			var pending *payments.SettlementPending
			switch c.ends {
			case "settled":
				if err != nil {
					t.Error(err)
				}
			case "refused":
				if !errors.As(err, &no) || !no.Settled {
					t.Error(err)
				}
			case "unknown":
				if !errors.As(err, &pending) || pending.PaymentID != paymentOf(1).ID {
					t.Error(err)
				}
			}
			if got := types(since(t, a, before)); !slices.Equal(got, c.events) {
				t.Errorf("%v", got)
			}
			info, err := a.Payment(t.Context(), paymentOf(1).ID)
			if err != nil || info.State != c.ends {
				t.Errorf("%+v, %v", info, err)
			}
			if b.attempt[0] != 1 || slices.Contains(b.attempt[1:], 1) {
				t.Errorf("attempts %v", b.attempt)
			}
		})
	}
}

// If a node crashes after the claim, or after the transfer, any other node can settle the claimed
// payment, even without a signing key.
func TestAClaimHealsWithoutItsNode(t *testing.T) {
	t.Parallel()
	for name, died := range map[string]answered{"before settling": timeout, "between settling and recording": lost} {
		t.Run(name, func(t *testing.T) {
			db, c, b := ledgertest.New(t), newClock(), newBank("facilitator")
			first, second := openApp(t, db, c), openApp(t, db, c)
			defer clean(t, second)
			b.script = []answered{died}
			first.Settler, second.Settler = b, b
			second.Signer = nil
			call := runCall(t, accounts.Caller{}, "", "rm -rf /")
			// The first node claims the payment and crashes before it settles it.
			first.Settling = func(string, int) <-chan struct{} { return nil }
			first.PaymentWait = time.Nanosecond
			var pending *payments.SettlementPending
			if _, err := first.RunPaidService(t.Context(), call, paymentOf(1)); !errors.As(err, &pending) {
				t.Fatal(err)
			}
			state, err := second.Settle(t.Context(), paymentOf(1).ID, 2)
			if err != nil || state != "unknown" {
				t.Fatalf("%s, %v", state, err)
			}
			r, err := second.RunPaidService(t.Context(), call, paymentOf(1))
			if err != nil || !r.Replayed || b.transfers() != 1 || slices.Contains(b.attempt, 1) {
				t.Errorf("%+v, %v, %d transfers, attempts %v", r, err, b.transfers(), b.attempt)
			}
			if state, err := second.Settle(t.Context(), paymentOf(1).ID, 3); state != "settled" || err != nil || b.transfers() != 1 {
				t.Errorf("settled once more: %s, %v", state, err)
			}
		})
	}
}

// During the first attempt of one node, another node also attempts the settlement, and the money
// is transferred. So a refusal of the first attempt is not final.
func TestARefusalBesideAnotherAttemptIsNotDefinite(t *testing.T) {
	t.Parallel()
	db, c, b := ledgertest.New(t), newClock(), newBank("facilitator")
	first, second := openApp(t, db, c), openApp(t, db, c)
	defer clean(t, second)
	first.Settler, second.Settler = b, b
	b.script = []answered{lost, refused, timeout, timeout}
	b.during = func() {
		if state, err := second.Settle(t.Context(), paymentOf(1).ID, 2); state != "unknown" || err != nil {
			t.Errorf("%s, %v", state, err)
		}
	}
	call := quickCall(t, accounts.Caller{}, "", "ls")
	var pending *payments.SettlementPending
	if _, err := first.RunPaidService(t.Context(), call, paymentOf(1)); !errors.As(err, &pending) {
		t.Error(err)
	}
	if _, err := first.RunPaidService(t.Context(), call, paymentOf(1)); err != nil || b.transfers() != 1 {
		t.Errorf("%v, %d transfers", err, b.transfers())
	}
}

// A first attempt that starts late counts as a later one, because another node may have tried
// before. So its refusal is not final.
func TestALateFirstAttemptIsNone(t *testing.T) {
	t.Parallel()
	c, b := newClock(), newBank("facilitator")
	a := openApp(t, ledgertest.New(t), c)
	defer clean(t, a)
	a.Settler = b
	a.Settling = func(id string, attempt int) <-chan struct{} {
		c.Add(26 * time.Second)
		b.script = []answered{refused}
		if state, err := a.Settle(t.Context(), id, attempt); state != "unknown" || err != nil {
			t.Errorf("%s, %v", state, err)
		}
		return nil
	}
	a.PaymentWait = time.Nanosecond
	var pending *payments.SettlementPending
	if _, err := a.RunPaidService(t.Context(), quickCall(t, accounts.Caller{}, "", "ls"), paymentOf(1)); !errors.As(err, &pending) || b.attempt[0] != 2 {
		t.Errorf("%v, attempts %v", err, b.attempt)
	}
}

// A payment that was claimed in one mode is never settled in another mode.
func TestNoSilentChangeOfMode(t *testing.T) {
	t.Parallel()
	b := newBank("dev")
	a := paidApp(t, b)
	b.script = []answered{timeout, timeout, timeout}
	call := quickCall(t, accounts.Caller{}, "", "ls")
	var pending *payments.SettlementPending
	if _, err := a.RunPaidService(t.Context(), call, paymentOf(1)); !errors.As(err, &pending) {
		t.Fatal(err)
	}
	b.mode = "facilitator"
	if state, err := a.Settle(t.Context(), paymentOf(1).ID, 2); state != "unknown" || err == nil || len(b.attempt) != 3 {
		t.Errorf("%s, %v, attempts %v", state, err, b.attempt)
	}
}

// If the same payment is sent eight times at once to two nodes, there is one claim and one
// transfer, and all get equal answers.
func TestEightEqualPaymentsAtOnce(t *testing.T) {
	t.Parallel()
	db, c, b := ledgertest.New(t), newClock(), newBank("facilitator")
	nodes := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	defer clean(t, nodes[0])
	b.script = []answered{lost}
	call := runCall(t, accounts.Caller{}, "", "rm -rf /")
	bodies, errs := make([][]byte, 8), make([]error, 8)
	var all sync.WaitGroup
	nodes[0].Settler, nodes[1].Settler = b, b
	for i := range bodies {
		all.Go(func() {
			r, err := nodes[i%2].RunPaidService(t.Context(), call, paymentOf(1))
			bodies[i], errs[i] = r.Body, err
		})
	}
	all.Wait()
	for i := range bodies {
		if errs[i] != nil || !bytes.Equal(bodies[i], bodies[0]) {
			t.Errorf("%d: %s, %v", i, bodies[i], errs[i])
		}
	}
	claims, settlements := 0, 0
	for _, e := range everything(t, nodes[0]) {
		switch e.Type {
		case events.TypePaymentClaimed:
			claims++
		case events.TypePaymentSettled:
			settlements++
		}
	}
	if claims != 1 || settlements != 1 || b.transfers() != 1 {
		t.Errorf("%d claims, %d settlements, %d transfers", claims, settlements, b.transfers())
	}
}

// An operator can record the result of an open payment, once.
func TestResolvePayment(t *testing.T) {
	t.Parallel()
	b := newBank("facilitator")
	a := paidApp(t, b)
	for i, tx := range []string{"0xabc", ""} {
		b.script = []answered{lost, timeout, timeout}
		call := runCall(t, accounts.Caller{}, "", "rm -rf /")
		var pending *payments.SettlementPending
		if _, err := a.RunPaidService(t.Context(), call, paymentOf(i)); !errors.As(err, &pending) {
			t.Fatal(err)
		}
		if tx == "" {
			_, err := a.ResolvePayment(t.Context(), paymentOf(i).ID, tx)
			wantRefusal(t, err, organizations.CodeConflict, "the payment can still settle; wait until its validBefore has passed")
			a.Clock = func() time.Time { return time.Unix(1_800_000_301, 0) }
		}
		for range 2 {
			info, err := a.ResolvePayment(t.Context(), paymentOf(i).ID, tx)
			if err != nil || info.Transaction != tx || (info.State == "settled") != (tx != "") {
				t.Errorf("%+v, %v", info, err)
			}
		}
		_, err := a.ResolvePayment(t.Context(), paymentOf(i).ID, tx+"0xdef")
		var no *payments.PaymentRefused
		if err == nil {
			t.Error("a payment has two ends")
		}
		if r, err := a.RunPaidService(t.Context(), call, paymentOf(i)); tx != "" && (err != nil || r.Payment.Transaction != tx) || tx == "" && !errors.As(err, &no) {
			t.Errorf("%+v, %v", r, err)
		}
	}
	_, err := a.ResolvePayment(t.Context(), paymentOf(9).ID, "0xabc")
	wantRefusal(t, err, ground.CodeNotFound, "payment not found")
}

// For random results of attempts and repeated requests, an answer is given only if the money has
// moved, a refusal only if it has not, and a final result never changes.
func TestPaymentsUnderAnyFaults(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	defer clean(t, a)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		b := newBank("facilitator")
		b.script = rapid.SliceOfN(rapid.SampledFrom([]answered{{moves: true}, lost, timeout, refused}), 0, 6).Draw(rt, "script")
		a.Settler = b
		call := quickCall(t, accounts.Caller{}, "", fmt.Sprint("ls ", n))
		end := ""
		for range rapid.IntRange(1, 3).Draw(rt, "asked") {
			_, err := a.RunPaidService(t.Context(), call, paymentOf(n))
			var no *payments.PaymentRefused
			var pending *payments.SettlementPending
			now := "open"
			switch {
			case err == nil:
				now = "settled"
				if b.transfers() != 1 {
					rt.Fatal("an answer for nothing")
				}
			case errors.As(err, &no):
				now = "refused"
				if b.transfers() != 0 {
					rt.Fatal("refused, and the money has moved")
				}
			case !errors.As(err, &pending):
				rt.Fatal(err)
			}
			if end != "" && end != "open" && now != end {
				rt.Fatalf("%s became %s", end, now)
			}
			end = now
		}
	})
}

// SettledModes finds the modes of settled payments in the ledger. Read models are not needed.
func TestSettledModesOfTheLedger(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	settled := func(id, mode string) {
		t.Helper()
		payload, err := canon.Marshal(events.PaymentSettled{PaymentID: id, Transaction: `"mode":"dev"`, Payer: "0xb", Mode: mode, Evidence: mode})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Ledger.Append(t.Context(), ledger.Append{Tenant: a.Ledger.Service(id), Events: []ledger.Pending{{Stream: "payment/" + id,
			Expect: ledger.Any(9), ID: "evt_" + id, Type: events.TypePaymentSettled, SchemaVersion: 1, Actor: "0xb", Payload: payload}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(wantDev, wantFacilitator bool) {
		t.Helper()
		if dev, facilitator, err := a.SettledModes(t.Context()); dev != wantDev || facilitator != wantFacilitator || err != nil {
			t.Errorf("dev %v, facilitator %v, %v", dev, facilitator, err)
		}
	}
	check(false, false)
	settled("pay_1", payments.ModeFacilitator)
	check(false, true)
	settled("pay_2", payments.ModeDev)
	check(true, true)
}
