package ground

import (
	"context"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
)

// What belongs to no organization and is found by its id alone is stored in the partition
// that ledger.Home computes from the id, as for a tenant. So no directory of ids is needed.
// An id that must be in a certain partition is drawn again until it is: on average as many
// times as there are partitions.

// ServiceOf returns the service tenant that holds what is found by an id, such as an API
// key or a workflow.
func (a *Ground) ServiceOf(id string) string { return a.Ledger.Service(id) }

// Together reports whether two names belong to the same partition.
func (a *Ground) Together(name, other string) bool {
	n := max(len(a.Ledger.Partitions()), a.DrawFor)
	return ledger.Home(name, n) == ledger.Home(other, n)
}

// NewCredential makes a secret whose public id belongs to the same partition as home, which
// is a tenant or another id.
func (a *Ground) NewCredential(prefix, home string) (text, id string, secret []byte) {
	return newCredential(prefix, func(id string) bool { return a.Together(id, home) })
}

// NewIDAt makes an id that belongs to the same partition as home, which is a tenant or
// another id.
func (a *Ground) NewIDAt(home, prefix string) string {
	for {
		if id := a.NewID(prefix); a.Together(id, home) {
			return id
		}
	}
}

// MailboxRef returns the pseudonym of the mailbox of an e-mail address. Customers and free
// keys of the mailbox are stored in the partition of the pseudonym.
func (a *Ground) MailboxRef(address string) string {
	return a.Vault.Reference(ledger.ServiceTenant, "email:"+Mailbox(address)).String()[:32]
}

// IDOf returns the id in the name of a stream, which is <noun>/<id> or <noun>/<id>/<more>.
func IDOf(stream string) string {
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

// Unmoved returns ledger.ErrMoved if one of the streams is not at the version that was read.
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

// PositionOf returns the position of an event in the ledger, in the form that envelopes have.
func PositionOf(e ledger.Event) *seal.LedgerPosition {
	position := e.LedgerPosition()
	return &position
}
