package projections

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
)

// uses is the read model with the newest call of each API key and each agent.
var uses = projection{
	name:     "uses",
	tables:   []string{"uses"},
	version:  1,
	handles:  events.ShownIn("uses"),
	applyRun: applyUses,
}

// applyUses stores the newest time of each actor in a list of calls. It leaves out calls that were
// paid without a key, because their actors have no page.
func applyUses(ctx context.Context, _ *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (int, error) {
	type user struct{ actor, tenant string }
	newest := map[user]int64{}
	for _, e := range list {
		if strings.HasPrefix(e.Actor, events.KeyPrefix) || strings.HasPrefix(e.Actor, events.AgentPrefix) {
			u := user{e.Actor, e.Tenant}
			newest[u] = max(newest[u], e.OccurredUS)
		}
	}
	if len(newest) == 0 {
		return len(list), nil
	}
	var actors, tenants []string
	var times []int64
	for u, at := range newest {
		actors, tenants, times = append(actors, u.actor), append(tenants, u.tenant), append(times, at)
	}
	_, err := tx.Exec(ctx, `insert into uses (actor, tenant, occurred_us) select * from unnest($1::text[], $2::text[], $3::bigint[])
		on conflict (actor, tenant) do update set occurred_us = greatest(uses.occurred_us, excluded.occurred_us)`, actors, tenants, times)
	return len(list), err
}

// LastUse returns the time of the newest call of each key and agent in actors. Actors without a
// call are left out. Their calls are recorded in the partitions of customerID and of the actors.
// It waits until every event appended before the call is visible, or returns ErrBehind.
func (p *Projections) LastUse(ctx context.Context, customerID string, actors []string) (map[string]time.Time, error) {
	tenants := []string{p.ledger.Service(customerID)}
	for _, actor := range actors {
		if tenant := p.ledger.Service(actor); !slices.Contains(tenants, tenant) {
			tenants = append(tenants, tenant)
		}
	}
	for _, tenant := range tenants {
		if err := p.wait(ctx, uses.name, tenant, ""); err != nil {
			return nil, err
		}
	}
	type row struct {
		Actor string
		At    int64
	}
	rows, err := collect(ctx, p, pgx.RowToStructByPos[row], `select actor, max(occurred_us) from readmodels.uses where actor = any($1) group by actor`, actors)
	last := map[string]time.Time{}
	for _, r := range rows {
		last[r.Actor] = time.UnixMicro(r.At).UTC()
	}
	return last, err
}
