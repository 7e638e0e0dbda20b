package query

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// MostBars is the largest number of agents, payees, tools or rules in a list. The largest come
// first.
const MostBars = 20

// Spending sums up what the agents of an organization requested and spent in a period.
type Spending struct {
	From, Until   time.Time // days in UTC; the period includes From and excludes Until
	Total, Before projections.Spent
	Days          []projections.Spent // every day of the period, oldest first
	Agents        []AgentSpent

	filter projections.SpendFilter // selects the decisions of the period
}

// Breakdown sums up requests and spending by payee and by tool, and counts how often each rule
// decided.
type Breakdown struct {
	Payees, Tools []projections.Spent
	Rules         []projections.Fired
}

// AgentSpent is the sum of one agent. If the decisions name no agent, Name and Agent are empty. If
// the name was erased, only Name is empty.
type AgentSpent struct {
	projections.Spent
	Name string
}

// Spending sums up the decisions of the last days, including today. Before is the sum of the
// preceding period of equal length. agent is the data key of an agent's name; if it is set, only
// this agent's decisions count. A principal with OwnOnly gets only the sums of their own
// decisions.
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

// Breakdown sums up the decisions of a Spending by payee, tool and rule.
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

// total returns the sum of the decisions that match a filter.
func (s Decisions) total(ctx context.Context, p organizations.Principal, f projections.SpendFilter) (projections.Spent, error) {
	sum, err := s.Projections.Spend(ctx, p.OrgID, f, projections.SpendTotal, 1)
	if err != nil || len(sum) == 0 {
		return projections.Spent{AllowedUSD: "0", SpentUSD: "0"}, Error(err)
	}
	return sum[0], nil
}

// everyDay returns one entry for each day of the period, including the days without decisions.
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

// named adds the names of agents. Only records contain the names, so it decrypts the newest
// decision of each agent.
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

// Agent returns the agent whose name has this data key, with its sums since the beginning. It
// returns "not found" if the principal may see none of the agent's decisions.
func (s Decisions) Agent(ctx context.Context, p organizations.Principal, agent string) (AgentSpent, error) {
	actors, err := s.actors(ctx, p)
	if err != nil {
		return AgentSpent{}, err
	}
	f := s.always()
	f.Agent, f.Actors = agent, actors
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

// always returns the filter for the decisions of every period.
func (s Decisions) always() projections.SpendFilter {
	return projections.SpendFilter{From: time.Unix(0, 0), Until: s.Commands.Clock().AddDate(1, 0, 0)}
}

// Total returns the sum of the decisions that match a filter, from the read model. ok is false if the
// read model cannot select them: the filter has a condition other than protocol, agent and period, or
// the period does not consist of complete days.
func (s Decisions) Total(ctx context.Context, p organizations.Principal, f Filter) (total projections.Spent, ok bool, err error) {
	const day = 24 * time.Hour
	in := s.always()
	in.Protocol = f.Protocol
	if !f.from.IsZero() {
		in.From = f.from.UTC()
	}
	if !f.to.IsZero() {
		in.Until = f.to.UTC()
	}
	if f.Decision+f.Conformance+f.Rule+f.Run+f.Target+f.Text != "" || in.From != in.From.Truncate(day) || !f.to.IsZero() && in.Until != in.Until.Truncate(day) {
		return total, false, nil
	}
	if in.Actors, err = s.actors(ctx, p); err != nil {
		return total, false, err
	}
	if f.Agent != "" {
		if in.Agent, err = s.Commands.AgentKey(ctx, p, f.Agent); err != nil || in.Agent == "" {
			return total, false, err
		}
	}
	total, err = s.total(ctx, p, in)
	return total, true, err
}
