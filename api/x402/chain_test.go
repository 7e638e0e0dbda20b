package x402_test

import (
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/payments"
)

// TestTheChainKnowsWhatTheFacilitatorDidNotSay checks that a settlement whose answer was lost is
// found on the chain, and that no second transfer is requested.
func TestTheChainKnowsWhatTheFacilitatorDidNotSay(t *testing.T) {
	for _, kind := range []string{x402test.SettleThenDrop, x402test.SettleThen500, x402test.Pending} {
		t.Run(kind, func(t *testing.T) {
			m := asking(t, nil)
			m.server.Next("settle", x402test.Fault{Kind: kind})
			p, _ := m.payment("one")
			if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Unknown {
				t.Errorf("the first attempt ended as %+v", s)
			}
			m.wants(m.facilitator.Settle(t.Context(), p, 2), payments.Settled, "chain", 1)
			if got := m.server.Calls("settle"); got != 1 {
				t.Errorf("the facilitator was asked %d times to settle", got)
			}
		})
	}
}

func TestTheChainOvertakesASilentFacilitator(t *testing.T) {
	m := asking(t, nil)
	m.facilitator.AskChainAfter(time.Millisecond)
	m.server.Next("settle", x402test.Fault{Kind: x402test.SettleThenHang})
	p, _ := m.payment("one")
	m.wants(m.facilitator.Settle(t.Context(), p, 1), payments.Settled, "chain", 1)
}

func TestAnOpenPaymentIsSettledAgain(t *testing.T) {
	m := asking(t, nil)
	m.server.Next("settle", x402test.Fault{Kind: x402test.Drop})
	p, _ := m.payment("one")
	m.wants(m.facilitator.Settle(t.Context(), p, 1), payments.Unknown, x402.ReasonSettleError, 0)
	m.wants(m.facilitator.Settle(t.Context(), p, 2), payments.Settled, "facilitator", 1)
}

// TestWhatTheChainProves checks outcomes that only the chain proves, while the facilitator is
// down.
func TestWhatTheChainProves(t *testing.T) {
	thief := x402test.NewWallet("thief").Address
	other := x402test.NewWallet("another token").Address
	const wait = "" // there is no proof yet
	for _, tc := range []struct {
		name   string
		happen func(c *x402test.Chain, o x402test.Order, p *payments.Payment)
		want   string // a reason of refusal, "settled", or wait
	}{
		{"nothing yet", func(*x402test.Chain, x402test.Order, *payments.Payment) {}, wait},
		{"the transfer", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
		}, "settled"},
		{"the transfer, long after", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.Advance(now.Add(100 * 24 * time.Hour))
		}, "settled"},
		{"the transfer, where the claim names no block", func(c *x402test.Chain, o x402test.Order, p *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.Advance(now.Add(time.Hour))
			p.HeadBlock = 0
		}, "settled"},
		{"the transfer, where the claim names no time either", func(c *x402test.Chain, o x402test.Order, p *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			p.HeadBlock, p.ClaimedAt = 0, time.Time{}
		}, "settled"},
		{"the transfer, more than one query away", func(c *x402test.Chain, o x402test.Order, p *payments.Payment) {
			p.HeadBlock -= 9_000
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
		}, "settled"},
		{"the transfer, in the first block of a query", func(c *x402test.Chain, o x402test.Order, p *payments.Payment) {
			p.HeadBlock = c.Head() + 1 - 2_000 + 10 // the search begins ten blocks before that
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
		}, "settled"},
		{"the transfer among others", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a, token := o.Authorization, o.Domain.Asset
			c.Mine(x402test.Transferred(token, a.From, thief, a.Value), x402test.Used(token, thief, a.Nonce), x402test.Transferred(token, thief, a.To, a.Value),
				x402test.Used(token, a.From, a.Nonce), x402test.Transferred(other, a.From, thief, a.Value),
				x402test.Transferred(token, a.From, a.To, a.Value), x402test.Transferred(token, a.To, thief, a.Value))
		}, "settled"},
		{"used for somebody else", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			o.Authorization.To = thief
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
		}, x402.ReasonUsedElsewhere},
		{"used for less", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			o.Authorization.Value = big.NewInt(9_999)
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
		}, x402.ReasonUsedElsewhere},
		{"used for somebody else, beside a transfer to us", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a, token := o.Authorization, o.Domain.Asset
			c.Mine(x402test.Transferred(token, a.From, a.To, a.Value), x402test.Used(token, a.From, a.Nonce),
				x402test.Transferred(token, a.From, thief, a.Value), x402test.Transferred(token, a.From, a.To, a.Value))
		}, x402.ReasonUsedElsewhere},
		{"used without a transfer", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			c.Mine(x402test.Used(o.Domain.Asset, o.Authorization.From, o.Authorization.Nonce))
		}, x402.ReasonUsedElsewhere},
		{"canceled", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			c.Mine(x402test.Canceled(o.Domain.Asset, o.Authorization.From, o.Authorization.Nonce))
		}, x402.ReasonUsedElsewhere},
		{"another contract says so", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a := o.Authorization
			c.Mine(x402test.Used(other, a.From, a.Nonce), x402test.Transferred(other, a.From, a.To, a.Value))
		}, wait},
		{"another's authorization", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a, token := o.Authorization, o.Domain.Asset
			c.Mine(x402test.Used(token, thief, a.Nonce), x402test.Transferred(token, thief, a.To, a.Value))
			c.Mine(x402test.Used(token, a.From, x402test.Word("another")), x402test.Transferred(token, a.From, a.To, a.Value))
		}, wait},
		{"a transaction that failed", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a, token := o.Authorization, o.Domain.Asset
			c.MineReverted(x402test.Used(token, a.From, a.Nonce), x402test.Transferred(token, a.From, a.To, a.Value))
		}, wait},
		{"a transaction that failed, on a node that shows its logs", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			a, token := o.Authorization, o.Domain.Asset
			c.MineReverted(x402test.Used(token, a.From, a.Nonce), x402test.Transferred(token, a.From, a.To, a.Value))
			c.Confuse(true)
		}, wait},
		{"the transfer, while the chain is reorganized", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.Confuse(true)
		}, wait},
		{"its end, unused", func(c *x402test.Chain, _ x402test.Order, _ *payments.Payment) {
			c.Advance(now.Add(300*time.Second + 32*time.Second))
		}, x402.ReasonExpiredUnused},
		{"its end, unused, long after", func(c *x402test.Chain, _ x402test.Order, _ *payments.Payment) {
			c.Advance(now.Add(100 * 24 * time.Hour))
		}, x402.ReasonExpiredUnused},
		{"just before its end counts", func(c *x402test.Chain, _ x402test.Order, _ *payments.Payment) {
			c.Advance(now.Add(300*time.Second + 30*time.Second))
		}, wait},
		{"its end, and a node that lags", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			head := c.Head()
			c.Advance(now.Add(time.Hour))
			c.Lag(c.Head() - head + 1)
		}, wait},
		{"its end, and a node without its logs", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.Advance(now.Add(time.Hour))
			c.HideLogs(true)
		}, wait},
		{"a node that fails", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.Down(true)
		}, wait},
		{"a node of another chain", func(c *x402test.Chain, o x402test.Order, _ *payments.Payment) {
			_, _ = c.Settle(o.Domain.Asset, o.Authorization)
			c.SetID(8453)
		}, wait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := asking(t, nil)
			m.server.Always("settle", x402test.Fault{Kind: x402test.Drop})
			p, order := m.payment("one")
			tc.happen(m.chain, order, &p)
			s := m.facilitator.Settle(t.Context(), p, 2)
			switch {
			case tc.want == "settled":
				if s.State != payments.Settled || s.Evidence != "chain" || !strings.HasPrefix(s.Transaction, "0x") || s.Payer != p.Payer {
					t.Errorf("ended as %+v", s)
				}
			case tc.want == wait && s.State != payments.Unknown, tc.want != wait && (s.State != payments.Refused || s.Reason != tc.want):
				t.Errorf("ended as %+v, want %q", s, tc.want)
			}
			if asked := m.server.Calls("settle") > 0; asked != (tc.want == wait) {
				t.Errorf("the facilitator was asked: %v", asked)
			}
		})
	}
}

