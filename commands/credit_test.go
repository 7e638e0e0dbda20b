package commands_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
)

// creditedAgent returns a claimed agent, the first of its customer.
func creditedAgent(t testing.TB, a *commands.App, email string) accounts.Agent {
	t.Helper()
	token, agent := tokenOf(t, a)
	if _, err := a.ClaimAgent(t.Context(), agent, newCustomer(t, a, email)); err != nil {
		t.Fatal(err)
	}
	agent, err := a.AuthenticateAgent(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

func agentCall(t testing.TB, g accounts.Agent, key, command string) services.Call {
	t.Helper()
	call := quickCall(t, accounts.Caller{}, key, command)
	call.Agent = &g
	return call
}

// spent returns the last total in the agent's credit stream and the number of calls. It checks
// that each call raises the total by its price.
func spent(t testing.TB, a *commands.App, clientID string) (cents, calls int) {
	t.Helper()
	history, err := a.Ledger.Read(t.Context(), a.Ledger.Service(clientID), "credit/"+clientID)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range history.Events {
		members, err := canon.Members(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		price, used := 0, 0
		if _, err := fmt.Sscan(string(members["priceCents"])+" "+string(members["usedCents"]), &price, &used); err != nil {
			t.Fatal(err)
		}
		if cents += price; used != cents || string(members["charge"]) != `"credit"` || e.Type != events.TypeCallCompleted || e.Actor != clientID {
			t.Errorf("event %d of %s: used %d, want %d; %s", i+1, clientID, used, cents, members["charge"])
		}
	}
	return cents, len(history.Events)
}

func TestCreditPaysUntilItIsUsedUp(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	agent := creditedAgent(t, a, "ada@example.com")
	first, err := a.RunService(t.Context(), agentCall(t, agent, "k1", "ls"))
	if err != nil || first.Charge != "credit" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := a.RunService(t.Context(), agentCall(t, agent, "k1", "ls"))
	if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
		t.Errorf("%+v, %v", again, err)
	}
	// 99 cents are left. They pay for three calls of 25 cents. The fourth is refused, because a
	// call is never paid in part.
	for i := range 4 {
		call := agentCall(t, agent, "", "ls")
		call.Service = runCall(t, accounts.Caller{}, "", "ls").Service
		_, err := a.RunService(t.Context(), call)
		var unpaid *payments.PaymentRequired
		if (i == 3) != errors.As(err, &unpaid) || i < 3 && err != nil {
			t.Fatalf("call %d of 25 cents: %v", i+1, err)
		}
	}
	balance, err := a.Credit(t.Context(), agent)
	if err != nil || *balance != (services.Balance{TotalCents: 100, UsedCents: 76, Calls: 4}) {
		t.Errorf("%+v, %v", balance, err)
	}
	for i := range 25 {
		_, err := a.RunService(t.Context(), agentCall(t, agent, "", "ls"))
		if (i < 24) != (err == nil) {
			t.Fatalf("cent %d: %v", 77+i, err)
		}
	}
	if cents, calls := spent(t, a, agent.ClientID); cents != 100 || calls != 28 {
		t.Errorf("%d cents in %d calls", cents, calls)
	}
	// A repeated call that was paid for is answered although the credit is used up.
	if again, err = a.RunService(t.Context(), agentCall(t, agent, "k1", "ls")); err != nil || string(again.Body) != string(first.Body) {
		t.Errorf("%+v, %v", again, err)
	}
	if able, err := a.CanPay(t.Context(), agent); !able || err != nil {
		t.Errorf("a replay would be refused at the door: %v, %v", able, err)
	}
}

func TestAgentWithoutCreditCannotPay(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	_, agent := tokenOf(t, a)
	if able, err := a.CanPay(t.Context(), agent); able || err != nil {
		t.Errorf("%v, %v", able, err)
	}
	if balance, err := a.Credit(t.Context(), agent); balance != nil || err != nil {
		t.Errorf("%+v, %v", balance, err)
	}
	before := len(everything(t, a))
	var unpaid *payments.PaymentRequired
	if _, err := a.RunService(t.Context(), agentCall(t, agent, "", "ls")); !errors.As(err, &unpaid) {
		t.Errorf("%v", err)
	}
	if n := len(everything(t, a)) - before; n != 0 {
		t.Errorf("%d events", n)
	}
}

// Of 120 calls at the same time on two nodes, the credit of 100 cents pays exactly 100.
func TestCreditRace(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	nodes := []*commands.App{openTokens(t, db, c), openTokens(t, db, c)}
	defer clean(t, nodes[0])
	agent := creditedAgent(t, nodes[0], "ada@example.com")
	var mu sync.Mutex
	var all sync.WaitGroup
	paid, refused := 0, 0
	for i := range 120 {
		call := agentCall(t, agent, fmt.Sprintf("k%d", i), "ls")
		all.Go(func() {
			err := again(func() error { _, err := nodes[i%2].RunService(t.Context(), call); return err })
			var unpaid *payments.PaymentRequired
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				paid++
			case errors.As(err, &unpaid):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if cents, calls := spent(t, nodes[0], agent.ClientID); cents != 100 || calls != 100 || paid != 100 || refused != 20 {
		t.Errorf("%d cents in %d calls; %d paid, %d refused", cents, calls, paid, refused)
	}
}

// again repeats a call as long as it is refused as temporarily unavailable: its streams moved five
// times, or the database was slow.
func again(do func() error) (err error) {
	for {
		var passing *ground.Unavailable
		if err = do(); !errors.As(err, &passing) {
			return err
		}
	}
}

// If eight equal calls are sent at the same time, the last cent pays for one of them, and none is
// refused.
func TestEqualCallsForTheLastCent(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	agent := creditedAgent(t, a, "ada@example.com")
	for range 99 {
		if _, err := a.RunService(t.Context(), agentCall(t, agent, "", "ls")); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		call := agentCall(t, agent, "last", "ls")
		all.Go(func() {
			if err := again(func() error { _, err := a.RunService(t.Context(), call); return err }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if cents, calls := spent(t, a, agent.ClientID); cents != 100 || calls != 100 {
		t.Errorf("%d cents in %d calls", cents, calls)
	}
}

// A call is not paid if its agent is revoked between authentication and append.
func TestRevokedAgentSpendsNothing(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a, b := openTokens(t, db, c), openTokens(t, db, c)
	defer clean(t, a)
	agent := creditedAgent(t, a, "ada@example.com")
	if err := b.RevokeAgent(t.Context(), agent.ClientID, "leaked"); err != nil {
		t.Fatal(err)
	}
	_, err := a.RunService(t.Context(), agentCall(t, agent, "", "ls"))
	wantRefusal(t, err, "unauthorized", accounts.ErrToken.Error())
	if _, calls := spent(t, a, agent.ClientID); calls != 0 {
		t.Errorf("%d calls", calls)
	}
}
