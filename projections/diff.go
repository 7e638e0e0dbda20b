package projections

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
)

// Difference is a row that differs between the read model in use and the replayed one.
type Difference struct {
	Table string `json:"table"`
	Key   string `json:"key"`  // primary key of the row, as columns and values
	What  string `json:"what"` // "only live", "only replayed" or "different"
}

// Compared is the result of a comparison.
type Compared struct {
	Name        string       `json:"name"`
	Position    int64        `json:"position"` // position to which both read models were compared; the sum if there are several partitions
	Rows        int64        `json:"rows"`     // number of rows in the read model in use
	Differences []Difference `json:"differences"`
	More        bool         `json:"more"` // there are more differences than Differences lists
}

// maxDifferences is the largest number of listed differences. One wrong event can change every
// row.
const maxDifferences = 100

// Diff replays a read model from the first event in a scratch schema and compares it with the one
// in use, row by row. During the comparison the read model in use does not advance, but queries
// continue. Expired rows are not compared, because some of them are already deleted.
func Diff(ctx context.Context, l *ledger.Ledger, log *slog.Logger, name string) (c Compared, err error) {
	at := slices.IndexFunc(all, func(p projection) bool { return p.name == name && len(p.tables) > 0 })
	if at < 0 {
		return c, fmt.Errorf("no such read model: choose one of %s", strings.Join(Names(), ", "))
	}
	live, scratch := newModel(all[at], l, log), newModel(all[at], l, log)
	scratch.schema, scratch.key = "diff_"+name, name+":diff"
	if err := scratch.begun(ctx); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, scratch.remove(context.WithoutCancel(ctx))) }()
	c = Compared{Name: name, Differences: []Difference{}}
	// Replay most events before taking the lock.
	for i, r := range live.runs {
		position, err := r.checkpoint(ctx)
		if err == nil {
			err = scratch.runs[i].catchUp(ctx, position)
		}
		if err != nil {
			return c, err
		}
	}
	err = pgx.BeginTxFunc(ctx, l.Pool(), unlimited, func(tx pgx.Tx) error {
		at, err := live.lock(ctx, tx)
		if err != nil {
			return err
		}
		for i, r := range scratch.runs {
			c.Position += at.positions[i]
			if err := r.catchUp(ctx, at.positions[i]); err != nil {
				return err
			}
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

// remove drops a scratch schema and its checkpoints.
func (m *model) remove(ctx context.Context) error {
	_, err := m.ledger.Pool().Exec(ctx, `drop schema if exists `+m.schema+` cascade`)
	_, err2 := m.ledger.Pool().Exec(ctx, `delete from projection_checkpoint where name = $1`, m.key)
	_, err3 := m.ledger.Pool().Exec(ctx, `delete from projection_dead where name = $1`, m.key)
	return errors.Join(err, err2, err3)
}

// table compares one table row by row, matching rows by their primary key.
func (c *Compared) table(ctx context.Context, tx pgx.Tx, live, scratch, table string) error {
	// Find the columns of the primary key, and whether rows of the table expire.
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
	// Count the rows, and compare the two tables with a full join on the primary key.
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

// At builds every read model as of a position of each partition, in the schema replay_<position>.
// The caller must drop the schema.
func At(ctx context.Context, l *ledger.Ledger, log *slog.Logger, positions []int64) (schema string, err error) {
	if len(positions) != len(l.Partitions()) {
		return "", fmt.Errorf("give a position for each of the %d partitions", len(l.Partitions()))
	}
	schema = "replay"
	for _, position := range positions {
		schema += fmt.Sprintf("_%d", position)
	}
	if len(positions) > 1 { // names in PostgreSQL have at most 63 bytes
		sum := sha256.Sum256([]byte(schema))
		schema = fmt.Sprintf("replay_%x", sum[:8])
	}
	if _, err := l.Pool().Exec(ctx, `drop schema if exists `+schema+` cascade; create schema `+schema); err != nil {
		return "", err
	}
	for _, p := range all {
		if len(p.tables) == 0 {
			continue
		}
		scratch := newModel(p, l, log)
		scratch.schema, scratch.key = schema, p.name+":"+schema
		err := pgx.BeginTxFunc(ctx, l.Pool(), unlimited, func(tx pgx.Tx) error { return scratch.makeTables(ctx, tx) })
		for i, r := range scratch.runs {
			if err == nil {
				err = r.catchUp(ctx, positions[i])
			}
		}
		_, forgotten := l.Pool().Exec(ctx, `delete from projection_checkpoint where name = $1`, scratch.key)
		if err = errors.Join(err, forgotten); err != nil {
			return schema, fmt.Errorf("replay %s: %w", p.name, err)
		}
	}
	return schema, nil
}
