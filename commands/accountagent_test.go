package commands_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestAgentsOfAnAccount checks that the customer who claimed an agent sees it and its scopes
// and can revoke it with all its tokens, and that nobody else can.
func TestAgentsOfAnAccount(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openTokens(t, db, c)
	defer clean(t, a)
	_, client := newAgent(t, a)
	token := newAccessToken(t, a, client, "")
	agent, err := a.AuthenticateAgent(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	ada, eve := newCustomer(t, a, "ada@example.com"), newCustomer(t, a, "eve@example.com")
	if list, err := a.AccountAgents(t.Context(), ada); err != nil || len(list) != 0 {
		t.Fatalf("before the claim: %+v, %v", list, err)
	}
	if _, err := a.ClaimAgent(t.Context(), agent, ada); err != nil {
		t.Fatal(err)
	}
	list, err := a.AccountAgents(t.Context(), ada)
	if err != nil || len(list) != 1 || list[0].ClientID != agent.ClientID || list[0].Name == "" || !list[0].Claimed || list[0].State != "active" {
		t.Fatalf("%+v, %v", list, err)
	}
	if diff := cmp.Diff(claimedScopes, list[0].Scopes); diff != "" {
		t.Error(diff)
	}
	if list, err := a.AccountAgents(t.Context(), eve); err != nil || len(list) != 0 {
		t.Errorf("somebody else's: %+v, %v", list, err)
	}
	wantRefusal(t, a.RevokeAccountAgent(t.Context(), eve, agent.ClientID), "not_found", "agent not found")
	if err := a.RevokeAccountAgent(t.Context(), ada, agent.ClientID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.AuthenticateAgent(t.Context(), token); err == nil {
		t.Error("a token of an ended agent is good")
	}
	if list, err := a.AccountAgents(t.Context(), ada); err != nil || list[0].State != "revoked" {
		t.Errorf("%+v, %v", list, err)
	}
}
