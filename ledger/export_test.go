package ledger

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// RunOn is AuditDatabase on connections that are there.
func (a Audit) RunOn(ctx context.Context, pool *pgxpool.Pool) (Report, error) {
	return a.all(ctx, pool)
}

// InRanges is an audit with other bounds of memory.
func (a Audit) InRanges(span int64, spill int) Audit {
	a.spanEvents, a.spillOctets = span, spill
	return a
}
