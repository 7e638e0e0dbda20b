package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
)

const (
	rebuildBatch = 1000                   // events in a batch
	rebuildTries = 20                     // consecutive failures after which a rebuild ends
	rebuildPause = 100 * time.Millisecond // pause after a failure, and between two attempts to get the lock
	swapTries    = 5
	repairAgain  = 5 * time.Second // pause before a failed rebuild is repeated
	rebuildLock  = 7_024_118       // class of the advisory locks; each read model has one, so that only one node at a time rebuilds it
)

// Names lists the names of all read models.
func Names() []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.name
	}
	return names
}

// Rebuild rebuilds a read model from the first event in a scratch schema, and replaces the one in
// use once it has caught up. Queries on all nodes use the old tables until then and the new ones
// afterwards. Rebuild returns the number of events that were read.
func Rebuild(ctx context.Context, l *ledger.Ledger, log *slog.Logger, name string) (read int64, err error) {
	for _, p := range all {
		if p.name == name {
			m := newModel(p, l, log)
			if _, err := m.prepare(ctx); err != nil {
				return 0, err
			}
			if err := m.rebuild(ctx, true); err != nil {
				return 0, fmt.Errorf("rebuild the read model %s: %w", name, err)
			}
			return m.read(ctx)
		}
	}
	return 0, fmt.Errorf("no such read model: choose one of %s", strings.Join(Names(), ", "))
}

// prepare creates a read model that does not exist. For an existing one it reports whether it is
// sound: it has this program's version, its tables are unchanged, and its checkpoint names an
// event of this ledger.
func (m *model) prepare(ctx context.Context) (sound bool, err error) {
	if len(m.tables) == 0 {
		return true, m.handOn(ctx)
	}
	var version int
	var state, shape string
	var ours bool
	var rows int
	err = m.ledger.Pool().QueryRow(ctx, `select count(*), coalesce(min(version), 0), coalesce(min(state), '')
		from projection_checkpoint where name = $1`, m.key).Scan(&rows, &version, &state)
	if err == nil && (rows < len(m.runs) || version == 0) {
		err = m.create(ctx)
		if errors.Is(err, errElsewhere) {
			return m.prepare(ctx)
		}
		return err == nil, err
	}
	if err == nil {
		shape, err = m.shape(ctx, m.ledger.Pool())
	}
	if err == nil {
		ours, err = m.ours(ctx)
	}
	switch {
	case err != nil:
		return false, err
	case version > m.version:
		return false, fmt.Errorf("the database has version %d of the read model and this program %d: start the newer program", version, m.version)
	case version < m.version:
		m.log.Info("the read model has an older version and is rebuilt", "projection", m.name)
	case !ours:
		m.log.Warn("the read model belongs to another ledger and is rebuilt", "projection", m.name)
	case state != shape:
		m.log.Warn("the tables of the read model were changed, so it is rebuilt", "projection", m.name)
	default:
		return true, nil
	}
	return false, nil
}

// ours reports whether every checkpoint names an event of this ledger.
func (m *model) ours(ctx context.Context) (bool, error) {
	for _, r := range m.runs {
		var ours bool
		if err := m.ledger.Pool().QueryRow(ctx, behindOurs, m.key, r.partition.Number()).Scan(&ours); err != nil || !ours {
			return false, err
		}
	}
	return true, nil
}

// behindOurs is a query that reports whether the checkpoint of one partition names an event of
// this ledger. It has subqueries instead of a join, because events may be on another server than
// checkpoints.
const behindOurs = `select c.pos = 0 or coalesce(c.hash = (select e.hash from public.events e where e.p = $2 and e.pos =
		(select i.pos from public.projection_checkpoint i where i.name = $1 and i.p = $2)), false)
	from public.projection_checkpoint c where c.name = $1 and c.p = $2`

