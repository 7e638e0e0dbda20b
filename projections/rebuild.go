package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
)

const (
	rebuildBatch = 1000                   // events read and applied at once
	rebuildTries = 20                     // in a row that fail before a rebuild is given up
	rebuildPause = 100 * time.Millisecond // between them
	swapTries    = 5
	repairAgain  = 5 * time.Second // after a rebuild that failed
	rebuildLock  = 7_024_118       // class of the advisory locks, one per read model: two nodes do not build the same
)

// Names lists the read models.
func Names() []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.name
	}
	return names
}

// Rebuild builds a read model anew from the first event on, in a schema beside the
// one in use, and puts it in the place of that one when it has come as far. Until
// then queries see the old one, and every node goes on with it; afterwards they
// go on with the new one. It returns the position the new one has come to.
func Rebuild(ctx context.Context, l *ledger.Ledger, log *slog.Logger, name string) (position int64, err error) {
	for _, p := range all {
		if p.name == name {
			r := newRun(p, l, log)
			if _, err := r.prepare(ctx); err != nil {
				return 0, err
			}
			if err := r.rebuild(ctx, true); err != nil {
				return 0, fmt.Errorf("rebuild the read model %s: %w", name, err)
			}
			return r.checkpoint(ctx)
		}
	}
	return 0, fmt.Errorf("no such read model: choose one of %s", strings.Join(Names(), ", "))
}

// prepare makes a read model that was never made, and says of another whether it
// can be gone on with: of this program's version, with the tables as they were
// made, behind an event of this ledger.
func (r *run) prepare(ctx context.Context) (sound bool, err error) {
	if len(r.tables) == 0 {
		return true, r.handOn(ctx)
	}
	var version int
	var state, shape string
	var ours bool
	err = r.ledger.Pool().QueryRow(ctx, `select version, state, pos = 0 or exists (select from events e where e.p = 0 and e.pos = c.pos and e.hash = c.hash)
		from projection_checkpoint c where name = $1 and p = 0`, r.key).Scan(&version, &state, &ours)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && version == 0 {
		err = r.create(ctx)
		if errors.Is(err, errElsewhere) {
			return r.prepare(ctx)
		}
		return err == nil, err
	}
	if err == nil {
		shape, err = r.shape(ctx, r.ledger.Pool())
	}
	switch {
	case err != nil:
		return false, err
	case version > r.version:
		return false, fmt.Errorf("the database has version %d of it and this program %d: start the newer program", version, r.version)
	case version < r.version:
		r.log.Info("read model is of an older version: it is rebuilt", "projection", r.name)
	case !ours:
		r.log.Warn("read model is not of this ledger: it is rebuilt", "projection", r.name)
	case state != shape:
		r.log.Warn("tables of a read model are not as they were made: it is rebuilt", "projection", r.name)
	default:
		return true, nil
	}
	return false, nil
}

// create makes a read model for the first time: empty, behind no event. errElsewhere
// means that another node just has.
func (r *run) create(ctx context.Context) error {
	return pgx.BeginFunc(ctx, r.ledger.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into projection_checkpoint (name, p, version, pos, hash, state)
			values ($1, 0, 0, 0, $2, '') on conflict do nothing`, r.key, make([]byte, 32))
		if err != nil {
			return err
		}
		var version int
		if err := tx.QueryRow(ctx, `select version from projection_checkpoint where name = $1 and p = 0 for update`, r.key).Scan(&version); err != nil {
			return err
		}
		if version > 0 {
			return errElsewhere
		}
		for _, table := range r.tables {
			if _, err := tx.Exec(ctx, `drop table if exists `+r.schema+`.`+table+` cascade`); err != nil {
				return err
			}
		}
		return r.makeTables(ctx, tx)
	})
}

// makeTables makes the tables in the run's schema, and its checkpoint that of
// nothing read.
func (r *run) makeTables(ctx context.Context, tx pgx.Tx) error {
	ddl, err := migrations.ReadModel(r.name)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local search_path = `+r.schema+`, public`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, ddl); err != nil {
		return err
	}
	shape, err := r.shape(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into public.projection_checkpoint (name, p, version, pos, hash, state) values ($1, 0, $2, 0, $3, $4)
		on conflict (name, p) do update set version = excluded.version, pos = 0, hash = excluded.hash, state = excluded.state`,
		r.key, r.version, make([]byte, 32), shape)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `delete from public.projection_dead where name = $1 and p = 0`, r.key)
	return err
}

// shape describes the tables as the catalogue has them: owner, columns,
// constraints and indexes. A table that was dropped, changed or put in the place
// of ours has another one.
func (r *run) shape(ctx context.Context, q interface {
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
		select md5(coalesce(string_agg(part, e'\n' order by part collate "C"), '')) from parts`, r.schema, r.tables).Scan(&shape)
	if err != nil {
		return "", fmt.Errorf("look at the tables of a read model: %w", err)
	}
	return shape, nil
}

// repair rebuilds until it has succeeded or the context ends. The run goes on
// from there.
func (r *run) repair(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.rebuild(ctx, false)
		if err == nil {
			close(r.made)
			return
		}
		if ctx.Err() == nil {
			r.log.Error("read model is not rebuilt; trying again", "projection", r.name, "error", err)
		}
		select {
		case <-time.After(repairAgain):
		case <-ctx.Done():
		}
	}
}

