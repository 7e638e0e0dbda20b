package events

import "reflect"

// Types of events about agents, their access tokens and their credit, in the tenant service.
const (
	TypeAgentRegistered    = "agent.registered"
	TypeAgentVerified      = "agent.verified"
	TypeAgentClaimed       = "agent.claimed"
	TypeAccessTokenRevoked = "access_token.revoked"
	TypeCreditGranted      = "credit.granted"
)

var agents = []kind{
	{name: TypeAgentRegistered, stored: reflect.TypeFor[AgentRegistered](), shown: nowhere, golden: []string{
		`{"clientId":"agt_1","email":"ada@example.com","identityType":"verified_email","name":"n","secretHash":"ff","subject":"sub_1"}`,
		`{"clientId":"agt_1","identityType":"anonymous","name":"n","secretHash":"ff","subject":"sub_1"}`,
	}},
	{name: TypeAgentVerified, stored: reflect.TypeFor[AgentVerified](), shown: nowhere, golden: []string{
		`{"clientId":"agt_1","creditCents":100,"customerId":"cus_1","method":"email"}`,
	}},
	{name: TypeAgentClaimed, stored: reflect.TypeFor[AgentClaimed](), shown: nowhere, golden: []string{
		`{"clientId":"agt_1","customerId":"cus_1"}`,
	}},
	{name: TypeAccessTokenRevoked, stored: reflect.TypeFor[AccessTokenRevoked](), shown: nowhere, golden: []string{
		`{"clientId":"agt_1","expiresAt":"2026-11-21T15:00:00.000Z","reason":"revoked","tokenId":"atk_1"}`,
		`{"clientId":"agt_1","reason":"leaked"}`,
	}},
	{name: TypeCreditGranted, stored: reflect.TypeFor[CreditGranted](), shown: nowhere, golden: []string{
		`{"cents":100,"clientId":"agt_1","customerId":"cus_1"}`,
	}},
}

// AgentRegistered is agent.registered, schema version 1, the first event of the stream
// agent/<client id>. Only the hash of the secret is stored.
type AgentRegistered struct {
	ClientID     string `json:"clientId"` // agt_…
	Name         any    `json:"name" personal:"true"`
	IdentityType string `json:"identityType"` // "anonymous" or "verified_email"
	Email        any    `json:"email,omitempty" personal:"true"`
	SecretHash   string `json:"secretHash"` // SHA-256 of the secret's 32 bytes, in hex
	Subject      string `json:"subject"`    // id of the data key that encrypts the agent's calls
}

// AgentVerified is agent.verified, schema version 1, at most once in the stream agent/<client id>.
// It means that a customer with a verified e-mail address vouches for the agent.
type AgentVerified struct {
	ClientID    string `json:"clientId"`
	CustomerID  string `json:"customerId"`  // cus_…
	Method      string `json:"method"`      // "email" or "claim"
	CreditCents int    `json:"creditCents"` // above 0 only for the first agent of each of the first hundred customers
}

// AgentClaimed is agent.claimed, schema version 1, at most once in the stream agent/<client id>. A
// customer has taken over the agent.
type AgentClaimed struct {
	ClientID   string `json:"clientId"`
	CustomerID string `json:"customerId"` // cus_…
}

// AccessTokenRevoked is access_token.revoked, schema version 1, in the stream agent/<client id>.
// Without a token id it revokes all tokens and the secret of the agent.
type AccessTokenRevoked struct {
	ClientID  string `json:"clientId"`
	TokenID   string `json:"tokenId,omitempty"`   // the jti of the token
	ExpiresAt string `json:"expiresAt,omitempty"` // expiry of the token, RFC 3339; after that the revocation has no effect
	Reason    string `json:"reason"`
}

// CreditGranted is credit.granted, schema version 1, in the stream verified_agents. That stream
// accepts at most a hundred of these events, and one for each e-mail address. If the stream
// agent/<client id> is in another partition, it gets a copy of the event, because agent.verified
// is appended first and cannot contain the credit yet.
type CreditGranted struct {
	ClientID   string `json:"clientId"`
	CustomerID string `json:"customerId"` // cus_…
	Cents      int    `json:"cents"`
}
