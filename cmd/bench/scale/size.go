package scale

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Size measures how many bytes a call adds to the ledger: the rows of each event type, and the
// growth of the table and of each index.
type Size struct {
	Calls int `help:"Calls of each kind." default:"1000"`

	MostQuick int `help:"Fail if a quick gate call takes more bytes, with indexes; 0: never." default:"1400"`
	MostRun   int `help:"Fail if a run takes more bytes, with indexes; 0: never." default:"2500"`
}

// Run prints a table for each kind of call.
func (c *Size) Run(ctx context.Context) error {
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	owner, err := pgx.Connect(ctx, service.Scratch.Owner)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	gate := func(name string) func(context.Context, int) error {
		return func(ctx context.Context, calls int) error { return service.GateCalls(ctx, name, calls) }
	}
	var large error
	for _, kind := range []struct {
		name  string
		most  int
		calls func(context.Context, int) error
	}{{"quick gate", c.MostQuick, gate("quick")}, {"run", c.MostRun, gate("run")}, {"decision", 0, service.Decisions}} {
		before, err := sizes(ctx, owner)
		if err != nil {
			return err
		}
		if err := kind.calls(ctx, c.Calls); err != nil {
			return err
		}
		after, err := sizes(ctx, owner)
		if err != nil {
			return err
		}
		each := (after.total() - before.total()) / int64(c.Calls)
		fmt.Printf("%s: %d bytes a call", kind.name, each)
		for i, part := range after.parts {
			fmt.Printf(", %s %d", part.name, (part.size-before.of(i))/int64(c.Calls))
		}
		fmt.Println()
		if err := printTypes(ctx, owner, before.head); err != nil {
			return err
		}
		if kind.most > 0 && each > int64(kind.most) {
			large = fmt.Errorf("a %s takes %d bytes, more than %d", kind.name, each, kind.most)
		}
	}
	return large
}

// sized is the size of the events table and its indexes.
type sized struct {
	head  int64 // position of the newest event
	parts []part
}

// part is one index, or the table without its indexes.
type part struct {
	name string
	size int64
}

func (s sized) total() (size int64) {
	for _, p := range s.parts {
		size += p.size
	}
	return size
}

func (s sized) of(i int) int64 { return s.parts[i].size }

func sizes(ctx context.Context, owner *pgx.Conn) (s sized, err error) {
	if err := owner.QueryRow(ctx, `select pos from ledger_head where p = 0`).Scan(&s.head); err != nil {
		return s, err
	}
	rows, err := owner.Query(ctx, `select 'rows', pg_table_size('events')
		union all select * from (select indexrelid::regclass::text, pg_relation_size(indexrelid) from pg_index where indrelid = 'events'::regclass order by 1) i`)
	if err != nil {
		return s, err
	}
	s.parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) { return p, row.Scan(&p.name, &p.size) })
	return s, err
}

// printTypes prints for each event type the number and average size of the rows after a position.
func printTypes(ctx context.Context, owner *pgx.Conn, behind int64) error {
	rows, err := owner.Query(ctx, `select type, count(*), avg(octet_length(payload))::int, avg(pg_column_size(payload))::int, avg(pg_column_size(e.*))::int
		from events e where p = 0 and pos > $1 group by type order by 2 desc`, behind)
	if err != nil {
		return err
	}
	var kind string
	var n, payload, stored, row int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &n, &payload, &stored, &row}, func() error {
		fmt.Printf("    %-24s %7d events, payload %5d bytes, stored as %5d, row %5d\n", kind, n, payload, stored, row)
		return nil
	})
	return err
}
