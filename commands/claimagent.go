package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// ClaimAgent makes an agent a signed-in customer's: the first to claim it. It
// returns the scopes that tokens issued from now on may carry. Claiming it again
// changes nothing; another customer's agent is CodeConflict.
func (a *App) ClaimAgent(ctx context.Context, who Agent, customer string) ([]string, error) {
	return attempt(ctx, a, func(ctx context.Context) ([]string, error) {
		g, err := a.agentOf(ctx, who.ClientID)
		switch {
		case err != nil:
			return nil, err
		case g.revoked:
			return nil, errToken
		case g.customer == "":
			if err := a.vouch(ctx, g, customer, "claim", fact{events.TypeAgentClaimed, events.AgentClaimed{ClientID: g.id, CustomerID: customer}}); err != nil {
				return nil, err
			}
			g.customer = customer
		case g.customer != customer:
			return nil, policy.Refuse(CodeConflict, "", "the agent was claimed by somebody else")
		}
		return a.scopesOf(g), nil
	})
}

// RequestAgentLink makes the link with which the owner of an address stands for
// an agent. A newer one of the same agent takes its place.
func (a *App) RequestAgentLink(ctx context.Context, address, clientID string) (SignInLink, error) {
	if a.Vault == nil {
		return SignInLink{}, a.noVault()
	}
	return a.makeLink(ctx, "agent:"+clientID, linked{Address: address, Agent: clientID})
}

// ConfirmAgent verifies the agent of a link, makes the address a customer and
// uses the link up. The link goes last: what fails before can be repeated with
// it, and changes nothing then.
func (a *App) ConfirmAgent(ctx context.Context, token string) (clientID string, err error) {
	l, hash, err := a.openLink(ctx, token)
	if err != nil {
		return "", err
	}
	if l.Agent == "" {
		return "", errLink
	}
	customer, err := a.EnsureCustomer(ctx, l.Address)
	if err != nil {
		return "", err
	}
	_, err = attempt(ctx, a, func(ctx context.Context) (struct{}, error) {
		g, err := a.agentOf(ctx, l.Agent)
		if err != nil || g.verified {
			return struct{}{}, err
		}
		if g.id == "" || g.revoked {
			return struct{}{}, errLink
		}
		return struct{}{}, a.vouch(ctx, g, customer, "email")
	})
	if err != nil {
		return "", err
	}
	return l.Agent, a.dropLink(ctx, hash)
}

// creditedStream counts the customers whose agent was given credit.
const creditedStream = "verified_agents"

// vouch appends facts to an agent's stream and, unless it is verified already,
// that a customer stands for it. The first agent of each of the first hundred
// customers is given credit: their number is the version of one stream, counted
// in the same append.
func (a *App) vouch(ctx context.Context, g agent, customer, method string, facts ...fact) error {
	if g.verified {
		_, err := a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, facts...)
		return err
	}
	verified := events.AgentVerified{ClientID: g.id, CustomerID: customer, Method: method, CreditCents: AgentCreditCents}
	key := ledger.IdemKey("credit", customer)
	had, err := a.Ledger.ByKey(ctx, ledger.ServiceTenant, key, ledger.Hash{})
	if err != nil {
		return err
	}
	if had == nil {
		payload, err := canon.Marshal(events.CreditGranted{ClientID: g.id, CustomerID: customer, Cents: AgentCreditCents})
		if err != nil {
			return err
		}
		granted := []ledger.Draft{{Stream: creditedStream, Expect: ledger.Any(CreditedCustomers), ID: a.NewID("evt_"),
			Type: events.TypeCreditGranted, SchemaVersion: 1, Actor: customer, Payload: payload}}
		result, err := a.appendAgent(ctx, g, customer, key, granted, slices.Concat(facts, []fact{{events.TypeAgentVerified, verified}})...)
		switch {
		case err == nil && result.Replayed:
			return ledger.ErrMoved // another agent of the customer was faster: decide again
		case !errors.Is(err, ledger.ErrLimit):
			return err
		}
	}
	verified.CreditCents = 0
	_, err = a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, slices.Concat(facts, []fact{{events.TypeAgentVerified, verified}})...)
	return err
}
