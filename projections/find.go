package projections

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// FindDecisions lists the ids of up to limit decisions, newest first, whose id begins with the
// text first and ends with the text last. If first begins with "asr_", it matches the ids of
// receipts and lists their decisions. If actors is not nil, it lists only decisions of these
// actors. It waits until every event appended before the call is visible, or returns ErrBehind.
func (p *Projections) FindDecisions(ctx context.Context, tenant string, actors []string, first, last string, limit int) ([]string, error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return nil, err
	}
	column := "decision_id"
	if strings.HasPrefix(first, "asr_") {
		column = "receipt_id"
	}
	return collect(ctx, p, pgx.RowTo[string], `select d.decision_id from readmodels.history i
		join readmodels.history d on d.tenant = i.tenant and d.decision_id = i.decision_id and d.kind = 'decision'
		where i.tenant = $1 and i.`+column+` >= $2 and starts_with(i.`+column+`, $2) and right(i.`+column+`, length($3)) = $3
			and (i.kind = 'decision' or i.receipt_id is not null) and ($4::text[] is null or d.actor = any($4))
		group by 1 order by max(d.sequence) desc limit $5`, tenant, first, last, actors, limit)
}

// FindTargets lists up to limit payees and tools whose name contains a text, ignoring case. Those
// with the most decisions come first. It waits as FindDecisions does.
func (p *Projections) FindTargets(ctx context.Context, tenant string, actors []string, text string, limit int) ([]Spent, error) {
	if err := p.wait(ctx, spend.name, tenant, ""); err != nil {
		return nil, err
	}
	return collect(ctx, p, pgx.RowToStructByPos[Spent], `select `+SpendTarget+`, sum(allowed)::bigint, sum(denied)::bigint, sum(reviewed)::bigint, sum(violations)::bigint,
			trim_scale(sum(allowed_usd))::text, trim_scale(sum(spent_usd))::text, max(newest)
		from readmodels.spend where tenant = $1 and ($2::text[] is null or actor = any($2)) and position(lower($3) in lower(target)) > 0
		group by 1, 2, 3, 4 order by lower(target) = lower($3) desc, sum(allowed + denied + reviewed) desc, 4 limit $4`, tenant, actors, text, limit)
}
