package services

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// charge selects the fund that pays for the computed answer and appends call.completed to the
// fund's stream. After the append the answer is final.
func (a *Services) charge(ctx context.Context, t keyedCall, answer policy.Answer) (Reply, error) {
	call := *t.call
	var p prepared
	for freeUsedUp := false; ; freeUsedUp = true { // at most two rounds: first all funds, then without the free calls
		// Only one call at a time may use a payer's credit or pass. If an equal call was answered
		// while this one waited, return the same answer.
		drawn := freeUsedUp || call.Agent != nil
		if drawn {
			done, err := a.turns.take(ctx, call.account())
			if err != nil {
				return Reply{}, err
			}
			defer done()
		}
		f, ok, err := a.fundOf(ctx, call, freeUsedUp)
		if err != nil {
			return Reply{}, err
		}
		if drawn {
			known, err := a.knownBut(ctx, t, f)
			if err == nil && known == nil && !ok {
				err = a.unfunded(call)
			}
			if known != nil || err != nil {
				return a.replay(ctx, known, err)
			}
		}
		// If the fund is in another partition, sign the answer again with the key of that
		// partition.
		if p.home != f.home {
			if p, err = a.prepare(ctx, call, f.home, answer); err != nil {
				return Reply{}, err
			}
		}
		pending, err := a.pendingCall(ctx, call, p, f)
		if err != nil {
			return Reply{}, err
		}
		tenant := a.ServiceOf(f.home)
		here, elsewhere := a.Apart(tenant, slices.Concat(p.preconditions, call.party().Preconditions, f.preconditions))
		if err := a.Unmoved(ctx, elsewhere); err != nil {
			return Reply{}, err
		}
		result, err := a.Ledger.Append(ctx, ledger.Append{
			Tenant: tenant, IdemKey: t.key, ContentHash: t.content, Events: []ledger.Pending{pending}, Preconditions: here, NotBefore: p.issued,
		})
		switch {
		case f.charge == chargedFree && errors.Is(err, ledger.ErrLimit):
			if call.account() == "" {
				return Reply{}, a.unfunded(call)
			}
			continue
		case err != nil:
			return Reply{}, err
		case result.Replayed:
			return a.replay(ctx, result.Events, nil)
		}
		return reply(result.Events, f.charge, p.answer.Body)
	}
}

// known returns the stored events of an equal call, searched in the partitions of homes, or nil.
func (a *Services) known(ctx context.Context, t keyedCall, homes []string) ([]ledger.Event, error) {
	if t.key == (ledger.Hash{}) {
		return nil, nil
	}
	for _, home := range homes {
		if stored, err := a.Ledger.ByKey(ctx, a.ServiceOf(home), t.key, t.content); err != nil || stored != nil {
			return stored, err
		}
	}
	return nil, nil
}

// knownBut returns the stored events of an equal call that the append to fund f would not find:
// one in another partition or, if no fund is left, in any partition. The equal call itself may
// have used up the fund, so that f is another fund or none.
func (a *Services) knownBut(ctx context.Context, t keyedCall, f fund) ([]ledger.Event, error) {
	return a.known(ctx, t, slices.DeleteFunc(a.homesOf(*t.call), func(home string) bool { return f.home != "" && a.ServiceOf(home) == a.ServiceOf(f.home) }))
}

// pendingCall returns the event call.completed for the stream of the fund that pays.
func (a *Services) pendingCall(ctx context.Context, call Call, p prepared, f fund) (ledger.Pending, error) {
	by, tenant := call.party(), a.ServiceOf(f.home)
	p.call.Charge, p.call.UsedCents = f.charge, f.used
	if call.Agent != nil {
		var err error
		if by.DataKey, err = a.AgentDataKey(ctx, tenant, call.Agent.Agent); err != nil {
			return ledger.Pending{}, err
		}
	}
	d := ledger.Pending{Stream: f.stream, Expect: f.expect, ID: a.NewID("evt_"), Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: by.Actor}
	if p.call.Integrity != nil {
		d.KeyID = p.call.Integrity.KeyID
	}
	var err error
	d.Payload, err = a.SealFor(ctx, tenant, d.ID, by, p.call)
	return d, err
}
