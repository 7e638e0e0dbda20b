package evidence

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Erasure names a subject whose personal data is to be erased, and the two different people who
// requested and approved this.
type Erasure struct {
	Tenant      string // id of an organization (org_…), or "service"
	Subject     string // "agent:<agentId>", "run:<runId>", "email:<address>" or "payer:<network>:<address>"; not used if KeyID is set
	KeyID       string // id of the data key (sub_…), if known; empty: it is found by Subject
	Reason      string
	RequestedBy string
	ApprovedBy  string
}

// erasuresSubject names the data key that encrypts a tenant's events subject.erased. It has no
// prefix such as "agent:", so it differs from every subject that a caller can name.
const erasuresSubject = "erasures"

// EraseSubject destroys a subject's data key and records this in an event. Hash chain, tree,
// counts and the signatures of stored records stay valid. It returns the id of the data key. If
// the key with KeyID is destroyed already, it adds no event; if Subject has no data key any more,
// it returns the refusal not_found.
func (a *Evidence) EraseSubject(ctx context.Context, e Erasure) (keyID string, err error) {
	switch {
	case a.Vault == nil:
		return "", a.NoVault()
	case strings.TrimSpace(e.Reason) == "" || len(e.Reason) > ground.MaxReason || normal.Text(e.Reason, true) != nil:
		return "", policy.Refuse("invalid_value", "/reason", "reason must be 1 to 1000 visible characters, without white space at the beginning or end")
	case e.RequestedBy == "" || e.ApprovedBy == "" || e.RequestedBy == e.ApprovedBy:
		return "", policy.Refuse("invalid_value", "/approvedBy", "requestedBy and approvedBy must be two different people, because an erasure cannot be undone")
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
		return "", policy.Refuse(ground.CodeNotFound, "/subject", "the subject has no data key: nothing is encrypted for it, or it was erased before")
	}
	return keyID, nil
}

// heldKey is the id of a data key with its tenant.
type heldKey struct{ tenant, id string }

// dataKeysOf returns the data keys to destroy. A subject of an organization has one; a subject of
// the service has one in each partition that stores data about it.
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
	if held == nil && e.KeyID != "" { // unknown in every partition: the vault will refuse it
		held = []heldKey{{e.Tenant, e.KeyID}}
	}
	return held, nil
}

func (a *Evidence) eraseDataKey(ctx context.Context, e Erasure, key heldKey) error {
	if err := a.endSessions(ctx, key); err != nil {
		return err
	}
	// The event's reason and names are encrypted with another key of the tenant. So they are never
	// stored unencrypted, and stay readable after this erasure.
	erasures, err := a.Vault.Subject(ctx, key.tenant, erasuresSubject, a.NewID("sub_"))
	if err != nil {
		return err
	}
	if key.id == erasures {
		return policy.Refuse("invalid_value", "/keyId", "keyId must not name the key that encrypts the reasons of erasures")
	}
	if a.KeepErased != nil {
		if err := a.KeepErased(key.tenant, key.id); err != nil {
			return fmt.Errorf("store the key id next to the checkpoints (nothing was erased): %w", err)
		}
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
	return a.endSessions(ctx, key) // again, for sessions that began during the erasure
}

// endSessions deletes the sessions of the customer with this data key, if there is one. Each node
// reads sessions from the database, so this takes effect immediately.
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
