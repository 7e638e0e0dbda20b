package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// nearestWithin bounds the attempt to reach a worker: behind it the coordinator is
// asked, which reaches that worker or says that nobody does.
const nearestWithin = time.Second

// dial connects a sequencer to the server that holds its partition. In a Citus cluster
// that is a worker, which takes the statements of the coordinator: a batch is then one
// commit of one server, in one phase, without a detour. Where it cannot be reached, or
// lets nodes in from the coordinator only, everything goes through the coordinator.
func (s *sequencer) dial(ctx context.Context) (*pgx.Conn, error) {
	trying, cancel := context.WithTimeout(ctx, nearestWithin)
	defer cancel()
	if host, port, ok := s.partition.worker(trying); ok {
		config := s.config.Copy()
		config.Host, config.Port, config.Fallbacks = host, port, nil
		if config.TLSConfig != nil && config.TLSConfig.ServerName != "" {
			config.TLSConfig.ServerName = host
		}
		conn, err := pgx.ConnectConfig(trying, config)
		if err == nil {
			return conn, nil
		}
		s.log.Debug("appends go through the coordinator", "partition", s.partition.p, "error", err)
	}
	return pgx.ConnectConfig(ctx, s.config.Copy())
}

// worker is where the partition lies, if that is another server than the one that
// clients are told of.
func (p *Partition) worker(ctx context.Context) (host string, port uint16, ok bool) {
	var cluster bool
	err := p.ledger.pool.QueryRow(ctx, `select exists (select 1 from pg_extension where extname = 'citus')`).Scan(&cluster)
	if err != nil || !cluster {
		return "", 0, false
	}
	var number int
	err = p.ledger.pool.QueryRow(ctx, `select s.nodename, s.nodeport from pg_dist_partition d, citus_shards s where d.logicalrelid = 'ledger_head'::regclass
		and d.partmethod = 'h' and s.shardid = get_shard_id_for_distribution_column('ledger_head', $1::smallint)`, p.p).Scan(&host, &number)
	return host, uint16(number), err == nil
}
