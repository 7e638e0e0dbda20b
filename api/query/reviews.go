package query

import (
	"context"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/projections"
)

// Reviews lists the decisions after a sequence number that wait for a verdict and that the
// principal may see, oldest first. If there may be more, next is the sequence number to continue
// after; otherwise it is 0. Like Search, it decrypts the records to compare them.
func (s Decisions) Reviews(ctx context.Context, p organizations.Principal, f Filter, after int64, most int) (items []ListedDecision, next int64, err error) {
	in, batch := projections.ReviewFilter{After: after}, searchBatch
	if len(f.Query()) == 0 {
		batch = most + 1
	}
	if in.Actors, err = s.actors(ctx, p); err != nil {
		return nil, 0, err
	}
	for looked := 0; looked < MostSearched; looked += batch {
		rows, err := s.Projections.OpenReviews(ctx, p.OrgID, in, batch)
		if err != nil {
			return nil, 0, Error(err)
		}
		sequences := sequencesOf(rows)
		records, err := s.Commands.DecisionRecords(ctx, p, sequences)
		if err != nil {
			return nil, 0, err
		}
		denied, err := s.Commands.DeniedNow(ctx, p, sequences)
		if err != nil {
			return nil, 0, err
		}
		for _, row := range rows {
			d := listDecision(row, records[row.Sequence])
			d.DeniedNow = denied[row.Sequence]
			if !f.matches(d) {
				continue
			}
			if len(items) == most {
				return items, items[most-1].Sequence, nil
			}
			items = append(items, d)
		}
		if len(rows) < batch {
			return items, 0, nil
		}
		in.After = rows[len(rows)-1].Sequence
	}
	return items, in.After, nil
}

// CountReviews counts the decisions that wait for a verdict and that the principal may see, up to
// most.
func (s Decisions) CountReviews(ctx context.Context, p organizations.Principal, most int) (int, error) {
	actors, err := s.actors(ctx, p)
	if err != nil {
		return 0, err
	}
	rows, err := s.Projections.OpenReviews(ctx, p.OrgID, projections.ReviewFilter{Actors: actors}, most)
	return len(rows), Error(err)
}
