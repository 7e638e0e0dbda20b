package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// nearestWithin limits the time to connect to a worker. After that the sequencer uses the
	// coordinator.
	nearestWithin = time.Second
	// nearestAgain is the time for which a sequencer in a cluster keeps its connection. Then it
	// asks again which worker has its partition, because partitions move and workers recover.
	nearestAgain = time.Minute
)

// dial connects a sequencer to the server that stores its partition. cluster reports whether the
// server is part of a Citus cluster. In a cluster dial connects to the worker directly: then a
// batch is one commit on one server, without two-phase commit. If the worker cannot be reached or
// accepts only its coordinator, dial returns a connection to the coordinator.
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

// dialHolder asks the coordinator which worker stores the partition, and connects to that worker.
// It returns nil if there is no such worker or it cannot be reached.
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
		return nil, fmt.Errorf("ask the coordinator which worker has the partition: %w", err)
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

// at returns a copy of the connection settings for another host. It keeps the fallbacks between
// TLS and no TLS.
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

// lookAgain closes the connection if it is to a cluster and older than nearestAgain, so that the
// next batch connects again.
func (s *sequencer) lookAgain() {
	if s.cluster && s.clock().Sub(s.dialled) >= nearestAgain {
		s.disconnect()
	}
}

// errUnseen means that the server has confirmed a commit whose rows are not visible yet.
var errUnseen = errors.New("the cluster has not finished the commit")

// readBack checks that a committed head is visible. On a single PostgreSQL server the answer to
// the commit proves that. In a cluster the answer may come before the worker has finished the
// second phase of the commit, and until then readers do not see the rows.
func (s *sequencer) readBack(ctx context.Context, head int64) error {
	if !s.cluster {
		return nil
	}
	var seen int64
	if err := s.conn.QueryRow(ctx, s.sql.position).Scan(&seen); err != nil {
		return fmt.Errorf("%w: %v", errUnseen, err) // %v hides the cause from certainlyNot, because the commit was confirmed
	}
	if seen < head {
		return errUnseen
	}
	return nil
}
