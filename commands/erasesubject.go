package commands

import (
	"context"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
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

// EraseSubject destroys a subject's data key together with the event that says so.
// The chain, the tree, the counts and the signatures over stored records stay as
// they are. Erasing twice is one event. It returns the data key's id.
func (a *App) EraseSubject(ctx context.Context, e Erasure) (keyID string, err error) {
	switch {
	case a.Vault == nil:
		return "", a.noVault()
	case strings.TrimSpace(e.Reason) == "" || len(e.Reason) > maxReason:
		return "", policy.Refuse("invalid_value", "/reason", "reason must be 1 to 1000 characters")
	case e.RequestedBy == "" || e.ApprovedBy == "" || e.RequestedBy == e.ApprovedBy:
		return "", policy.Refuse("invalid_value", "/approvedBy", "requestedBy and approvedBy must be two people: what is erased cannot come back")
	}
	if strings.HasPrefix(e.Subject, "payer:") {
		e.Subject = strings.ToLower(e.Subject)
	}
	if keyID = e.KeyID; keyID == "" {
		if keyID, err = a.Vault.Find(ctx, e.Tenant, e.Subject); err != nil {
			return "", refusal(err)
		}
	}
	if keyID == "" {
		return "", policy.Refuse(CodeNotFound, "/subject", "no data key of this subject: nothing is stored about it, or it was erased before")
	}
	payload, err := canon.Marshal(events.SubjectErased{KeyID: keyID, Reason: e.Reason, RequestedBy: e.RequestedBy, ApprovedBy: e.ApprovedBy})
	if err != nil {
		return "", err
	}
	if _, err = a.Vault.Erase(ctx, e.Tenant, keyID, ledger.Draft{ID: a.NewID("evt_"), Actor: "operator", Payload: payload}); err != nil {
		return "", refusal(err)
	}
	a.forgetDataKey(keyID)
	return keyID, nil
}
