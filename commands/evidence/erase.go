package evidence

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Erasure says whose personal members are to be erased, and on whose word: two
// people, of whom neither can do it alone.
type Erasure struct {
	Tenant      string // org_…, or service
	Subject     string // "agent:<agentId>", "run:<runId>", "email:<address>" or "payer:<network>:<address>"; or
	KeyID       string // the data key, sub_…, where that is known
	Reason      string
	RequestedBy string
	ApprovedBy  string
}

// erasuresSubject names the data key under which a tenant's events subject.erased are
// sealed. It has no prefix such as "agent:", so that no caller's subject is equal to it.
const erasuresSubject = "erasures"

// EraseSubject destroys a subject's data key together with the event that says so.
// The chain, the tree, the counts and the signatures over stored records stay as
// they are. Erasing twice is one event. It returns the data key's id.
func (a *Evidence) EraseSubject(ctx context.Context, e Erasure) (keyID string, err error) {
	switch {
	case a.Vault == nil:
		return "", a.NoVault()
	case strings.TrimSpace(e.Reason) == "" || len(e.Reason) > ground.MaxReason || normal.Text(e.Reason, true) != nil:
		return "", policy.Refuse("invalid_value", "/reason", "reason must be 1 to 1000 visible characters, without white space at an end")
	case e.RequestedBy == "" || e.ApprovedBy == "" || e.RequestedBy == e.ApprovedBy:
		return "", policy.Refuse("invalid_value", "/approvedBy", "requestedBy and approvedBy must be two people: what is erased cannot come back")
	}
	if strings.HasPrefix(e.Subject, "payer:") {
		e.Subject = strings.ToLower(e.Subject)
	}
	held, err := a.dataKeysOf(ctx, e)
	if err != nil {
		return "", ground.Refusal(err)
	}
	for _, key := range held {
		if err := a.eraseDataKey(ctx, e, key); err != nil {
			return "", ground.Refusal(err)
		}
		keyID = cmp.Or(keyID, key.id)
	}
	if keyID == "" {
		return "", policy.Refuse(ground.CodeNotFound, "/subject", "no data key of this subject: nothing is sealed for it, or it was erased before")
	}
	return keyID, nil
}

// heldKey is a data key and the tenant it is of.
type heldKey struct{ tenant, id string }

// dataKeysOf finds what an erasure is about: a subject of an organization has one data
// key, one of the service's own in each partition that holds something of it.
func (a *Evidence) dataKeysOf(ctx context.Context, e Erasure) ([]heldKey, error) {
	tenants := []string{e.Tenant}
	if e.Tenant == ledger.ServiceTenant {
		tenants = nil
		for _, p := range a.Ledger.Partitions() {
			tenants = append(tenants, p.Service())
		}
	}
	var held []heldKey
	for _, tenant := range tenants {
		id := e.KeyID
		if id == "" {
			var err error
			if id, err = a.Vault.Find(ctx, tenant, e.Subject); err != nil {
				return nil, err
			}
		}
		known, err := a.Vault.Holds(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if known {
			held = append(held, heldKey{tenant, id})
		}
	}
	if held == nil && e.KeyID != "" { // what is no data key is refused where it is looked for
		held = []heldKey{{e.Tenant, e.KeyID}}
	}
	return held, nil
}

func (a *Evidence) eraseDataKey(ctx context.Context, e Erasure, key heldKey) error {
	if err := a.endSessions(ctx, key); err != nil {
		return err
	}
	// The reason and the two names are sealed under a key of the tenant's own, so that
	// they can be read after this erasure and are never stored in the clear.
	erasures, err := a.Vault.Subject(ctx, key.tenant, erasuresSubject, a.NewID("sub_"))
	if err != nil {
		return err
	}
	if key.id == erasures {
		return policy.Refuse("invalid_value", "/keyId", "keyId must not name the key of the erasures themselves: it seals who asked for each of them, and why")
	}
	eventID := a.NewID("evt_")
	payload, err := a.Vault.Seal(ctx, key.tenant, eventID, erasures, events.SubjectErased{KeyID: key.id, Reason: events.Text(e.Reason),
		RequestedBy: events.Text(e.RequestedBy), ApprovedBy: events.Text(e.ApprovedBy)})
	if err != nil {
		return err
	}
	if _, err = a.Vault.Erase(ctx, key.tenant, key.id, ledger.Pending{ID: eventID, Actor: "operator", Payload: payload}); err != nil {
		return err
	}
	a.ForgetDataKey(key.id)
	return a.endSessions(ctx, key) // also those that began meanwhile
}

// endSessions signs the person out whose data key this is, if it is a customer's. Every
// node reads the table at each request.
func (a *Evidence) endSessions(ctx context.Context, key heldKey) error {
	stored, err := a.Ledger.ByKey(ctx, key.tenant, accounts.CustomerKey(key.id), ledger.Hash{})
	if err != nil || stored == nil {
		return err
	}
	created, err := events.As[events.CustomerCreated](stored[0])
	if err != nil {
		return err
	}
	_, err = a.Ledger.Pool().Exec(ctx, `delete from sessions where p = 0 and customer = $1`, created.CustomerID)
	return err
}
