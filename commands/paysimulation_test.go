package commands_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// A model of the settlement of a payment: two nodes attempt it, each in three steps.
//
//	s  the node reads the payment and is about to call the facilitator
//	m  the facilitator acts: it transfers the money, or not
//	r  its answer reaches the node, which records the result
//
// The steps of the two attempts are interleaved in every order. Each call of the facilitator has
// every outcome. Each node crashes before the call, before the answer, or not at all. The nodes
// are real commands on a real database; only the blockchain is a model, in which an authorization
// can be used once.
type settlement struct {
	order    string    // order of the steps: a is the next step of the first node, b of the second
	outcomes [2]string // by node: moves, lost, timeout or refused
	crashes  [2]string // by node: none, asked or answered
}

var (
	outcomesOfACall = []string{"moves", "lost", "timeout", "refused"}
	crashesOfANode  = []string{"none", "asked", "answered"}
)

// settlements returns all settlements of the model.
func settlements() (all []settlement) {
	var orders []string
	var next func(order, a, b string)
	next = func(order, a, b string) {
		if a == "" || b == "" {
			orders = append(orders, order+a+b)
			return
		}
		next(order+a[:1], a[1:], b)
		next(order+b[:1], a, b[1:])
	}
	next("", "aaa", "bbb")
	for _, order := range orders {
		for _, first := range outcomesOfACall {
			for _, second := range outcomesOfACall {
				for _, dies := range crashesOfANode {
					for _, too := range crashesOfANode {
						all = append(all, settlement{order, [2]string{first, second}, [2]string{dies, too}})
					}
				}
			}
		}
	}
	return all
}

// chain is a model of the facilitator and the blockchain. It holds each attempt at each of its
// steps until the test continues it.
type chain struct {
	mu    sync.Mutex
	moved map[string]bool
}

// attempt is one node's attempt to settle a payment. It waits before each step for the test.
type attempt struct {
	outcome, crash string
	act, answer    chan struct{} // closed by the test to start a step
	reached, acted chan struct{} // closed by the attempt after a step
	done           chan struct{} // closed when the node has returned or crashed
}

type attemptKey struct{}

// errDied is the value with which a node panics to simulate a crash during a call.
var errDied = errors.New("the node died")

// Mode implements payments.Settler.
func (c *chain) Mode() string { return payments.ModeFacilitator }

// Configured implements payments.Settler.
func (c *chain) Configured() bool { return true }

// Head implements payments.Settler.
func (c *chain) Head(context.Context) int64 { return 7 }

// Verify implements payments.Settler.
func (c *chain) Verify(context.Context, payments.Payment) error { return nil }

// Settle implements payments.Settler. If the context has no attempt, it reports what the
// blockchain shows after the authorization has expired.
func (c *chain) Settle(ctx context.Context, p payments.Payment, _ int) payments.Settlement {
	a, held := ctx.Value(attemptKey{}).(*attempt)
	if !held {
		if c.has(p.ID) {
			return payments.Settlement{State: payments.Settled, Transaction: "tx:" + p.ID, Evidence: "chain"}
		}
		return payments.Settlement{State: payments.Refused, Reason: "authorization_expired_unused"}
	}
	close(a.reached)
	<-a.act
	if a.crash == "asked" {
		close(a.acted)
		panic(errDied)
	}
	said := c.call(p.ID, a.outcome)
	close(a.acted)
	<-a.answer
	if a.crash == "answered" {
		panic(errDied)
	}
	return said
}

func (c *chain) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved[id]
}

// call makes a call to the facilitator with this outcome: it moves the money or not, and returns
// the answer.
func (c *chain) call(id, outcome string) payments.Settlement {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.moved[id]
	c.moved[id] = used || outcome == "moves" || outcome == "lost"
	switch {
	case outcome == "lost" || outcome == "timeout":
		return payments.Settlement{State: payments.Unknown, Reason: "unexpected_settle_error"}
	case outcome == "refused", used: // an authorization can be used once
		return payments.Settlement{State: payments.Refused, Reason: "invalid_transaction_state"}
	}
	return payments.Settlement{State: payments.Settled, Transaction: "tx:" + id, Evidence: "facilitator"}
}

