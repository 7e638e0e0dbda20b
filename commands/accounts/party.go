package accounts

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/vault"
)

// Party is the person or agent that a call is answered for. Calls are recorded under this name
// and encrypted with this data key.
type Party struct {
	Actor         string
	DataKey       string
	Subject       string // owner of a new data key, for when DataKey was erased
	Preconditions []ledger.Precondition
}

// Party returns the agent as the party that a call is recorded for.
func (g Agent) Party() Party {
	return Party{Actor: g.ClientID, DataKey: g.Agent.dataKey, Subject: "agent:" + g.ClientID, Preconditions: []ledger.Precondition{g.Agent.precondition}}
}

// SealFor encrypts what is stored about a party with its data key. If the data key was erased,
// it uses a key of the party's own.
func (a *Accounts) SealFor(ctx context.Context, tenant, eventID string, by Party, stored any) ([]byte, error) {
	payload, err := a.Vault.Seal(ctx, tenant, eventID, by.DataKey, stored)
	if !errors.Is(err, vault.ErrErased) {
		return payload, err
	}
	dataKey, err := a.Vault.Subject(ctx, tenant, by.Subject, a.NewID("sub_"))
	if err != nil {
		return nil, err
	}
	return a.Vault.Seal(ctx, tenant, eventID, dataKey, stored)
}
