package organizations

import (
	"context"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// RevokeToken revokes a token, with immediate effect. If it is revoked already, it changes
// nothing. The id of another organization's token is refused like an unknown id.
func (a *Organizations) RevokeToken(ctx context.Context, p Principal, id, reason string) error {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return err
	}
	if reason == "" {
		reason = "revoked"
	}
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return err
	}
	_, err = ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (struct{}, error) {
		now := a.Now()
		t, err := a.readToken(ctx, p.OrgID, id)
		if err != nil {
			return struct{}{}, err
		}
		if t.id == "" {
			return struct{}{}, policy.Refuse(ground.CodeNotFound, "", "token not found")
		}
		if !t.revoked.IsZero() && !now.Before(t.revoked) {
			return struct{}{}, nil
		}
		_, err = a.AppendAs(ctx, p, []ledger.Pending{{Stream: tokenStream(id), Expect: t.at(), Type: events.TypeOrganizationTokenRevoked}},
			[]any{events.OrganizationTokenRevoked{TokenID: id, Reason: reason, EffectiveAt: canon.Stamp(now)}})
		return struct{}{}, err
	})
	return err
}
