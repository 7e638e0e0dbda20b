package ground

import (
	"context"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
)

// Data of the service that belongs to no organization is found by an id alone. It is stored in the
// partition that ledger.Home computes from the id, so no directory of ids is needed. If an id must
// belong to a certain partition, ids are drawn until one does; on average this takes as many draws
// as there are partitions.

// ServiceOf returns the service tenant that stores the data of an id, such as an API key's or a
// workflow's.
func (a *Ground) ServiceOf(id string) string { return a.Ledger.Service(id) }

// Together reports whether two names (ids or tenants) belong to the same partition.
func (a *Ground) Together(name, other string) bool {
	n := max(len(a.Ledger.Partitions()), a.DrawFor)
	return ledger.Home(name, n) == ledger.Home(other, n)
}

// NewCredential makes a credential whose public id belongs to the same partition as home, which is
// a tenant or an id.
func (a *Ground) NewCredential(prefix, home string) (text, id string, secret []byte) {
	return newCredential(prefix, func(id string) bool { return a.Together(id, home) })
}

// NewIDAt makes an id that belongs to the same partition as home, which is a tenant or an id.
func (a *Ground) NewIDAt(home, prefix string) string {
	for {
		if id := a.NewID(prefix); a.Together(id, home) {
			return id
		}
	}
}

// MailboxRef returns the pseudonym of the mailbox of an e-mail address. The mailbox's customers
// and free keys are stored in the partition of this pseudonym.
func (a *Ground) MailboxRef(address string) string {
	return a.Vault.Reference(ledger.ServiceTenant, "email:"+Mailbox(address)).String()[:32]
}

// IDOf returns the id in a stream's name, which has the form <noun>/<id> or <noun>/<id>/<more>.
func IDOf(stream string) string {
	parts := strings.SplitN(stream, "/", 3)
	return parts[min(1, len(parts)-1)]
}

// Apart splits the preconditions of an append to a tenant into those of the tenant's own partition
// and those of other partitions. The append can check only the former. Streams in other partitions
// may change at any time, so the command checks them itself with Unmoved, right before the first
// step that cannot be undone. This check sees every event that was acknowledged before the command
// began.
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

// Unmoved returns ledger.ErrMoved if a stream's version is not the one in its precondition.
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

// PositionOf returns the position of an event in the ledger, in the form used in envelopes.
func PositionOf(e ledger.Event) *seal.LedgerPosition {
	position := e.LedgerPosition()
	return &position
}
