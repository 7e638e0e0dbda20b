package accounts

import (
	"context"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// RevokeKey revokes a key, with immediate effect. If it is revoked already, it changes nothing.
func (a *Accounts) RevokeKey(ctx context.Context, id, reason string) error {
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return err
	}
	return a.revokeKey(ctx, id, "operator", reason)
}

func (a *Accounts) revokeKey(ctx context.Context, id, actor, reason string) error {
	_, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		a.keys.Remove(id)
		known, err := a.lookUpKey(ctx, id)
		if err != nil {
			return struct{}{}, err
		}
		if known.caller.KeyID == "" {
			return struct{}{}, errNoKey
		}
		if known.revoked {
			return struct{}{}, nil
		}
		payload, err := canon.Marshal(events.KeyRevoked{KeyID: known.caller.KeyID, Reason: reason})
		if err != nil {
			return struct{}{}, err
		}
		history, err := a.Ledger.Read(ctx, a.ServiceOf(id), "key/"+id)
		if err != nil {
			return struct{}{}, err
		}
		_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: history.Tenant, Events: []ledger.Pending{{
			Stream: history.Stream, Expect: history.At(), ID: a.NewID("evt_"), Type: events.TypeKeyRevoked,
			SchemaVersion: 1, Actor: actor, Payload: payload}}})
		a.keys.Remove(id)
		return struct{}{}, err
	})
	return err
}
