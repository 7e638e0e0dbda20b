package web

import (
	"context"
	"html/template"
	"time"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/keeper"
)

// overviewDays is how far back the overview looks.
const overviewDays = 30

// overview answers whether anything is on fire.
type overview struct {
	Reviews    []query.ListedDecision
	MoreThere  bool
	Violations []query.ListedDecision
	Days       []Day         // the oldest first
	Chart      template.HTML // of them; empty where nothing was decided
	Allowed    int
	Denied     int
	Reviewed   int
	Policy     *decisions.Activation
	Stops      bool // it allows nothing, as after an emergency stop
	Checkpoint *checkpointShown
	Head       int64
	Check      ledger.SelfCheck // the ledger's last verification of itself
	State      ledger.Condition
	Keys       keyUse
	Steps      bool // nothing has been decided yet
}

// keyUse is what soon stops working of what gives access.
type keyUse struct {
	accounts.Usage                           // of the free calls of who looks, this month
	Free           int64                     // of them
	Near           bool                      // few are left
	Ending         []organizations.TokenInfo // tokens of the organization that end soon
}

// endsSoon is how long before its end a token is shown on the overview: long enough to
// rotate it in a working week.
const endsSoon = 14 * 24 * time.Hour

// keysNearLimit looks at the free calls of the person and the tokens of the
// organization, as far as the person may see them.
func (s *Handler) keysNearLimit(ctx context.Context, v *visit, p organizations.Principal) (use keyUse, err error) {
	if use.Usage, err = s.app.AccountUsage(ctx, v.session.Customer); err != nil {
		return use, err
	}
	use.Free = accounts.FreeCallsPerMonth
	use.Near = use.Used >= nearLimit
	if p.May(organizations.RightMembers) != nil {
		return use, nil
	}
	tokens, err := s.app.Tokens(ctx, p)
	if err != nil {
		return use, err
	}
	until := ground.Stamp(s.app.Clock().Add(endsSoon))
	for _, t := range tokens {
		if t.State == "active" && t.ExpiresAt < until { // both are stamps of one form
			use.Ending = append(use.Ending, t)
		}
	}
	return use, nil
}

// checkpointShown is the newest signed head of the ledger.
type checkpointShown struct {
	Size int64
	Lag  time.Duration // for how long it has been behind the head
	Note string
}

func showOverview(s *Handler, v *visit) (view, error) {
	ctx, p := v.request.Context(), v.principal
	var o overview
	var more int64
	var err error
	if o.Reviews, more, err = s.queries().Reviews(ctx, p, query.Filter{}, 0, openReviews); err != nil {
		return view{}, err
	}
	o.MoreThere = more > 0
	violations, err := s.queries().Search(ctx, p, query.Violations(), 5, "")
	if err != nil {
		return view{}, err
	}
	o.Violations = violations.Items
	if err := s.addVerdicts(ctx, p, &o); err != nil {
		return view{}, err
	}
	if p.May(organizations.RightPolicies) == nil {
		_, activations, err := s.app.Policies(ctx, p)
		if err != nil {
			return view{}, err
		}
		if n := len(activations); n > 0 {
			active, err := versionShown(activations[n-1], nil)
			if err != nil {
				return view{}, err
			}
			o.Policy, o.Stops = &active.Activation, active.Stops
		}
	}
	o.Checkpoint = s.newestCheckpoint()
	if o.Head, err = s.app.Ledger.Total(ctx); err != nil {
		return view{}, ground.Unreadable(err)
	}
	o.Check, o.State = s.app.Ledger.LastCheck(), s.app.Ledger.Condition()
	if o.Keys, err = s.keysNearLimit(ctx, v, p); err != nil {
		return view{}, err
	}
	o.Steps = o.Allowed+o.Denied+o.Reviewed == 0
	return view{template: "overview.html", data: o}, nil
}

// newestCheckpoint is what the newest checkpoints of all partitions cover together,
// with their notes; nil where one has none yet.
func (s *Handler) newestCheckpoint() *checkpointShown {
	shown := &checkpointShown{Lag: keeper.Lag(s.app.Ledger)}
	for _, p := range s.app.Ledger.Partitions() {
		c := keeper.Known(p)
		if c == nil {
			return nil
		}
		shown.Size += c.Size
		shown.Note += string(c.Note)
	}
	return shown
}

func (s *Handler) addVerdicts(ctx context.Context, p organizations.Principal, o *overview) error {
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
		return query.Error(err)
	}
	counted := map[time.Time]Day{}
	for _, d := range days {
		counted[d.Day] = Day{Allowed: d.Allowed, Denied: d.Denied, Reviewed: d.Reviewed}
		o.Allowed, o.Denied, o.Reviewed = o.Allowed+d.Allowed, o.Denied+d.Denied, o.Reviewed+d.Reviewed
	}
	o.Days = lastDays(counted, now, overviewDays)
	if o.Allowed+o.Denied+o.Reviewed == 0 {
		return nil
	}
	var labels []string
	var allowed, reviewed, denied []float64
	for _, d := range o.Days {
		labels = append(labels, d.Date.Format("2 Jan"))
		allowed, reviewed, denied = append(allowed, float64(d.Allowed)), append(reviewed, float64(d.Reviewed)), append(denied, float64(d.Denied))
	}
	drawn, err := plot.Decisions(labels, allowed, reviewed, denied)
	o.Chart = Trusted(drawn.SVG)
	return err
}

// Day is the verdicts of one day.
type Day struct {
	Date                      time.Time
	Allowed, Denied, Reviewed int
}

// lastDays are today and the days before it; days without decisions are there.
func lastDays(counted map[time.Time]Day, today time.Time, days int) (list []Day) {
	for n := days - 1; n >= 0; n-- {
		date := today.UTC().Truncate(24*time.Hour).AddDate(0, 0, -n)
		d := counted[date]
		d.Date = date
		list = append(list, d)
	}
	return list
}