// step makes an attempt take a step and waits until it is done. It returns at once if the attempt
// has ended.
func (a *attempt) step(t *testing.T, node *commands.App, id string, number, step int) {
	switch step {
	case 0:
		go func() {
			defer close(a.done)
			defer func() {
				if p := recover(); p != nil && p != any(errDied) {
					t.Error(p)
				}
			}()
			if _, err := node.Settle(context.WithValue(t.Context(), attemptKey{}, a), id, number); err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-a.reached:
		case <-a.done:
		}
	case 1:
		close(a.act)
		select {
		case <-a.acted:
		case <-a.done:
		}
	case 2:
		close(a.answer)
		<-a.done
	}
}

// play runs one settlement of the model and returns an error if a property does not hold.
func (s settlement) play(t *testing.T, nodes [2]*commands.App, c *chain, n int) error {
	p := paymentOf(n)
	call := quickCall(t, accounts.Caller{}, "", fmt.Sprint("ls ", n))
	var pending *payments.SettlementPending
	if _, err := nodes[0].RunPaidService(t.Context(), call, p); !errors.As(err, &pending) {
		return fmt.Errorf("claim: %w", err)
	}
	var attempts [2]*attempt
	for i := range attempts {
		attempts[i] = &attempt{s.outcomes[i], s.crashes[i], make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	}
	ended, steps := "", [2]int{}
	look := func() error {
		info, err := nodes[1].Payment(t.Context(), p.ID)
		switch over := info.State == "settled" || info.State == "refused"; {
		case err != nil:
			return err
		case ended != "" && info.State != ended:
			return fmt.Errorf("%s became %s", ended, info.State)
		case over && (info.State == "settled") != c.has(p.ID):
			return fmt.Errorf("%s, and the money has moved: %v", info.State, c.has(p.ID))
		case over:
			ended = info.State
		}
		return nil
	}
	for _, who := range s.order {
		i := int(who - 'a')
		attempts[i].step(t, nodes[i], p.ID, i+1, steps[i]) // number 1 is the first attempt, which only the node that claimed the payment makes
		steps[i]++
		if err := look(); err != nil {
			return err
		}
	}
	if _, err := nodes[1].Settle(t.Context(), p.ID, 3); err != nil { // a last attempt gets the final result from the blockchain
		return err
	}
	if err := look(); err != nil || ended == "" {
		return fmt.Errorf("it has no end: %w", err)
	}
	return s.recorded(t, nodes[0], p.ID, ended)
}

// recorded checks the payment's stream: one claim, one final result, and the paid answer if the
// payment was settled.
func (s settlement) recorded(t *testing.T, node *commands.App, id, ended string) error {
	history, err := node.Ledger.Read(t.Context(), node.Ledger.Service(id), "payment/"+id)
	if err != nil {
		return err
	}
	got := slices.DeleteFunc(types(history.Events), func(kind string) bool { return kind == events.TypePaymentUnknown })
	want := []string{events.TypePaymentClaimed, events.TypePaymentRefused}
	if ended == "settled" {
		want = []string{events.TypePaymentClaimed, events.TypePaymentSettled, events.TypeCallCompleted}
	}
	if !slices.Equal(got, want) || len(history.Events) > len(want)+1 {
		return fmt.Errorf("the ledger holds %v", types(history.Events))
	}
	return nil
}

// TestSimulatedSettlements plays 120 random settlements of the model. It prints the seed;
// SEED=<number> repeats a run, and SETTLEMENTS=all plays all settlements. For any order of steps
// and any crashes: a final state never changes, the ledger says settled if and only if the money
// has moved, and each payment reaches a final state.
func TestSimulatedSettlements(t *testing.T) {
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	all := settlements()
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	total := len(all)
	if os.Getenv("SETTLEMENTS") != "all" {
		all = all[:120]
	}
	t.Logf("seed %d, %d of %d", seed, len(all), total)
	for _, n := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { playAll(t, all, n) })
	}
}

func playAll(t *testing.T, all []settlement, partitions int) {
	db, clock, c := ledgertest.NewPartitioned(t, partitions), newClock(), &chain{moved: map[string]bool{}}
	nodes := [2]*commands.App{openApp(t, db, clock), openApp(t, db, clock)}
	defer clean(t, nodes[0])
	for _, node := range nodes {
		node.Settler = c
		node.Settling = func(string, int) <-chan struct{} { return nil } // the test settles the payments itself
		node.PaymentWait = time.Nanosecond
	}
	for n, s := range all {
		if err := s.play(t, nodes, c, n); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
