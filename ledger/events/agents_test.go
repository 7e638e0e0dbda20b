package events_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// A change of any of these bytes is a new schema version.
func TestGoldenBytesOfAgents(t *testing.T) {
	for _, g := range []struct {
		eventType string
		stored    any
		bytes     string
	}{
		{events.TypeAgentRegistered, events.AgentRegistered{ClientID: "agt_1", Name: "n", IdentityType: "verified_email", Email: "ada@example.com", SecretHash: "ff", Subject: "sub_1"},
			`{"clientId":"agt_1","email":"ada@example.com","identityType":"verified_email","name":"n","secretHash":"ff","subject":"sub_1"}`},
		{events.TypeAgentRegistered, events.AgentRegistered{ClientID: "agt_1", Name: "n", IdentityType: "anonymous", SecretHash: "ff", Subject: "sub_1"},
			`{"clientId":"agt_1","identityType":"anonymous","name":"n","secretHash":"ff","subject":"sub_1"}`},
		{events.TypeAgentVerified, events.AgentVerified{ClientID: "agt_1", CustomerID: "cus_1", Method: "email", CreditCents: 100},
			`{"clientId":"agt_1","creditCents":100,"customerId":"cus_1","method":"email"}`},
		{events.TypeAgentClaimed, events.AgentClaimed{ClientID: "agt_1", CustomerID: "cus_1"}, `{"clientId":"agt_1","customerId":"cus_1"}`},
		{events.TypeAccessTokenRevoked, events.AccessTokenRevoked{ClientID: "agt_1", TokenID: "atk_1", ExpiresAt: "2026-11-21T15:00:00.000Z", Reason: "revoked"},
			`{"clientId":"agt_1","expiresAt":"2026-11-21T15:00:00.000Z","reason":"revoked","tokenId":"atk_1"}`},
		{events.TypeAccessTokenRevoked, events.AccessTokenRevoked{ClientID: "agt_1", Reason: "leaked"}, `{"clientId":"agt_1","reason":"leaked"}`},
		{events.TypeCreditGranted, events.CreditGranted{ClientID: "agt_1", CustomerID: "cus_1", Cents: 100}, `{"cents":100,"clientId":"agt_1","customerId":"cus_1"}`},
	} {
		got, err := canon.Marshal(g.stored)
		if err != nil || string(got) != g.bytes {
			t.Errorf("%s: %s, %v\nwant %s", g.eventType, got, err, g.bytes)
		}
		if !slices.Contains(events.Types, g.eventType) {
			t.Errorf("%s is not among the types", g.eventType)
		}
	}
}
