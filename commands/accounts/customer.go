// Package accounts implements the commands for customers, their sign-in and API keys, and for
// agents and their tokens.
package accounts

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"

	"github.com/countersign/countersign/commands/cache"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
)

// Accounts implements the commands for customers, sign-in, API keys and agents.
type Accounts struct {
	*ground.Ground

	// TokenKeys sign and verify access tokens: the first key signs, and all of them verify.
	// Without a key no token is issued or accepted.
	TokenKeys []ed25519.PrivateKey
	// SupportClients lists the agents (agt_…) whose tokens may have the scope support:read.
	SupportClients []string

	keys   cache.Cache[knownKey]
	agents cache.Cache[AgentState]
}

// EnsureCustomer returns the id of the customer with an e-mail address, and creates the customer
// if there is none. The address must be in lower case.
func (a *Accounts) EnsureCustomer(ctx context.Context, address string) (string, error) {
	if a.Vault == nil {
		return "", a.NoVault()
	}
	home := a.MailboxRef(address)
	tenant := a.ServiceOf(home)
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (string, error) {
		dataKey, err := a.Vault.Subject(ctx, tenant, "email:"+address, a.NewID("sub_"))
		if err != nil {
			return "", err
		}
		key := CustomerKey(dataKey)
		stored, err := a.Ledger.ByKey(ctx, tenant, key, ledger.Hash{})
		if err != nil {
			return "", err
		}
		if stored == nil {
			if stored, err = a.createCustomer(ctx, home, key, dataKey, address); err != nil {
				return "", err
			}
		}
		created, err := events.As[events.CustomerCreated](stored[0])
		return created.CustomerID, err
	})
}

// CustomerKey returns the idempotency key by which the ledger finds the customer of a data key.
func CustomerKey(dataKey string) ledger.Hash { return ledger.IdemKey("customer", dataKey) }
func (a *Accounts) createCustomer(ctx context.Context, home string, key ledger.Hash, dataKey, address string) ([]ledger.Event, error) {
	customer, id, tenant := a.NewIDAt(home, "cus_"), a.NewID("evt_"), a.ServiceOf(home)
	payload, err := a.Vault.Seal(ctx, tenant, id, dataKey,
		events.CustomerCreated{CustomerID: customer, Email: address, Subject: dataKey})
	if err != nil {
		return nil, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, Events: []ledger.Pending{{
		Stream: "customer/" + customer, Expect: ledger.New(), ID: id, Type: events.TypeCustomerCreated,
		SchemaVersion: 1, Actor: "system", Payload: payload}}})
	return result.Events, err
}

// ErrNoCustomer refuses an id that no customer has.
var ErrNoCustomer = policy.Refuse(ground.CodeNotFound, "", "customer not found")

// customerOf returns the id of a customer's data key, and the event that contains the encrypted
// e-mail address.
func (a *Accounts) customerOf(ctx context.Context, customerID string) (dataKey string, created ledger.Event, err error) {
	if !strings.HasPrefix(customerID, "cus_") {
		return "", created, ErrNoCustomer
	}
	history, err := a.Ledger.Read(ctx, a.ServiceOf(customerID), "customer/"+customerID)
	if err != nil {
		return "", created, err
	}
	for _, e := range history.Events {
		if e.Type == events.TypeCustomerCreated {
			c, err := events.As[events.CustomerCreated](e)
			return c.Subject, e, err
		}
	}
	return "", created, ErrNoCustomer
}

// AddressOf decrypts the e-mail address in the event that created a customer. It returns "" if the
// address was erased.
func (a *Accounts) AddressOf(ctx context.Context, created ledger.Event) (string, error) {
	if a.Vault == nil {
		return "", a.NoVault()
	}
	var customer events.CustomerCreated
	if err := a.Vault.Open(ctx, created, &customer); err != nil {
		if errors.Is(err, vault.ErrErased) {
			return "", nil
		}
		return "", ground.Refusal(err)
	}
	address, _ := customer.Email.(string)
	return address, nil
}
