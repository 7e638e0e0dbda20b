package accounts

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// AccountAgent is an agent that a customer has claimed or vouched for. Its access tokens are not
// stored and expire after an hour. A token permits only what the agent's state permits at the time
// of the request.
type AccountAgent struct {
	ClientID     string
	Name         string // empty if the name was erased, or if no vault is configured to decrypt it
	Claimed      bool   // true: the agent acts for the customer's account; false: the customer only confirmed its e-mail address
	Scopes       []string
	State        string // "active" or "revoked"
	RegisteredAt string
}

// AccountAgents lists the agents that a customer has claimed or vouched for by e-mail, in the
// order of their ids.
func (a *Accounts) AccountAgents(ctx context.Context, customerID string) ([]AccountAgent, error) {
	streams, err := a.Ledger.Directory(ctx, events.AgentsOf(customerID)) // agents are spread over all partitions, so this searches each of them
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []AccountAgent{}
	for _, stream := range streams {
		shown, ours, err := a.accountAgent(ctx, customerID, strings.TrimPrefix(stream, agentStream("")))
		if err != nil {
			return nil, ground.Refusal(err)
		}
		if ours {
			list = append(list, shown)
		}
	}
	return list, nil
}

// accountAgent reads an agent's state. ours is false if the agent does not exist, or if another
// customer has claimed it.
func (a *Accounts) accountAgent(ctx context.Context, customerID, id string) (shown AccountAgent, ours bool, err error) {
	g, err := a.readAgent(ctx, id)
	if err != nil || g.id == "" || g.customer != "" && g.customer != customerID {
		return shown, false, err
	}
	shown = AccountAgent{ClientID: g.id, Claimed: g.customer != "", Scopes: a.scopesOf(g), State: "active", RegisteredAt: canon.Stamp(g.born.Occurred())}
	if g.revoked {
		shown.State = "revoked"
	}
	var registered events.AgentRegistered
	if a.Vault != nil {
		if err := a.Vault.Open(ctx, g.born, &registered); err != nil && !errors.Is(err, vault.ErrErased) {
			return shown, false, err
		}
		shown.Name, _ = registered.Name.(string)
	}
	return shown, true, nil
}

// RevokeAccountAgent revokes the secret and all tokens of an agent that the customer has claimed,
// with immediate effect.
func (a *Accounts) RevokeAccountAgent(ctx context.Context, customerID, clientID string) error {
	g, err := a.agentOf(ctx, clientID)
	switch {
	case err != nil:
		return ground.Refusal(err)
	case g.customer == "" || g.customer != customerID:
		return policy.Refuse(ground.CodeNotFound, "", "agent not found") // same text for an unknown agent and for another customer's agent
	}
	return a.revokeAgent(ctx, clientID, customerID, "revoked in the account")
}