// create creates an empty read model with checkpoints before the first event. It returns
// errElsewhere if another node has just created it.
func (m *model) create(ctx context.Context) error {
	return pgx.BeginFunc(ctx, m.ledger.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into projection_checkpoint (name, p, version, pos, hash, state)
			select $1, p, 0, 0, $2, '' from generate_series(0, $3 - 1) p on conflict do nothing`, m.key, make([]byte, 32), len(m.runs))
		if err != nil {
			return err
		}
		at, err := m.lock(ctx, tx)
		if err != nil {
			return err
		}
		if at.version > 0 {
			return errElsewhere
		}
		for _, table := range m.tables {
			if _, err := tx.Exec(ctx, `drop table if exists `+m.schema+`.`+table+` cascade`); err != nil {
				return err
			}
		}
		return m.makeTables(ctx, tx)
	})
}

// makeTables creates the tables in the model's schema, and its checkpoints before the first event.
func (m *model) makeTables(ctx context.Context, tx pgx.Tx) error {
	ddl, err := migrations.ReadModel(m.name)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local search_path = `+m.schema+`, public`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, ddl); err != nil {
		return err
	}
	shape, err := m.shape(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into public.projection_checkpoint (name, p, version, pos, hash, state)
		select $1, p, $2, 0, $3, $4 from generate_series(0, $5 - 1) p
		on conflict (name, p) do update set version = excluded.version, pos = 0, hash = excluded.hash, state = excluded.state`,
		m.key, m.version, make([]byte, 32), shape, len(m.runs))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `delete from public.projection_dead where name = $1`, m.key)
	return err
}

// shape returns a hash of the tables in the database catalogue: owner, columns, constraints and
// indexes. It changes if a table was dropped, changed or replaced.
func (m *model) shape(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (shape string, err error) {
	err = q.QueryRow(ctx, `with t as (select c.oid, c.relname, c.relkind, c.relowner from pg_class c
				where c.relnamespace = to_regnamespace($1) and c.relname = any($2)),
			parts as (
				select concat_ws(' ', relname, relkind, pg_get_userbyid(relowner)) part from t
				union all select concat_ws(' ', t.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation, a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
					from t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
					left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
				union all select concat_ws(' ', t.relname, c.conname, pg_get_constraintdef(c.oid)) from t join pg_constraint c on c.conrelid = t.oid
				union all select concat_ws(' ', t.relname, pg_get_indexdef(i.indexrelid)) from t join pg_index i on i.indrelid = t.oid)
		select md5(coalesce(string_agg(part, e'\n' order by part collate "C"), '')) from parts`, m.schema, m.tables).Scan(&shape)
	if err != nil {
		return "", fmt.Errorf("read the tables of a read model: %w", err)
	}
	return shape, nil
}

// repair repeats rebuild until it succeeds or ctx ends. Then the runs continue with the new
// tables.
func (m *model) repair(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.rebuild(ctx, false)
		if err == nil {
			close(m.made)
			return
		}
		if ctx.Err() == nil {
			m.log.Error("the read model could not be rebuilt; trying again", "projection", m.name, "error", err)
		}
		select {
		case <-time.After(repairAgain):
		case <-ctx.Done():
		}
	}
}

// rebuild rebuilds the read model, on one node at a time. If forced is false and another node has
// rebuilt it meanwhile, it accepts that result.
func (m *model) rebuild(ctx context.Context, forced bool) error {
	lock, err := m.ledger.Pool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	for locked := false; !locked; {
		if err := lock.QueryRow(ctx, `select pg_try_advisory_lock($1, hashtext($2))`, rebuildLock, m.name).Scan(&locked); err != nil {
			return err
		}
		if locked {
			continue
		}
		select {
		case <-time.After(rebuildPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() {
		if _, err := lock.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1, hashtext($2))`, rebuildLock, m.name); err != nil {
			_ = lock.Conn().Close(context.WithoutCancel(ctx)) // the lock then ends with its session
		}
	}()
	if !forced {
		if sound, err := m.prepare(ctx); err != nil || sound {
			return err
		}
	}
	scratch := newModel(m.projection, m.ledger, m.log)
	scratch.schema, scratch.key = "rebuild_"+m.name, m.name+":rebuild"
	if err := scratch.begun(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ { // repeat the swap, because it fails while a long query locks the old tables or if many events are appended
		if err := scratch.catchUp(ctx); err != nil {
			return err
		}
		if err := m.swap(ctx, scratch); err == nil || n == swapTries || ctx.Err() != nil {
			return err
		}
	}
}

// unlimited are the options of a transaction of maintenance. It may take longer than a request, and
// it may scan whole tables.
var unlimited = pgx.TxOptions{BeginQuery: `begin; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local enable_seqscan = on`}

// begun creates an empty scratch schema and removes one that an interrupted rebuild has left.
func (m *model) begun(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, m.ledger.Pool(), unlimited, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `drop schema if exists `+m.schema+` cascade; create schema `+m.schema); err != nil {
			return err
		}
		return m.makeTables(ctx, tx)
	})
}

// checkpoints contains the locked positions of a model in each partition.
type checkpoints struct {
	version   int // lowest version of all partitions
	positions []int64
}

// lock locks the checkpoints of all partitions, so that no node can advance them.
func (m *model) lock(ctx context.Context, tx pgx.Tx) (at checkpoints, err error) {
	rows, err := tx.Query(ctx, `select version, pos from projection_checkpoint where name = $1 order by p for update`, m.key)
	if err != nil {
		return at, err
	}
	var version int
	var position int64
	_, err = pgx.ForEachRow(rows, []any{&version, &position}, func() error {
		if len(at.positions) == 0 || version < at.version {
			at.version = version
		}
		at.positions = append(at.positions, position)
		return nil
	})
	if err == nil && len(at.positions) != len(m.runs) {
		err = fmt.Errorf("%s has checkpoints of %d partitions, and the ledger has %d", m.name, len(at.positions), len(m.runs))
	}
	return at, err
}

