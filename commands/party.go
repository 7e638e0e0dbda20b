package commands

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
)

// party is whom a call is answered to: it is recorded under this name and sealed
// under this data key.
type party struct {
	actor   string
	dataKey string
	subject string // of a data key of the party's own, where that one was erased
	guards  []ledger.Guard
}

// party is the agent as the one a call is recorded of.
func (g Agent) party() party {
	return party{actor: g.ClientID, dataKey: g.agent.dataKey, subject: "agent:" + g.ClientID, guards: []ledger.Guard{g.agent.guard}}
}

// sealFor seals what is stored about a party under its data key. If the person
// behind it was erased, the party goes on, sealed for itself alone.
func (a *Accounts) sealFor(ctx context.Context, tenant, eventID string, by party, stored any) ([]byte, error) {
	payload, err := a.Vault.Seal(ctx, tenant, eventID, by.dataKey, stored)
	if !errors.Is(err, ledger.ErrErased) {
		return payload, err
	}
	dataKey, err := a.Vault.Subject(ctx, tenant, by.subject, a.NewID("sub_"))
	if err != nil {
		return nil, err
	}
	return a.Vault.Seal(ctx, tenant, eventID, dataKey, stored)
}
