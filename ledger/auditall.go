package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger/checkpoint"
)

// all audits every partition, one after the other, and adds up what was found.
func (a Audit) all(ctx context.Context, pool *pgxpool.Pool) (Report, error) {
	var n int
	if err := pool.QueryRow(ctx, `select count(*) from ledger_head`).Scan(&n); err != nil {
		return Report{}, fmt.Errorf("read ledger head: %w", err)
	}
	if n <= 1 { // a head row that is missing is a fault of the partition
		return a.run(ctx, pool, 0, 1)
	}
	total := Report{Faults: []Fault{}, Trusted: []string{}, Gaps: []string{}}
	progress, before := a.Progress, int64(0)
	pins := a.Pins
	for p := range n {
		if progress != nil {
			a.Progress = func(events, head int64) { progress(before+events, before+head) }
		}
		a.Pins = slices.DeleteFunc(slices.Clone(pins), func(pin Pin) bool { return !pin.of(p) })
		report, err := a.run(ctx, pool, int16(p), n)
		if err != nil {
			return total, err
		}
		before += report.Events
		total.add(report)
	}
	return total, nil
}

// of says whether a note is of a partition. One that names none is for the first to
// complain about.
func (pin Pin) of(p int) bool {
	named := checkpoint.Partition(pin.Note)
	return named == p || named < 0 && p == 0
}

// add adds the report of a partition.
func (r *Report) add(of Report) {
	p := len(r.Partitions)
	r.Partitions = append(r.Partitions, PartitionReport{of.Origin, of.Events, of.Head, of.Hash})
	if p == 0 {
		r.Origin = of.Origin[:max(len(of.Origin)-len("/0"), 0)]
	}
	r.Events, r.Head = r.Events+of.Events, r.Head+of.Head
	r.Tenants, r.Records, r.Checkpoints = r.Tenants+of.Tenants, r.Records+of.Records, r.Checkpoints+of.Checkpoints
	for _, f := range of.Faults {
		f.Row = fmt.Sprintf("p %d, %s", p, f.Row)
		if len(r.Faults) < maxFaults {
			r.Faults = append(r.Faults, f)
		} else {
			r.More = true
		}
	}
	r.More = r.More || of.More
	for _, list := range []struct {
		all *[]string
		of  []string
	}{{&r.Trusted, of.Trusted}, {&r.Gaps, of.Gaps}} {
		for _, text := range list.of {
			if !slices.Contains(*list.all, text) {
				*list.all = append(*list.all, text)
			}
		}
	}
}

// NewestNotes reads, for each partition of a database, the newest checkpoint up to a
// position; a partition without one has none in the list.
func NewestNotes(ctx context.Context, databaseURL string, upTo []int64) (notes [][]byte, err error) {
	conn, err := Connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for p, position := range upTo {
		var text string
		err = conn.QueryRow(ctx, `select note from checkpoints where p = $1 and size <= $2 order by size desc limit 1`, int16(p), position).Scan(&text)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return nil, fmt.Errorf("read checkpoints: %w", err)
		default:
			notes = append(notes, []byte(text))
		}
	}
	return notes, nil
}

// Heads are the positions that were verified up to, by partition.
func (r Report) Heads() []int64 {
	if len(r.Partitions) == 0 {
		return []int64{r.Head}
	}
	heads := make([]int64, len(r.Partitions))
	for i, p := range r.Partitions {
		heads[i] = p.Head
	}
	return heads
}
