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

// LastRecorded returns the sequence of the newest decision, receipt or entry of the access history that
// each of the given actors caused. Actors that caused none are left out. It waits as Access does.
func (p *Projections) LastRecorded(ctx context.Context, tenant string, actors []string) (map[string]int64, error) {
	for _, model := range []string{history.name, access.name} {
		if err := p.wait(ctx, model, tenant, ""); err != nil {
			return nil, err
		}
	}
	type row struct {
		Actor    string
		Sequence int64
	}
	rows, err := collect(ctx, p, pgx.RowToStructByPos[row], `select * from (select actor, greatest((select max(sequence) from readmodels.history h where h.tenant = $1 and h.actor = a.actor),
			(select max(sequence) from readmodels.access c where c.tenant = $1 and c.actor = a.actor)) as newest
		from unnest($2::text[]) a (actor)) found where newest is not null`, tenant, actors)
	last := map[string]int64{}
	for _, r := range rows {
		last[r.Actor] = r.Sequence
	}
	return last, err
}
