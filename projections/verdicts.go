package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// DayVerdicts counts the decisions of one day (UTC).
type DayVerdicts struct {
	Day                       time.Time
	Allowed, Denied, Reviewed int
}

// Verdicts counts an organization's decisions by day, oldest day first, from a sequence on.
// With actors it counts only those that they caused. Days without decisions are left out. It
// waits until everything appended before the call is visible, or returns ErrBehind.
func (p *Projections) Verdicts(ctx context.Context, tenant string, actors []string, from int64) ([]DayVerdicts, error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return nil, err
	}
	rows, err := p.ledger.Pool().Query(ctx, `select e.occurred_us / 86400000000, count(*) filter (where h.decision = 'allow'),
			count(*) filter (where h.decision = 'deny'), count(*) filter (where h.decision = 'needs_review')
		from readmodels.history h join public.events e on e.p = $4 and e.tenant = h.tenant and e.tseq = h.sequence
		where h.tenant = $1 and h.kind = 'decision' and h.sequence >= $2 and ($3::text[] is null or h.actor = any($3))
		group by 1 order by 1`, tenant, from, actors, p.ledger.Home(tenant).Number())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DayVerdicts, err error) {
		var day int64
		err = row.Scan(&day, &d.Allowed, &d.Denied, &d.Reviewed)
		d.Day = time.Unix(day*86400, 0).UTC()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return days, nil
}
