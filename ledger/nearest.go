package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// nearestWithin bounds the attempt to reach a worker: behind it the coordinator is
	// asked, which reaches that worker or says that nobody does.
	nearestWithin = time.Second
	// nearestAgain is how long a sequencer of a cluster stays where it is. Then it looks
	// once more who holds its partition and lets it in, which both change.
	nearestAgain = time.Minute
)

// dial connects a sequencer to the server that holds its partition, and says whether
// that is one of a Citus cluster. There it is a worker, which takes the statements of
// the coordinator: a batch is then one commit of one server, in one phase, without a
// detour. Where it cannot be reached, or lets nodes in from the coordinator only,
// everything goes through the coordinator.
func (s *sequencer) dial(ctx context.Context) (conn *pgx.Conn, cluster bool, err error) {
	conn, err = pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return nil, false, err
	}
	var near *pgx.Conn
	err = conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'citus')`).Scan(&cluster)
	if err == nil && cluster {
		near, err = s.dialHolder(ctx, conn)
	}
	if near == nil && err == nil {
		return conn, cluster, nil
	}
	_ = conn.Close(ctx)
	return near, cluster, err
}

// dialHolder connects to the worker that holds the partition, which the coordinator
// knows; nil where there is none that is reached.
func (s *sequencer) dialHolder(ctx context.Context, coordinator *pgx.Conn) (*pgx.Conn, error) {
	var host string
	var port int
	err := coordinator.QueryRow(ctx, `select n.nodename, n.nodeport from pg_dist_partition d, pg_dist_placement l, pg_dist_node n
		where d.logicalrelid = 'ledger_head'::regclass and d.partmethod = 'h' and l.groupid = n.groupid and n.noderole = 'primary' and n.groupid <> 0
		and l.shardid = get_shard_id_for_distribution_column(d.logicalrelid, $1::smallint)`, s.partition.p).Scan(&host, &port)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the coordinator who holds the partition: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, nearestWithin)
	defer cancel()
	near, err := pgx.ConnectConfig(ctx, at(s.config, host, uint16(port)))
	if err != nil {
		s.log.Debug("appends go through the coordinator", "partition", s.partition.p, "error", err)
		return nil, nil
	}
	return near, nil
}

// at is a connection's settings for another host: with TLS and without where both will do.
func at(config *pgx.ConnConfig, host string, port uint16) *pgx.ConnConfig {
	moved := config.Copy()
	moved.Host, moved.Port, moved.Fallbacks = host, port, nil
	for _, f := range config.Fallbacks {
		if f.Host == config.Host && f.Port == config.Port {
			f := *f
			f.Host, f.Port = host, port
			moved.Fallbacks = append(moved.Fallbacks, &f)
		}
	}
	if moved.TLSConfig != nil && moved.TLSConfig.ServerName != "" {
		moved.TLSConfig.ServerName = host
	}
	return moved
}

// lookAgain lets the next batch find anew who holds the partition, when the last look
// was long ago.
func (s *sequencer) lookAgain() {
	if s.cluster && s.clock().Sub(s.dialled) >= nearestAgain {
		s.disconnect()
	}
}

// errUnseen is a commit that was answered and is not to be seen.
var errUnseen = errors.New("the cluster has not finished the commit")

// readBack proves that everybody sees the head where a commit has put it. On one
// PostgreSQL the answer to the commit is that proof. In a cluster the answer may come
// before the worker has heard of the second phase, and until the cluster has found that
// out the rows are in no answer.
func (s *sequencer) readBack(ctx context.Context, head int64) error {
	if !s.cluster {
		return nil
	}
	var seen int64
	if err := s.conn.QueryRow(ctx, s.sql.position).Scan(&seen); err != nil {
		return fmt.Errorf("%w: %v", errUnseen, err) // not wrapped: it does not say that nothing was committed
	}
	if seen < head {
		return errUnseen
	}
	return nil
}
