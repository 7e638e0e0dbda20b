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

// ClaimAgent assigns an agent to a signed-in customer. Only the first customer can claim it. It
// returns the scopes that tokens issued from now on may carry. If the same customer claims it
// again, nothing changes; for another customer it refuses with CodeClaimed.
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

// RequestAgentLink makes the link with which the owner of an address vouches for an agent. A
// newer link for the same agent replaces it.
func (a *Accounts) RequestAgentLink(ctx context.Context, address, clientID string) (SignInLink, error) {
	if a.Vault == nil {
		return SignInLink{}, a.NoVault()
	}
	return a.makeLink(ctx, "agent:"+clientID, linked{Address: address, Agent: clientID})
}

// ConfirmAgent verifies the agent of a link, makes the address a customer and uses up the link.
// The link is used up last: if something fails before that, the call can be repeated with the
// same link, and repeats nothing that was done.
func (a *Accounts) ConfirmAgent(ctx context.Context, token string) (clientID string, err error) {
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
	_, err = ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		g, err := a.agentOf(ctx, l.Agent)
		switch {
		case err != nil:
			return struct{}{}, err
		case g.verified:
		case g.id == "" || g.revoked:
			return struct{}{}, errLink
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

// creditedStream counts the mailboxes whose agent was given credit.
const creditedStream = "verified_agents"

// vouch appends facts to an agent's stream and, unless the agent is verified already, the fact
// that a customer vouches for it. The first agent of each of the first hundred mailboxes gets
// credit. The number of those mailboxes is the version of one stream, which moves in the same
// append or in creditApart. It counts mailboxes, since one mailbox can have many addresses,
// each of them a customer.
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
				return ledger.ErrMoved // another agent of the mailbox was faster: decide again
			case !errors.Is(err, ledger.ErrLimit):
				return err
			}
			verified.CreditCents = 0
		}
	}
	_, err := a.appendAgent(ctx, g, customer, ledger.Hash{}, nil, slices.Concat(facts, []fact{{events.TypeAgentVerified, verified}})...)
	return err
}

// countCredit is the append that counts a mailbox whose agent is given credit.
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

// mailboxOf names the mailbox of a customer's address; of one that was erased it is the
// customer alone.
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

// creditApart gives an agent the credit of the customer who vouches for it if the agent and
// the count of credits are in different partitions. It makes two appends after the one that
// assigned the agent: the count first, so that never more credit is given than counted. A
// crash may leave any of them out; vouching for the agent again completes them.
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
	for _, e := range counted.Events { // an equal append may have been for another agent, and hold more
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
