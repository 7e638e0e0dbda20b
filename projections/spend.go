package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/assurance"
)

// spend is the read model with the numbers and amounts of an organization's decisions, by day,
// agent, payee or tool, and rule.
var spend = projection{
	name:     "spend",
	tables:   []string{"spend", "noise"},
	version:  1,
	handles:  events.ShownIn("spend"),
	applyRun: applySpend,
}

// applySpend adds a list of decisions and receipts to the sums. A receipt counts on the day of its
// decision, so that a sum matches the list of its decisions.
func applySpend(ctx context.Context, l *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (int, error) {
	return len(list), insertRecorded(ctx, l, tx, list, &spendRows{})
}

// spendRows collects the rows to add to the tables, with one slice per column.
type spendRows struct {
	tenants, actors, agents, protocols, targets []string
	days                                        []time.Time
	decisions                                   []string // empty for a receipt
	violations                                  []bool
	allowed, spent                              []string // amounts in US dollars
	sequences                                   []int64

	rules    []string // rules with findings, decision by decision
	ruleRows []int32  // for each entry of rules the row of its decision, from 1
}

// addend contains the data of a decision that the sums need.
type addend struct {
	decision, usd string
	rules         []string
}

// add adds a row with the day, agent and target of a decision. All counts and amounts of the row
// are still zero.
func (s *spendRows) add(decision ledger.Event) (a addend, err error) {
	record := events.RecordIn(decision.Payload)
	summary, err := assurance.ReadSummary(record)
	if err != nil {
		return a, err
	}
	issued, err := assurance.ReadStamp(summary.IssuedAt)
	if err != nil {
		return a, err
	}
	var n assurance.Intent
	if err := readMember(record, "normalized", &n); err != nil {
		return a, err
	}
	s.tenants, s.days = append(s.tenants, decision.Tenant), append(s.days, issued.UTC().Truncate(24*time.Hour))
	s.actors, s.agents = append(s.actors, decision.Actor), append(s.agents, decision.Agent)
	s.protocols, s.targets = append(s.protocols, summary.Protocol), append(s.targets, assurance.Target(summary.Protocol, n))
	s.decisions, s.violations = append(s.decisions, ""), append(s.violations, false)
	s.allowed, s.spent = append(s.allowed, "0"), append(s.spent, "0")
	s.sequences = append(s.sequences, decision.Sequence)
	return addend{summary.Decision, assurance.USD(n), summary.RuleIDs}, nil
}

func (s *spendRows) addDecision(e ledger.Event) error {
	a, err := s.add(e)
	if err != nil {
		return err
	}
	last := len(s.decisions) - 1
	if s.decisions[last] = a.decision; a.decision == assurance.Allow && a.usd != "" {
		s.allowed[last] = a.usd
	}
	for _, rule := range a.rules {
		s.rules, s.ruleRows = append(s.rules, rule), append(s.ruleRows, int32(last+1)) //nolint:gosec // a batch has at most some thousand events
	}
	return nil
}

func (s *spendRows) addReceipt(e, decision ledger.Event) error {
	outcome, err := memberOf(e, "outcome")
	if err != nil {
		return err
	}
	conformance, err := memberOf(e, "conformance")
	if err != nil {
		return err
	}
	a, err := s.add(decision)
	if err != nil {
		return err
	}
	last := len(s.decisions) - 1
	s.violations[last] = conformance == assurance.Violation
	if outcome == assurance.Fulfilled && a.usd != "" {
		s.spent[last] = a.usd
	}
	return nil
}

// insert adds the rows to the sums in the tables spend and noise.
func (s *spendRows) insert(ctx context.Context, tx pgx.Tx) error {
	const counts = `count(*) filter (where decision = 'allow'), count(*) filter (where decision = 'deny'), count(*) filter (where decision = 'needs_review')`
	if _, err := tx.Exec(ctx, `insert into spend as t
		select tenant, day, actor, agent, protocol, target, `+counts+`, count(*) filter (where violation), sum(allowed), sum(spent), max(sequence)
		from unnest($1::text[], $2::date[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bool[], $9::numeric[], $10::numeric[], $11::bigint[])
			r (tenant, day, actor, agent, protocol, target, decision, violation, allowed, spent, sequence)
		group by 1, 2, 3, 4, 5, 6
		on conflict (tenant, day, actor, agent, protocol, target) do update set allowed = t.allowed + excluded.allowed, denied = t.denied + excluded.denied,
			reviewed = t.reviewed + excluded.reviewed, violations = t.violations + excluded.violations, allowed_usd = t.allowed_usd + excluded.allowed_usd,
			spent_usd = t.spent_usd + excluded.spent_usd, newest = greatest(t.newest, excluded.newest)`,
		s.tenants, s.days, s.actors, s.agents, s.protocols, s.targets, s.decisions, s.violations, s.allowed, s.spent, s.sequences); err != nil {
		return err
	}
	if len(s.rules) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into noise as t
		select tenant, day, actor, agent, rule, `+counts+`
		from (select distinct n, rule from unnest($1::int[], $2::text[]) f (n, rule)) f
		join unnest($3::text[], $4::date[], $5::text[], $6::text[], $7::text[]) with ordinality r (tenant, day, actor, agent, decision, n) using (n)
		group by 1, 2, 3, 4, 5
		on conflict (tenant, day, actor, agent, rule) do update set allowed = t.allowed + excluded.allowed, denied = t.denied + excluded.denied,
			reviewed = t.reviewed + excluded.reviewed`,
		s.ruleRows, s.rules, s.tenants, s.days, s.actors, s.agents, s.decisions)
	return err
}

// SpendFilter selects decisions. An empty member does not restrict them.
type SpendFilter struct {
	From, Until time.Time // days in UTC; From is in the period, Until is not
	Actors      []string  // actors who caused the decisions; nil means every actor
	Agent       string    // id of the agent's data key
	Protocol    string    // ignored by Noise
}

// Spent is a row of sums. Of Day, Agent, Protocol and Target only those are set by which the sums
// are grouped.
type Spent struct {
	Day                       time.Time
	Agent                     string // id of the agent's data key; empty for decisions without an agent
	Protocol, Target          string
	Allowed, Denied, Reviewed int64
	Violations                int64
	AllowedUSD, SpentUSD      string // exact decimals
	Newest                    int64  // sequence of the newest decision
}

// Decisions returns the number of decisions in a row.
func (s Spent) Decisions() int64 { return s.Allowed + s.Denied + s.Reviewed }

// Groupings for Spend: SQL expressions for the day, agent, protocol and target of a row.
const (
	SpendTotal  = `'epoch'::date, '', '', ''`
	SpendDay    = `day, '', '', ''`
	SpendAgent  = `'epoch'::date, agent, '', ''`
	SpendTarget = `'epoch'::date, '', protocol, target`
)

// Spend returns the sums of decisions, grouped by one of the constants above. Days are in order;
// other groups are sorted by spent dollars and then by decisions, the largest first. It waits
// until every event appended before the call is visible, or returns ErrBehind.
func (p *Projections) Spend(ctx context.Context, tenant string, f SpendFilter, by string, limit int) ([]Spent, error) {
	if err := p.wait(ctx, spend.name, tenant, ""); err != nil {
		return nil, err
	}
	order := `sum(spent_usd) desc, sum(allowed_usd) desc, sum(allowed + denied + reviewed) desc, 2, 3, 4`
	if by == SpendDay {
		order = `1`
	}
	return collect(ctx, p, pgx.RowToStructByPos[Spent], `select `+by+`, sum(allowed)::bigint, sum(denied)::bigint, sum(reviewed)::bigint, sum(violations)::bigint,
			trim_scale(sum(allowed_usd))::text, trim_scale(sum(spent_usd))::text, max(newest)
		from readmodels.spend where `+inSpend+` and ($6 = '' or protocol = $6) group by 1, 2, 3, 4 order by `+order+` limit $7`,
		tenant, f.From, f.Until, f.Actors, f.Agent, f.Protocol, limit)
}

// inSpend is the SQL condition of a SpendFilter without its protocol. It can be used for the
// tables spend and noise.
const inSpend = `tenant = $1 and day >= $2 and day < $3 and ($4::text[] is null or actor = any($4)) and ($5 = '' or agent = $5)`

// Fired counts the decisions in which a rule had findings, by verdict.
type Fired struct {
	Rule                      string
	Allowed, Denied, Reviewed int64
}

// Decisions returns the number of decisions in which the rule had findings.
func (f Fired) Decisions() int64 { return f.Allowed + f.Denied + f.Reviewed }

// Noise lists rules by the number of decisions in which they had findings, the most frequent
// first. It waits as Spend does.
func (p *Projections) Noise(ctx context.Context, tenant string, f SpendFilter, limit int) ([]Fired, error) {
	if err := p.wait(ctx, spend.name, tenant, ""); err != nil {
		return nil, err
	}
	return collect(ctx, p, pgx.RowToStructByPos[Fired], `select rule, sum(allowed)::bigint, sum(denied)::bigint, sum(reviewed)::bigint from readmodels.noise where `+inSpend+`
		group by 1 order by sum(allowed + denied + reviewed) desc, 1 limit $6`, tenant, f.From, f.Until, f.Actors, f.Agent, limit)
}
