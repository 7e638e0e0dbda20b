package accounts

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/vault"
)

// Party is whom a call is answered to: it is recorded under this name and sealed
// under this data key.
type Party struct {
	Actor         string
	DataKey       string
	Subject       string // of a data key of the party's own, where that one was erased
	Preconditions []ledger.Precondition
}

// Party is the agent as the one a call is recorded of.
func (g Agent) Party() Party {
	return Party{Actor: g.ClientID, DataKey: g.Agent.dataKey, Subject: "agent:" + g.ClientID, Preconditions: []ledger.Precondition{g.Agent.precondition}}
}

// SealFor seals what is stored about a party under its data key. If the person
// behind it was erased, the party goes on, sealed for itself alone.
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