// rebuild builds the read model anew, one node at a time. Unless it is forced, it
// is content with what another node has built while this one waited.
func (r *run) rebuild(ctx context.Context, forced bool) error {
	lock, err := r.ledger.Pool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	for locked := false; !locked; {
		if err := lock.QueryRow(ctx, `select pg_try_advisory_lock($1, hashtext($2))`, rebuildLock, r.name).Scan(&locked); err != nil {
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
		if _, err := lock.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1, hashtext($2))`, rebuildLock, r.name); err != nil {
			_ = lock.Conn().Close(context.WithoutCancel(ctx)) // the lock ends with its session
		}
	}()
	if !forced {
		if sound, err := r.prepare(ctx); err != nil || sound {
			return err
		}
	}
	scratch := newRun(r.projection, r.ledger, r.log)
	scratch.schema, scratch.key = "rebuild_"+r.name, r.name+":rebuild"
	if err := scratch.begun(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ { // a long query may hold the old tables, or much have come in between
		if err := scratch.catchUp(ctx, 0); err != nil {
			return err
		}
		if err := r.swap(ctx, scratch); err == nil || n == swapTries || ctx.Err() != nil {
			return err
		}
	}
}

// begun makes an empty scratch schema, whatever an interrupted rebuild has left.
func (r *run) begun(ctx context.Context) error {
	return pgx.BeginFunc(ctx, r.ledger.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `drop schema if exists `+r.schema+` cascade; create schema `+r.schema); err != nil {
			return err
		}
		return r.makeTables(ctx, tx)
	})
}

// catchUp applies events up to a position at least; 0 means to the end, as far as
// that is still a batch away. While a batch is applied, the next one is read.
func (r *run) catchUp(ctx context.Context, to int64) error {
	var next <-chan readBatch
	for failed := 0; ; {
		at, err := r.checkpoint(ctx)
		if err == nil && to > 0 && at >= to {
			return nil
		}
		var batch []ledger.Event
		if err == nil {
			batch, err = r.read(ctx, at, &next)
		}
		if err == nil && len(batch) > 0 {
			err = r.through(ctx, batch)
		}
		switch {
		case err == nil && len(batch) < rebuildBatch && to == 0:
			return nil
		case err == nil && len(batch) == 0:
			return fmt.Errorf("the ledger ends at %d, the read model in use at %d", at, to)
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

// readBatch is what was read behind a position.
type readBatch struct {
	after  int64
	events []ledger.Event
	err    error
}

// read takes the batch behind a position, and begins to read the one after it: the
// goroutine that does ends with its one read, whether or not somebody waits for it.
func (r *run) read(ctx context.Context, at int64, next *<-chan readBatch) ([]ledger.Event, error) {
	var b readBatch
	if *next != nil {
		b = <-*next
	}
	if *next == nil || b.after != at || len(b.events) < rebuildBatch {
		b.events, b.err = r.ledger.After(ctx, at, rebuildBatch)
	}
	*next = nil
	if b.err == nil && len(b.events) == rebuildBatch {
		ahead := make(chan readBatch, 1)
		after := b.events[len(b.events)-1].Position
		go func() {
			events, err := r.ledger.After(ctx, after, rebuildBatch)
			ahead <- readBatch{after, events, err}
		}()
		*next = ahead
	}
	return b.events, b.err
}

// swap puts the scratch tables in the place of those in use. Under the lock of the
// checkpoint nobody moves it, so the rest is small, and what was parked counts
// anew.
func (r *run) swap(ctx context.Context, scratch *run) error {
	return pgx.BeginFunc(ctx, r.ledger.Pool(), func(tx pgx.Tx) error {
		var version int
		var to int64
		err := tx.QueryRow(ctx, `select c.version, least(c.pos, (select h.pos from ledger_head h where h.p = 0))
			from projection_checkpoint c where c.name = $1 and c.p = 0 for update`, r.key).Scan(&version, &to)
		switch {
		case err != nil:
			return err
		case version > r.version:
			return r.otherVersion(version)
		}
		if to > 0 {
			if err := scratch.catchUp(ctx, to); err != nil {
				return err
			}
		}
		statements := []string{}
		for _, table := range r.tables {
			statements = append(statements, `drop table if exists `+r.schema+`.`+table+` cascade`,
				`alter table `+scratch.schema+`.`+table+` set schema `+r.schema)
		}
		for _, statement := range append(statements, `drop schema `+scratch.schema+` cascade`) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return r.replace(ctx, tx, scratch)
	})
}

// replace makes the scratch run's bookkeeping that of the run.
func (r *run) replace(ctx context.Context, tx pgx.Tx, scratch *run) error {
	shape, err := r.shape(ctx, tx)
	if err != nil {
		return err
	}
	done, err := tx.Exec(ctx, `update projection_checkpoint c set version = s.version, pos = s.pos, hash = s.hash, state = $3
		from projection_checkpoint s where c.name = $1 and c.p = 0 and s.name = $2 and s.p = 0`, r.key, scratch.key, shape)
	if err != nil {
		return err
	}
	if done.RowsAffected() != 1 {
		return errors.New("the checkpoint of the rebuild is gone")
	}
	for _, statement := range []string{
		`delete from projection_dead where p = 0 and name = $1 and $2 <> ''`,
		`update projection_dead set name = $1 where p = 0 and name = $2`,
		`delete from projection_checkpoint where p = 0 and name = $2 and $1 <> ''`,
	} {
		if _, err := tx.Exec(ctx, statement, r.key, scratch.key); err != nil {
			return err
		}
	}
	return nil
}
