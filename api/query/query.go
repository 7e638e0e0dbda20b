package query

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Limits of lists and searches.
const (
	MostSearched  = 4000 // records that a search decrypts for one page
	searchBatch   = 200  // records that are decrypted at once
	MostDelivered = 100  // newest messages to a webhook that a list shows
	MostMachines  = 50   // machines whose guards a list shows, most recent report first
)

// Error converts an error of a projection into the error for callers.
func Error(err error) error {
	switch {
	case errors.Is(err, projections.ErrNotFound):
		return policy.Refuse(ground.CodeNotFound, "", "not found")
	case errors.Is(err, projections.ErrBehind):
		return &ground.Unavailable{Cause: err}
	}
	return err
}

// LastUse returns when each token of an organization last caused an event: a decision, a receipt, a draft
// or an export. What a token reads is no event. Tokens that caused none are left out.
func (s Decisions) LastUse(ctx context.Context, p organizations.Principal, tokens []organizations.TokenInfo) (map[string]time.Time, error) {
	actors := make([]string, len(tokens))
	for i, t := range tokens {
		actors[i] = organizations.TokenActor(t.TokenID)
	}
	last, err := s.Projections.LastRecorded(ctx, p.OrgID, actors)
	if err != nil {
		return nil, Error(err)
	}
	found, err := s.Commands.Ledger.BySequence(ctx, p.OrgID, slices.Collect(maps.Values(last)))
	if err != nil {
		return nil, ground.Refusal(err)
	}
	used := map[string]time.Time{}
	for _, t := range tokens {
		if e, ok := found[last[organizations.TokenActor(t.TokenID)]]; ok {
			used[t.TokenID] = e.Occurred()
		}
	}
	return used, nil
}