func TestConfirmationsCountTheBlockItself(t *testing.T) {
	m := asking(t, func(c *x402.FacilitatorConfig) { c.Confirmations = 3 })
	m.server.Always("settle", x402test.Fault{Kind: x402test.Drop})
	p, order := m.payment("one")
	if _, err := m.chain.Settle(order.Domain.Asset, order.Authorization); err != nil {
		t.Fatal(err)
	}
	for confirmations := 1; confirmations < 3; confirmations++ {
		m.wants(m.facilitator.Settle(t.Context(), p, 2), payments.Unknown, x402.ReasonSettleError, 1)
		m.chain.Mine()
	}
	m.wants(m.facilitator.Settle(t.Context(), p, 2), payments.Settled, "chain", 1)
}

func TestStartRefusesANodeOfAnotherChain(t *testing.T) {
	m := asking(t, nil)
	m.chain.Down(true)
	if err := m.facilitator.Start(t.Context()); err != nil || !m.facilitator.Configured() {
		t.Errorf("a node that is down keeps us from starting: %v", err)
	}
	m.chain.Down(false)
	m.chain.SetID(8453)
	if err := m.facilitator.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "X402_RPC_URL") {
		t.Errorf("another chain: %v", err)
	}
}

func TestHeadIsTheLastBlock(t *testing.T) {
	m := asking(t, nil)
	if got := m.facilitator.Head(t.Context()); got != m.chain.Head() {
		t.Errorf("head %d, is %d", got, m.chain.Head())
	}
	m.chain.Down(true)
	if got := m.facilitator.Head(t.Context()); got != 0 {
		t.Errorf("a node that is down has head %d", got)
	}
	if got := newMarket(t, nil).facilitator.Head(t.Context()); got != 0 {
		t.Errorf("without a node head is %d", got)
	}
}

// TestTheAddressOfTheNodeIsNotLogged checks that no log contains the address of the node, which
// may contain a key.
func TestTheAddressOfTheNodeIsNotLogged(t *testing.T) {
	log := &lines{}
	f, err := x402.NewFacilitator(x402.FacilitatorConfig{
		URL: "http://127.0.0.1:1/canary", RPCURL: "http://127.0.0.1:1/v2/canary", Network: x402.DevNetwork, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newMarket(t, nil).payment("one")
	_ = f.Start(t.Context())
	f.Settle(t.Context(), p, 2)
	if err := f.Verify(t.Context(), p); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("verify says %v", err)
	}
	if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, p.ID) {
		t.Errorf("the log says %s", text)
	}
}
