package projections

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// access is the read model of accesses to an organization and its records.
var access = projection{
	name:    "access",
	tables:  []string{"access"},
	version: 1,
	handles: events.ShownIn("access"),
	apply:   applyAccess,
}

func applyAccess(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	_, err := tx.Exec(ctx, `insert into access (tenant, sequence, type, actor, occurred_us) values ($1, $2, $3, $4, $5)`, e.Tenant, e.Sequence, e.Type, e.Actor, e.OccurredUS)
	return err
}

// AccessFilter selects entries of the access history. The zero value selects all entries.
type AccessFilter struct {
	From, To time.Time // From is in the period, To is not; zero means no limit
	Types    []string  // event types; nil means every type in the history
	Before   int64     // sequence before which the list continues; 0 starts with the newest entry
}

// AccessRow is an entry of the access history. Its event has the details.
type AccessRow struct {
	Sequence int64
	Type     string
	Actor    string
	At       time.Time
}

// Access lists the access history of a tenant, newest first. It waits until every event appended
// before the call is visible, or returns ErrBehind.
func (p *Projections) Access(ctx context.Context, tenant string, f AccessFilter, limit int) ([]AccessRow, error) {
	if err := p.wait(ctx, access.name, tenant, ""); err != nil {
		return nil, err
	}
	from, to := int64(0), int64(math.MaxInt64)
	if !f.From.IsZero() {
		from = f.From.UnixMicro()
	}
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	return collect(ctx, p, func(row pgx.CollectableRow) (r AccessRow, err error) {
		var at int64
		err = row.Scan(&r.Sequence, &r.Type, &r.Actor, &at)
		r.At = time.UnixMicro(at).UTC()
		return r, err
	}, `select sequence, type, actor, occurred_us from readmodels.access where tenant = $1
		and occurred_us >= $2 and occurred_us < $3 and ($4::text[] is null or type = any($4)) and ($5::bigint = 0 or sequence < $5) order by sequence desc limit $6`, tenant, from, to, f.Types, f.Before, limit)
}
