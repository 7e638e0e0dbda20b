package commands_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

func newCustomer(t testing.TB, a *commands.App, email string) string {
	t.Helper()
	customer, err := a.EnsureCustomer(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return customer
}

var (
	unclaimedScopes = []string{"catalog:read", "checkout:create"}
	claimedScopes   = []string{"catalog:read", "checkout:create", "billing:manage", "entitlements:read"}
)

// After a claim the agent's old token keeps its scopes, and a new token has the scopes of a
// claimed agent.
func TestClaim(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a, b := openTokens(t, db, c), openTokens(t, db, c)
	defer clean(t, a)
	registered, client := newAgent(t, a)
	before := newAccessToken(t, a, client, "")
	agent, err := a.AuthenticateAgent(t.Context(), before)
	if err != nil || agent.CustomerID != "" {
		t.Fatalf("%+v, %v", agent, err)
	}
	ada, eve := newCustomer(t, a, "ada@example.com"), newCustomer(t, a, "eve@example.com")
	from := heads(t, a)
	for range 2 {
		scopes, err := a.ClaimAgent(t.Context(), agent, ada)
		if diff := cmp.Diff(claimedScopes, scopes); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
	}
	_, err = b.ClaimAgent(t.Context(), agent, eve)
	wantRefusal(t, err, "already_claimed", "the agent was claimed by another customer")
	var types []string
	for _, e := range since(t, a, from) {
		types = append(types, e.Stream+" "+e.Type)
	}
	its := "agent/" + agent.ClientID
	want := []string{its + " agent.claimed", its + " agent.verified", "verified_agents credit.granted"}
	if a.Ledger.Home(agent.ClientID).Number() != 0 { // the count of credits is in another partition than the agent
		want = []string{want[2], want[0], want[1], its + " credit.granted"}
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	old, err := b.AuthenticateAgent(t.Context(), before)
	if diff := cmp.Diff(unclaimedScopes, old.Scopes); err != nil || diff != "" || old.CustomerID != ada {
		t.Errorf("a token from before the claim: %+v, %v", old, err)
	}
	client, err = b.AuthenticateClient(t.Context(), registered.ClientID, registered.Secret)
	if err != nil {
		t.Fatal(err)
	}
	later, err := a.AuthenticateAgent(t.Context(), newAccessToken(t, b, client, ""))
	if diff := cmp.Diff(claimedScopes, later.Scopes); err != nil || diff != "" || later.CustomerID != ada {
		t.Errorf("a token from after the claim: %+v, %v", later, err)
	}
}

// If eight customers claim one agent at the same time on two nodes, exactly one succeeds.
func TestClaimRace(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	nodes := []*commands.App{openTokens(t, db, c), openTokens(t, db, c)}
	defer clean(t, nodes[0])
	_, agent := tokenOf(t, nodes[0])
	var mu sync.Mutex
	var all sync.WaitGroup
	won := 0
	for i := range 8 {
		customer := newCustomer(t, nodes[0], fmt.Sprintf("c%d@example.com", i))
		all.Go(func() {
			err := again(func() error { _, err := nodes[i%2].ClaimAgent(t.Context(), agent, customer); return err })
			mu.Lock()
			defer mu.Unlock()
			var refused *policy.Error
			switch {
			case err == nil:
				won++
			case !errors.As(err, &refused) || refused.Code != ground.CodeClaimed:
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if won != 1 || len(credited(t, nodes[0])) != 1 {
		t.Errorf("%d customers claimed the agent, %d credits", won, len(credited(t, nodes[0])))
	}
}

// credited returns all grants of credit in the ledger.
func credited(t testing.TB, a *commands.App) []events.CreditGranted {
	t.Helper()
	history, err := a.Ledger.Read(t.Context(), ledger.ServiceTenant, "verified_agents")
	if err != nil {
		t.Fatal(err)
	}
	var grants []events.CreditGranted
	for _, e := range history.Events {
		var granted events.CreditGranted
		if err := canon.Decode(e.Payload, &granted); err != nil {
			t.Fatal(err)
		}
		grants = append(grants, granted)
	}
	return grants
}

// creditOf returns the credit in cents that an agent's stream grants, and whether the agent is
// verified.
func creditOf(t testing.TB, a *commands.App, clientID string) (cents int, verified bool) {
	t.Helper()
	history, err := a.Ledger.Read(t.Context(), a.Ledger.Service(clientID), "agent/"+clientID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history.Events {
		if e.Type == events.TypeCreditGranted {
			var granted events.CreditGranted
			if err := e.Read(&granted); err != nil || cents > 0 {
				t.Fatalf("%v, or %s has credit twice", err, clientID)
			}
			cents = granted.Cents
		}
		if e.Type != events.TypeAgentVerified {
			continue
		}
		var stored events.AgentVerified
		if err := canon.Decode(e.Payload, &stored); err != nil || verified {
			t.Fatalf("%v, or %s is verified twice", err, clientID)
		}
		cents, verified = stored.CreditCents, true
	}
	return cents, verified
}

// If 130 customers verify one agent each, at the same time on two nodes, exactly 100 agents get
// one dollar of credit.
func TestFirstHundredVerifiedAgentsHaveCredit(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	nodes := []*commands.App{openTokens(t, db, c), openTokens(t, db, c)}
	defer clean(t, nodes[0])
	const customers = 130
	type pair struct {
		agent    accounts.Agent
		customer string
	}
	var pairs []pair
	for i := range customers {
		_, agent := tokenOf(t, nodes[0])
		pairs = append(pairs, pair{agent, newCustomer(t, nodes[0], fmt.Sprintf("c%d@example.com", i))})
	}
	var all sync.WaitGroup
	for i, p := range pairs {
		all.Go(func() {
			if err := again(func() error { _, err := nodes[i%2].ClaimAgent(t.Context(), p.agent, p.customer); return err }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	with := 0
	for _, p := range pairs {
		cents, verified := creditOf(t, nodes[0], p.agent.ClientID)
		if !verified || cents != 0 && cents != 100 {
			t.Errorf("%s: verified %v, %d cents", p.agent.ClientID, verified, cents)
		}
		if cents == 100 {
			with++
		}
	}
	if n := len(credited(t, nodes[0])); with != 100 || n != 100 {
		t.Errorf("%d agents have credit, %d grants", with, n)
	}
}

// If one customer claims six agents at the same time, all are verified, and only one gets credit.
func TestCreditIsOnePerCustomer(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	nodes := []*commands.App{openTokens(t, db, c), openTokens(t, db, c)}
	defer clean(t, nodes[0])
	ada := newCustomer(t, nodes[0], "ada@example.com")
	var agents []accounts.Agent
	for range 6 {
		_, agent := tokenOf(t, nodes[0])
		agents = append(agents, agent)
	}
	var all sync.WaitGroup
	for i, agent := range agents {
		all.Go(func() {
			if err := again(func() error { _, err := nodes[i%2].ClaimAgent(t.Context(), agent, ada); return err }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sum := 0
	for _, agent := range agents {
		cents, verified := creditOf(t, nodes[0], agent.ClientID)
		if sum += cents; !verified {
			t.Errorf("%s is not verified", agent.ClientID)
		}
	}
	if sum != 100 || len(credited(t, nodes[0])) != 1 {
		t.Errorf("%d cents, %d grants", sum, len(credited(t, nodes[0])))
	}
}

// agentWithEmail registers an agent with an e-mail address and returns the link for that address.
func agentWithEmail(t *testing.T, a *commands.App, email string) (clientID, link string) {
	t.Helper()
	r, err := a.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "buyer", IdentityType: "verified_email", Email: email})
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.RequestAgentLink(t.Context(), r.Address, r.ClientID)
	if err != nil || l.Address != email {
		t.Fatalf("%+v, %v", l, err)
	}
	return r.ClientID, l.Token
}

func TestMailedLinkVerifiesTheAgentOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openTokens(t, ledgertest.New(t), c)
	defer clean(t, a)
	clientID, link := agentWithEmail(t, a, "ada@example.com")
	if _, verified := creditOf(t, a, clientID); verified {
		t.Error("verified before its link was confirmed")
	}
	got, err := a.ConfirmAgent(t.Context(), link)
	if err != nil || got != clientID {
		t.Fatalf("%s, %v", got, err)
	}
	if cents, _ := creditOf(t, a, clientID); cents != 100 {
		t.Errorf("%d cents", cents)
	}
	_, err = a.ConfirmAgent(t.Context(), link)
	wantRefusal(t, err, "gone", "the link was used or has expired: if the agent is not on the page /account, let it register again")
	// The address has a customer now, so its next agent gets no credit.
	second, link := agentWithEmail(t, a, "ada@example.com")
	if _, err := a.ConfirmAgent(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	if cents, verified := creditOf(t, a, second); cents != 0 || !verified {
		t.Errorf("%d cents, verified %v", cents, verified)
	}
	_, link = agentWithEmail(t, a, "eve@example.com")
	c.Add(10 * time.Minute)
	_, err = a.ConfirmAgent(t.Context(), link)
	wantRefusal(t, err, "gone", "the link was used or has expired: if the agent is not on the page /account, let it register again")
}

// A sign-in link and a link for an agent do not replace each other, and neither works as the
// other.
func TestAgentLinkSignsNobodyIn(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	signIn, err := a.RequestSignIn(t.Context(), "ada@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	clientID, link := agentWithEmail(t, a, "ada@example.com")
	_, err = a.ConfirmSignIn(t.Context(), link)
	wantRefusal(t, err, "gone", "the link was used or has expired: request a new one on the page /sign-in")
	_, err = a.ConfirmAgent(t.Context(), signIn.Token)
	wantRefusal(t, err, "gone", "the link was used or has expired: if the agent is not on the page /account, let it register again")
	if who, err := a.ConfirmSignIn(t.Context(), signIn.Token); err != nil || who.Address != "ada@example.com" {
		t.Errorf("%+v, %v", who, err)
	}
	if got, err := a.ConfirmAgent(t.Context(), link); err != nil || got != clientID {
		t.Errorf("%s, %v", got, err)
	}
}

// If one customer confirms the link for an agent and another claims the agent, the agent is
// verified only once.
func TestAgentIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	r, err := a.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "buyer", IdentityType: "verified_email", Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	link, err := a.RequestAgentLink(t.Context(), r.Address, r.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ConfirmAgent(t.Context(), link.Token); err != nil {
		t.Fatal(err)
	}
	client, err := a.AuthenticateClient(t.Context(), r.ClientID, r.Secret)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := a.AuthenticateAgent(t.Context(), newAccessToken(t, a, client, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ClaimAgent(t.Context(), agent, newCustomer(t, a, "eve@example.com")); err != nil {
		t.Fatal(err)
	}
	if cents, _ := creditOf(t, a, r.ClientID); cents != 100 || len(credited(t, a)) != 1 {
		t.Errorf("%d cents, %d grants", cents, len(credited(t, a)))
	}
}
