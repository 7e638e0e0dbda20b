package accounts

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/vault"
)

// Party is the caller or agent for which a call is recorded. Actor names it in the event, and
// DataKey encrypts the request and the answer.
type Party struct {
	Actor         string
	DataKey       string
	Subject       string // owner of the new data key that replaces DataKey after an erasure
	Preconditions []ledger.Precondition
}

// Party returns the actor and data key with which the agent's calls are recorded.
func (g Agent) Party() Party {
	return Party{Actor: g.ClientID, DataKey: g.Agent.dataKey, Subject: "agent:" + g.ClientID, Preconditions: []ledger.Precondition{g.Agent.precondition}}
}

// SealFor encrypts the payload of an event with a party's data key. If that key was erased, it
// uses the data key of the party's Subject instead.
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
