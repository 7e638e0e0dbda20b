package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
)

// Difference is a row that the live read model and the replayed one do not share.
type Difference struct {
	Table string `json:"table"`
	Key   string `json:"key"`  // of the row, as columns and values
	What  string `json:"what"` // "only live", "only replayed" or "different"
}

// Compared is what a comparison found.
type Compared struct {
	Name        string       `json:"name"`
	Position    int64        `json:"position"` // up to which both have read
	Rows        int64        `json:"rows"`     // live
	Differences []Difference `json:"differences"`
	More        bool         `json:"more"` // than are listed
}

// maxDifferences are listed; one wrong event can change every row.
const maxDifferences = 100

// Diff replays a read model from the first event on in a schema beside the live one
// and compares the two row by row. While they are compared nobody moves the live
// one; queries go on. Rows that have expired are left out: the live one has swept
// some of them.
func Diff(ctx context.Context, l *ledger.Ledger, log *slog.Logger, name string) (c Compared, err error) {
	at := slices.IndexFunc(all, func(p projection) bool { return p.name == name && len(p.tables) > 0 })
	if at < 0 {
		return c, fmt.Errorf("no such read model: choose one of %s", strings.Join(Names(), ", "))
	}
	live, scratch := newRun(all[at], l, log), newRun(all[at], l, log)
	scratch.schema, scratch.key = "diff_"+name, name+":diff"
	if err := scratch.begun(ctx); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, scratch.remove(context.WithoutCancel(ctx))) }()
	c = Compared{Name: name, Differences: []Difference{}}
	if c.Position, err = live.checkpoint(ctx); err != nil {
		return c, err
	}
	if err := scratch.exactly(ctx, c.Position); err != nil {
		return c, err
	}
	err = pgx.BeginFunc(ctx, l.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local enable_seqscan = on`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select pos from projection_checkpoint where name = $1 and p = 0 for update`, live.key).Scan(&c.Position); err != nil {
			return err
		}
		if err := scratch.exactly(ctx, c.Position); err != nil {
			return err
		}
		for _, table := range live.tables {
			if err := c.table(ctx, tx, live.schema, scratch.schema, table); err != nil {
				return fmt.Errorf("compare %s: %w", table, err)
			}
		}
		return nil
	})
	return c, err
}

// exactly applies events up to a position and none behind it.
func (r *run) exactly(ctx context.Context, to int64) error {
	for {
		at, err := r.checkpoint(ctx)
		if err != nil || at >= to {
			return err
		}
		batch, err := r.ledger.After(ctx, at, int(min(rebuildBatch, to-at)))
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return fmt.Errorf("the ledger ends at %d, the read model in use at %d", at, to)
		}
		if err := r.through(ctx, batch); err != nil {
			return err
		}
	}
}

// remove drops a scratch schema and its bookkeeping.
func (r *run) remove(ctx context.Context) error {
	_, err := r.ledger.Pool().Exec(ctx, `drop schema if exists `+r.schema+` cascade`)
	_, err2 := r.ledger.Pool().Exec(ctx, `delete from projection_checkpoint where name = $1`, r.key)
	_, err3 := r.ledger.Pool().Exec(ctx, `delete from projection_dead where name = $1`, r.key)
	return errors.Join(err, err2, err3)
}

// table compares one table by its primary key.
func (c *Compared) table(ctx context.Context, tx pgx.Tx, live, scratch, table string) error {
	rows, err := tx.Query(ctx, `select a.attname, coalesce(a.attnum = any(i.indkey), false) from pg_attribute a left join pg_index i on i.indrelid = a.attrelid and i.indisprimary
		where a.attrelid = ($1 || '.' || $2)::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`, live, table)
	if err != nil {
		return err
	}
	var column string
	var isKey, expires bool
	var keys []string
	if _, err := pgx.ForEachRow(rows, []any{&column, &isKey}, func() error {
		if isKey {
			keys = append(keys, pgx.Identifier{column}.Sanitize())
		}
		expires = expires || column == "expires_at"
		return nil
	}); err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("the table has no primary key")
	}
	alive, shown := "", make([]string, len(keys))
	if expires {
		alive = ` where expires_at > now()`
	}
	for i, key := range keys {
		shown[i] = `'` + strings.Trim(key, `"`) + ` ' || ` + key
	}
	name := pgx.Identifier{table}.Sanitize()
	if err := tx.QueryRow(ctx, `select count(*) + $1 from `+live+`.`+name+alive, c.Rows).Scan(&c.Rows); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `select concat_ws(', ', `+strings.Join(shown, ", ")+`), case when s is null then 'only live' when l is null then 'only replayed' else 'different' end
		from (select x.`+strings.Join(keys, ", x.")+`, row_to_json(x)::text l from `+live+`.`+name+` x`+alive+`) l
		full join (select x.`+strings.Join(keys, ", x.")+`, row_to_json(x)::text s from `+scratch+`.`+name+` x`+alive+`) s using (`+strings.Join(keys, ", ")+`)
		where l.l is distinct from s.s limit $1`, maxDifferences+1)
	if err != nil {
		return err
	}
	d := Difference{Table: table}
	_, err = pgx.ForEachRow(rows, []any{&d.Key, &d.What}, func() error {
		if len(c.Differences) == maxDifferences {
			c.More = true
			return nil
		}
		c.Differences = append(c.Differences, d)
		return nil
	})
	return err
}

// At builds every read model as it was behind a position, in the schema
// replay_<position>, which stays until somebody drops it.
func At(ctx context.Context, l *ledger.Ledger, log *slog.Logger, position int64) (schema string, err error) {
	schema = fmt.Sprintf("replay_%d", position)
	if _, err := l.Pool().Exec(ctx, `drop schema if exists `+schema+` cascade; create schema `+schema); err != nil {
		return "", err
	}
	for _, p := range all {
		if len(p.tables) == 0 {
			continue
		}
		scratch := newRun(p, l, log)
		scratch.schema, scratch.key = schema, p.name+":"+schema
		err := pgx.BeginFunc(ctx, l.Pool(), func(tx pgx.Tx) error { return scratch.makeTables(ctx, tx) })
		if err == nil {
			err = scratch.exactly(ctx, position)
		}
		_, forgotten := l.Pool().Exec(ctx, `delete from projection_checkpoint where name = $1`, scratch.key)
		if err = errors.Join(err, forgotten); err != nil {
			return schema, fmt.Errorf("replay %s: %w", p.name, err)
		}
	}
	return schema, nil
}

// Tables lists the read models that have tables.
func Tables() []string {
	var names []string
	for _, p := range all {
		if len(p.tables) > 0 {
			names = append(names, p.name)
		}
	}
	return names
}
