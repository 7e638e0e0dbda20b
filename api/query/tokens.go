package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
)

// LastUse returns when each token of an organization last caused an event: a decision, a receipt, a draft
// or an export. Reading causes no event. The result omits tokens without an event.
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
