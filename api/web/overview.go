package web

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands"
)

// overviewDays is how far back the overview looks.
const overviewDays = 30

// overview answers whether anything is on fire.
type overview struct {
	Reviews    []ListedDecision
	MoreThere  bool
	Violations []ListedDecision
	Chart      Chart
	Allowed    int
	Denied     int
	Reviewed   int
	Policy     *commands.Activation
	Checkpoint *checkpointShown
	Head       int64
	Steps      bool // nothing has been decided yet
}

// checkpointShown is the newest signed head of the ledger.
type checkpointShown struct {
	Size int64
	Lag  time.Duration // for how long it has been behind the head
	Note string
}

func showOverview(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.reader(v, commands.RightRead)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	ctx := v.request.Context()
	var o overview
	if o.Reviews, o.MoreThere, err = s.openReviewList(ctx, p); err != nil {
		return view{}, err
	}
	violations, err := s.SearchDecisions(ctx, p, DecisionFilter{Conformance: "violation"}, 5, "")
	if err != nil {
		return view{}, err
	}
	o.Violations = violations.Items
	if err := s.addVerdicts(ctx, p, &o); err != nil {
		return view{}, err
	}
	if p.May(commands.RightPolicies) == nil {
		_, activations, err := s.app.Policies(ctx, p)
		if err != nil {
			return view{}, err
		}
		if n := len(activations); n > 0 {
			o.Policy = &activations[n-1]
		}
	}
	o.Checkpoint = s.newestCheckpoint()
	if o.Head, err = s.app.Ledger.Head(ctx); err != nil {
		return view{}, commands.Unreadable(err)
	}
	o.Steps = o.Allowed+o.Denied+o.Reviewed == 0
	return view{template: "overview.html", data: o}, nil
}

func (s *Handler) newestCheckpoint() *checkpointShown {
	c := s.app.Ledger.Checkpoint()
	if c == nil {
		return nil
	}
	return &checkpointShown{int64(c.Size), s.app.Ledger.CheckpointLag(), string(c.Note)}
}

func (s *Handler) addVerdicts(ctx context.Context, p commands.Principal, o *overview) error {
	now := s.app.Clock()
	from, err := s.app.SequenceAt(ctx, p, now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-overviewDays))
	if err != nil {
		return err
	}
	var actors []string
	if p.OwnOnly() {
		if actors, err = s.app.OwnActors(ctx, p); err != nil {
			return err
		}
	}
	days, err := s.projections.Verdicts(ctx, p.OrgID, actors, from)
	if err != nil {
		return HistoryError(err)
	}
	counted := map[time.Time]Day{}
	for _, d := range days {
		counted[d.Day] = Day{Allowed: d.Allowed, Denied: d.Denied, Reviewed: d.Reviewed}
		o.Allowed, o.Denied, o.Reviewed = o.Allowed+d.Allowed, o.Denied+d.Denied, o.Reviewed+d.Reviewed
	}
	o.Chart = Columns(counted, now, overviewDays)
	return nil
}
