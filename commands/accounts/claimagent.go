package accounts

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// ClaimAgent assigns an agent to a signed-in customer and returns the scopes that its next tokens
// may have. The first customer to claim an agent keeps it: repeating the claim changes nothing,
// and another customer is refused with CodeClaimed.
func (a *Accounts) ClaimAgent(ctx context.Context, who Agent, customer string) ([]string, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) ([]string, error) {
		g, err := a.agentOf(ctx, who.ClientID)
		switch {
		case err != nil:
			return nil, err
		case g.revoked:
			return nil, ErrToken
		case g.customer == "":
			if err := a.vouch(ctx, g, customer, "claim", fact{events.TypeAgentClaimed, events.AgentClaimed{ClientID: g.id, CustomerID: customer}}); err != nil {
				return nil, err
			}
			g.customer = customer
		case g.customer != customer:
			return nil, policy.Refuse(ground.CodeClaimed, "", "the agent was claimed by another customer")
		}
		return a.scopesOf(g), a.creditApart(ctx, g.id, customer)
	})
}

// RequestAgentLink makes a link with which the owner of an e-mail address vouches for an agent.
// Only the last liveLinks links for an agent are valid.
func (a *Accounts) RequestAgentLink(ctx context.Context, address, clientID string) (SignInLink, error) {
	if a.Vault == nil {
		return SignInLink{}, a.NoVault()
	}
	return a.makeLink(ctx, "agent:"+clientID, linked{Address: address, Agent: clientID})
}

// ConfirmAgent marks the agent of a link as verified. If no customer has the e-mail address, it
// creates one. The link is deleted last, so a call that failed can be repeated with the same link;
// steps that are already done are not done twice.
func (a *Accounts) ConfirmAgent(ctx context.Context, token string) (clientID string, err error) {
	l, hash, err := a.openLink(ctx, token)
	if errors.Is(err, errLink) || err == nil && l.Agent == "" {
		err = errAgentLink
	}
	if err != nil {
		return "", err
	}
	customer, err := a.EnsureCustomer(ctx, l.Address)
	if err != nil {
		return "", err
	}
	_, err = ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		g, err := a.agentOf(ctx, l.Agent)
		switch {
		case err != nil:
			return struct{}{}, err
		case g.verified:
		case g.id == "" || g.revoked:
			return struct{}{}, errAgentLink
		default:
			if err := a.vouch(ctx, g, customer, "email"); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, a.creditApart(ctx, l.Agent, customer)
	})
	if err != nil {
		return "", err
	}
	return l.Agent, a.dropLink(ctx, hash)
}

// creditedStream has one event for each mailbox whose agent was given credit.
const creditedStream = "verified_agents"

// vouch appends facts to an agent's stream. If the agent is not verified yet, it also appends
// agent.verified for the customer. The first agent of a mailbox gets credit, until
// CreditedCustomers mailboxes have got it; creditedStream counts the mailboxes. If creditedStream
// is in the agent's partition, vouch appends to both streams in one append; otherwise creditApart
// gives the credit. Mailboxes are counted and not customers, since one mailbox can have many
// addresses, and each address is a customer.
func (a *Accounts) vouch(ctx context.Context, g AgentState, customer, method string, facts ...fact) error {
	if g.verified {
		_, err := a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, facts...)
		return err
	}
	verified := events.AgentVerified{ClientID: g.id, CustomerID: customer, Method: method}
	if g.precondition.Tenant == ledger.ServiceTenant {
		count, err := a.countCredit(ctx, g.id, customer)
		if err != nil {
			return err
		}
		had, err := a.Ledger.ByKey(ctx, count.Tenant, count.IdemKey, count.ContentHash)
		if err != nil {
			return err
		}
		if had == nil {
			verified.CreditCents = AgentCreditCents
			result, err := a.appendAgent(ctx, g, customer, count.IdemKey, count.Events, slices.Concat(facts, []fact{{events.TypeAgentVerified, verified}})...)
			switch {
			case err == nil && result.Replayed:
				return ledger.ErrMoved // another agent of this mailbox has just got the credit: decide again
			case !errors.Is(err, ledger.ErrLimit):
				return err
			}
			verified.CreditCents = 0
		}
	}
	_, err := a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, slices.Concat(facts, []fact{{events.TypeAgentVerified, verified}})...)
	return err
}

// countCredit returns the append that counts the mailbox of a customer as credited.
func (a *Accounts) countCredit(ctx context.Context, clientID, customer string) (ledger.Append, error) {
	mailbox, err := a.mailboxOf(ctx, customer)
	if err != nil {
		return ledger.Append{}, err
	}
	payload, err := canon.Marshal(events.CreditGranted{ClientID: clientID, CustomerID: customer, Cents: AgentCreditCents})
	return ledger.Append{Tenant: ledger.ServiceTenant, IdemKey: ledger.IdemKey("credit", mailbox), Events: []ledger.Pending{{
		Stream: creditedStream, Expect: ledger.Any(CreditedCustomers), ID: a.NewID("evt_"),
		Type: events.TypeCreditGranted, SchemaVersion: 1, Actor: customer, Payload: payload}}}, err
}

// mailboxOf returns the pseudonym of a customer's mailbox, or the customer's id if the address was
// erased.
func (a *Accounts) mailboxOf(ctx context.Context, customer string) (string, error) {
	_, created, err := a.customerOf(ctx, customer)
	if err != nil {
		return "", err
	}
	address, err := a.AddressOf(ctx, created)
	if err != nil || address == "" {
		return customer, err
	}
	return a.MailboxRef(address), nil
}

// creditApart gives the credit to a verified agent whose stream is in another partition than
// creditedStream. One append cannot span partitions, so it makes two: first it counts the mailbox,
// then it credits the agent. So credit is never given without being counted. If a crash prevents
// the second append, vouching for the agent again completes it.
func (a *Accounts) creditApart(ctx context.Context, id, customer string) error {
	if a.ServiceOf(id) == ledger.ServiceTenant {
		return nil
	}
	g, err := a.agentOf(ctx, id)
	if err != nil || g.revoked || g.sponsor != customer || g.Credit > 0 {
		return err
	}
	count, err := a.countCredit(ctx, id, customer)
	if err != nil {
		return err
	}
	counted, err := a.Ledger.Append(ctx, count)
	if errors.Is(err, ledger.ErrLimit) {
		return nil
	}
	for _, e := range counted.Events { // if the mailbox was counted before, these are the events of that append, perhaps for another agent
		var granted events.CreditGranted
		if e.Type != events.TypeCreditGranted || err != nil {
			continue
		}
		if granted, err = events.As[events.CreditGranted](e); err == nil && granted.ClientID == id {
			_, err = a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, fact{events.TypeCreditGranted, granted})
		}
	}
	return err
}
