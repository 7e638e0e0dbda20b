package accounts

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// An agent's secret has the same form as an API key, with another prefix. It is verified together
// with the client id; the id inside the secret is not used.
//
//	svca_<12 id>_<43 secret>_<6 check>
const agentSecretPrefix = "svca_"

// The identity types that an agent can register with.
const (
	IdentityAnonymous     = "anonymous"
	IdentityVerifiedEmail = "verified_email"
)

// AgentOrder is the request to register an agent. The agent sends all its values; none of them is
// verified.
type AgentOrder struct {
	Name         string
	IdentityType string // empty means IdentityAnonymous
	Email        string // only with IdentityVerifiedEmail: address of the customer who is to vouch for the agent
}

// RegisteredAgent is a newly registered agent. Secret is shown once and not stored. Address is
// where the confirmation link must be sent; if it is empty, no link is sent.
type RegisteredAgent struct {
	ClientID, Secret, IdentityType, Address string
	RegisteredAt                            time.Time
}

// RegisterAgent creates an OAuth client for any caller. Until a customer vouches for the agent, it
// can only read the catalogue and start a checkout.
func (a *Accounts) RegisterAgent(ctx context.Context, order AgentOrder) (RegisteredAgent, error) {
	if order.IdentityType == "" {
		order.IdentityType = IdentityAnonymous
	}
	if err := order.check(); err != nil {
		return RegisteredAgent{}, err
	}
	if a.Vault == nil {
		return RegisteredAgent{}, a.NoVault()
	}
	order.Email = strings.ToLower(order.Email)
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (RegisteredAgent, error) { return a.registerAgent(ctx, order) })
}

func (o AgentOrder) check() error {
	if err := ground.CheckText("client_name", o.Name, ground.MaxName); err != nil {
		return err
	}
	switch {
	case o.IdentityType != IdentityAnonymous && o.IdentityType != IdentityVerifiedEmail:
		return policy.Refuse("invalid_enum", "/identity_type", "identity_type must be anonymous or verified_email")
	case o.Email != "" && o.IdentityType == IdentityAnonymous:
		return policy.Refuse("inconsistent_input", "/email", "email is allowed only with identity_type verified_email")
	case o.Email != "":
		_, err := CheckEmail(o.Email)
		return err
	}
	return nil
}

func (a *Accounts) registerAgent(ctx context.Context, o AgentOrder) (RegisteredAgent, error) {
	id, eventID := a.NewID(events.AgentPrefix), a.NewID("evt_")
	tenant := a.ServiceOf(id)
	stored := events.AgentRegistered{ClientID: id, Name: o.Name, IdentityType: o.IdentityType}
	if o.Email != "" {
		stored.Email = o.Email
	}
	var err error
	if stored.Subject, err = a.Vault.Subject(ctx, tenant, agentSubject(stored), a.NewID("sub_")); err != nil {
		return RegisteredAgent{}, err
	}
	text, _, secret := a.NewCredential(agentSecretPrefix, id)
	hash := sha256.Sum256(secret)
	stored.SecretHash = hex.EncodeToString(hash[:])
	payload, err := a.Vault.Seal(ctx, tenant, eventID, stored.Subject, stored)
	if err != nil {
		return RegisteredAgent{}, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, Events: []ledger.Pending{{
		Stream: agentStream(id), Expect: ledger.New(), ID: eventID, Type: events.TypeAgentRegistered,
		SchemaVersion: 1, Actor: "system", Payload: payload}}})
	if err != nil {
		return RegisteredAgent{}, err
	}
	return RegisteredAgent{ClientID: id, Secret: text, IdentityType: o.IdentityType, Address: o.Email, RegisteredAt: result.Events[0].Occurred()}, nil
}

func agentStream(id string) string { return "agent/" + id }

// agentSubject returns the owner of an agent's data key: the e-mail address with which the agent
// was registered, or the agent's own id if there is no address.
func agentSubject(registered events.AgentRegistered) string {
	if address, _ := registered.Email.(string); address != "" {
		return "email:" + address
	}
	return "agent:" + registered.ClientID
}

// IsAgentID reports whether a text has the form of an agent's client id.
func IsAgentID(text string) bool {
	id, ok := strings.CutPrefix(text, events.AgentPrefix)
	_, err := ulid.ParseStrict(id)
	return ok && err == nil
}

// AgentState is the state of a registered agent, folded from its stream.
type AgentState struct {
	id           string
	hash         [32]byte     // SHA-256 of the secret
	dataKey      string       // id of the data key that encrypts the agent's calls
	born         ledger.Event // the event agent.registered, which contains the encrypted name and address
	verified     bool         // true if a customer vouches for the agent
	sponsor      string       // id (cus_…) of the customer who vouches for the agent
	Credit       int          // US cents of credit that the agent was given
	customer     string       // id (cus_…) of the customer who claimed the agent; empty if it is not claimed
	revoked      bool
	ended        map[string]bool // ids of revoked tokens that have not expired
	now          time.Time       // when the stream was read
	precondition ledger.Precondition
}

// Apply returns the state after one more event of the agent's stream.
func (g AgentState) Apply(e ledger.Event) (AgentState, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.AgentRegistered:
		if n, err := hex.Decode(g.hash[:], []byte(fact.SecretHash)); err != nil || n != len(g.hash) {
			return g, ledger.ErrTampered
		}
		g.id, g.dataKey, g.born = fact.ClientID, fact.Subject, e
	case events.AgentVerified:
		g.verified, g.sponsor, g.Credit = true, fact.CustomerID, fact.CreditCents
	case events.CreditGranted:
		g.Credit = fact.Cents
	case events.AgentClaimed:
		g.customer = fact.CustomerID
	case events.AccessTokenRevoked:
		if fact.TokenID == "" {
			g.revoked = true
			return g, nil
		}
		expires, err := time.Parse(time.RFC3339, fact.ExpiresAt)
		if err != nil {
			return g, ledger.ErrTampered
		}
		if g.now.Before(expires) { // an expired token is refused anyway
			ended := maps.Clone(g.ended)
			ended[fact.TokenID] = true
			g.ended = ended
		}
	}
	return g, err
}

