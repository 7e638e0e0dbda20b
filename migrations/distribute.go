package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// distributed lists the tables that Citus distributes by partition: the tables of the ledger, in
// the order in which they are distributed. The rows of one partition in all of these tables are on
// one server. All other tables stay on the coordinator: a read model and its checkpoint must
// change in one transaction on one server, because a lost reply of a second server could advance
// the checkpoint without the rows.
var distributed = []string{"ledger_head", "events", "tiles", "tree_head", "checkpoints", "subject_keys", "directory"}

// Distributed returns the names of the tables that Distribute distributes.
func Distributed() []string { return append([]string(nil), distributed...) }

// Errors of Distribute. Each text says what the operator can do.
var (
	ErrNoCitus = errors.New("the database has no extension citus: create it here and on the workers, add them with citus_add_node, then try again")
	ErrBegun   = errors.New("the ledger has events: only an empty ledger can be distributed, because existing rows would stay on the coordinator, where queries do not see them")
)

// ErrDistributed is the error of Down for a distributed ledger, because no migration file can undo
// the changes of Distribute.
var ErrDistributed = errors.New("the ledger is distributed: its migrations cannot be undone; if it is empty, drop the database on every server and create another")

// Distribute distributes the tables of a migrated ledger by partition over the workers of a Citus
// cluster. The ledger must have no events. If a step fails, Distribute may be called again; after
// a success a second call changes nothing.
//
// Citus does not distribute tables with triggers, so the triggers that refuse changes of events
// are removed. The service's role still has no right to change an event.
func Distribute(ctx context.Context, databaseURL string) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := checkCluster(ctx, conn); err != nil {
		return err
	}
	if err := Prepare(ctx, conn); err != nil { // from now on the roles need a login
		return err
	}
	if err := becomeOwner(ctx, conn); err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return spread(ctx, tx) }); err != nil {
		return fmt.Errorf("distribute: %w", err)
	}
	if err := balance(ctx, conn); err != nil {
		return fmt.Errorf("distribute: balance the partitions over the workers (safe to repeat): %w", err)
	}
	if err := teachPlanner(ctx, conn); err != nil {
		return fmt.Errorf("distribute: set the planner's statistics on the workers (safe to repeat): %w", err)
	}
	return nil
}

// isDistributed reports whether the table events is distributed over a Citus cluster.
func isDistributed(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
	if err := conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'citus')`).Scan(&is); err != nil || !is {
		return false, err
	}
	err = conn.QueryRow(ctx, `select exists (select from pg_dist_partition where logicalrelid = to_regclass('public.events'))`).Scan(&is)
	return is, err
}

func checkCluster(ctx context.Context, conn *pgx.Conn) error {
	var installed, migrated bool
	err := conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'citus'), to_regclass('public.ledger_head') is not null`).
		Scan(&installed, &migrated)
	switch {
	case err != nil:
		return err
	case !installed:
		return ErrNoCitus
	case !migrated:
		return errors.New("the database has no ledger yet: run countersign migrate up first")
	}
	var workers int
	if err := conn.QueryRow(ctx, `select count(*) from citus_get_active_worker_nodes()`).Scan(&workers); err != nil {
		return err
	}
	if workers == 0 {
		return errors.New("the cluster has no worker: add them on the coordinator with citus_add_node, then try again")
	}
	return nil
}

// spread distributes the tables. The rows of an empty ledger, its heads, are copied to their
// workers, and the local copies are removed.
func spread(ctx context.Context, tx pgx.Tx) error {
	var done int
	if err := tx.QueryRow(ctx, `select count(*) from pg_dist_partition where logicalrelid = any($1::regclass[])`, distributed).Scan(&done); err != nil {
		return err
	}
	if done == len(distributed) {
		return nil
	}
	if _, err := tx.Exec(ctx, `lock table `+strings.Join(distributed, ", ")+` in access exclusive mode`); err != nil {
		return err
	}
	if err := checkEmpty(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `drop trigger if exists events_append_only on events; drop trigger if exists events_payload_moves on events;`+eraseSubject); err != nil {
		return err
	}
	var partitions int
	if err := tx.QueryRow(ctx, `select count(*) from ledger_head`).Scan(&partitions); err != nil {
		return err
	}
	for i, table := range distributed {
		create, with := `select create_distributed_table($1::text::regclass, 'p', colocate_with => $2)`, distributed[0]
		if i == 0 {
			create, with = fmt.Sprintf(`select create_distributed_table($1::text::regclass, 'p', colocate_with => $2, shard_count => %d)`, shards(partitions)), "none"
		}
		if _, err := tx.Exec(ctx, create, table, with); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		if _, err := tx.Exec(ctx, `select truncate_local_data_after_distributing_table($1::text::regclass)`, table); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

// balance moves the shards of an empty ledger so that every worker has its share of the
// partitions. Citus itself balances only the number of shards, most of which contain no partition.
func balance(ctx context.Context, conn *pgx.Conn) error {
	var begun bool
	if err := conn.QueryRow(ctx, `select exists (select 1 from ledger_head where pos > 0)`).Scan(&begun); err != nil || begun {
		return err
	}
	rows, err := conn.Query(ctx, `select nodename, nodeport from pg_dist_node where groupid <> 0 and noderole = 'primary' and isactive order by nodeid`)
	if err != nil {
		return err
	}
	workers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[worker])
	if err != nil {
		return err
	}
	if rows, err = conn.Query(ctx, `select p from ledger_head order by p`); err != nil {
		return err
	}
	partitions, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		return err
	}
	rows, err = conn.Query(ctx, `select s.shardid, s.nodename, s.nodeport, count(*) from unnest($1::smallint[]) p, citus_shards s
		where s.shardid = get_shard_id_for_distribution_column('ledger_head', p) group by 1, 2, 3 order by 4 desc, 1`, partitions)
	if err != nil {
		return err
	}
	pieces, err := pgx.CollectRows(rows, pgx.RowToStructByPos[piece])
	if err != nil {
		return err
	}
	for _, m := range moves(workers, pieces) {
		if _, err := conn.Exec(ctx, `select citus_move_shard_placement($1, $2, $3, $4, $5, 'block_writes')`,
			m.piece.Shard, m.piece.Host, m.piece.Port, m.to.Host, m.to.Port); err != nil {
			return err
		}
	}
	return nil
}

