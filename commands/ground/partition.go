package ground

import (
	"context"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
)

// What belongs to no organization and is found by an id alone lives where that id is
// at home: ledger.Home of the id, as of a tenant. So an id says where to look, without
// a directory and without another form: one that has to be at a certain home is drawn
// again until it is, once for each partition on average.

// ServiceOf is the tenant of what is found by an id: an API key, a workflow.
func (a *Ground) ServiceOf(id string) string { return a.Ledger.Service(id) }

// Together says whether two names are at home in one partition.
func (a *Ground) Together(name, other string) bool {
	n := max(len(a.Ledger.Partitions()), a.DrawFor)
	return ledger.Home(name, n) == ledger.Home(other, n)
}

// NewCredential makes a secret whose public id is at home where something else is: a
// tenant, or another id.
func (a *Ground) NewCredential(prefix, home string) (text, id string, secret []byte) {
	return newCredential(prefix, func(id string) bool { return a.Together(id, home) })
}

// NewIDAt is NewID for an id that is at home where something else is.
func (a *Ground) NewIDAt(home, prefix string) string {
	for {
		if id := a.NewID(prefix); a.Together(id, home) {
			return id
		}
	}
}

// MailboxRef is the pseudonym of the mailbox behind an e-mail address. Its customers
// and its free keys live where that is at home.
func (a *Ground) MailboxRef(address string) string {
	return a.Vault.Reference(ledger.ServiceTenant, "email:"+Mailbox(address)).String()[:32]
}

// IdOf is the id in the name of a stream, <noun>/<id> or <noun>/<id>/<more>.
func IdOf(stream string) string {
	parts := strings.SplitN(stream, "/", 3)
	return parts[min(1, len(parts)-1)]
}

// Apart splits the preconditions of an append to a tenant into those that it can carry and
// those of another partition. The latter may move at any time, so the command checks them
// again (Unmoved): after everything that can be decided again, and right before what cannot
// be taken back. It always sees what was acknowledged before it began.
func (a *Ground) Apart(tenant string, preconditions []ledger.Precondition) (here, elsewhere []ledger.Precondition) {
	for _, g := range preconditions {
		if a.Ledger.Home(g.Tenant) == a.Ledger.Home(tenant) {
			here = append(here, g)
		} else {
			elsewhere = append(elsewhere, g)
		}
	}
	return here, elsewhere
}

// Unmoved says whether streams are still as they were read: else ErrMoved.
func (a *Ground) Unmoved(ctx context.Context, preconditions []ledger.Precondition) error {
	for _, g := range preconditions {
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

// PlaceOf returns where an event is in the ledger, as envelopes of records say it.
func PlaceOf(e ledger.Event) *seal.Place {
	place := e.Place()
	return &place
}
