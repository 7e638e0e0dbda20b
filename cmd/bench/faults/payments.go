//go:build unix

package faults

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/countersign/countersign/api/x402/x402test"
)

// unclear has faults of a facilitator during a settlement after which a node does not know whether
// the money was paid: an error before the payment, an error after it, or no answer.
var unclear = []x402test.Fault{
	{Kind: x402test.Drop}, {Kind: x402test.SettleThenDrop}, {Kind: x402test.Status, Status: http.StatusInternalServerError},
	{Kind: x402test.SettleThen500}, {Kind: x402test.HTML}, {Kind: x402test.Garbage}, {Kind: x402test.Pending}, {Kind: x402test.SettleThenHang},
}

// paymentsUnclear lets clients pay at two nodes whose facilitator fails in each way that unclear
// lists, and kills each node once. There must not be more paid answers than payments on the chain.
func paymentsUnclear(ctx context.Context, w *world) error {
	chain, endChain := x402test.StartChain(time.Now)
	facilitator, endFacilitator := x402test.StartFacilitator(chain, time.Now)
	ticking, stop := context.WithCancel(ctx)
	w.closers = append(w.closers, stop, endFacilitator, endChain)
	go func() { // the simulated chain adds blocks
		for ticking.Err() == nil {
			chain.Advance(time.Now())
			_ = pauseFor(ticking, time.Second)
		}
	}()
	if err := w.serve(ctx, 2, "X402_MODE=facilitator", "X402_FACILITATOR_URL="+facilitator.URL, "X402_RPC_URL="+chain.URL,
		payTo, onNetwork); err != nil {
		return err
	}
	err := w.around(ctx, func(ctx context.Context) error {
		for _, n := range w.nodes {
			for _, i := range w.rand.Perm(len(unclear)) {
				facilitator.Next("settle", unclear[i], x402test.Fault{})
				before := facilitator.Calls("settle")
				if err := w.until(ctx, "a settlement that fails by "+unclear[i].Kind, func() bool { return facilitator.Calls("settle") > before }); err != nil {
					return err
				}
			}
			n.signal(syscall.SIGKILL)
			if err := w.start(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if paid, answered := chain.Transfers(), w.journal.counts()[kindPayment]; answered > paid {
		return fmt.Errorf("%d paid answers for %d payments on the chain", answered, paid)
	}
	return nil
}