type worker struct {
	Host string
	Port int
}

// piece is a shard of the table ledger_head, together with the shards of the other tables for the
// same partitions.
type piece struct {
	Shard      int64
	Host       string
	Port       int
	Partitions int
}

type move struct {
	piece piece
	to    worker
}

// moves assigns each piece to the worker that has the fewest partitions so far, starting with the
// pieces with the most partitions.
func moves(workers []worker, pieces []piece) (list []move) {
	held := make([]int, len(workers))
	for _, p := range pieces {
		least := 0
		for i := range held {
			if held[i] < held[least] {
				least = i
			}
		}
		held[least] += p.Partitions
		if to := workers[least]; to != (worker{p.Host, p.Port}) {
			list = append(list, move{p, to})
		}
	}
	return list
}

// shards returns the number of shards for each table, which cannot change later. Citus assigns
// partitions to shards by a hash of their number, so more shards than partitions make it less
// likely that some share a shard. Each shard costs seven tables on a worker.
func shards(partitions int) int {
	if partitions == 1 {
		return 1
	}
	return 2 * partitions
}

// eraseSubject is the erase function of the first migration, in a form that Citus can plan: with
// parameters as values, and without a join that reads a payload.
const eraseSubject = `
create or replace function erase_subject(of_p smallint, of_pos bigint) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
declare
    said record;
    erased text;
begin
    select tenant, occurred_us, payload into said from events where p = of_p and pos = of_pos and type = 'subject.erased';
    if not found then
        return;
    end if;
    erased := convert_from(said.payload, 'UTF8')::jsonb ->> 'keyId';
    update subject_keys set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = said.occurred_us
    where p = of_p and tenant = said.tenant and key_id = erased and key_id <> 'subject_ref' and destroyed_us is null;
end
$$`

func checkEmpty(ctx context.Context, tx pgx.Tx) error {
	var begun bool
	err := tx.QueryRow(ctx, `select exists (select 1 from ledger_head where pos > 0) or exists (select 1 from events)`).Scan(&begun)
	if err == nil && begun {
		err = ErrBegun
	}
	return err
}

// teachPlanner gives the planner of each worker the settings that the first migration made on the
// coordinator: the number of distinct values, and statistics of typical rows. Citus copies neither
// of them to the shards.
func teachPlanner(ctx context.Context, conn *pgx.Conn) error {
	var failed []string
	rows, err := conn.Query(ctx, `select distinct result from run_command_on_shards('events', $$
		alter table %s alter p set (n_distinct = 1), alter stream set (n_distinct = -0.5),
			alter version set (n_distinct = 200), alter idem_key set (n_distinct = -0.9)$$) where not success`)
	if err == nil {
		failed, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || len(failed) > 0 {
		return errors.Join(err, errors.New(strings.Join(failed, "; ")))
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table ledger_head in access exclusive mode`); err != nil {
			return err
		}
		if err := checkEmpty(ctx, tx); err != nil {
			if errors.Is(err, ErrBegun) { // the statistics now come from the ledger's own events
				return nil
			}
			return err
		}
		rows, err := tx.Query(ctx, `select p from ledger_head`)
		if err != nil {
			return err
		}
		partitions, err := pgx.CollectRows(rows, pgx.RowTo[int16])
		if err != nil {
			return err
		}
		for _, p := range partitions {
			if _, err := tx.Exec(ctx, fmt.Sprintf(sample, p)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `analyze events; truncate events`)
		return err
	})
}

// sample inserts typical rows into a partition.
const sample = `insert into events (p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
		actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash)
	select %d, n, 't' || n %% 10, n / 10 + 1, 's' || n, 1, '', '', 0, 0, 1, '', '', h, h, '{}', h, h, h
	from (select n, sha256(n::text::bytea) h from generate_series(1, 3000) n) s`