// read returns the number of events that the model has read, in all partitions.
func (m *model) read(ctx context.Context) (events int64, err error) {
	for _, r := range m.runs {
		at, err := r.checkpoint(ctx)
		if err != nil {
			return events, err
		}
		events += at
	}
	return events, nil
}

// catchUp applies events in every partition until less than a batch is missing to the end of the
// ledger.
func (m *model) catchUp(ctx context.Context) error {
	for _, r := range m.runs {
		if err := r.catchUp(ctx, theEnd); err != nil {
			return err
		}
	}
	return nil
}

// theEnd is the position for catchUp that is after every event.
const theEnd = math.MaxInt64

// catchUp applies the events up to and including the position to. For theEnd it continues until
// less than a batch is missing to the end of the ledger. It reads the next batch while it applies
// one, and repeats a step that has failed.
func (r *run) catchUp(ctx context.Context, to int64) error {
	var next <-chan readBatch
	for failed := 0; ; {
		at, err := r.checkpoint(ctx)
		if err == nil && at >= to {
			return nil
		}
		var batch []ledger.Event
		if err == nil {
			batch, err = r.read(ctx, at, &next)
			batch = batch[:min(int64(len(batch)), to-at)]
		}
		if err == nil && len(batch) > 0 {
			err = r.through(ctx, batch)
		}
		switch {
		case err == nil && len(batch) < rebuildBatch && to == theEnd:
			return nil
		case err == nil && len(batch) == 0:
			return fmt.Errorf("the ledger ends at position %d, but the read model in use is at %d", at, to)
		case err == nil:
			failed = 0
			continue
		}
		next = nil
		if failed++; failed == rebuildTries || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(rebuildPause):
		case <-ctx.Done():
		}
	}
}

// readBatch is the result of reading events after a position.
type readBatch struct {
	after  int64
	events []ledger.Event
	err    error
}

// read returns the batch after a position, and starts to read the next one. Its goroutine ends
// after one read, even if nobody receives the result.
func (r *run) read(ctx context.Context, at int64, next *<-chan readBatch) ([]ledger.Event, error) {
	var b readBatch
	if *next != nil {
		b = <-*next
	}
	if *next == nil || b.after != at || len(b.events) < rebuildBatch {
		b.events, b.err = r.partition.After(ctx, at, rebuildBatch)
	}
	*next = nil
	if b.err == nil && len(b.events) == rebuildBatch {
		ahead := make(chan readBatch, 1)
		after := b.events[len(b.events)-1].Position
		go func() {
			events, err := r.partition.After(ctx, after, rebuildBatch)
			ahead <- readBatch{after, events, err}
		}()
		*next = ahead
	}
	return b.events, b.err
}

// swap replaces the tables in use by the scratch tables. It first locks the checkpoints and
// applies the few remaining events. The parked events of the new tables replace those of the old
// ones.
func (m *model) swap(ctx context.Context, scratch *model) error {
	return pgx.BeginFunc(ctx, m.ledger.Pool(), func(tx pgx.Tx) error {
		at, err := m.lock(ctx, tx)
		switch {
		case err != nil:
			return err
		case at.version > m.version:
			return m.otherVersion(at.version)
		}
		heads, err := m.ledger.Heads(ctx)
		if err != nil {
			return err
		}
		for i, r := range scratch.runs {
			if err := r.catchUp(ctx, min(at.positions[i], heads[i])); err != nil {
				return err
			}
		}
		statements := []string{}
		for _, table := range m.tables {
			statements = append(statements, `drop table if exists `+m.schema+`.`+table+` cascade`,
				`alter table `+scratch.schema+`.`+table+` set schema `+m.schema)
		}
		for _, statement := range append(statements, `drop schema `+scratch.schema+` cascade`) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return m.replace(ctx, tx, scratch)
	})
}

// replace gives the checkpoints of the scratch model the key of the model in use.
func (m *model) replace(ctx context.Context, tx pgx.Tx, scratch *model) error {
	shape, err := m.shape(ctx, tx)
	if err != nil {
		return err
	}
	done, err := tx.Exec(ctx, `update projection_checkpoint c set version = s.version, pos = s.pos, hash = s.hash, state = $3
		from projection_checkpoint s where c.name = $1 and s.p = c.p and s.name = $2`, m.key, scratch.key, shape)
	if err != nil {
		return err
	}
	if done.RowsAffected() != int64(len(m.runs)) {
		return errors.New("the checkpoint of the rebuild is missing")
	}
	for _, statement := range []string{
		`delete from projection_dead where name = $1 and $2 <> ''`,
		`update projection_dead set name = $1 where name = $2`,
		`delete from projection_checkpoint where name = $2 and $1 <> ''`,
	} {
		if _, err := tx.Exec(ctx, statement, m.key, scratch.key); err != nil {
			return err
		}
	}
	return nil
}
