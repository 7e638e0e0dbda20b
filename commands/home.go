package commands

import (
	"context"

	"github.com/countersign/countersign/ledger"
)

// What belongs to no organization and is found by an id alone lives where that id is
// at home: ledger.Home of the id, as of a tenant. So an id says where to look, without
// a directory and without another form: one that has to be at a certain home is drawn
// again until it is, once for each partition on average.

// serviceOf is the tenant of what is found by an id: an API key, a workflow.
func (a *App) serviceOf(id string) string { return a.Ledger.Service(id) }

// newCredential makes a secret whose public id is at home where something else is: a
// tenant, or another id.
func (a *App) newCredential(prefix, home string) (text, id string, secret []byte) {
	return newCredential(prefix, func(id string) bool { return a.Ledger.Home(id) == a.Ledger.Home(home) })
}

// tenantOf is where a call is recorded: with the key that makes it. Payments and
// agents may touch a customer's account, and stand where that is.
func (a *App) tenantOf(c Call) string {
	if c.payment != nil || c.Agent != nil {
		return ledger.ServiceTenant
	}
	return a.serviceOf(c.Caller.id)
}

// apart splits what an append to a tenant rests on: guards that it can carry, and
// streams that stand in another partition. Those may move at any time, so whoever
// appends looks at them again afterwards (unmoved), and decides anew if they have.
func (a *App) apart(tenant string, guards []ledger.Guard) (here, elsewhere []ledger.Guard) {
	for _, g := range guards {
		if a.Ledger.Home(g.Tenant) == a.Ledger.Home(tenant) {
			here = append(here, g)
		} else {
			elsewhere = append(elsewhere, g)
		}
	}
	return here, elsewhere
}

// unmoved says whether streams are still as they were read: else ErrMoved.
func (a *App) unmoved(ctx context.Context, guards []ledger.Guard) error {
	for _, g := range guards {
		version, err := a.Ledger.Version(ctx, g.Tenant, g.Stream)
		if err != nil {
			return err
		}
		if version != g.Version {
			return ledger.ErrMoved
		}
	}
	return nil
}
