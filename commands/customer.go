package commands

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// Accounts has the commands about customers, their sign-in and keys, and agents.
type Accounts struct {
	*Ground

	// TokenKeys are the keys of access tokens: the first signs, all verify. Without any no
	// token is issued and none is valid.
	TokenKeys []ed25519.PrivateKey
	// SupportClients are the agents (agt_…) whose tokens may carry support:read.
	SupportClients []string

	keys   cache[knownKey]
	agents cache[agent]
}

// EnsureCustomer returns the customer of an e-mail address, in lower case, and
// makes one at first.
func (a *Accounts) EnsureCustomer(ctx context.Context, address string) (string, error) {
	if a.Vault == nil {
		return "", a.noVault()
	}
	home := a.mailboxRef(address)
	tenant := a.serviceOf(home)
	return retry(ctx, a.Ground, nil, func(ctx context.Context) (string, error) {
		dataKey, err := a.Vault.Subject(ctx, tenant, "email:"+address, a.NewID("sub_"))
		if err != nil {
			return "", err
		}
		key := customerKey(dataKey)
		stored, err := a.Ledger.ByKey(ctx, tenant, key, ledger.Hash{})
		if err != nil {
			return "", err
		}
		if stored == nil {
			if stored, err = a.createCustomer(ctx, home, key, dataKey, address); err != nil {
				return "", err
			}
		}
		var created events.CustomerCreated
		err = stored[0].Read(&created)
		return created.CustomerID, err
	})
}

// customerKey finds the customer whose address a data key seals.
func customerKey(dataKey string) ledger.Hash { return ledger.IdemKey("customer", dataKey) }
func (a *Accounts) createCustomer(ctx context.Context, home string, key ledger.Hash, dataKey, address string) ([]ledger.Event, error) {
	customer, id, tenant := a.newIDAt(home, "cus_"), a.NewID("evt_"), a.serviceOf(home)
	payload, err := a.Vault.Seal(ctx, tenant, id, dataKey,
		events.CustomerCreated{CustomerID: customer, Email: address, Subject: dataKey})
	if err != nil {
		return nil, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, Drafts: []ledger.Draft{{
		Stream: "customer/" + customer, Expect: ledger.New(), ID: id, Type: events.TypeCustomerCreated,
		SchemaVersion: 1, Actor: "system", Payload: payload}}})
	return result.Events, err
}

var errNoCustomer = policy.Refuse(CodeNotFound, "", "customer not found")

// customerOf reads the data key of a customer and the event that has the e-mail address.
func (a *Accounts) customerOf(ctx context.Context, customerID string) (dataKey string, created ledger.Event, err error) {
	if !strings.HasPrefix(customerID, "cus_") {
		return "", created, errNoCustomer
	}
	history, err := a.Ledger.Read(ctx, a.serviceOf(customerID), "customer/"+customerID)
	if err != nil {
		return "", created, err
	}
	for _, e := range history.Events {
		if e.Type == events.TypeCustomerCreated {
			var c events.CustomerCreated
			err := e.Read(&c)
			return c.Subject, e, err
		}
	}
	return "", created, errNoCustomer
}

// addressOf returns the e-mail address in the event that created a customer, and "" once it
// is erased.
func (a *Accounts) addressOf(ctx context.Context, created ledger.Event) (string, error) {
	if a.Vault == nil {
		return "", a.noVault()
	}
	var customer events.CustomerCreated
	if err := a.Vault.Open(ctx, created, &customer); err != nil {
		if errors.Is(err, ledger.ErrErased) {
			return "", nil
		}
		return "", refusal(err)
	}
	address, _ := customer.Email.(string)
	return address, nil
}
