package org

import (
	"context"
	"html/template"
	"time"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
)

// overviewDays is how many days the chart of the overview covers.
const overviewDays = 30

// overview is the data of the overview: what needs attention, and how the organization is doing.
type overview struct {
	Reviews    []query.ListedDecision
	MoreThere  bool
	Violations []query.ListedDecision
	Days       []Day         // the oldest first
	Chart      template.HTML // of the days; empty if nothing was decided in them
	Allowed    int
	Denied     int
	Reviewed   int
	Policy     *decisions.Activation
	Stops      bool // it allows nothing, as after an emergency stop
	Checkpoint *web.Checkpoint
	Head       int64
	Check      ledger.SelfCheck // the ledger's last verification of itself
	State      ledger.Condition
	Keys       keyUse
	Steps      bool // nothing has been decided yet
}

// keyUse says which keys and tokens will soon stop working.
type keyUse struct {
	accounts.Usage                           // free calls that the person has used this month
	Free           int64                     // calls of a month
	Near           bool                      // few are left
	Ending         []organizations.TokenInfo // tokens of the organization that end soon
}

// endsSoon is how long before its expiry the overview shows a token. It leaves a working week to
// rotate it.
const endsSoon = 14 * 24 * time.Hour

// keysNearLimit returns the use of the person's free calls and, if the person may see them, the
// organization's tokens that expire soon.
func (r *Room) keysNearLimit(ctx context.Context, v *web.Visit, p organizations.Principal) (use keyUse, err error) {
	if use.Usage, err = r.Commands.AccountUsage(ctx, v.Session.Customer); err != nil {
		return use, err
	}
	use.Free = accounts.FreeCallsPerMonth
	use.Near = use.Used >= web.NearLimit
	if p.May(organizations.RightMembers) != nil {
		return use, nil
	}
	tokens, err := r.Commands.Tokens(ctx, p)
	if err != nil {
		return use, err
	}
	until := ground.Stamp(r.Commands.Clock().Add(endsSoon))
	for _, t := range tokens {
		if t.State == "active" && t.ExpiresAt < until { // both are stamps, which compare as texts
			use.Ending = append(use.Ending, t)
		}
	}
	return use, nil
}

func (r *Room) showOverview(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	var o overview
	var more int64
	var err error
	if o.Reviews, more, err = r.queries().Reviews(ctx, p, query.Filter{}, 0, web.MostReviews); err != nil {
		return web.View{}, err
	}
	o.MoreThere = more > 0
	violations, err := r.queries().Search(ctx, p, query.Violations(), 5, "")
	if err != nil {
		return web.View{}, err
	}
	o.Violations = violations.Items
	if err := r.addVerdicts(ctx, p, &o); err != nil {
		return web.View{}, err
	}
	if p.May(organizations.RightPolicies) == nil {
		_, activations, err := r.Commands.Policies(ctx, p)
		if err != nil {
			return web.View{}, err
		}
		if n := len(activations); n > 0 {
			active, err := versionShown(activations[n-1], nil)
			if err != nil {
				return web.View{}, err
			}
			o.Policy, o.Stops = &active.Activation, active.Stops
		}
	}
	o.Checkpoint = web.NewestCheckpoint(r.Commands.Ledger)
	if o.Head, err = r.Commands.Ledger.Total(ctx); err != nil {
		return web.View{}, ground.Unreadable(err)
	}
	o.Check, o.State = r.Commands.Ledger.LastCheck(), r.Commands.Ledger.Condition()
	if o.Keys, err = r.keysNearLimit(ctx, v, p); err != nil {
		return web.View{}, err
	}
	o.Steps = o.Allowed+o.Denied+o.Reviewed == 0
	return web.View{Template: "overview.html", Data: o}, nil
}

func (r *Room) addVerdicts(ctx context.Context, p organizations.Principal, o *overview) error {
	now := r.Commands.Clock()
	from, err := r.Commands.SequenceAt(ctx, p, now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-overviewDays))
	if err != nil {
		return err
	}
	var actors []string
	if p.OwnOnly() {
		if actors, err = r.Commands.OwnActors(ctx, p); err != nil {
			return err
		}
	}
	days, err := r.Projections.Verdicts(ctx, p.OrgID, actors, from)
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
	o.Chart = web.Trusted(drawn.SVG)
	return err
}

// Day counts the verdicts of one day.
type Day struct {
	Date                      time.Time
	Allowed, Denied, Reviewed int
}

// lastDays returns today and the days before it, also those without decisions.
func lastDays(counted map[time.Time]Day, today time.Time, days int) (list []Day) {
	for n := days - 1; n >= 0; n-- {
		date := today.UTC().Truncate(24*time.Hour).AddDate(0, 0, -n)
		d := counted[date]
		d.Date = date
		list = append(list, d)
	}
	return list
}
