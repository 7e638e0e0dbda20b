package commands

import (
	"context"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// RevokeToken ends a token at once. Revoking it again changes nothing; an id of
// another organization is as unknown as any.
func (a *Organizations) RevokeToken(ctx context.Context, p Principal, id, reason string) error {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return err
	}
	if reason == "" {
		reason = "revoked"
	}
	if err := checkText("reason", reason, maxReason); err != nil {
		return err
	}
	_, err = retry(ctx, a.Ground, a.again(&p, RightManage), func(ctx context.Context) (struct{}, error) {
		now := a.now()
		t, err := a.readToken(ctx, p.OrgID, id)
		if err != nil {
			return struct{}{}, err
		}
		if t.id == "" {
			return struct{}{}, policy.Refuse(CodeNotFound, "", "token not found")
		}
		if !t.revoked.IsZero() && !now.Before(t.revoked) {
			return struct{}{}, nil
		}
		_, err = a.appendAs(ctx, p, []ledger.Draft{{Stream: tokenStream(id), Expect: t.at(), Type: events.TypeOrganizationTokenRevoked}},
			[]any{events.OrganizationTokenRevoked{TokenID: id, Reason: reason, EffectiveAt: Stamp(now)}})
		return struct{}{}, err
	})
	return err
}
