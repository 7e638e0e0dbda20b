package org

import (
	"context"
	"html/template"
	"time"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
)

// overviewDays is the length of the period that the overview shows, and overviewRows how many reviews,
// violations and agents it lists.
const (
	overviewDays = 30
	overviewRows = 5
)

// overview is the data of the overview: what needs attention, and how the organization is doing.
type overview struct {
	Reviews    []query.ListedDecision // the oldest ones
	Waiting    int                    // number of reviews, counted up to web.MostReviews
	MoreThere  bool
	Violations []query.ListedDecision
	Spending   query.Spending
	Sums       sums
	Days       []dayRow      // oldest day first
	Chart      template.HTML // empty if the period has no decision
	Agents     bars
	Policy     *decisions.Activation
	Drafts     []decisions.Draft // drafts that are newer than the active policy
	Stops      bool              // the policy allows nothing, as after an emergency stop
	Checkpoint *web.Checkpoint
	Head       int64
	Check      ledger.SelfCheck // last self-check of the ledger
	State      ledger.Condition
	Keys       keyUse
	Steps      bool // the organization has no decision yet
}

// keyUse is the person's use of free calls, and the tokens of the organization that expire soon.
type keyUse struct {
	accounts.Usage                           // counts the person's free calls in this month
	Free           int64                     // free calls in a month
	Near           bool                      // most of the free calls are used
	Ending         []organizations.TokenInfo // tokens of the organization that expire soon
}

// endsSoon is the time before expiry from which the overview shows a token. It leaves enough
// working days to rotate the token.
const endsSoon = 14 * 24 * time.Hour

// keysNearLimit returns the person's use of free calls and the organization's tokens that expire
// soon. It omits the tokens if the person may not see them.
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
		if t.State == "active" && t.ExpiresAt < until { // both are RFC 3339 times in UTC of equal length, so text order is time order
			use.Ending = append(use.Ending, t)
		}
	}
	return use, nil
}

func (r *Room) showOverview(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	var o overview
	var err error
	if o.Reviews, _, err = r.queries().Reviews(ctx, p, query.Filter{}, 0, overviewRows); err != nil {
		return web.View{}, err
	}
	if o.Waiting, err = r.queries().CountReviews(ctx, p, web.MostReviews); err != nil {
		return web.View{}, err
	}
	o.MoreThere = o.Waiting == web.MostReviews
	violations, err := r.queries().Search(ctx, p, query.Violations(), overviewRows, "")
	if err != nil {
		return web.View{}, err
	}
	o.Violations = violations.Items
	if err := r.addSpending(ctx, p, &o); err != nil {
		return web.View{}, err
	}
	if p.May(organizations.RightPolicies) == nil {
		drafts, activations, err := r.Commands.Policies(ctx, p)
		if err != nil {
			return web.View{}, err
		}
		o.Drafts = newDrafts(drafts, activations)
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
	o.Steps = o.Spending.Total.Decisions() == 0
	return web.View{Template: "overview.html", Data: o}, nil
}

// newDrafts returns the drafts that were saved after the last activation. One of them may become the next
// version.
func newDrafts(drafts []decisions.Draft, activations []decisions.Activation) (list []decisions.Draft) {
	since := ""
	if n := len(activations); n > 0 {
		since = activations[n-1].ActivatedAt
	}
	for _, d := range drafts {
		if !d.Activated && d.DraftedAt > since { // both are RFC 3339 times in UTC of equal length, so text order is time order
			list = append(list, d)
		}
	}
	return list
}

// addSpending adds the sums, the chart and the agents of the overview's period.
func (r *Room) addSpending(ctx context.Context, p organizations.Principal, o *overview) (err error) {
	if o.Spending, err = r.queries().Spending(ctx, p, overviewDays, ""); err != nil {
		return err
	}
	o.Sums = sumsOf(o.Spending)
	o.Days = dayRows(o.Spending.Days, query.Filter{})
	o.Agents = agentBars(o.Spending)
	o.Agents.Rows = o.Agents.Rows[:min(overviewRows, len(o.Agents.Rows))]
	if o.Spending.Total.Decisions() > 0 {
		_, o.Chart, err = charts(o.Days)
	}
	return err
}