// readAgent reads an agent's state from its stream, without the cache. If the stream is empty, it
// returns the zero state.
func (a *Accounts) readAgent(ctx context.Context, id string) (AgentState, error) {
	g, history, err := ground.Fold(ctx, a.Ground, a.ServiceOf(id), agentStream(id), AgentState{now: a.Clock(), ended: map[string]bool{}})
	g.precondition = history.Precondition()
	return g, err
}

// agentOf returns the current state of an agent, or the zero state if the id is unknown. It reads
// the stream again only if the stream has grown since the state was cached.
func (a *Accounts) agentOf(ctx context.Context, id string) (AgentState, error) {
	if !IsAgentID(id) {
		return AgentState{}, nil
	}
	if known, ok := a.agents.Get(id); ok {
		version, err := a.Ledger.Version(ctx, known.precondition.Tenant, agentStream(id))
		if err != nil || version == known.precondition.Version {
			return known, err
		}
	}
	g, err := a.readAgent(ctx, id)
	if err == nil && g.id != "" { // guessed ids must not fill the cache
		a.agents.Put(g.id, g)
	}
	return g, err
}

// CodeInvalidClient is the code of RFC 6749 for a client id whose secret is wrong.
const CodeInvalidClient = "invalid_client"

// Client is an agent that was authenticated by its id and secret.
type Client struct{ agent AgentState }

// ID returns the client id (agt_…).
func (c Client) ID() string { return c.agent.id }

// AuthenticateClient returns the client with an id and a secret. It returns the refusal
// CodeInvalidClient if the secret is wrong or malformed, or the client is unknown or revoked. The
// text is the same in each case, and the hashes are compared even if the id is unknown.
func (a *Accounts) AuthenticateClient(ctx context.Context, id, secret string) (Client, error) {
	_, given, _ := ground.ParseCredential(agentSecretPrefix, secret)
	g, err := a.agentOf(ctx, id)
	if err != nil {
		return Client{}, ground.Refusal(err)
	}
	hash := sha256.Sum256(given)
	if subtle.ConstantTimeCompare(hash[:], g.hash[:]) != 1 || g.id == "" || g.revoked {
		return Client{}, policy.Refuse(CodeInvalidClient, "", "client authentication failed")
	}
	return Client{g}, nil
}

// RevokeAgent revokes an agent's secret and all its tokens, with immediate effect. If they are
// revoked already, it changes nothing.
func (a *Accounts) RevokeAgent(ctx context.Context, id, reason string) error {
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return err
	}
	return a.revokeAgent(ctx, id, "operator", reason)
}

func (a *Accounts) revokeAgent(ctx context.Context, id, actor, reason string) error {
	_, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		g, err := a.agentOf(ctx, id)
		switch {
		case err != nil:
			return struct{}{}, err
		case g.id == "":
			return struct{}{}, policy.Refuse(ground.CodeNotFound, "", "agent not found")
		case g.revoked:
			return struct{}{}, nil
		}
		_, err = a.appendAgent(ctx, g, actor, ledger.Hash{}, nil, fact{events.TypeAccessTokenRevoked, events.AccessTokenRevoked{ClientID: g.id, Reason: reason}})
		return struct{}{}, err
	})
	return err
}

// fact is an event to append to an agent's stream; it is encoded when it is appended.
type fact struct {
	eventType string
	stored    any
}

// appendAgent appends facts to an agent's stream, and the events in more to other streams, all in
// one append. It returns ErrMoved if the agent's stream has grown since it was read.
func (a *Accounts) appendAgent(ctx context.Context, g AgentState, actor string, key ledger.Hash, more []ledger.Pending, facts ...fact) (ledger.Result, error) {
	var pending []ledger.Pending
	for i, f := range facts {
		payload, err := canon.Marshal(f.stored)
		if err != nil {
			return ledger.Result{}, err
		}
		at := ledger.History{Events: make([]ledger.Event, g.precondition.Version+int64(i))}.At()
		pending = append(pending, ledger.Pending{Stream: g.precondition.Stream, Expect: at, ID: a.NewID("evt_"), Type: f.eventType,
			SchemaVersion: 1, Actor: actor, Payload: payload})
	}
	return a.Ledger.Append(ctx, ledger.Append{Tenant: g.precondition.Tenant, IdemKey: key, Events: append(pending, more...)})
}

// AgentDataKey returns the id of the data key that encrypts an agent's calls in a tenant. Each
// tenant has its own data key for the agent. All these keys belong to the same person, so that an
// erasure of the person destroys them all.
func (a *Accounts) AgentDataKey(ctx context.Context, tenant string, g AgentState) (string, error) {
	if tenant == g.precondition.Tenant {
		return g.dataKey, nil
	}
	var registered events.AgentRegistered
	if err := a.Vault.Open(ctx, g.born, &registered); errors.Is(err, vault.ErrErased) {
		registered = events.AgentRegistered{ClientID: g.id}
	} else if err != nil {
		return "", err
	}
	id, _, err := a.DataKeyOf(ctx, tenant, agentSubject(registered))
	return id, err
}
