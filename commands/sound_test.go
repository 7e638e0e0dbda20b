package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// following starts the read models of a node, so that sound can compare them.
func following(t *testing.T, a *commands.App) *projections.Projections {
	t.Helper()
	p, err := projections.Start(t.Context(), a.Ledger, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.Patience = time.Minute // enough for a busy machine
	t.Cleanup(p.Close)
	return p
}

// sound checks the invariants that must hold after every fault: the chains verify, each read model
// equals the events row by row, and each decision can be reproduced byte for byte.
func sound(t *testing.T, a *commands.App, p *projections.Projections) {
	t.Helper()
	ctx, quiet := context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler)
	for behind := true; behind; {
		lags, err := p.Lags(ctx)
		if err != nil {
			t.Fatal(err)
		}
		behind = false
		for _, lag := range lags {
			behind = behind || lag.Behind > 0
		}
	}
	p.Close()
	for _, name := range projections.Names() {
		if c, err := projections.Diff(ctx, a.Ledger, quiet, name); err != nil || len(c.Differences) > 0 {
			t.Errorf("replay diff of %s: %+v, %v", name, c.Differences, err)
		}
	}
	replayed, err := a.ReplayDecisions(ctx, evidence.Replay{Services: []policy.Service{actionrisk.Quick}})
	if err != nil || len(replayed.Different) > 0 || replayed.Equal+unreplayable(replayed) != replayed.Decisions {
		t.Errorf("replay decisions: %+v, %v", replayed, err)
	}
	clean(t, a)
}

func unreplayable(r evidence.Replayed) (n int) {
	for _, gap := range r.NotReplayable {
		if strings.Contains(gap.Reason, "erased") {
			n += gap.Count
		}
	}
	return n
}

// While 32 callers request decisions, the signing key is rotated and two agents are erased. No
// request is refused, each record verifies with the key that was active at its position, and only
// the data of the erased agents is unreadable.
func TestRotationAndErasureUnderLoad(t *testing.T) {
	t.Parallel()
	db, c, ctx := ledgertest.New(t), newClock(), t.Context()
	next, err := seal.NewSigner(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	p := following(t, nodes[0])
	for _, a := range nodes {
		a.NextSigner = next
	}
	orgID, operator := newOrganization(t, nodes[0], "team")
	withPolicy(t, nodes[0], operator)
	token := newToken(t, nodes[0], operator)
	const callers, each, agents = 32, 24, 6
	var done atomic.Int64
	reached := map[int64]chan struct{}{} // channels by number of decisions, closed when that number is reached
	for _, n := range []int64{callers * each / 4, callers * each / 2, callers * each * 3 / 4} {
		reached[n] = make(chan struct{})
	}
	rotated := make(chan struct{}) // the last quarter of the requests waits for this, so that the next key signs some decisions
	t.Run("no request is refused meanwhile", func(t *testing.T) {
		var working sync.WaitGroup
		for caller := range callers {
			working.Go(func() {
				a := nodes[caller%2]
				who, err := a.AuthenticateOrganization(ctx, token.Token)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range each {
					r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"k-%d-%d","subject":{"runId":"r","agentId":"agent-%d"},"intent":%s}`,
						caller, n, (caller+n)%agents, intentFor["allow"]))
					if err == nil {
						_, err = a.Decide(ctx, who, r)
					}
					if err != nil {
						t.Errorf("caller %d, decision %d: %v", caller, n, err)
					}
					made := done.Add(1)
					if ch := reached[made]; ch != nil {
						close(ch)
					}
					if made >= callers*each*3/4 {
						<-rotated
					}
				}
			})
		}
		erased := func(agent string) {
			if _, err := nodes[1].EraseSubject(ctx, evidence.Erasure{Tenant: orgID, Subject: "agent:" + agent, Reason: "asked for", RequestedBy: "cus_1", ApprovedBy: "cus_2"}); err != nil {
				t.Errorf("erase %s: %v", agent, err)
			}
		}
		<-reached[callers*each/4]
		erased("agent-0")
		<-reached[callers*each/2]
		if err := nodes[0].Ledger.Rotate(ctx, ledger.Rotation{Purpose: ledger.PurposeRecord, From: nodes[0].Signer, To: next, Actor: "operator",
			EventIDs: [2]string{nodes[0].NewID("evt_"), nodes[0].NewID("evt_")}}); err != nil {
			t.Error(err)
		}
		close(rotated)
		<-reached[callers*each*3/4]
		erased("agent-1")
		working.Wait()
	})

	kek := bytes.Repeat([]byte{3}, 32)
	t.Run("both keys sign, and only erased data is unreadable", func(t *testing.T) {
		signed, readable, gone := map[string]int{}, 0, 0
		vault, err := vault.Open(ctx, nodes[0].Ledger, kek) // a new vault has no keys in its cache
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range everything(t, nodes[0]) {
			if e.Type != events.TypeDecisionRecorded {
				continue
			}
			signed[e.KeyID]++
			if openings, err := vault.Openings(ctx, e); err == nil && len(openings) > 0 {
				readable++
			} else {
				gone++
			}
		}
		if signed[next.KeyID()] == 0 || signed[nodes[0].Signer.KeyID()] == 0 || signed[next.KeyID()]+signed[nodes[0].Signer.KeyID()] != callers*each {
			t.Errorf("decisions by key: %v", signed)
		}
		if gone == 0 || readable < callers*each/2 || gone+readable != callers*each {
			t.Errorf("%d decisions can be read, %d were erased", readable, gone)
		}
	})
	t.Run("the database verifies", func(t *testing.T) {
		report, err := audit.Database(ctx, db.URL, audit.Options{KEK: kek})
		if err != nil || len(report.Faults) > 0 || report.Records < callers*each {
			t.Errorf("verify: %+v, %v", report, err)
		}
	})
	t.Run("the ledger and its read models are sound", func(t *testing.T) {
		sound(t, nodes[0], p)
	})
}
