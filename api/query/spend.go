package query

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// MostBars bounds how many agents, payees, tools and rules are listed. The largest are first.
const MostBars = 20

// Spending is what the agents of an organization asked for and spent in a period, in sums.
type Spending struct {
	From, Until   time.Time // days (UTC): From is in the period, Until is not
	Total, Before projections.Spent
	Days          []projections.Spent // every day of the period, the oldest first
	Agents        []AgentSpent

	filter projections.SpendFilter // selects the decisions of the period
}

// Breakdown is what was asked for and spent, by payee and by tool, and how often each rule decided.
type Breakdown struct {
	Payees, Tools []projections.Spent
	Rules         []projections.Fired
}

// AgentSpent is what one agent spent. Name is empty if its decisions name no agent, or if the
// name was erased; Agent is empty only in the first case.
type AgentSpent struct {
	projections.Spent
	Name string
}

// Spending adds up the decisions of the last days, today included. Before is the sum of as many
// days before them. With an agent, which is the data key of its name, it adds up only the
// decisions of that agent. A principal who sees only their own decisions gets the sums of these.
func (s Decisions) Spending(ctx context.Context, p organizations.Principal, days int, agent string) (sp Spending, err error) {
	sp.Until = s.Commands.Clock().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	sp.From = sp.Until.AddDate(0, 0, -days)
	f := projections.SpendFilter{From: sp.From, Until: sp.Until, Agent: agent}
	if f.Actors, err = s.actors(ctx, p); err != nil {
		return sp, err
	}
	before := f
	before.From, before.Until = sp.From.AddDate(0, 0, -days), sp.From
	byDay, err := s.Projections.Spend(ctx, p.OrgID, f, projections.SpendDay, days)
	if err != nil {
		return sp, Error(err)
	}
	agents, err := s.Projections.Spend(ctx, p.OrgID, f, projections.SpendAgent, MostBars)
	if err != nil {
		return sp, Error(err)
	}
	if sp.Total, err = s.total(ctx, p, f); err != nil {
		return sp, err
	}
	if sp.Before, err = s.total(ctx, p, before); err != nil {
		return sp, err
	}
	sp.Days, sp.filter = everyDay(byDay, sp.From, days), f
	sp.Agents, err = s.named(ctx, p, agents)
	return sp, err
}

// Breakdown adds up the same decisions as a Spending, by payee, tool and rule.
func (s Decisions) Breakdown(ctx context.Context, p organizations.Principal, sp Spending) (b Breakdown, err error) {
	payees, tools := sp.filter, sp.filter
	payees.Protocol, tools.Protocol = assurance.X402, assurance.MCP
	if b.Payees, err = s.Projections.Spend(ctx, p.OrgID, payees, projections.SpendTarget, MostBars); err != nil {
		return b, Error(err)
	}
	if b.Tools, err = s.Projections.Spend(ctx, p.OrgID, tools, projections.SpendTarget, MostBars); err != nil {
		return b, Error(err)
	}
	b.Rules, err = s.Projections.Noise(ctx, p.OrgID, sp.filter, MostBars)
	return b, Error(err)
}

// total adds up what a filter selects.
func (s Decisions) total(ctx context.Context, p organizations.Principal, f projections.SpendFilter) (projections.Spent, error) {
	sum, err := s.Projections.Spend(ctx, p.OrgID, f, projections.SpendTotal, 1)
	if err != nil || len(sum) == 0 {
		return projections.Spent{AllowedUSD: "0", SpentUSD: "0"}, Error(err)
	}
	return sum[0], nil
}

// everyDay adds the days without decisions.
func everyDay(counted []projections.Spent, from time.Time, days int) []projections.Spent {
	list := make([]projections.Spent, days)
	for n := range list {
		list[n] = projections.Spent{Day: from.AddDate(0, 0, n), AllowedUSD: "0", SpentUSD: "0"}
	}
	for _, d := range counted {
		list[int(d.Day.Sub(from)/(24*time.Hour))] = d
	}
	return list
}

// named finds the names of agents, which only the records have, in the newest decision of each.
func (s Decisions) named(ctx context.Context, p organizations.Principal, agents []projections.Spent) ([]AgentSpent, error) {
	var sequences []int64
	for _, a := range agents {
		if a.Agent != "" {
			sequences = append(sequences, a.Newest)
		}
	}
	records, err := s.Commands.DecisionRecords(ctx, p, sequences)
	if err != nil {
		return nil, err
	}
	list := make([]AgentSpent, len(agents))
	for i, a := range agents {
		list[i] = AgentSpent{a, records[a.Newest].Subject.AgentID}
	}
	return list, nil
}

// Agent returns an agent by the data key of its name, with its sums of all time. It refuses an
// agent about which the principal sees no decision.
func (s Decisions) Agent(ctx context.Context, p organizations.Principal, agent string) (AgentSpent, error) {
	actors, err := s.actors(ctx, p)
	if err != nil {
		return AgentSpent{}, err
	}
	f := projections.SpendFilter{From: time.Unix(0, 0), Until: s.Commands.Clock().AddDate(1, 0, 0), Agent: agent, Actors: actors}
	sums, err := s.Projections.Spend(ctx, p.OrgID, f, projections.SpendAgent, 1)
	if err == nil && len(sums) == 0 {
		err = projections.ErrNotFound
	}
	if err != nil {
		return AgentSpent{}, Error(err)
	}
	named, err := s.named(ctx, p, sums)
	if err != nil {
		return AgentSpent{}, err
	}
	return named[0], nil
}
