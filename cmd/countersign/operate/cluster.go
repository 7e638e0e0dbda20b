package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/migrations"
)

// recoverAtLeast and recoverAtMost are the limits of citus.recover_2pc_interval. If a server fails
// during a commit on two servers, rows stay locked until Citus completes the commit; by default
// that takes a minute.
const (
	recoverAtLeast = time.Second
	recoverAtMost  = 5 * time.Second
)

// cluster is a separate connection to the ledger's Citus cluster, with the service's role. Doctor
// can use it even if the ledger cannot be opened.
type cluster struct{ *pgx.Conn }

// cluster checks the ledger's Citus cluster. It returns no finding if the database is not a
// cluster.
func (c *Doctor) cluster(ctx context.Context) []screen.Finding {
	if c.DatabaseURL == "" {
		return nil
	}
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return nil // the finding about the ledger explains the error
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var installed bool
	err = conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'citus')`).Scan(&installed)
	if err == nil && installed {
		_, err = conn.Exec(ctx, `set role `+migrations.AppRole)
	}
	if err != nil {
		return []screen.Finding{screen.Bad("cluster", err.Error())}
	}
	if !installed {
		return nil
	}
	var found []screen.Finding
	for _, look := range []func(cluster, context.Context) ([]screen.Finding, error){cluster.spread, cluster.workers, cluster.recovery, cluster.placement, cluster.leftovers} {
		seen, err := look(cluster{conn}, ctx)
		if err != nil {
			seen = []screen.Finding{screen.Bad("cluster", err.Error())}
		}
		found = append(found, seen...)
	}
	return found
}

// spread reports tables of the ledger that are not distributed to workers.
func (c cluster) spread(ctx context.Context) ([]screen.Finding, error) {
	rows, err := c.Query(ctx, `select t from unnest($1::text[]) t where not exists
		(select from pg_dist_partition d where d.logicalrelid = t::regclass) order by t`, migrations.Distributed())
	if err != nil {
		return nil, err
	}
	local, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
		return nil, err
	case len(local) == 0:
		return []screen.Finding{screen.OK("cluster", "the ledger is distributed by partition")}, nil
	case len(local) == len(migrations.Distributed()):
		return []screen.Finding{screen.Warning("cluster", "the ledger is on the coordinator only: countersign migrate distribute distributes an empty ledger")}, nil
	}
	return []screen.Finding{screen.Bad("cluster", "not distributed: "+strings.Join(local, ", ")+"; run countersign migrate distribute before the first event")}, nil
}

// workers checks that the service can log in on each worker.
func (c cluster) workers(ctx context.Context) ([]screen.Finding, error) {
	rows, err := c.Query(ctx, `select nodename || ':' || nodeport, success, coalesce(result, '') from run_command_on_workers('select 1') order by 1`)
	if err != nil {
		return nil, err
	}
	var name, said string
	var success bool
	var found []screen.Finding
	_, err = pgx.ForEachRow(rows, []any{&name, &success, &said}, func() error {
		if !success {
			found = append(found, screen.Bad("worker", fmt.Sprintf("%s refuses the login of %s: %s; the role must be able to log in there, and pg_hba.conf needs a line for the coordinator", name, migrations.AppRole, said)))
		} else {
			found = append(found, screen.OK("worker", name+" accepts the login of "+migrations.AppRole))
		}
		return nil
	})
	return found, err
}

// recovery checks how long after a crash Citus completes commits on two servers.
func (c cluster) recovery(ctx context.Context) ([]screen.Finding, error) {
	var ms int64
	if err := c.QueryRow(ctx, `select setting::bigint from pg_settings where name = 'citus.recover_2pc_interval'`).Scan(&ms); err != nil {
		return nil, err
	}
	every := time.Duration(ms) * time.Millisecond
	if every < recoverAtLeast || every > recoverAtMost {
		return []screen.Finding{screen.Warning("recovery", fmt.Sprintf("citus.recover_2pc_interval is %s: after a crash the head may stay locked for that time; set it to between %s and %s", every, recoverAtLeast, recoverAtMost))}, nil
	}
	return []screen.Finding{screen.OK("recovery", fmt.Sprintf("commits on two servers are finished within %s of a crash", every))}, nil
}

// placement reports which worker stores which partitions.
func (c cluster) placement(ctx context.Context) ([]screen.Finding, error) {
	rows, err := c.Query(ctx, `select p from ledger_head order by p`)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		return nil, err
	}
	rows, err = c.Query(ctx, `select p, string_agg(distinct nodename || ':' || nodeport, ' and ')
		from unnest($1::smallint[]) p, pg_dist_partition d, citus_shards s
		where d.partmethod = 'h' and d.logicalrelid::text = any($2) and s.shardid = get_shard_id_for_distribution_column(d.logicalrelid, p)
		group by p order by p`, all, migrations.Distributed())
	if err != nil {
		return nil, err
	}
	var p int
	var place string
	partitions := map[string][]string{}
	if _, err := pgx.ForEachRow(rows, []any{&p, &place}, func() error {
		partitions[place] = append(partitions[place], fmt.Sprint(p))
		return nil
	}); err != nil {
		return nil, err
	}
	var found []screen.Finding
	for place, held := range partitions {
		say, rest := screen.OK, ""
		if strings.Contains(place, " and ") { // a commit would involve two servers
			say, rest = screen.Bad, ": move its tables to one worker with citus_move_shard_placement, and colocate them with ledger_head by update_distributed_table_colocation"
		}
		found = append(found, say("placement", fmt.Sprintf("partition %s on %s%s", strings.Join(held, ", "), place, rest)))
	}
	slices.SortFunc(found, func(a, b screen.Finding) int { return strings.Compare(a.Detail, b.Detail) })
	return found, nil
}

// leftovers reports tables with rows from before the distribution, which queries on Citus do not
// return any more.
func (c cluster) leftovers(ctx context.Context) ([]screen.Finding, error) {
	rows, err := c.Query(ctx, `select t from unnest($1::text[]) t join pg_dist_partition d on d.logicalrelid = t::regclass
		where pg_relation_size(t::regclass) > 0 order by t`, migrations.Distributed())
	if err != nil {
		return nil, err
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return []screen.Finding{screen.Bad("leftovers", "rows from before the distribution are on the coordinator, where queries do not see them: "+strings.Join(left, ", ")+
		"; examine them in a copy of the coordinator's disk before truncate_local_data_after_distributing_table removes them")}, nil
}
